package read

import (
	"cmp"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Table is a CSV file as a table of texts, for package inspect: its dialect and its header are known, but not what its
// columns are.
type Table struct{ s *csvSource }

// FileName returns the name of the file for messages.
func (t *Table) FileName() string { return t.s.info.File }

// HasHeader reports whether the first line is a header.
func (t *Table) HasHeader() bool { return t.s.header }

// Width returns the number of columns.
func (t *Table) Width() int { return t.s.columns.width }

// ColumnName returns the name of a column; empty: it has none.
func (t *Table) ColumnName(column int) string { return dataset.NameAt(t.s.names, column) }

// ColumnFlag returns a column as flags name it: its name, or its number if the name is not enough.
func (t *Table) ColumnFlag(column int) string { return flagColumn(t.s.names, column) }

// ColumnNames lists columns for messages.
func (t *Table) ColumnNames(columns ...int) string { return nameList(t.s.names, columns) }

// NumberMarks returns the separators in the numbers of the file.
func (t *Table) NumberMarks() numbers.Marks { return t.s.dialect.marks }

// Proof returns what the numbers of a column have to prove about these separators.
func (t *Table) Proof() numbers.DecimalsProof { return t.s.proof }

// Notes say how the file is read.
func (t *Table) Notes() []errtext.Text { return t.s.notes() }

// Each calls f with each record from the first row on, its number, and the file that is being read.
func (t *Table) Each(f func(n int, record []string, file dataset.Measured) error) error {
	return t.s.eachRecord(func(n int, record []string, r *csvRecords) error { return f(n, record, r.from) })
}

// Choose returns what the columns are. After an error it has what was found before.
func (t *Table) Choose(o *OpenOptions) (Columns, error) {
	c, err := chooseColumns(t.s.names, t.Width(), o)
	all := Columns{Features: c.features, Labels: c.labels, Numbers: c.numberColumns(o.Labels.Kind == dataset.Class && !o.NoLabels), Used: c.used, RowName: c.rowName}
	all.Category = make([]bool, t.Width())
	for i, category := range c.categories {
		all.Category[i] = category != nil
	}
	return all, err
}

// CheckMarks reads the numbers of columns again if proof says that every mark in them may separate thousands. It returns an
// error that says so if the file can be read in two ways.
func (t *Table) CheckMarks(columns []int, proof numbers.DecimalsProof) error {
	if !proof.Needed || !proof.Doubt {
		return nil
	}
	t.s.columns.features = columns
	return t.s.checkMarks()
}

// Fitting returns the ways with which all fields of the columns are numbers that are numbers now. If there is none,
// conflict names a field that is no number then.
func (t *Table) Fitting(ways []dataset.Way, columns []int) (fit []dataset.Way, conflict errtext.Text) {
	return t.s.fitting(ways, columns)
}

// OpenTable finds the dialect and the header of a CSV file.
func OpenTable(path string, o *OpenOptions) (*Table, error) {
	o.Called = cmp.Or(o.Called, CalledOf(path))
	kind, err := kindOf(path, o)
	if err != nil {
		return nil, err
	}
	given := *o
	given.set.tabs = kind.tabs
	s := &csvSource{path: path, encoding: o.Encoding, info: dataset.Info{File: o.Called}}
	in, closer, err := openText(path, o.Encoding)
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	first, err := s.begin(in, &given)
	closer.Close()
	if err != nil {
		return nil, err
	}
	s.columns = csvColumns{width: len(first), value: -1, rowName: -1, group: -1}
	return &Table{s}, nil
}

// Columns says what the columns of a table are if they are read with some options.
type Columns struct {
	Features, Labels []int
	Numbers          []int  // from which numbers are read: features, labels, exact numbers and intervals
	Category, Used   []bool // by column: it is a category; an option or its name says what it is
	RowName          int    // the column with the names of the rows; -1: none
}
