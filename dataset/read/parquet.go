package read

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/parquet"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// parquetTable is a Parquet file, or several such files with the same columns.
type parquetTable struct {
	called string
	files  []string
	first  *parquet.File // without its bytes
	names  []string      // of the columns, and of the items of lists
	of     []int         // by column: the column of the file
	rows   int64
}

// openParquet reads the metadata of a file, or of all files of a folder or a pattern.
func openParquet(path string, o *OpenOptions) (namedColumns, error) {
	t := &parquetTable{called: o.Called}
	var err error
	if t.files, err = filesOf(path); err != nil {
		return nil, err
	}
	for _, name := range t.files {
		f, in, err := t.open(name)
		if err != nil {
			return nil, err
		}
		in.Close()
		if t.rows += f.Rows; t.rows > dataset.MaxRows {
			return nil, dataset.Errorf(dataset.ErrFormat, "the data has more than %d rows", dataset.MaxRows)
		}
		if t.first == nil {
			t.first = f
		} else if err := sameColumns(t.first, f); err != nil {
			return nil, dataset.Errorf(dataset.ErrFormat, "%s differs from %s: %w", shortName(name, t.files),
				shortName(t.files[0], t.files), err)
		}
	}
	if t.rows == 0 {
		return nil, dataset.Errorf(dataset.ErrFormat, "the file has no samples")
	}
	for i := range t.first.Columns {
		c := &t.first.Columns[i]
		for k := range c.Width {
			name := c.Name
			if c.List {
				name = fmt.Sprintf("%s_%d", c.Name, k)
			}
			t.names, t.of = append(t.names, name), append(t.of, i)
		}
	}
	return t, nil
}

// open opens one of the files.
func (t *parquetTable) open(name string) (*parquet.File, *os.File, error) {
	in, size, err := openSized(name)
	if err != nil {
		return nil, nil, err
	}
	f, err := parquet.Open(in, size)
	if err != nil {
		in.Close()
		return nil, nil, t.failed(name, err)
	}
	return f, in, nil
}

// failed adds to an error which file of several it is about.
func (t *parquetTable) failed(name string, err error) error {
	if errors.Is(err, parquet.ErrFormat) {
		err = dataset.WithKind(err, dataset.ErrFormat)
	}
	if len(t.files) > 1 {
		err = fmt.Errorf("%s: %w", shortName(name, t.files), err)
	}
	return err
}

// sameColumns says how the columns of two files differ.
func sameColumns(a, b *parquet.File) error {
	for _, pair := range [][2]*parquet.File{{a, b}, {b, a}} {
		for i := range pair[0].Columns {
			name := pair[0].Columns[i].Name
			if slices.ContainsFunc(pair[1].Columns, func(c parquet.Column) bool { return c.Name == name }) {
				continue
			}
			has := "no column"
			if pair[0] == b {
				has = "the additional column"
			}
			return fmt.Errorf("it has %s %.100q (%d columns, want %d); all files must have the same columns", has, name,
				len(b.Columns), len(a.Columns))
		}
	}
	if len(a.Columns) != len(b.Columns) {
		return fmt.Errorf("it has %d columns, want %d; all files must have the same columns", len(b.Columns), len(a.Columns))
	}
	for i := range a.Columns {
		x, y := &a.Columns[i], &b.Columns[i]
		switch {
		case x.Name != y.Name:
			return fmt.Errorf("column %d (counted from 0) is %.100q, want %.100q; all files must have the same columns in the "+
				"same order", i, y.Name, x.Name)
		case x.IsNumber() != y.IsNumber() && x.Kind != parquet.Nothing && y.Kind != parquet.Nothing || x.Why != y.Why ||
			x.List != y.List:
			return fmt.Errorf("column %d %.100q (counted from 0) has values of another type", i, x.Name)
		case x.Width != y.Width && b.Rows > 0 && a.Rows > 0:
			return fmt.Errorf("the lists in column %d %.100q (counted from 0) have %d items, want %d", i, x.Name, y.Width,
				x.Width)
		}
	}
	return nil
}

func (t *parquetTable) notes() []errtext.Text { return nil }

func (t *parquetTable) columns() []string { return t.names }

// advice says how to write values that cannot be read in another way.
var parquetAdvice = map[string]string{
	"timestamps": `; in pandas, df["x"].astype("int64") converts a column x of timestamps to numbers`,
	"dates":      `; in pandas, pandas.to_datetime(df["x"]).astype("int64") converts a column x of dates to numbers`,
}

func (t *parquetTable) refuses(column int, asText bool) errtext.Text {
	switch c := &t.first.Columns[t.of[column]]; {
	case c.Kind == parquet.Unreadable:
		return errtext.Sprintf("%s, which cannot be read%s", c.Why, parquetAdvice[c.Why])
	case c.List && asText:
		return "items of lists, which are numbers and no texts"
	}
	return ""
}

// prepare takes the column in which pandas wrote its index for the names of the rows, unless an option uses it.
func (t *parquetTable) prepare(o *OpenOptions) (*OpenOptions, int) {
	rows := int(t.rows)
	at := slices.Index(t.names, t.first.Index)
	if t.first.Index == "" || at < 0 || o.CSV.RowNames != "" || o.CSV.Images != "" {
		return o, rows
	}
	for _, list := range [][]string{o.Drop, o.FeatureColumns, o.Labels.Columns, o.Columns, o.Beside.names()} {
		found, err := findColumns(t.names, len(t.names), list)
		if err != nil || slices.Contains(found, at) {
			return o, rows
		}
	}
	like := *o
	if like.CSV.RowNames = t.first.Index; len(o.Columns) > 0 { // the index is not among them
		like.CSV.RowNames = ""
	}
	return &like, rows
}

func (t *parquetTable) each(used, asText []bool, f func(n int, record []string, r *csvRecords) error) error {
	done := new(share)
	r := &csvRecords{file: t.called, from: done, numbers: make([]float64, len(t.names)),
		isNumber: make([]bool, len(t.names))}
	record, n := make([]string, len(t.names)), 0
	for _, name := range t.files {
		if err := t.eachOf(name, used, asText, r, record, &n, done, f); err != nil {
			return err
		}
	}
	return nil
}

// eachOf is each for one file; n is the number of its first row.
func (t *parquetTable) eachOf(name string, used, asText []bool, r *csvRecords, record []string, n *int, done *share,
	f func(n int, record []string, r *csvRecords) error) error {
	file, in, err := t.open(name)
	if err == nil && len(t.files) > 0 {
		if differ := sameColumns(t.first, file); differ != nil {
			in.Close()
			err = dataset.Errorf(dataset.ErrChanged, "%w", differ)
		}
	}
	if err != nil {
		return pathError(t.called, err)
	}
	defer in.Close()
	var use []parquet.Use
	for i, yes := range used {
		if !yes {
			continue
		}
		column := t.of[i]
		text := asText[i] || !file.Columns[column].IsNumber()
		if r.isNumber[i] = !text; len(use) == 0 || use[len(use)-1].Column != column {
			use = append(use, parquet.Use{Column: column, AsText: text})
		}
	}
	rows := file.Read(use)
	for {
		err := rows.Next(r.numbers, record)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return pathError(t.called, t.failed(name, err))
		}
		*done = share(float64(*n) / float64(max(1, t.rows)))
		if err := f(*n, record, r); err != nil {
			return err
		}
		*n++
	}
}

// share is the share of a table that was read.
type share float64

// ReadShare implements dataset.Measured.
func (s *share) ReadShare() float64 { return float64(*s) }

// ParquetText opens a Parquet file, or several of them, as the text of a CSV file with a header, for lists that are
// read as text. The caller closes it.
func ParquetText(path string) (io.ReadCloser, error) {
	t, err := openParquet(path, &OpenOptions{Called: path})
	if err != nil {
		return nil, pathError(path, err)
	}
	all := slices.Repeat([]bool{true}, len(t.columns()))
	for i, name := range t.columns() {
		if reason := t.refuses(i, true); reason != "" {
			return nil, dataset.Errorf(dataset.ErrFormat, "%s: column %d %q (counted from 0) has %w", path, i, name,
				errtext.Errorf(errtext.WrongData, "%s", reason))
		}
	}
	text := new(tableText)
	text.next, text.stop = iter.Pull2(func(yield func([]string, error) bool) {
		if !yield(t.columns(), nil) {
			return
		}
		err := t.each(all, all, func(_ int, record []string, _ *csvRecords) error {
			if !yield(record, nil) {
				return errFound
			}
			return nil
		})
		if err != nil && !errors.Is(err, errFound) {
			yield(nil, err)
		}
	})
	return text, nil
}

// tableText is the text of a table, one record after the other.
type tableText struct {
	next func() ([]string, error, bool)
	stop func()
	rest bytes.Buffer // of the last record
}

// Read implements io.Reader.
func (x *tableText) Read(p []byte) (int, error) {
	if x.rest.Len() == 0 {
		record, err, ok := x.next()
		if !ok {
			err = io.EOF
		}
		if err != nil {
			return 0, err
		}
		w := csv.NewWriter(&x.rest)
		if err := w.Write(record); err != nil {
			return 0, err
		}
		w.Flush()
	}
	return x.rest.Read(p)
}

// Close implements io.Closer.
func (x *tableText) Close() error {
	x.stop()
	return nil
}
