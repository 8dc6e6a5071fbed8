package read

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// FoldsFile is SplitFile for a file of folds. It returns the folds by row and the number of folds.
func FoldsFile(path string, rows int) (folds []uint16, k int, err error) {
	s, err := SplitFile(path, rows)
	if err != nil {
		return nil, 0, err
	}
	if s.Overlap {
		return nil, 0, dataset.Errorf(dataset.ErrFormat, "%s: line 1: want the columns row and fold", path)
	}
	return s.Assigned, s.Folds, nil
}

// listReader reads a CSV file that lists something of rows: a column of its header is "row", and what follows the first
// one stands between the columns.
type listReader struct {
	*csvReader
	before int   // lines before the header
	left   []int // rows, in order; their other fields may be empty
}

// listHead is how many bytes of a list show what stands between its columns.
const listHead = 1 << 12

// newListReader reads the header.
func newListReader(in io.Reader) (r *listReader, header []string, err error) {
	b := bufio.NewReaderSize(in, listHead)
	head, _ := b.Peek(listHead)
	delimiter, skip := sepLine(head)
	if delimiter == 0 {
		delimiter = ','
		first := bytes.TrimLeft(head, "\r\n")
		if at := bytes.IndexAny(first, string(delimiters)+"\n"); at >= 0 && first[at] != '\n' {
			delimiter = rune(first[at])
		}
	}
	if _, err := b.Discard(skip); err != nil {
		return nil, nil, err
	}
	r = &listReader{newCSVReader(b), min(skip, 1), nil}
	r.Comma, r.TrimLeadingSpace = delimiter, delimiter != '\t'
	header, err = r.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, r.failed(err)
	}
	return r, header, nil
}

// failed says where the file cannot be read.
func (r *listReader) failed(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("line %d: %w: %w", parse.Line+r.before, parse.Err, dataset.ErrFormat)
	}
	return textError(err)
}

// mayLack reports whether the fields of a row, apart from its number, may be empty.
func (r *listReader) mayLack(row int) bool {
	_, left := slices.BinarySearch(r.left, row)
	return left
}

// The columns of lists of rows, in capital or small letters.
const (
	rowColumn  = "row"
	foldColumn = "fold"
)

// listColumns returns the place of the column of row numbers, and whether the other column has folds. The error says
// what a header has.
func listColumns(header []string) (row int, folds bool, err error) {
	names := dataset.Trimmed(header)
	isRow := func(name string) bool { return strings.EqualFold(name, rowColumn) }
	row = slices.IndexFunc(names, isRow)
	empty, hint := slices.Index(names, ""), ""
	switch {
	case empty == 0 && row == 1:
		hint = "; the first column has no name and seems to be the index of a pandas data frame: write the file with " +
			"to_csv(..., index=False)"
	case row >= 0 && slices.ContainsFunc(names[row+1:], isRow):
		hint = "; found two columns named row"
	case row >= 0 && empty >= 0:
		hint = fmt.Sprintf("; column %d (counted from 0) has no name", empty)
	case row >= 0 && len(names) > 1:
		return row, len(names) == 2 && strings.EqualFold(names[1-row], foldColumn), nil
	}
	return 0, false, dataset.Errorf(dataset.ErrFormat,
		"line 1: want the columns row and fold, or row and one column of 0 and 1 for each split%s", hint)
}

// wholeNumber reads a number in digits, which may have a fraction of zeros.
func wholeNumber(field string) (int, error) {
	field = strings.TrimSpace(field)
	if whole, fraction, cut := strings.Cut(field, "."); cut && strings.Trim(fraction, "0") == "" {
		field = whole
	}
	return strconv.Atoi(field)
}

// eachRow calls f with the number of each row, from a column, and the record. The records must list all rows, each
// once.
func (r *listReader) eachRow(column, rows int, f func(row int, record []string) error) error {
	lines := make([]int, rows) // by row: where it was listed; 0: not yet
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.failed(err)
		}
		line, _ := r.FieldPos(0)
		line += r.before
		row, err := wholeNumber(record[column])
		switch {
		case err == nil && row == rows:
			err = dataset.Errorf(dataset.ErrFormat, "row %.20q: want a number from 0 to %d, because rows are numbered from 0",
				record[column], rows-1)
		case err != nil || row < 0 || row > rows:
			err = dataset.Errorf(dataset.ErrFormat, "row %.20q: want a number from 0 to %d", record[column], rows-1)
		case lines[row] != 0:
			err = dataset.Errorf(dataset.ErrFormat, "row %d is already listed in line %d", row, lines[row])
		default:
			lines[row] = line
			err = f(row, record)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if row := slices.Index(lines, 0); row >= 0 {
		return fmt.Errorf("row %d (counted from 0) is missing; the list must have all %d rows: %w", row, rows,
			dataset.ErrRowCount)
	}
	return nil
}

// readFoldRows reads folds after the header, in which the column at place has the numbers of rows.
func readFoldRows(r *listReader, place, rows int) (folds []uint16, k int, err error) {
	folds = make([]uint16, rows)
	var none []int // rows without a fold
	err = r.eachRow(place, rows, func(row int, record []string) error {
		field := record[1-place]
		if strings.TrimSpace(field) == "" && r.mayLack(row) {
			none = append(none, row)
			return nil
		}
		fold, err := wholeNumber(field)
		if err != nil || fold < 0 || fold >= dataset.MaxFolds {
			hint := ""
			if _, is := tested(field); is && err != nil {
				hint = "; a column that marks the samples of a split must not be called fold"
			}
			return dataset.Errorf(dataset.ErrFormat, "fold %.20q: want a whole number from 0 to %d, in digits%s", field,
				dataset.MaxFolds-1, hint)
		}
		folds[row] = uint16(fold)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if len(none) > 0 {
		last := slices.Max(folds) // a fold that other rows have
		for _, row := range none {
			folds[row] = last
		}
	}
	k, err = countFolds(folds)
	return folds, k, err
}

// countFolds returns the number of folds. An empty fold is an error.
func countFolds(folds []uint16) (int, error) {
	if len(folds) == 0 {
		return 0, dataset.Errorf(dataset.ErrFormat, "the file lists no rows")
	}
	k := int(slices.Max(folds)) + 1
	used := make([]bool, k)
	for _, f := range folds {
		used[f] = true
	}
	i := slices.Index(used, false)
	if i == 0 && !slices.Contains(used[1:], false) {
		return 0, dataset.Errorf(dataset.ErrFormat, "the folds are numbered from 1 to %d, want numbers from 0: subtract 1 "+
			"from each", k-1)
	}
	if i >= 0 {
		return 0, dataset.Errorf(dataset.ErrFormat, "fold %d has no samples; the folds are 0 to %d", i, k-1)
	}
	return k, nil
}

// SplitFile reads a CSV file (or .csv.gz), or a Parquet file, of so many rows. With the header row,fold it gives the
// fold of each row, and no fold may be empty. Otherwise it has the header row and a column for each split, which is 1,
// True or test in test rows and 0, False or train in others. In a column that is called train, 1 and True are training
// rows. Each split has rows of both kinds. Rows and folds count from 0, and both columns and rows may have any order.
// Errors name the file, the line and the column.
func SplitFile(path string, rows int) (*dataset.SplitList, error) { return splitFile(path, rows, nil) }

// splitFile is SplitFile for a file in which the fields of the rows left, in order, may be empty.
func splitFile(path string, rows int, left []int) (*dataset.SplitList, error) {
	called := path
	var in io.Reader
	var closer io.Closer
	var err error
	if IsParquet(path) {
		var text io.ReadCloser
		if text, err = ParquetText(path); err != nil {
			return nil, err
		}
		in, closer, called = text, text, path+" as lines of text" // the names of the columns are line 1
	} else if in, closer, err = openText(path, encodingOfMark); err != nil {
		return nil, pathError(path, err)
	}
	defer closer.Close()
	s, err := readSplits(in, rows, left)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", called, err)
	}
	return s, nil
}

func readSplits(in io.Reader, rows int, left []int) (*dataset.SplitList, error) {
	r, header, err := newListReader(in)
	if err != nil {
		return nil, err
	}
	r.left = left
	row, isFolds, err := listColumns(header)
	if err != nil {
		return nil, err
	}
	if isFolds {
		folds, k, err := readFoldRows(r, row, rows)
		return &dataset.SplitList{Assigned: folds, Folds: k}, err
	}
	return readMasks(r, header, row, rows)
}

// readMasks reads a column for each split after the header, in which the column at place has the numbers of rows.
func readMasks(r *listReader, header []string, place, rows int) (*dataset.SplitList, error) {
	names := slices.Delete(dataset.Trimmed(header), place, place+1)
	if n := len(names); n > dataset.MaxSplits {
		return nil, dataset.Errorf(dataset.ErrFormat, "line 1: found %d splits, want at most %d", n, dataset.MaxSplits)
	}
	if err := dataset.CheckDistinct("splits", names); err != nil {
		return nil, fmt.Errorf("line 1: %w: %w", err, dataset.ErrFormat)
	}
	var roles []splitRole // by column
	for _, name := range names {
		roles = append(roles, roleOf(name))
	}
	if train, test := slices.Index(roles, trainRole), slices.Index(roles, testRole); train >= 0 && test >= 0 {
		return nil, dataset.Errorf(dataset.ErrAmbiguous,
			"line 1: columns %q and %q may describe one split or two: remove one column, or rename the splits without train "+
				"and test in their names", names[train], names[test])
	}
	words := dataset.SplitWords(len(names))
	masks := make([]uint16, rows*words)
	err := r.eachRow(place, rows, func(row int, record []string) error {
		for k, field := range slices.Delete(record, place, place+1) {
			is, ok := tested(field)
			if !ok && strings.TrimSpace(field) == "" && r.mayLack(row) {
				continue
			}
			if !ok {
				return dataset.Errorf(dataset.ErrFormat, "%q is %.20q: want 1 for a test sample and 0 for others, or True and "+
					"False, or test and train", names[k], field)
			}
			if word := strings.TrimSpace(field); !strings.EqualFold(word, "train") && !strings.EqualFold(word, "test") {
				switch roles[k] {
				case trainRole:
					is = !is
				case doubtRole:
					return dataset.Errorf(dataset.ErrAmbiguous, "%q is %.20q, which may mean test or train: write test and train, "+
						"or call the column test if 1 means test, and train if 1 means train", names[k], field)
				}
			}
			if is {
				masks[row*words+k/16] |= 1 << (k % 16)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s := &dataset.SplitList{Assigned: masks, Folds: len(names), Overlap: true}
	return s, s.Check(names, rows)
}

// splitRole is what 1 means in a column of a split.
type splitRole int

const (
	otherRole splitRole = iota // a test row, as the name says nothing else
	testRole                   // a test row
	trainRole                  // a training row
	doubtRole                  // the name says both or neither
)

// roleOf reads from the name of a column of a split what 1 means.
func roleOf(name string) splitRole {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	has := func(beginnings ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool {
			return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(word, b) })
		})
	}
	test, train := has("test", "istest", "holdout"), has("train", "istrain")
	switch {
	case train && test, slices.Contains(words, "val"), slices.Contains(words, "isval"), slices.Contains(words, "dev"),
		has("valid", "isvalid"):
		return doubtRole
	case train:
		return trainRole
	case test:
		return testRole
	}
	return otherRole
}

// tested reads whether a split tests a row; ok is false if the field says neither.
func tested(field string) (is, ok bool) {
	field = strings.TrimSpace(field)
	switch number, err := wholeNumber(field); {
	case err == nil:
		return number == 1, number == 0 || number == 1
	case strings.EqualFold(field, "true"), strings.EqualFold(field, "test"):
		return true, true
	case strings.EqualFold(field, "false"), strings.EqualFold(field, "train"):
		return false, true
	}
	return false, false
}

// SplitFor reads a split file of the rows of the file that the dataset was imported from, see
// the function SplitFile, and returns what it says of the dataset's rows. The fields of rows that
// the dataset lacks may be empty.
func SplitFor(m *dataset.Manifest, path string) (*dataset.SplitList, error) {
	s, err := splitFile(path, m.FileRows(), m.LeftOutRows())
	kept := m.FileRow()
	if err != nil || kept == nil {
		return s, err
	}
	words := 1
	if s.Overlap {
		words = dataset.SplitWords(s.Folds)
	}
	all := s.Assigned
	s.Assigned = make([]uint16, 0, len(kept)*words)
	for _, row := range kept {
		s.Assigned = append(s.Assigned, all[row*words:(row+1)*words]...)
	}
	if s.Overlap {
		if err := s.Check(nil, len(kept)); err != nil {
			return nil, fmt.Errorf("%s: after samples with missing values are left out, %w", path, err)
		}
		return s, nil
	}
	for fold := range s.Folds {
		if !slices.Contains(s.Assigned, uint16(fold)) {
			return nil, dataset.Errorf(dataset.ErrFormat, "%s: all samples of fold %d are left out for missing values",
				path, fold)
		}
	}
	return s, nil
}

// WriteSplit writes a division of the dataset's rows as a split file, from which the method SplitFile
// reads it again. The columns are row and fold; with Overlap row and test, or test0, test1 and so on
// if there are several splits. Rows are numbered as in the file that the dataset was imported from,
// and rows that the dataset lacks have empty fields.
func WriteSplit(m *dataset.Manifest, w io.Writer, s *dataset.SplitList) error {
	words, columns := 1, 1
	if s.Overlap {
		words, columns = dataset.SplitWords(s.Folds), s.Folds
	}
	if len(s.Assigned) != m.Rows*words {
		return fmt.Errorf("dataset: the split lists %d samples, but the dataset has %d",
			len(s.Assigned)/max(1, words), m.Rows)
	}
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString(rowColumn)
	switch {
	case !s.Overlap:
		out.WriteString("," + foldColumn)
	case columns == 1:
		out.WriteString(",test")
	default:
		for k := range columns {
			out.WriteString(",test" + strconv.Itoa(k))
		}
	}
	left, rest := m.LeftOutRows(), s.Assigned
	for row := range m.FileRows() {
		line := strconv.AppendInt(append(out.AvailableBuffer(), '\n'), int64(row), 10)
		if len(left) > 0 && left[0] == row {
			left = left[1:]
			line = append(line, strings.Repeat(",", columns)...)
		} else {
			for k := range columns {
				value := rest[0]
				if s.Overlap {
					value = rest[k/16] >> (k % 16) & 1
				}
				line = strconv.AppendUint(append(line, ','), uint64(value), 10)
			}
			rest = rest[words:]
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	out.WriteByte('\n')
	return out.Flush()
}

// Names are the contents of a names file (FORMAT.md): a JSON object in which
// each list may be missing.
type Names struct {
	Features []string `json:"features,omitempty"`
	Labels   []string `json:"labels,omitempty"`
	Rows     []string `json:"rows,omitempty"`
}

// decode reads an object. Package json takes "LABELS" for "labels", and the last one of several equal keys.
func (n *Names) decode(d *json.Decoder) error {
	lists := map[string]*[]string{"features": &n.Features, "labels": &n.Labels, "rows": &n.Rows}
	return decodeObject(d, func(key string) error {
		list, known := lists[key]
		exact := strings.ToLower(key)
		switch _, alike := lists[exact]; {
		case known && list == nil:
			return dataset.Errorf(dataset.ErrAmbiguous, "the key %q occurs twice", key)
		case !known && alike:
			return dataset.Errorf(dataset.ErrAmbiguous, "the key %q is unknown: write %q", key, exact)
		case !known:
			return fmt.Errorf("the key %.40q is unknown", key)
		}
		lists[key] = nil
		return d.Decode(list)
	})
}

// decodeObject decodes a JSON object. It calls f with each key, also if a key occurs again; f decodes the value.
func decodeObject(d *json.Decoder, f func(key string) error) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t != json.Delim('{'):
		return fmt.Errorf("found %v, want a JSON object", t)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		if err := f(fmt.Sprint(t)); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// nameLabels gives labels their names.
func (n *Names) nameLabels(info *dataset.Info, file string) error {
	if own := info.LabelNames; len(n.Labels) == len(own) && (info.LabelType.Classes || info.LabelType.Scale != nil) {
		order, known := orderOf(own, n.Labels)
		switch {
		case order != nil && (info.LabelType.Classes || slices.Equal(order, own)):
			return nil
		case known == 0 && identity.AreNumbers(own):
			info.LabelNames = n.Labels
			return nil
		}
		i := dataset.FirstDifference(own, n.Labels)
		return dataset.Errorf(dataset.ErrAmbiguous, "%s: label %d (counted from 0) is %q, but %sthe classes or numbers are "+
			"%s: list exactly these classes or numbers, in the order of the labels, "+
			"or omit \"labels\"", file, i, n.Labels[i], dataset.Prefix(info.File), dataset.ListSome(own))
	}
	return nameColumns(&info.LabelNames, n.Labels, info.Labels, "labels", file, info.File)
}

// ReadNames reads a names file; an unknown key is an error, as is a key that is there twice.
func ReadNames(path string) (*Names, error) {
	text, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	return decodeNames(path, bytes.NewReader(text))
}

func decodeNames(path string, in io.Reader) (*Names, error) {
	d := json.NewDecoder(in)
	n := new(Names)
	err := n.decode(d)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("the file has more than one JSON value")
		}
	}
	if err != nil {
		return nil, fmt.Errorf(`%s: %w; want {"features": [...], "labels": [...], "rows": [...]}`, path, err)
	}
	return n, nil
}

// WithNames returns src with the names that n has; file is for messages. The lists must be as long as what they
// name. Names that src has of its own must be the same. Names of classes may also be the classes in another order,
// which is not that of src then, or, if all classes are numbers, other texts.
func WithNames(src dataset.Source, file string, n *Names) (dataset.Source, error) {
	p := pipelineOf(src)
	info := p.info
	err := nameColumns(&info.FeatureNames, n.Features, info.Features, "features", file, info.File)
	if info.Labels > 0 {
		err = errors.Join(err, n.nameLabels(&info, file))
	}
	if len(n.Rows) > 0 && info.Rows >= 0 && info.Rows != len(n.Rows) {
		err = errors.Join(err, fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", file, len(n.Rows),
			info.Rows, dataset.ErrRowCount))
	}
	if err != nil {
		return nil, err
	}
	if len(n.Rows) == 0 {
		return p.described(info), nil
	}
	own := info.HasRowNames
	info.HasRowNames = true
	return p.after(func() (func(*dataset.Row) error, func(error) error, error) {
		rows := 0
		change := func(r *dataset.Row) error {
			if r.Number >= len(n.Rows) {
				return fmt.Errorf("%s: the list has %d row names, fewer than there are rows: %w", file, len(n.Rows),
					dataset.ErrRowCount)
			}
			if name := strings.TrimSpace(r.Name); own && name != "" && name != strings.TrimSpace(n.Rows[r.Number]) {
				return &dataset.RowError{File: info.File, Row: r.Number, Line: r.Line, Column: -1, Err: dataset.ErrAmbiguous,
					Reason: errtext.Sprintf("the name of this row is %.40q, but %.40q in %s: give the names of the file, or omit "+
						"\"rows\"", name, n.Rows[r.Number], file)}
			}
			rows++
			r.Name = n.Rows[r.Number]
			return nil
		}
		end := func(err error) error {
			if err == nil && rows != len(n.Rows) {
				return fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", file, len(n.Rows), rows,
					dataset.ErrRowCount)
			}
			return err
		}
		return change, end, nil
	}, info), nil
}

// nameColumns gives columns their names if they have no others. Errors call the columns what, the file of names file,
// and the file of the columns data.
func nameColumns(own *[]string, names []string, want int, what, file, data string) error {
	switch {
	case len(names) == 0:
		return nil
	case len(names) != want:
		return fmt.Errorf("%s: found %d names for %d %s", file, len(names), want, what)
	}
	for i, name := range *own {
		if given := strings.TrimSpace(names[i]); strings.TrimSpace(name) != "" && given != strings.TrimSpace(name) {
			return dataset.Errorf(dataset.ErrAmbiguous, "%s: %s %d (counted from 0) is %q, but %sits name is %q: give the "+
				"names and the order of the file, or omit %q",
				file, strings.TrimSuffix(what, "s"), i, given, dataset.Prefix(data), name, what)
		}
	}
	*own = names
	return nil
}

// orderOf returns the identities in the order of names, or nil if these are not all of them, each once. known counts
// the names that are identities.
func orderOf(identities, names []string) (order []string, known int) {
	index, used := identity.NewIndex("", "class", identities), make([]bool, len(identities))
	for _, name := range names {
		i, ok, err := index.Find(strings.TrimSpace(name), &dataset.Row{})
		if !ok && err == nil {
			continue
		}
		if known++; ok && !used[i] {
			order, used[i] = append(order, identities[i]), true
		}
	}
	if len(order) < len(identities) || known < len(names) {
		return nil, known
	}
	return order, known
}
