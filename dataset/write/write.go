// Package write writes the rows of a source to files that package read reads as the same dataset: CSV and Parquet
// files and NumPy archives.
package write

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Format is a kind of data file that can be written.
type Format string

// The formats that can be written.
const (
	CSV   Format = "csv"
	CSVGZ Format = "csv.gz"
	NPZ   Format = "npz"

	Parquet Format = "parquet"
)

// FormatOf returns the format that a file's name ends in; ok is false for any other
// ending.
func FormatOf(path string) (f Format, ok bool) {
	name := strings.ToLower(path)
	for _, f := range []Format{CSV, CSVGZ, NPZ, Parquet} {
		if strings.HasSuffix(name, "."+string(f)) {
			return f, true
		}
	}
	return "", false
}

// Write writes src. The rows are checked, and read back as the same float32 values. How is about the format NPZ.
func Write(w io.Writer, f Format, src dataset.Source, o importer.Options, how NPZOptions) error {
	switch f {
	case CSV:
		return WriteCSV(w, src, o)
	case CSVGZ:
		level := gzip.DefaultCompression
		if src.Info().Rare {
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
	case Parquet:
		return WriteParquet(w, src, o)
	}
	return fmt.Errorf("dataset: format %q is unknown; want csv, csv.gz, npz or parquet", f)
}

// What files call what rows have beside features and label distributions.
const (
	classColumn = "class"
	valueColumn = "value"
	leastColumn = "least"
	mostColumn  = "most"
	groupColumn = "group"

	weightColumn = "weight"
)

// ReadFlags returns the flags with which a file that Write made of such rows is read, but for its
// name; they are empty where none are needed.
func ReadFlags(info *dataset.Info) (flags []string) {
	if info.LabelType.Classes {
		flags = append(flags, "--labels class")
	}
	if info.LabelType.Incomplete {
		flags = append(flags, "--labels incomplete")
	}
	if b := info.LabelType.Bounds; b != nil {
		if flags = append(flags, "--labels bounded"); b.Given() {
			flags = append(flags, "--bounds="+b.String()) // the first number may be negative
		}
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
	if info.HasWeights {
		flags = append(flags, "--weights "+weightColumn)
	}
	if info.Missing.By != "" { // missing features are written as NaN
		flags = append(flags, "--missing "+info.Missing.By)
	}
	return flags
}

// WriteCSV writes src with a header: row_name (where rows have names), features,
// and labels with the prefix "label_", or the class of each row as "class". Exact numbers, intervals,
// groups and weights follow as "value", "least" and "most", "group", and "weight". Numbers are the shortest that read
// back as the same float32 (exact numbers, intervals and weights: float64).
func WriteCSV(w io.Writer, src dataset.Source, o importer.Options) error {
	info := src.Info()
	if err := info.Check(); err != nil {
		return err
	}
	out := csv.NewWriter(bufio.NewWriterSize(w, 1<<16))
	record := csvHeader(&info)
	if n := len(record); n > dataset.MaxColumns {
		return fmt.Errorf("a CSV file may have at most %[2]s columns, but the data has %[1]s: give a file name that ends "+
			"in .npz", units.Count(n), units.Count(dataset.MaxColumns))
	}
	if err := out.Write(record); err != nil {
		return err
	}
	err := importer.Scan(src, &o, "write", info.Rows, func(r *dataset.Row, c *importer.Checker) error {
		record = record[:0]
		if info.HasRowNames {
			record = append(record, r.Name)
		}
		_, values := c.Stored(false)
		record = appendNumbers(record, values)
		if info.LabelType.Classes {
			record = append(record, className(&info, dataset.Greatest(c.Labels)))
		} else {
			record = appendDegrees(record, c.Labels)
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
		if info.HasWeights {
			record = append(record, units.InFull(r.Weight))
		}
		return out.Write(record)
	})
	out.Flush()
	return cmp.Or(err, out.Error())
}

// WriteParquet writes src with the columns of WriteCSV: features and labels as float32, exact numbers, intervals and
// weights as float64, and names, classes and groups as texts. Missing features and degrees are NaN.
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
		case valueColumn, leastColumn, mostColumn, weightColumn:
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
		if info.HasWeights {
			number(r.Weight)
		}
		return out.Row()
	})
	if err != nil {
		return err
	}
	return out.Close()
}

func csvHeader(info *dataset.Info) (record []string) {
	if info.HasRowNames {
		record = append(record, "row_name")
	}
	for i := range info.Features {
		if info.FeatureNames != nil {
			record = append(record, info.FeatureNames[i])
		} else {
			record = append(record, dataset.DefaultFeatureName(i))
		}
	}
	for i := range info.Labels {
		if info.LabelType.Classes {
			break
		}
		if info.LabelNames != nil {
			record = append(record, "label_"+info.LabelNames[i])
		} else {
			record = append(record, dataset.DefaultLabelName(i))
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
	if info.HasWeights {
		record = append(record, weightColumn)
	}
	return record
}

// className returns the name of class i, or its number.
func className(i *dataset.Info, class int) string {
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

// appendDegrees appends the degrees of labels; a missing one is an empty field.
func appendDegrees(record []string, degrees []float32) []string {
	from := len(record)
	record = appendNumbers(record, degrees)
	for i, d := range degrees {
		if d != d {
			record[from+i] = ""
		}
	}
	return record
}

// NPZOptions says how WriteNPZ writes a file; the zero value compresses dense features.
type NPZOptions struct {
	// Store leaves the arrays uncompressed.
	Store bool
	// Lossless makes the file give the same dataset when it is read: features that a dataset stores sparse are the
	// arrays of a CSR matrix, and classes have their distributions as "labels", too. Unless classes are numbers, "class"
	// has their positions in "label_names".
	Lossless bool
}

// WriteNPZ writes src as float32 arrays "features" (of images with a dimension for each of their sides) and "labels",
// or the class of each row as "class", and the names as
// "feature_names", "label_names" and "row_names" where there are any. What else rows have is called as in WriteCSV. It
// scans src once for each array, and returns the number of rows.
func WriteNPZ(w io.Writer, src dataset.Source, o importer.Options, how NPZOptions) (rows int, err error) {
	info := src.Info()
	if err := info.Check(); err != nil {
		return 0, err
	}
	n := npzWriter{archive: npy.NewArchive(w), src: src, o: &o, info: info, how: how}
	nonZeros := int64(-1)
	if info.Rows < 0 || how.Lossless {
		s, err := importer.Measure(src, &o)
		if err != nil {
			return 0, err
		}
		n.info.Rows, nonZeros = s.Rows, s.NonZeros
	}
	switch {
	case how.Store:
		n.archive.Store()
	case info.Rare:
		n.archive.PackLess()
	}
	if how.Lossless && info.Shape == (dataset.Shape{}) && dataset.SparseStorage(n.info.Rows, info.Features, nonZeros) {
		err = n.writeCSR(nonZeros)
	} else {
		err = n.floats("features", featureSides(&info), func(c *importer.Checker) []float32 {
			_, v := c.Stored(false)
			return v
		})
	}
	if err == nil && info.Labels > 0 {
		err = n.writeLabels()
	}
	if err == nil {
		err = n.columnsOfSamples()
	}
	if err == nil {
		err = n.names()
	}
	return n.info.Rows, cmp.Or(err, n.archive.Close())
}

type npzWriter struct {
	archive *npy.Archive
	src     dataset.Source
	o       *importer.Options
	info    dataset.Info
	how     NPZOptions
}

// writeLabels writes the distributions or classes of all rows.
func (n *npzWriter) writeLabels() error {
	classes := n.info.LabelType.Classes
	if n.how.Lossless || !classes {
		if err := n.floats("labels", []int{n.info.Labels}, func(c *importer.Checker) []float32 {
			return c.Labels
		}); err != nil || !classes {
			return err
		}
	}
	// A reader keeps the names of classes, and their order, if they are numbers in ascending order.
	// It numbers other classes as "label_names" does.
	names := slices.Clone(n.info.LabelNames)
	identity.Sort(names)
	if !n.how.Lossless || identity.AreNumbers(names) && slices.Equal(names, n.info.LabelNames) {
		return n.writeTexts(classColumn, func(_ *dataset.Row, c *importer.Checker) string {
			return className(&n.info, dataset.Greatest(c.Labels))
		})
	}
	return n.integers(classColumn, n.info.Rows, func(c *importer.Checker, add func(int64) error) error {
		return add(int64(dataset.Greatest(c.Labels)))
	})
}

// writeCSR writes the features as a CSR matrix.
func (n *npzWriter) writeCSR(nonZeros int64) error {
	shape, err := n.archive.Ints("features_shape", 2)
	if err != nil {
		return err
	}
	if err := cmp.Or(shape.Write([]int64{int64(n.info.Rows), int64(n.info.Features)}), shape.Flush()); err != nil {
		return err
	}
	values, err := n.archive.Floats("features_data", int(nonZeros))
	if err != nil {
		return err
	}
	err = n.each(func(_ *dataset.Row, c *importer.Checker) error { _, v := c.Stored(true); return values.Write(v) })
	if err = cmp.Or(err, values.Flush()); err != nil {
		return err
	}
	err = n.integers("features_indices", int(nonZeros), func(c *importer.Checker, add func(int64) error) error {
		columns, _ := c.Stored(true)
		for _, column := range columns {
			if err := add(int64(column)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	end := int64(-1) // before the first 0
	return n.integers("features_indptr", n.info.Rows+1, func(c *importer.Checker, add func(int64) error) error {
		if end < 0 {
			end = 0
			if err := add(0); err != nil {
				return err
			}
		}
		end += int64(c.NonZeros)
		return add(end)
	})
}

// integers writes an array of integers; row adds the integers of a row.
func (n *npzWriter) integers(name string, size int, row func(c *importer.Checker, add func(int64) error) error) error {
	out, err := n.archive.Ints(name, size)
	if err != nil {
		return err
	}
	err = n.each(func(_ *dataset.Row, c *importer.Checker) error {
		return row(c, func(v int64) error { return out.Write([]int64{v}) })
	})
	return cmp.Or(err, out.Flush())
}

// featureSides are the dimensions of the features of a row.
func featureSides(i *dataset.Info) []int {
	switch s := i.Shape; {
	case s == dataset.Shape{}:
		return []int{i.Features}
	case s.Channels == 1:
		return []int{s.Height, s.Width}
	default:
		return []int{s.Channels, s.Height, s.Width}
	}
}

// each calls f with each row.
func (n *npzWriter) each(f func(*dataset.Row, *importer.Checker) error) error {
	rows := 0
	err := importer.Scan(n.src, n.o, "write", n.info.Rows, func(r *dataset.Row, c *importer.Checker) error {
		rows++
		return f(r, c)
	})
	if err == nil && rows != n.info.Rows {
		err = fmt.Errorf("dataset: found %d rows, want %d: %w", rows, n.info.Rows, dataset.ErrChanged)
	}
	return err
}

func (n *npzWriter) floats(name string, sides []int, values func(*importer.Checker) []float32) error {
	out, err := n.archive.Floats(name, append([]int{n.info.Rows}, sides...)...)
	if err != nil {
		return err
	}
	err = n.each(func(_ *dataset.Row, c *importer.Checker) error { return out.Write(values(c)) })
	return cmp.Or(err, out.Flush())
}

func (n *npzWriter) doubles(name string, value func(*dataset.Row) float64) error {
	out, err := n.archive.Doubles(name, n.info.Rows)
	if err != nil {
		return err
	}
	err = n.each(func(r *dataset.Row, _ *importer.Checker) error { return out.Write([]float64{value(r)}) })
	return cmp.Or(err, out.Flush())
}

func (n *npzWriter) writeTexts(name string, value func(*dataset.Row, *importer.Checker) string) error {
	return n.archive.Strings(name, n.info.Rows, func(f func(string) error) error {
		return n.each(func(r *dataset.Row, c *importer.Checker) error { return f(value(r, c)) })
	})
}

// columnsOfSamples writes the exact numbers, the intervals, the weights and the groups of samples.
func (n *npzWriter) columnsOfSamples() (err error) {
	if n.info.HasWeights {
		err = n.doubles(weightColumn, func(r *dataset.Row) float64 { return r.Weight })
	}
	if n.info.HasValues {
		err = cmp.Or(err, n.doubles(valueColumn, func(r *dataset.Row) float64 { return r.Value }))
	}
	if n.info.HasIntervals {
		err = cmp.Or(err, n.doubles(leastColumn, func(r *dataset.Row) float64 { return r.Interval[0] }),
			n.doubles(mostColumn, func(r *dataset.Row) float64 { return r.Interval[1] }))
	}
	if n.info.HasGroups {
		err = cmp.Or(err, n.writeTexts(groupColumn, func(r *dataset.Row, _ *importer.Checker) string { return r.Group }))
	}
	return err
}

func (n *npzWriter) names() (err error) {
	if len(n.info.FeatureNames) > 0 {
		err = n.archive.List("feature_names", n.info.FeatureNames)
	}
	if err == nil && len(n.info.LabelNames) > 0 && (n.how.Lossless || !n.info.LabelType.Classes) {
		err = n.archive.List("label_names", n.info.LabelNames)
	}
	if err != nil || !n.info.HasRowNames {
		return err
	}
	return WriteRowNames(n.archive, n.src, n.info.Rows)
}

// WriteRowNames adds the array "row_names" with the names of all rows of src that are
// not left out.
func WriteRowNames(a *npy.Archive, src dataset.Source, rows int) error {
	return a.Strings("row_names", rows, func(f func(string) error) error {
		return src.Scan(func(r *dataset.Row) error {
			if r.LeftOut {
				return nil
			}
			return f(r.Name)
		})
	})
}

// WriteRowNumbers adds the array "rows" (int64) with the numbers in the file, from 0, of
// all rows of src that are not left out; rows is how many these are.
func WriteRowNumbers(a *npy.Archive, src dataset.Source, rows int) error {
	out, err := a.Ints("rows", rows)
	if err != nil {
		return err
	}
	write := func(r *dataset.Row) error {
		if r.LeftOut {
			return nil
		}
		return out.Write([]int64{int64(r.Number)})
	}
	if src.Info().Missing.Drop {
		err = src.Scan(write)
	} else { // every row of the file
		for row := 0; row < rows && err == nil; row++ {
			err = write(&dataset.Row{Number: row})
		}
	}
	return cmp.Or(err, out.Flush())
}
