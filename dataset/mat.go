package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/dataset/npy"
)

// openMAT reads a MATLAB v5 file to its end, since it stores columns.
func openMAT(path string, o *OpenOptions) (Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMAT(o.shown(path), f, o)
}

// readMAT reads in; path is for messages.
func readMAT(path string, in io.Reader, o *OpenOptions) (Source, error) {
	m := matReader{
		o: o, features: o.featuresVariable(), wanted: o.labelVariables(),
		found: map[string]*variable{}, names: map[string][]string{},
		besides: o.Beside.names(), beside: besideArrays{map[string][]float64{}, map[string]*textColumn{}},
	}
	if err := m.read(in); err != nil {
		switch {
		case errors.Is(err, matfile.ErrFormat) || errors.Is(err, matfile.ErrTruncated):
			err = fmt.Errorf("%w: %w", err, ErrFormat)
		case errors.Is(err, matfile.ErrSize):
			err = kindErrorf(ErrFormat, "%w: at most %d can be read of a sparse matrix of MATLAB, which is turned to rows in memory; write the data as .libsvm", err, maxSparse)
		case errors.Is(err, matfile.ErrUnpacked):
			err = expansionError("it", matAdvice)
		case errors.Is(err, matfile.ErrHDF5) || errors.Is(err, matfile.ErrV4):
			err = kindErrorf(ErrFormat, "%w", err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	table, err := newTableSource(path, o, &m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	src, err := withBeside(table, &o.Beside, m.beside, func(name, flag string) error {
		return m.holds.missing("variable", name, flag, ErrFormat)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return src, nil
}

// featuresVariable is the name under which features stand in a .mat or .npz file.
func (o *OpenOptions) featuresVariable() string { return cmp.Or(o.FeaturesVariable, "features") }

// labelVariables lists the names under which labels may stand in a .mat or .npz
// file, best first; none where no labels are wanted.
func (o *OpenOptions) labelVariables() []string {
	switch {
	case o.NoLabels:
		return nil
	case o.LabelsVariable != "":
		return []string{o.LabelsVariable}
	case o.Labels.Kind == Age || o.Labels.Kind == Class:
		return []string{string(o.Labels.Kind), "labels"}
	}
	return []string{"labels"}
}

// variable is a matrix that may hold labels.
type variable struct {
	rows, columns int
	values        []float64 // row-major
	file          *columnFile
	texts         *textColumn // of classes, in place of values
}

// turn transposes a row vector to a column.
func (v *variable) turn() {
	v.rows, v.columns = v.columns, 1
	if v.file != nil {
		v.file.rows, v.file.columns = v.rows, v.columns
	}
}

// matAdvice says how to write a file that is more than a packed file may have.
const matAdvice = "save it with -v6, which does not pack"

type matReader struct {
	o        *OpenOptions
	features string   // the variable with the features
	wanted   []string // those that may hold the labels
	table    *table
	found    map[string]*variable
	names    map[string][]string
	besides  []string // those that OpenOptions.Beside names
	beside   besideArrays
	holds    fileContents
}

func (m *matReader) read(in io.Reader) error {
	r, err := matfile.NewReader(in)
	if err != nil {
		return err
	}
	r.Unpacked = m.o.size.unpacked()
	for {
		a, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = m.readArray(a)
		}
		if err != nil {
			return err
		}
	}
}

// readArray reads an array if it is one of those wanted. Of several arrays with one name the
// last one counts, as in MATLAB.
func (m *matReader) readArray(a *matfile.Array) (err error) {
	m.holds.add(a.Name, a.Class.String(), a.Rows, a.Columns)
	switch a.Name {
	case m.features:
		if err := m.o.checkFeatures(a.Columns, matAdvice); err != nil {
			return err
		}
		m.table, err = matFeatures(a)
		return err
	case "feature_names", "label_names", "row_names":
		if a.Class == matfile.Cell || a.Class == matfile.Char {
			m.names[a.Name], err = m.o.matStrings(a)
		}
		return err
	}
	if slices.Contains(m.besides, a.Name) {
		err = m.o.readMATBeside(a, m.beside)
		if v := m.beside.numbers[a.Name]; err == nil && v != nil && slices.Contains(m.wanted, a.Name) {
			m.found[a.Name] = &variable{rows: len(v), columns: 1, values: v}
		}
		if v := m.beside.texts[a.Name]; err == nil && v != nil && slices.Contains(m.wanted, a.Name) && m.o.Labels.Kind == Class {
			m.found[a.Name] = &variable{rows: len(v.rows), columns: 1, texts: v}
		}
		return err
	}
	for _, name := range m.wanted {
		if a.Name == name {
			m.found[name], err = m.o.matLabels(a)
			return err
		}
	}
	return nil
}

// matStrings reads an array of texts into memory.
func (o *OpenOptions) matStrings(a *matfile.Array) ([]string, error) {
	n := a.Rows
	if a.Class == matfile.Cell {
		n *= a.Columns
	}
	if err := o.checkItems(a.Name, n, matAdvice); err != nil {
		return nil, err
	}
	return a.Strings()
}

// matTexts reads an array of one text or number for each row.
func (o *OpenOptions) matTexts(a *matfile.Array) (*textColumn, error) {
	if a.Class == matfile.Cell || a.Class == matfile.Char {
		texts, err := o.matStrings(a)
		if err != nil {
			return nil, err
		}
		return newTextColumn(texts)
	}
	var all textColumn
	for range a.Rows * a.Columns {
		text, err := a.ReadText()
		if err == nil {
			err = all.add(text)
		}
		if err != nil {
			return nil, inexactError(err)
		}
	}
	return &all, nil
}

// inexactError says what to do about an array of classes or groups that are floats which may stand for several numbers.
func inexactError(err error) error {
	if errors.Is(err, matfile.ErrInexact) || errors.Is(err, npy.ErrInexact) {
		return kindErrorf(ErrAmbiguous, "%w; make whole numbers (int64 or uint64) or texts of them where they come from", err)
	}
	return err
}

func matFeatures(a *matfile.Array) (*table, error) {
	if err := checkSize(a.Name, a.Rows, a.Columns, MaxFeatures); err != nil {
		return nil, err
	}
	if a.Class == matfile.Sparse {
		m, err := a.ReadSparse(maxSparse)
		if err != nil {
			return nil, err
		}
		return sparseTable(a.Name, a.Rows, a.Columns, m)
	}
	return readTable(a.Rows, a.Columns, a.Read)
}

// matLabels reads an array of labels; classes are texts.
func (o *OpenOptions) matLabels(a *matfile.Array) (*variable, error) {
	if text := a.Class == matfile.Cell || a.Class == matfile.Char; text && o.Labels.Kind == Class {
		texts, err := o.matTexts(a)
		if err != nil {
			return nil, err
		}
		return &variable{rows: len(texts.rows), columns: 1, texts: texts}, nil
	}
	rows, columns := a.Rows, a.Columns
	if rows == 1 { // a row vector is as good as a column; fit turns it
		columns = 1
	}
	if err := checkSize(a.Name, rows, columns, MaxLabels); err != nil {
		return nil, err
	}
	if a.Class == matfile.Sparse {
		return sparseLabels(a)
	}
	if o.Labels.Kind == Class && min(a.Rows, a.Columns) == 1 {
		texts, err := o.matTexts(a)
		return &variable{rows: a.Rows, columns: a.Columns, texts: texts}, err
	}
	values, file, err := readColumns[float64](a.Rows, a.Columns, a.Read)
	return &variable{rows: a.Rows, columns: a.Columns, values: values, file: file}, err
}

func sparseLabels(a *matfile.Array) (*variable, error) {
	m, err := a.ReadSparse(maxSparse)
	if err != nil {
		return nil, err
	}
	t, err := sparseTable(a.Name, a.Rows, a.Columns, m)
	if err != nil {
		return nil, err
	}
	values, err := t.labels()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return &variable{rows: a.Rows, columns: a.Columns, values: values}, nil
}

// newTableSource makes a Source of the arrays of a file.
func newTableSource(path string, o *OpenOptions, m *matReader) (*tableSource, error) {
	if m.table == nil {
		return nil, m.holds.missing("variable", m.features, "--features-variable", ErrFormat)
	}
	s := &tableSource{
		info:     Info{File: path, Rows: m.table.rows, Features: m.table.columns, Sparse: m.table.start != nil},
		features: m.table, classes: !o.NoLabels && o.Labels.Kind == Class,
	}
	if !o.NoLabels {
		if err := s.setLabels(o, m); err != nil {
			return nil, err
		}
	}
	return s, s.setNames(m.names)
}

func (s *tableSource) setLabels(o *OpenOptions, m *matReader) error {
	for _, name := range m.wanted {
		v := m.found[name]
		if v == nil {
			continue
		}
		if v.rows == 1 && s.info.Rows != 1 && v.columns == s.info.Rows {
			v.turn()
		}
		if v.rows != s.info.Rows {
			return rowCountError(m.features, s.info.Rows, name, v.rows)
		}
		if err := oneColumn(o, name, v.columns); err != nil {
			return err
		}
		s.info.Labels, s.labels, s.labelsFile, s.texts = v.columns, v.values, v.file, v.texts
		return nil
	}
	return m.holds.missing("variable", m.wanted[len(m.wanted)-1], "--labels-variable", ErrNoLabels)
}

func rowCountError(a string, rowsA int, b string, rowsB int) error {
	return fmt.Errorf("%q has %d rows, %q has %d: %w", a, rowsA, b, rowsB, ErrRowCount)
}

// oneColumn refuses several columns where a row has one age or class.
func oneColumn(o *OpenOptions, name string, columns int) error {
	if (o.Labels.Kind == Age || o.Labels.Kind == Class) && columns != 1 {
		return fmt.Errorf("%q has %d columns; labels of kind %q are one column, which has to be named", name, columns, o.Labels.Kind)
	}
	return nil
}

func (s *tableSource) setNames(names map[string][]string) error {
	s.info.FeatureNames = names["feature_names"]
	if s.info.Labels > 0 {
		s.info.LabelNames = names["label_names"]
	}
	if rows := names["row_names"]; rows != nil {
		if len(rows) != s.info.Rows {
			return rowCountError("features", s.info.Rows, "row_names", len(rows))
		}
		s.rowNames, s.info.HasRowNames = rows, true
	}
	return nil
}
