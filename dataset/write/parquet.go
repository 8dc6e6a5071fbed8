package write

import (
	"io"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/parquet"
)

// WriteParquet writes src with the columns of WriteCSV: features and labels as float32, exact numbers and intervals as
// float64, and names, classes and groups as texts. Missing features and degrees are NaN.
func WriteParquet(w io.Writer, src dataset.Source, o importer.Options) error {
	info := src.Info()
	if err := info.Check(); err != nil {
		return err
	}
	var columns []parquet.WriteColumn
	numbers := info.Features
	if !info.LabelType.Classes {
		numbers += info.Labels
	}
	for i, name := range csvHeader(&info) {
		kind, at := parquet.Float, i
		if info.HasRowNames {
			at--
		}
		switch name {
		case groupColumn, classColumn:
			kind = parquet.Text
		case valueColumn, leastColumn, mostColumn:
			kind = parquet.Double
		}
		if at >= 0 && at < numbers {
			kind = parquet.Float
		} else if at < 0 {
			kind = parquet.Text
		}
		columns = append(columns, parquet.WriteColumn{Name: name, Kind: kind})
	}
	out := parquet.NewWriter(w, columns)
	err := importer.Scan(src, &o, "write", info.Rows, func(r *dataset.Row, c *importer.Checker) error {
		at := 0
		text := func(s string) { out.Text(at, s); at++ }
		number := func(v float64) { out.Number(at, v); at++ }
		if info.HasRowNames {
			text(r.Name)
		}
		_, values := c.Stored(false)
		for _, v := range values {
			number(float64(v))
		}
		if info.LabelType.Classes {
			text(className(&info, dataset.Greatest(c.Labels)))
		} else {
			for _, v := range c.Labels {
				number(float64(v))
			}
		}
		if info.HasValues {
			number(r.Value)
		}
		if info.HasIntervals {
			number(r.Interval[0])
			number(r.Interval[1])
		}
		if info.HasGroups {
			text(r.Group)
		}
		return out.Row()
	})
	if err != nil {
		return err
	}
	return out.Close()
}
