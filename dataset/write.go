package dataset

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

func defaultFeatureName(i int) string { return "x" + strconv.Itoa(i) }
func defaultLabelName(i int) string   { return "label_" + strconv.Itoa(i) }

// Format is a kind of data file that can be written.
type Format string

// The formats that can be written.
const (
	CSV   Format = "csv"
	CSVGZ Format = "csv.gz"
	NPZ   Format = "npz"
)

// FormatOf returns the format that a file's name ends in; ok is false for any other
// ending.
func FormatOf(path string) (f Format, ok bool) {
	name := strings.ToLower(path)
	for _, f := range []Format{CSV, CSVGZ, NPZ} {
		if strings.HasSuffix(name, "."+string(f)) {
			return f, true
		}
	}
	return "", false
}

// Write writes src. The rows are checked, and read back as the same float32 values.
func Write(w io.Writer, f Format, src Source, o ImportOptions) error {
	switch f {
	case CSV:
		return WriteCSV(w, src, o)
	case CSVGZ:
		z := gzip.NewWriter(w)
		return cmp.Or(WriteCSV(z, src, o), z.Close())
	case NPZ:
		return WriteNPZ(w, src, o)
	}
	return fmt.Errorf("dataset: the format %q is none of csv, csv.gz and npz", f)
}

// WriteCSV writes src with a header: row_name (where rows have names), features,
// and labels with the prefix "label_". Numbers are the shortest that read back as
// the same float32.
func WriteCSV(w io.Writer, src Source, o ImportOptions) error {
	info := src.Info()
	if err := info.check(); err != nil {
		return err
	}
	out := csv.NewWriter(bufio.NewWriterSize(w, 1<<16))
	record := csvHeader(&info)
	if err := out.Write(record); err != nil {
		return err
	}
	err := scanChecked(src, &o, "write", info.Rows, func(r *Row, c *checker) error {
		record = record[:0]
		if info.HasRowNames {
			record = append(record, r.Name)
		}
		_, values := c.stored(false)
		record = appendNumbers(appendNumbers(record, values), c.labels)
		return out.Write(record)
	})
	out.Flush()
	return cmp.Or(err, out.Error())
}

func csvHeader(info *Info) (record []string) {
	if info.HasRowNames {
		record = append(record, "row_name")
	}
	for i := range info.Features {
		if info.FeatureNames != nil {
			record = append(record, info.FeatureNames[i])
		} else {
			record = append(record, defaultFeatureName(i))
		}
	}
	for i := range info.Labels {
		if info.LabelNames != nil {
			record = append(record, "label_"+info.LabelNames[i])
		} else {
			record = append(record, defaultLabelName(i))
		}
	}
	return record
}

func appendNumbers(record []string, values []float32) []string {
	for _, v := range values {
		record = append(record, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	return record
}

// WriteNPZ writes src as float32 arrays "features" and "labels", and the names as
// "feature_names", "label_names" and "row_names" where there are any. It scans src
// once for each array.
func WriteNPZ(w io.Writer, src Source, o ImportOptions) error {
	info := src.Info()
	if err := info.check(); err != nil {
		return err
	}
	if info.Rows < 0 {
		s, err := scanStats(src, &o)
		if err != nil {
			return err
		}
		info.Rows = s.rows
	}
	n := npzWriter{npy.NewArchive(w), src, &o, info}
	err := n.floats("features", info.Features, func(c *checker) []float32 { _, v := c.stored(false); return v })
	if err == nil && info.Labels > 0 {
		err = n.floats("labels", info.Labels, func(c *checker) []float32 { return c.labels })
	}
	if err == nil {
		err = n.names()
	}
	return cmp.Or(err, n.archive.Close())
}

type npzWriter struct {
	archive *npy.Archive
	src     Source
	o       *ImportOptions
	info    Info
}

func (n *npzWriter) floats(name string, columns int, values func(*checker) []float32) error {
	out, err := n.archive.Floats(name, n.info.Rows, columns)
	if err != nil {
		return err
	}
	rows := 0
	err = scanChecked(n.src, n.o, "write", n.info.Rows, func(_ *Row, c *checker) error {
		rows++
		return out.Write(values(c))
	})
	if err == nil && rows != n.info.Rows {
		err = fmt.Errorf("dataset: %d rows, %d are expected: %w", rows, n.info.Rows, ErrChanged)
	}
	return cmp.Or(err, out.Flush())
}

func (n *npzWriter) names() (err error) {
	if len(n.info.FeatureNames) > 0 {
		err = n.archive.List("feature_names", n.info.FeatureNames)
	}
	if err == nil && len(n.info.LabelNames) > 0 {
		err = n.archive.List("label_names", n.info.LabelNames)
	}
	if err != nil || !n.info.HasRowNames {
		return err
	}
	return WriteRowNames(n.archive, n.src, n.info.Rows)
}

// WriteRowNames adds the array "row_names" with the names of all rows of src that are
// not left out.
func WriteRowNames(a *npy.Archive, src Source, rows int) error {
	return a.Strings("row_names", rows, func(f func(string) error) error {
		return src.Scan(func(r *Row) error {
			if r.LeftOut {
				return nil
			}
			return f(r.Name)
		})
	})
}

// WriteRowNumbers adds the array "rows" (int64) with the numbers in the file, from 0, of
// all rows of src that are not left out; rows is how many these are.
func WriteRowNumbers(a *npy.Archive, src Source, rows int) error {
	out, err := a.Ints("rows", rows)
	if err != nil {
		return err
	}
	err = rowNumbers(src, rows, func(row int) error { return out.Write([]int64{int64(row)}) })
	return cmp.Or(err, out.Flush())
}

// rowNumbers scans src only where rows may have been left out.
func rowNumbers(src Source, rows int, f func(int) error) error {
	if src.Info().Missing.Drop {
		return src.Scan(func(r *Row) error {
			if r.LeftOut {
				return nil
			}
			return f(r.Number)
		})
	}
	for row := range rows {
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// CountRows returns the number of rows of src that are not left out. It scans src if
// Info.Rows is unknown.
func CountRows(src Source) (rows int, err error) {
	if n := src.Info().Rows; n >= 0 {
		return n, nil
	}
	err = src.Scan(func(r *Row) error {
		if !r.LeftOut {
			rows++
		}
		return nil
	})
	return rows, err
}
