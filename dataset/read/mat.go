package read

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/matfile"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// openMAT reads a MATLAB v5 file to its end, since it stores columns.
func openMAT(path string, o *OpenOptions) (dataset.Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMAT(o.Called, f, o)
}

// readMAT reads in; path is for messages.
func readMAT(path string, in io.Reader, o *OpenOptions) (dataset.Source, error) {
	m := matReader{
		o: o, features: o.featuresVariable(), wanted: o.labelVariables(),
		found: map[string]*variable{}, names: map[string][]string{},
		besides: o.Beside.names(), beside: besideArrays{map[string][]float64{}, map[string]*textColumn{}},
	}
	if err := m.read(in); err != nil {
		switch {
		case errors.Is(err, matfile.ErrFormat) || errors.Is(err, matfile.ErrTruncated):
			err = fmt.Errorf("%w: %w", err, dataset.ErrFormat)
		case errors.Is(err, matfile.ErrSize):
			err = dataset.Errorf(dataset.ErrFormat, "%w: at most %d non-zero values are allowed, because the matrix is transposed in memory; write the data as .libsvm", err, maxSparse)
		case errors.Is(err, matfile.ErrUnpacked):
			err = expansionError("the file", matAdvice)
		case errors.Is(err, matfile.ErrHDF5) || errors.Is(err, matfile.ErrV4):
			err = dataset.Errorf(dataset.ErrFormat, "%w", err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	table, err := newTableSource(path, o, &m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	src, err := withBeside(table, &o.Beside, m.beside, func(name, flag string) error {
		return m.missing(name, flag, dataset.ErrFormat)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return src, nil
}

// variable is a matrix that may hold labels, or a text for each row.
type variable struct {
	rows, columns int
	values        []float64 // row-major
	file          *columnFile
	texts         *textColumn // of classes, in place of values
}

// matAdvice says how to write a file that is more than a packed file may have.
const matAdvice = "save the file with -v6, which does not compress"

type matReader struct {
	o        *OpenOptions
	features string   // the variable with the features
	wanted   []string // those that may hold the labels
	seen     []string // arrays that were read
	table    *table
	found    map[string]*variable
	names    map[string][]string
	besides  []string // those that OpenOptions.Beside names
	beside   besideArrays
	holds    fileContents
	readable bool           // the file holds a matrix of numbers
	object   *matfile.Array // the first that cannot be read, such as a struct; nil: none
}

func (m *matReader) read(in io.Reader) error {
	r, err := matfile.NewReader(in)
	if err != nil {
		return err
	}
	r.Unpacked = m.o.set.size.unpacked()
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

// readArray reads an array if it is one of those wanted. Two of one name are refused.
func (m *matReader) readArray(a *matfile.Array) (err error) {
	m.holds.add(a.Name, a.Kind(), a.Dims()...)
	if isMatrix(a) {
		m.readable = true
	} else if m.object == nil && !isText(a) && a.Name != "" {
		m.object = a
	}
	if slices.Contains(matNames, a.Name) || a.Name == m.features || slices.Contains(m.besides, a.Name) || slices.Contains(m.wanted, a.Name) {
		if slices.Contains(m.seen, a.Name) {
			return dataset.Errorf(dataset.ErrAmbiguous, "two variables are called %q: write the file with only one of them", a.Name)
		}
		m.seen = append(m.seen, a.Name)
	}
	switch a.Name {
	case m.features:
		if !isMatrix(a) {
			return matKindError(a, "want numbers", a.Name)
		}
		if err := m.o.checkFeatures(a.Columns, matAdvice); err != nil {
			return err
		}
		m.table, err = matFeatures(a)
		return err
	case matNames[0], matNames[1], matNames[2]:
		m.names[a.Name], err = matStrings(m.o, a)
		return err
	}
	if slices.Contains(m.besides, a.Name) {
		err = readMATBeside(m.o, a, m.beside)
		if v := m.beside.numbers[a.Name]; err == nil && v != nil && slices.Contains(m.wanted, a.Name) {
			m.found[a.Name] = &variable{rows: len(v), columns: 1, values: v}
		}
		if v := m.beside.texts[a.Name]; err == nil && v != nil && slices.Contains(m.wanted, a.Name) && m.o.Labels.Kind == dataset.Class {
			m.found[a.Name] = &variable{rows: len(v.rows), columns: 1, texts: v}
		}
		return err
	}
	for _, name := range m.wanted {
		if a.Name == name {
			m.found[name], err = matLabels(m.o, a)
			return err
		}
	}
	return nil
}

// matNames are the variables with names.
var matNames = []string{"feature_names", "label_names", "row_names"}

// missing returns an error that says that the file has no such variable, and what it has. A file without a matrix
// of numbers has none that a flag could name.
func (m *matReader) missing(name, flag string, err error) error {
	if m.object == nil {
		return m.holds.missing("variable", name, flag, err)
	}
	ways := "in MATLAB, " + matUnpack(m.object, name)
	if m.readable {
		ways = fmt.Sprintf("name the right variable with %s, or, %s", flag, ways)
	}
	return dataset.Errorf(err, "the file has no variable %q; it has %s; %s", name, m.holds.list(), ways)
}

// isMatrix reports whether an array is a matrix of real numbers.
func isMatrix(a *matfile.Array) bool {
	return (a.Numeric() || a.Class == matfile.Sparse) && !a.Complex() && a.Flat()
}

// isText reports whether an array may hold texts: the cells of an array are known only once they are read.
func isText(a *matfile.Array) bool { return a.Class == matfile.Cell || a.Class == matfile.Char }

// matKindError says that a variable is not of the kind that is expected, and what makes an array of that kind
// of it, by the name result.
func matKindError(a *matfile.Array, expected, result string) error {
	return dataset.Errorf(dataset.ErrFormat, "variable %q has class %s, %s; in MATLAB, %s", a.Name, a.Kind(), expected, matUnpack(a, result))
}

// matObjects says for classes of MATLAB what makes an array that can be read of a variable %[1]s; %[2]s is how that
// is called.
var matObjects = map[string]string{
	"table":       "%[2]s = table2array(%[1]s) extracts its numbers, or writetable(%[1]s, '%[1]s.csv') a CSV file",
	"string":      "%[2]s = cellstr(%[1]s) converts it to texts, or %[2]s = double(%[1]s) to numbers",
	"categorical": "%[2]s = cellstr(%[1]s) converts its categories to texts",
}

// matUnpack says what makes an array that can be read of a variable of a kind that cannot.
func matUnpack(a *matfile.Array, result string) string {
	how, known := matObjects[a.Kind()]
	switch {
	case known:
	case a.Class == matfile.Struct && a.Rows*a.Columns != 1:
		how = "%[2]s = vertcat(%[1]s.%[3]s) joins a field of all its elements"
	case a.Class == matfile.Struct:
		how = "%[2]s = %[1]s.%[3]s extracts a field"
	case a.Class == matfile.Cell:
		how = "%[2]s = cell2mat(%[1]s) extracts its numbers"
	case a.Class == matfile.Char:
		how = "%[2]s = str2num(%[1]s) converts its lines to numbers"
	case a.Complex():
		how = "%[2]s = [real(%[1]s) imag(%[1]s)] converts it to real numbers"
	case a.Numeric():
		how = "%[2]s = reshape(%[1]s, size(%[1]s, 1), []) converts it to a matrix with one row for each sample"
	default:
		how = "%[2]s = double(%[1]s) or cellstr(%[1]s) may convert it to an array that can be read"
	}
	field := "FIELD"
	if slices.Contains(a.Fields, result) {
		field = result
	}
	how = strings.ReplaceAll(how, "%[3]s", field)
	return fmt.Sprintf(how, a.Name, result) + "; then save it with save('FILE.mat', ..., '-v7')"
}

// matStrings reads an array of texts into memory.
func matStrings(o *OpenOptions, a *matfile.Array) ([]string, error) {
	if !isText(a) {
		return nil, matTextError(a, fmt.Sprintf("variable %q has class %s", a.Name, a.Kind()))
	}
	n := a.Rows
	if a.Class == matfile.Cell {
		n *= a.Columns
	}
	if err := o.checkItems(a.Name, n, matAdvice); err != nil {
		return nil, err
	}
	all, err := a.Strings()
	if errors.Is(err, matfile.ErrKind) {
		return nil, matTextError(a, err.Error())
	}
	return all, err
}

// matTextError says that an array holds no texts, for a reason, and what makes some of it.
func matTextError(a *matfile.Array, reason string) error {
	how := matUnpack(a, a.Name)
	if a.Class == matfile.Cell || a.Numeric() {
		how = fmt.Sprintf("%[1]s = cellstr(string(%[1]s)) converts it to texts; then save it with save('FILE.mat', ..., '-v7')", a.Name)
	}
	return dataset.Errorf(dataset.ErrFormat, "%s; want a cell array of texts; in MATLAB, %s", reason, how)
}

// matTexts reads an array of one text or number for each row.
func matTexts(o *OpenOptions, a *matfile.Array) (*textColumn, error) {
	var all textColumn
	if a.Class == matfile.Cell || a.Class == matfile.Char {
		texts, err := matStrings(o, a)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			if err := all.add(text); err != nil {
				return nil, err
			}
		}
		return &all, nil
	}
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

func matFeatures(a *matfile.Array) (*table, error) {
	if err := checkSize(a.Name, a.Rows, a.Columns, dataset.MaxFeatures); err != nil {
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

// matLabels reads an array of labels: numbers or, of classes, texts.
func matLabels(o *OpenOptions, a *matfile.Array) (*variable, error) {
	switch {
	case isText(a) && o.Labels.Kind == dataset.Class:
		// The classes are a row or a column of cells, or a line of characters each.
		if a.Class == matfile.Cell && min(a.Rows, a.Columns) > 1 {
			return nil, oneColumn(o, a.Name, a.Columns)
		}
		texts, err := matTexts(o, a)
		if err != nil {
			return nil, err
		}
		return &variable{rows: len(texts.rows), columns: 1, texts: texts}, nil
	case isText(a) && o.Labels.Kind != dataset.Age:
		return nil, dataset.Errorf(dataset.ErrFormat, "variable %q has class %s, want numbers; {labels=class} reads texts as classes", a.Name, a.Kind())
	case !isMatrix(a):
		return nil, matKindError(a, "want numbers", a.Name)
	}
	rows, columns := a.Rows, a.Columns
	if rows == 1 { // a row vector is as good as a column; fit turns it
		columns = 1
	}
	if err := checkSize(a.Name, rows, columns, dataset.MaxLabels); err != nil {
		return nil, err
	}
	if a.Class == matfile.Sparse {
		return sparseLabels(a)
	}
	if o.Labels.Kind == dataset.Class && min(a.Rows, a.Columns) == 1 {
		texts, err := matTexts(o, a)
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
	values, err := t.labelValues()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return &variable{rows: a.Rows, columns: a.Columns, values: values}, nil
}

// newTableSource makes a Source of the arrays of a file.
func newTableSource(path string, o *OpenOptions, m *matReader) (*tableSource, error) {
	if m.table == nil {
		return nil, m.missing(m.features, "--features-variable", dataset.ErrFormat)
	}
	s := &tableSource{
		info:     dataset.Info{File: path, Rows: m.table.rows, Features: m.table.columns, Sparse: m.table.start != nil},
		features: m.table, classes: !o.NoLabels && o.Labels.Kind == dataset.Class,
	}
	if !o.NoLabels {
		if err := s.setLabels(o, m); err != nil {
			return nil, err
		}
	}
	s.info.FeatureNames = m.names["feature_names"]
	if s.classes {
		s.info.ClassNames = m.names["label_names"]
	} else if s.info.Labels > 0 {
		s.info.LabelNames = m.names["label_names"]
	}
	if rows := m.names["row_names"]; rows != nil {
		if len(rows) != s.info.Rows {
			return nil, rowCountError(sides{"features", s.info.Rows, s.info.Features}, sides{"row_names", len(rows), 1}, matlabTranspose)
		}
		s.rowNames, s.info.HasRowNames = rows, true
	}
	return s, nil
}

func (s *tableSource) setLabels(o *OpenOptions, m *matReader) error {
	for _, name := range m.wanted {
		v := m.found[name]
		if v == nil {
			continue
		}
		if v.rows == 1 && s.info.Rows != 1 && v.columns == s.info.Rows {
			v.rows, v.columns = v.columns, 1
			if v.file != nil {
				v.file.rows, v.file.columns = v.rows, v.columns
			}
		}
		if v.rows != s.info.Rows {
			return rowCountError(sides{m.features, s.info.Rows, s.info.Features}, sides{name, v.rows, v.columns}, matlabTranspose)
		}
		if err := oneColumn(o, name, v.columns); err != nil {
			return err
		}
		s.info.Labels, s.labels, s.labelsFile, s.texts = v.columns, v.values, v.file, v.texts
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("%s read from %q", o.Labels.target(v.columns), name))
		return nil
	}
	return m.missing(m.wanted[len(m.wanted)-1], "--labels-variable", dataset.ErrNoLabels)
}

// oneColumn refuses several columns where a row has one age or class.
func oneColumn(o *OpenOptions, name string, columns int) error {
	if (o.Labels.Kind == dataset.Age || o.Labels.Kind == dataset.Class) && columns != 1 {
		return fmt.Errorf("%q has %d columns; labels of kind %q need one column, which must be named", name, columns, o.Labels.Kind)
	}
	return nil
}

// readMATBeside reads an array of one number or text for each row.
func readMATBeside(o *OpenOptions, a *matfile.Array, into besideArrays) (err error) {
	if a.Class != matfile.Cell && a.Class != matfile.Char {
		if !isMatrix(a) {
			return matKindError(a, "want one number or one text for each sample", a.Name)
		}
		if min(a.Rows, a.Columns) != 1 || !a.Numeric() {
			return fmt.Errorf("%q: want one number for each sample: %w", a.Name, dataset.ErrFormat)
		}
		if err := checkSize(a.Name, max(a.Rows, a.Columns), 1, 1); err != nil {
			return err
		}
		if err := o.checkItems(a.Name, max(a.Rows, a.Columns), matAdvice); err != nil {
			return err
		}
	}
	var all []float64
	if a.Name != o.Beside.Groups {
		var piece [tablePiece]float64
		for left := a.Rows * a.Columns; left > 0; {
			k := min(left, tablePiece)
			if err := a.Read(piece[:k]); err != nil {
				return err
			}
			all, left = append(all, piece[:k]...), left-k
		}
		into.numbers[a.Name] = all
		return nil
	}
	texts, err := matTexts(o, a)
	if err != nil {
		return err
	}
	if into.texts[a.Name] = texts; !o.Beside.isNumber(a.Name) {
		return nil
	}
	for i := range texts.rows {
		v, err := units.ParseFloat(texts.text(i))
		if err != nil {
			return fmt.Errorf("%q: want one number for each sample: %w", a.Name, dataset.ErrFormat)
		}
		all = append(all, v)
	}
	into.numbers[a.Name] = all
	return nil
}
