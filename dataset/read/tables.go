package read

import (
	"cmp"
	"errors"
	"fmt"

	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// openTableSource opens a file whose family has tables.
func openTableSource(path string, o *OpenOptions) (dataset.Source, error) {
	return newTableSource(path, o).open(o)
}

// newTableSource returns a source that has not read anything yet.
func newTableSource(path string, o *OpenOptions) *csvSource {
	return &csvSource{
		path: path, classes: !o.NoLabels && o.Labels.Kind == dataset.Class, missing: o.Missing, kind: o.Labels.Kind,
		unseen: o.CSV.Unseen, validates: o.set.validates != "",
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

// firstNames reads the names of the first rows of a table, as records.
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
	for _, i := range slices.Concat(c.features, c.labels, c.interval, []int{c.value, c.group, c.weight, c.rowName}) {
		if i >= 0 {
			used[i] = true
			asText[i] = i == c.group || i == c.rowName || c.categories != nil && c.categories[i] != nil ||
				s.classes && slices.Contains(c.labels, i)
		}
	}
	return used, asText
}
