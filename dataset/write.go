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

	"github.com/coppice-ldl/coppice/internal/units"
)

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

// Write writes src. The rows are checked, and read back as the same float32 values. How is about the format NPZ.
func Write(w io.Writer, f Format, src Source, o ImportOptions, how NPZOptions) error {
	switch f {
	case CSV:
		return WriteCSV(w, src, o)
	case CSVGZ:
		level := gzip.DefaultCompression
		if src.Info().rare {
			level = gzip.HuffmanOnly
		}
		z, err := gzip.NewWriterLevel(w, level)
		if err != nil {
			return err
		}
		return cmp.Or(WriteCSV(z, src, o), z.Close())
	case NPZ:
		_, err := WriteNPZ(w, src, o, how)
		return err
	}
	return fmt.Errorf("dataset: format %q is unknown; want csv, csv.gz or npz", f)
}

// What files call what rows have beside features and label distributions.
const (
	classColumn = "class"
	valueColumn = "value"
	leastColumn = "least"
	mostColumn  = "most"
	groupColumn = "group"
)

// ReadFlags returns the flags with which a file that Write made of such rows is read, but for its
// name; they are empty where none are needed.
func ReadFlags(info *Info) (flags []string) {
	if info.LabelType.Classes {
		flags = append(flags, "--labels class")
	}
	if s := info.LabelType.Scale; s != nil {
		flags = append(flags, fmt.Sprintf("--range %d:%d", s.Low, s.Low+info.Labels-1))
	}
	if info.HasValues {
		flags = append(flags, "--values "+valueColumn)
	}
	if info.HasIntervals {
		flags = append(flags, "--intervals "+leastColumn+","+mostColumn)
	}
	if info.HasGroups {
		flags = append(flags, "--groups "+groupColumn)
	}
	if info.Missing.By != "" { // missing features are written as NaN
		flags = append(flags, "--missing "+info.Missing.By)
	}
	return flags
}

// WriteCSV writes src with a header: row_name (where rows have names), features,
// and labels with the prefix "label_", or the class of each row as "class". Exact numbers, intervals and
// groups follow as "value", "least" and "most", and "group". Numbers are the shortest that read back as
// the same float32 (exact numbers and intervals: float64).
func WriteCSV(w io.Writer, src Source, o ImportOptions) error {
	info := src.Info()
	if err := info.check(); err != nil {
		return err
	}
	out := csv.NewWriter(bufio.NewWriterSize(w, 1<<16))
	record := csvHeader(&info)
	if n := len(record); n > maxColumns {
		return fmt.Errorf("a CSV file may have at most %[2]s columns, but the data has %[1]s: give a file name that ends in .npz", units.Count(n), units.Count(maxColumns))
	}
	if err := out.Write(record); err != nil {
		return err
	}
	err := scanChecked(src, &o, "write", info.Rows, func(r *Row, c *checker) error {
		record = record[:0]
		if info.HasRowNames {
			record = append(record, r.Name)
		}
		_, values := c.stored(false)
		record = appendNumbers(record, values)
		if info.LabelType.Classes {
			record = append(record, info.className(Greatest(c.labels)))
		} else {
			record = appendNumbers(record, c.labels)
		}
		if info.HasValues {
			record = append(record, units.InFull(r.Value))
		}
		if info.HasIntervals {
			record = append(record, units.InFull(r.Interval[0]), units.InFull(r.Interval[1]))
		}
		if info.HasGroups {
			record = append(record, r.Group)
		}
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
		if info.LabelType.Classes {
			break
		}
		if info.LabelNames != nil {
			record = append(record, "label_"+info.LabelNames[i])
		} else {
			record = append(record, defaultLabelName(i))
		}
	}
	if info.LabelType.Classes {
		record = append(record, classColumn)
	}
	if info.HasValues {
		record = append(record, valueColumn)
	}
	if info.HasIntervals {
		record = append(record, leastColumn, mostColumn)
	}
	if info.HasGroups {
		record = append(record, groupColumn)
	}
	return record
}

// className returns the name of class i, or its number.
func (i *Info) className(class int) string {
	if class < len(i.LabelNames) {
		return i.LabelNames[class]
	}
	return strconv.Itoa(class)
}

func appendNumbers(record []string, values []float32) []string {
	for _, v := range values {
		record = append(record, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	return record
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
