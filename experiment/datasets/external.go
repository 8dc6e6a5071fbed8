package datasets

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// readExternal reads the predictions of other programs for a dataset: of each method with the key external, the files
// in the folder with the name of the dataset. The key is a path relative to the folder of the spec, whose file is at
// path. It returns nil if there are none. An error is about the method that is returned.
func readExternal(s *experiment.Spec, path string, d *experiment.Dataset,
	m *dataset.Manifest) (_ *protocol.ExperimentExternal, blob []byte, about *experiment.Method, _ error) {
	var tables []*external.Table
	list := new(protocol.ExperimentExternal)
	for i := range s.Methods {
		method := &s.Methods[i]
		if method.External == "" {
			continue
		}
		root := method.External
		if !filepath.IsAbs(root) {
			root = filepath.Join(filepath.Dir(path), root)
		}
		folder := filepath.Join(root, d.Name)
		if _, err := os.Stat(root); err != nil {
			return nil, nil, method, err
		}
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, method, err
		}
		for _, e := range entries {
			if !strings.EqualFold(filepath.Ext(e.Name()), ".csv") && !read.IsParquet(e.Name()) {
				continue
			}
			own, err := foldOfFile(e.Name())
			own.Method = method.Name
			if err == nil && slices.Contains(list.Tables, own) {
				err = errors.New("another file has the same fold")
			}
			file := filepath.Join(folder, e.Name())
			var t *external.Table
			if err == nil {
				t, err = openTable(file, m)
			}
			if _, ok := errors.AsType[*fs.PathError](err); ok { // it names the file
				return nil, nil, method, err
			} else if err != nil {
				return nil, nil, method, fmt.Errorf("%s: %w", file, err)
			}
			list.Tables, tables = append(list.Tables, own), append(tables, t)
		}
	}
	if len(tables) == 0 {
		return nil, nil, nil, nil
	}
	blob = external.Encode(tables)
	list.Digest = blobs.Sum(blob)
	return list, blob, nil, nil
}

// foldFile is the name of a file of predictions.
var foldFile = regexp.MustCompile(`^(?:repeat-(\d{1,9})-)?fold-(\d{1,9})\.(?i:csv|parquet)$`)

// foldOfFile returns the fold that the name of a file says.
func foldOfFile(name string) (t protocol.ExternalTable, err error) {
	parts := foldFile.FindStringSubmatch(name)
	if parts == nil {
		return t, errors.New("want a name such as fold-3.csv or repeat-1-fold-3.csv")
	}
	if parts[1] != "" {
		t.Repeat, _ = strconv.Atoi(parts[1]) // at most nine digits
	}
	t.Fold, _ = strconv.Atoi(parts[2])
	return t, nil
}

// openTable reads a file of predictions.
func openTable(path string, m *dataset.Manifest) (_ *external.Table, err error) {
	var f io.ReadCloser
	if read.IsParquet(path) {
		f, err = read.ParquetText(path)
	} else {
		f, err = os.Open(path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return readTable(f, m)
}

// readTable reads a file of predictions: a column row, with the numbers of samples in the data file from 0, and a
// column with the degrees of each label. Files that train writes have the truth, too, and another begin of the names.
func readTable(in io.Reader, m *dataset.Manifest) (*external.Table, error) {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	header, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	}
	if err != nil {
		return nil, err
	}
	header = slices.Clone(header) // the reader uses its record again
	row, columns, err := tableColumns(header, m)
	if err != nil {
		return nil, err
	}
	t, kept, seen := &external.Table{Labels: m.Labels}, m.FileRow(), make(map[uint64]int)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		number, err := strconv.ParseUint(strings.TrimSpace(record[row]), 10, 32)
		if err != nil || int64(number) >= int64(m.FileRows()) {
			return nil, fmt.Errorf("line %d: row %.20q: want a whole number from 0 to %d, as samples in the data file are "+
				"counted from 0", line, record[row], m.FileRows()-1)
		}
		if before, twice := seen[number]; twice {
			return nil, fmt.Errorf("line %d: row %d is in line %d, too", line, number, before)
		}
		seen[number] = line
		if kept != nil {
			at, ok := slices.BinarySearch(kept, int(number))
			if !ok {
				return nil, fmt.Errorf("line %d: row %d was left out of the dataset for missing values", line, number)
			}
			number = uint64(at)
		}
		degrees := make([]float32, len(columns))
		for c, at := range columns {
			v, err := strconv.ParseFloat(strings.TrimSpace(record[at]), 32)
			if err != nil {
				return nil, fmt.Errorf("line %d: %.40q in column %s is not a number", line, record[at], header[at])
			}
			degrees[c] = float32(v)
		}
		if err := external.CheckDegrees(degrees); err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		t.Row, t.Degrees = append(t.Row, uint32(number)), append(t.Degrees, degrees...)
	}
	if len(t.Row) == 0 {
		return nil, errors.New("the file has no predictions")
	}
	t.Sort()
	return t, nil
}

// predictedPrefix begins the names of columns with predictions in a file that also has the truth.
const predictedPrefix = "predicted_"

// tableColumns returns the place of the column row and, by label, of the columns with degrees.
func tableColumns(header []string, m *dataset.Manifest) (row int, columns []int, err error) {
	names := slices.Clone(m.LabelNames)
	for c := len(names); c < m.Labels; c++ {
		names = append(names, fmt.Sprintf("label_%d", c))
	}
	own := make([]string, len(header))
	for i, name := range header {
		own[i] = strings.TrimSpace(strings.TrimPrefix(name, "\ufeff"))
	}
	if len(own) == 1 && strings.ContainsAny(own[0], ";\t") {
		return 0, nil, errors.New("the header has one column; want commas between columns")
	}
	if row = slices.Index(own, "row"); row < 0 {
		return 0, nil, errors.New(`the column "row" is missing; it has the numbers of the samples in the data file, from 0`)
	}
	prefix := ""
	if slices.ContainsFunc(own, func(name string) bool { return strings.HasPrefix(name, "true_") }) {
		prefix = predictedPrefix
	}
	for _, name := range names {
		at := slices.Index(own, prefix+name)
		if at < 0 || at == row {
			return 0, nil, fmt.Errorf("the column %q of a label is missing", prefix+name)
		}
		columns = append(columns, at)
	}
	for i, name := range own {
		other := name == "fold" || strings.HasPrefix(name, "true_")
		known := i == row || slices.Contains(columns, i) || prefix != "" && other
		if !known {
			return 0, nil, fmt.Errorf("the column %q is of no label; the labels are %s", name, experiment.SomeOf(names, ", "))
		}
	}
	return row, columns, nil
}
