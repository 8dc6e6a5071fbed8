package read

import (
	"cmp"
	"errors"
	"fmt"

	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// table is a file with named columns that is no CSV file. What its columns are is decided as for a CSV file.
type table interface {
	// columns returns the names of the columns.
	columns() []string
	// refuses says why a column cannot be read, or cannot be read as texts; empty: it can.
	refuses(column int, asText bool) errtext.Text
	// each calls f with the number of each row and its record. The record has the columns that are used as texts; but
	// numbers that are not needed as texts may be in csvRecords.numbers.
	each(used, asText []bool, f func(n int, record []string, r *csvRecords) error) error
	// prepare returns o with what the file says of its columns, and the number of rows or -1.
	prepare(o *OpenOptions) (*OpenOptions, int)
}

// openTableSource opens a file whose family has tables.
func openTableSource(path string, o *OpenOptions) (dataset.Source, error) {
	return newTableSource(path, o).open(o)
}

// newTableSource returns a source that has not read anything yet.
func newTableSource(path string, o *OpenOptions) *csvSource {
	return &csvSource{
		path: path, classes: !o.NoLabels && o.Labels.Kind == dataset.Class, missing: o.Missing, kind: o.Labels.Kind,
		unseen:   o.CSV.Unseen,
		encoding: o.Encoding, info: dataset.Info{File: o.Called, MissingWords: &dataset.WordCounts{}},
	}
}

// start finds the names of the columns of a file and its first record, or its first records if it is a table.
func (s *csvSource) start(o *OpenOptions) (like *OpenOptions, first []string, err error) {
	kind, err := kindOf(s.path, o)
	if err != nil {
		return nil, nil, err
	}
	if kind.family == csvFiles {
		in, closer, err := openText(s.path, s.encoding)
		if err != nil {
			return nil, nil, pathError(s.info.File, err)
		}
		defer closer.Close()
		first, err := s.begin(in, o)
		return o, first, err
	}
	if kind.family == arffFiles {
		s.table, err = openARFF(s.path, o)
	} else {
		s.table, err = openParquet(s.path, o)
	}
	if err != nil {
		return nil, nil, pathError(s.info.File, err)
	}
	s.names, s.header, s.rows = dataset.Trimmed(s.table.columns()), true, -1
	if n := len(s.names); n > dataset.MaxColumns {
		return nil, nil, dataset.Errorf(dataset.ErrFormat, "%s: the file has more than %d columns", s.info.File,
			dataset.MaxColumns)
	}
	for i, name := range s.names {
		what := fmt.Sprintf("the name of column %d (counted from 0)", i)
		if err := cmp.Or(notUTF8(what, name), dataset.CheckName(name)); err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", s.info.File, what, err)
		}
	}
	s.dialect.marks.Thousands = o.CSV.Thousands
	if o.CSV.Decimal != "" {
		s.dialect.marks.Comma, err = ParseDecimal(o.CSV.Decimal)
	} else {
		s.dialect.marks.Comma = o.CSV.Thousands == '.'
	}
	like, s.rows = s.table.prepare(o)
	return like, s.names, err
}

// firstNames reads the first records of a table, of which only the names of the rows are read.
func (s *csvSource) firstNames() (records [][]string, err error) {
	used := make([]bool, len(s.names))
	used[s.columns.rowName] = s.table.refuses(s.columns.rowName, true) == ""
	err = s.table.each(used, used, func(n int, record []string, _ *csvRecords) error {
		if n == sniffRecords {
			return errFound
		}
		records = append(records, slices.Clone(record))
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return records, err
}

// checkColumns refuses a table with a column that is used and cannot be read.
func (s *csvSource) checkColumns() error {
	used, asText := s.uses()
	for i := range used {
		if reason := s.table.refuses(i, asText[i]); used[i] && reason != "" {
			drop := dataset.Option{Name: "drop", Value: dataset.ListFlag("drop", flagColumn(s.names, i)).Value}
			return dataset.Errorf(dataset.ErrFormat, "%s: column %d %q (counted from 0) has %w; %s leaves the column out",
				s.info.File, i, s.names[i], errtext.Errorf(errtext.WrongData, "%s", reason), drop)
		}
	}
	return nil
}

// uses says which columns are used, and which of them as texts.
func (s *csvSource) uses() (used, asText []bool) {
	c := &s.columns
	used, asText = make([]bool, c.width), make([]bool, c.width)
	if s.allTexts {
		for i := range used {
			used[i], asText[i] = s.table.refuses(i, true) == "", true
		}
		return used, asText
	}
	for _, i := range slices.Concat(c.features, c.labels, c.interval, []int{c.value, c.group, c.rowName}) {
		if i >= 0 {
			used[i] = true
			asText[i] = i == c.group || i == c.rowName || c.categories != nil && c.categories[i] != nil ||
				s.classes && slices.Contains(c.labels, i)
		}
	}
	return used, asText
}

// isMissing reports whether a field of a row is missing.
func isMissing(record []string, r *csvRecords, i int) bool {
	if r.isNumber != nil && r.isNumber[i] {
		return r.numbers[i] != r.numbers[i]
	}
	return numbers.IsMissing(record[i])
}

// only returns o with all columns dropped that {columns} does not list.
func (o *OpenOptions) only(names []string, n int) (*OpenOptions, error) {
	if len(o.Columns) == 0 {
		return o, nil
	}
	found, err := findColumns(names, n, o.Columns)
	if err != nil {
		return nil, errtext.Errorf(errtext.WrongData, "{columns}: %w", err)
	}
	listed := make([]bool, n)
	for _, i := range found {
		listed[i] = true
	}
	for _, item := range slices.Concat(o.Labels.Columns, o.FeatureColumns, o.CSV.Categories, o.Beside.names(),
		[]string{o.CSV.RowNames}) {
		named, err := findColumns(names, n, []string{item})
		if i := slices.IndexFunc(named, func(i int) bool { return !listed[i] }); item != "" && err == nil && i >= 0 {
			return nil, errtext.Errorf(errtext.WrongData, "{columns} does not list column %d %q (counted from 0), which another "+
				"option names: add it to {columns}", named[i], dataset.NameAt(names, named[i]))
		}
	}
	like := *o
	like.Drop = slices.Clone(o.Drop)
	dropped, err := findColumns(names, n, o.Drop)
	if err != nil {
		return nil, err
	}
	for i, yes := range listed {
		if !yes && !slices.Contains(dropped, i) {
			like.Drop = append(like.Drop, flagColumn(names, i))
		}
	}
	return &like, nil
}

// share is the share of a table that was read.
type share float64

// ReadShare implements dataset.Measured.
func (s *share) ReadShare() float64 { return float64(*s) }

// isTable reports whether files of this family have named columns.
func (f fileFamily) isTable() bool { return f == csvFiles || f == arffFiles || f == parquetFiles }

// IsTable reports whether files of a format, as FormatOf returns it, have named columns.
func IsTable(format string) bool {
	i := slices.Index(familyNames[:], format)
	return i >= 0 && fileFamily(i).isTable()
}

// pathOfLabels returns the file with the list of labels of an ARFF file: the one that was given, or the one with the same
// name that ends in .xml; empty: there is none.
func pathOfLabels(path string, o *OpenOptions) string {
	if o.Arrays.LabelsFile != "" {
		return o.Arrays.LabelsFile
	}
	base := strings.TrimSuffix(path, ".gz")
	if lower := strings.ToLower(base); strings.HasSuffix(lower, ".arff") {
		return base[:len(base)-len(".arff")] + ".xml"
	}
	return ""
}
