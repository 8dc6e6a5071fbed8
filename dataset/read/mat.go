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
)

// openMAT reads a MATLAB v5 file to its end, since it stores columns, and opens its variables as the arrays of an
// archive.
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
	m := matReader{o: o, entries: map[string]*array{}}
	if err := m.read(in); err != nil {
		switch {
		case errors.Is(err, matfile.ErrFormat) || errors.Is(err, matfile.ErrTruncated):
			err = fmt.Errorf("%w: %w", err, dataset.ErrFormat)
		case errors.Is(err, matfile.ErrSize):
			err = dataset.Errorf(dataset.ErrFormat, "%w: at most %d non-zero values are allowed, because the matrix is "+
				"transposed in memory; write the data as .libsvm", err, maxSparse)
		case errors.Is(err, matfile.ErrUnpacked):
			err = expansionError("the file", matAdvice)
		case errors.Is(err, matfile.ErrHDF5):
			err = dataset.Errorf(dataset.ErrFormat, "%w; save the data with -v7, or %s", err, adviceFor(path, inMAT))
		case errors.Is(err, matfile.ErrV4):
			err = dataset.Errorf(dataset.ErrFormat, "%w", err)
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range o.labelVariables() {
		// A row vector is as good as a column.
		if a := m.entries[name]; a != nil && m.rows != 1 && a.head != nil && slices.Equal(a.head.Shape, []int{1, m.rows}) {
			a.head.Shape = []int{m.rows}
		}
	}
	return newArraySource(path, o, &arrays{entries: m.entries, missing: m.missing, advice: matAdvice,
		transpose: "x.' transposes an array x in MATLAB"})
}

// matAdvice says how to write a file that is more than a packed file may have.
const matAdvice = "save the file with -v6, which does not compress"

// matReader collects the variables of a file that o asks for.
type matReader struct {
	o        *OpenOptions
	entries  map[string]*array
	rows     int // of the features
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
	features, named := a.Name == m.o.featuresVariable(), slices.Contains(matNames, a.Name)
	beside, label := slices.Contains(m.o.Beside.names(), a.Name), slices.Contains(m.o.labelVariables(), a.Name)
	if !features && !named && !beside && !label {
		return nil
	}
	if m.entries[a.Name] != nil {
		return dataset.Errorf(dataset.ErrAmbiguous, "two variables are called %q: write the file with only one of them",
			a.Name)
	}
	var v *array
	switch {
	case features:
		err = m.readFeatures(a)
	case named:
		v, err = matTexts(m.o, a)
	case beside:
		v, err = readMATBeside(m.o, a)
	default:
		v, err = matLabels(m.o, a)
	}
	if v != nil {
		m.entries[a.Name] = v
	}
	return err
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
	return dataset.Errorf(dataset.ErrFormat, "variable %q has class %s, %s; in MATLAB, %s", a.Name, a.Kind(), expected,
		matUnpack(a, result))
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

// matTexts reads an array of texts into memory.
func matTexts(o *OpenOptions, a *matfile.Array) (*array, error) {
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
	return &array{name: a.Name, texts: append([]string{}, all...)}, err
}

// matTextError says that an array holds no texts, for a reason, and what makes some of it.
func matTextError(a *matfile.Array, reason string) error {
	how := matUnpack(a, a.Name)
	if a.Class == matfile.Cell || a.Numeric() {
		how = fmt.Sprintf("%[1]s = cellstr(string(%[1]s)) converts it to texts; then save it with save('FILE.mat', ..., "+
			"'-v7')", a.Name)
	}
	return dataset.Errorf(dataset.ErrFormat, "%s; want a cell array of texts; in MATLAB, %s", reason, how)
}

// matNumbers copies a matrix of numbers to memory or to a temporary file.
func matNumbers(a *matfile.Array) (*array, error) {
	h, in, err := a.Numbers()
	if err != nil {
		return nil, err
	}
	values, err := spool(in, int64(a.Rows)*int64(a.Columns)*int64(h.Size))
	return storedArray(a.Name, h, values), err
}

// readFeatures reads the matrix of the features.
func (m *matReader) readFeatures(a *matfile.Array) error {
	if !isMatrix(a) {
		return matKindError(a, "want numbers", a.Name)
	}
	if err := m.o.checkFeatures(a.Columns, matAdvice); err != nil {
		return err
	}
	if err := checkSize(a.Name, a.Rows, a.Columns, dataset.MaxFeatures); err != nil {
		return err
	}
	m.rows = a.Rows
	if a.Class == matfile.Sparse {
		t, err := readSparse(a)
		if err == nil {
			t.store(m.entries, a.Name)
		}
		return err
	}
	v, err := matNumbers(a)
	m.entries[a.Name] = v
	return err
}

// matLabels reads an array of labels: numbers or, of classes, texts.
func matLabels(o *OpenOptions, a *matfile.Array) (*array, error) {
	switch {
	case isText(a) && o.Labels.Kind == dataset.Class:
		// The classes are a row or a column of cells, or a line of characters each.
		if a.Class == matfile.Cell && min(a.Rows, a.Columns) > 1 {
			return nil, oneColumn(o, a.Name, a.Columns)
		}
		return matTexts(o, a)
	case isText(a) && o.Labels.Kind != dataset.Age:
		return nil, dataset.Errorf(dataset.ErrFormat, "variable %q has class %s, want numbers; {labels=class} reads texts "+
			"as classes", a.Name, a.Kind())
	case !isMatrix(a):
		return nil, matKindError(a, "want numbers", a.Name)
	}
	rows, columns := a.Rows, a.Columns
	if rows == 1 { // readMAT turns a row vector
		columns = 1
	}
	if err := checkSize(a.Name, rows, columns, dataset.MaxLabels); err != nil {
		return nil, err
	}
	if a.Class != matfile.Sparse {
		return matNumbers(a)
	}
	t, err := readSparse(a)
	if err != nil {
		return nil, err
	}
	dense, err := t.dense()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return numbersArray(a.Name, 'f', dense, a.Rows, a.Columns), nil
}

// readMATBeside reads an array of one number or text for each row.
func readMATBeside(o *OpenOptions, a *matfile.Array) (*array, error) {
	if isText(a) {
		return matTexts(o, a)
	}
	n := max(a.Rows, a.Columns)
	if !isMatrix(a) {
		return nil, matKindError(a, "want one number or one text for each sample", a.Name)
	}
	if min(a.Rows, a.Columns) != 1 || !a.Numeric() {
		return nil, fmt.Errorf("%q: want one number for each sample: %w", a.Name, dataset.ErrFormat)
	}
	if err := checkSize(a.Name, n, 1, 1); err != nil {
		return nil, err
	}
	if err := o.checkItems(a.Name, n, matAdvice); err != nil {
		return nil, err
	}
	v, err := matNumbers(a)
	if err == nil {
		v.head.Shape = []int{n}
	}
	return v, err
}

// sparseTable is a matrix as compressed sparse rows.
type sparseTable struct {
	rows, columns int
	start, index  []uint32
	values        []float64
}

// emptyRowsPerValue bounds the empty rows of a sparse matrix. A short file could claim any
// number of them.
const emptyRowsPerValue = 64

// maxSparse bounds the non-zeros of a sparse matrix of MATLAB, which is converted to rows in
// memory. It may have twice as many rows.
const maxSparse = 1 << 22

// readSparse reads a matrix by columns and turns it into one by rows.
func readSparse(a *matfile.Array) (*sparseTable, error) {
	m, err := a.ReadSparse(maxSparse)
	if err != nil {
		return nil, err
	}
	n := len(m.Values)
	if a.Rows > emptyRowsPerValue*(n+1<<10) {
		return nil, fmt.Errorf("%s has %d rows but only %d non-zero values, so most samples would be empty: %w", a.Name,
			a.Rows, n, dataset.ErrFormat)
	}
	if a.Rows > 2*maxSparse {
		return nil, dataset.Errorf(dataset.ErrFormat, "%s is a sparse matrix of %d rows, at most %d are allowed, because "+
			"it is transposed in memory; write the data as .libsvm", a.Name, a.Rows, 2*maxSparse)
	}
	t := &sparseTable{
		rows: a.Rows, columns: a.Columns,
		start: make([]uint32, a.Rows+1), index: make([]uint32, n), values: make([]float64, n),
	}
	for _, r := range m.Row {
		t.start[r+1]++
	}
	for r := range a.Rows {
		t.start[r+1] += t.start[r]
	}
	next := slices.Clone(t.start[:a.Rows])
	for c := range a.Columns {
		for k := m.Start[c]; k < m.Start[c+1]; k++ {
			at := next[m.Row[k]]
			t.index[at], t.values[at] = uint32(c), m.Values[k]
			next[m.Row[k]]++
		}
	}
	return t, nil
}

// dense returns all values row by row.
func (t *sparseTable) dense() ([]float64, error) {
	if len(t.values) < t.rows {
		return nil, fmt.Errorf("the labels have %d rows but only %d values above 0: %w", t.rows, len(t.values),
			dataset.ErrFormat)
	}
	if t.rows*t.columns > 2*maxSparse {
		return nil, fmt.Errorf("the labels are a sparse matrix of %d x %d, at most %d values are allowed; write the labels "+
			"as a full matrix: %w", t.rows, t.columns, 2*maxSparse, dataset.ErrFormat)
	}
	dense := make([]float64, t.rows*t.columns)
	for r := range t.rows {
		for k := t.start[r]; k < t.start[r+1]; k++ {
			dense[r*t.columns+int(t.index[k])] = t.values[k]
		}
	}
	return dense, nil
}

// store adds the arrays of the matrix to entries, as csrOf finds them.
func (t *sparseTable) store(entries map[string]*array, name string) {
	entries[name+csrParts[0]] = numbersArray(name, 'f', t.values, len(t.values))
	entries[name+csrParts[1]] = numbersArray(name, 'u', t.index, len(t.index))
	entries[name+csrParts[2]] = numbersArray(name, 'u', t.start, len(t.start))
	entries[name+csrParts[3]] = numbersArray(name, 'u', []uint32{uint32(t.rows), uint32(t.columns)}, 2)
}
