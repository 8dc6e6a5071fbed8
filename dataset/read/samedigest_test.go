package read

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/dataset/write"
	"pgregory.net/rapid"
)

// mayBeRefused lists what a file may be refused for in the place of being read as the same table: a number, an identity
// or a missing value can be written so in no other way, or in two.
var mayBeRefused = []struct {
	name string
	err  error
}{
	{"a whole number from 2^53 on, written as a float, as a class or a group", dataset.ErrAmbiguous},
	{"one number with and without zeros in front, as classes or groups", dataset.ErrAmbiguous},
}

// The indices of mayBeRefused; -1: nothing.
const (
	refusedFloat = iota
	refusedZeros
)

// written is a file of a table, and how it is read.
type written struct {
	name    string
	content []byte
	labels  []byte // of a .npy file
	arrays  []any  // names and .npy files in turn, if content is nil
	o       OpenOptions
	refused int // see spelling
}

func (t *drawnTable) options() (o OpenOptions) {
	o.Missing = dataset.Missing{Drop: true}
	if t.class != nil {
		o.Labels.Kind = dataset.Class
	}
	if t.counts {
		o.Labels.Kind = dataset.Counts
	}
	return o
}

// csv writes the table in one of the dialects.
func (t *drawnTable) csv(r *rapid.T) *written {
	w := &written{name: "a.csv", o: t.options()}
	w.o.CSV.Delimiter = rapid.SampledFrom([]rune{',', ';', '\t', '|'}).Draw(r, "delimiter")
	s := &spelling{r: r, refused: -1, comma: w.o.CSV.Delimiter != ',' && rapid.Bool().Draw(r, "comma")}
	if w.o.CSV.Decimal = "."; s.comma {
		w.o.CSV.Decimal = ","
	}
	if w.o.CSV.Delimiter == '\t' && rapid.Bool().Draw(r, "tsv") {
		w.name, w.o.CSV.Delimiter = "a.tsv", 0
	}
	cut := string(max(w.o.CSV.Delimiter, '\t'))
	end := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(r, "end")
	var b strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			if strings.ContainsAny(cell, cut+"\"'") || rapid.IntRange(0, 5).Draw(r, "quote") == 0 {
				cell = `"` + strings.ReplaceAll(cell, `"`, `""`) + `"`
			}
			if cells[i] = cell; i > 0 {
				b.WriteString(cut)
			}
			b.WriteString(cell)
		}
		b.WriteString(end)
	}
	width := len(t.names)
	if t.header {
		w.o.CSV.Header = dataset.HeaderYes
		line(t.columnNames())
	} else {
		w.o.CSV.Header = dataset.HeaderNo
		first := len(t.columnNames())
		if t.groups != nil {
			first--
			w.o.Beside.Groups = strconv.Itoa(first)
		}
		w.o.Labels.Columns = []string{fmt.Sprintf("%d:%d", width, first-1)}
	}
	if t.header && t.groups != nil {
		w.o.Beside.Groups = "person"
	}
	for i := range t.features {
		var cells []string
		for _, v := range t.features[i] {
			cells = append(cells, s.number(v))
		}
		if t.class != nil {
			cells = append(cells, s.identity(t.class, i))
		} else {
			for _, v := range t.labels[i] {
				cells = append(cells, s.number(v))
			}
		}
		if t.groups != nil {
			cells = append(cells, s.identity(t.groups, i))
		}
		if strings.Join(cells, "") == "" { // a row of empty fields at the end is none
			cells[0] = "NA"
		}
		line(cells)
	}
	w.refused = s.refused
	w.content = []byte(b.String())
	switch rapid.IntRange(0, 3).Draw(r, "encoding") {
	case 0:
		w.content = append([]byte("\xef\xbb\xbf"), w.content...)
	case 1:
		w.content = inUTF16(b.String(), binary.LittleEndian)
	}
	return w
}

func (t *drawnTable) columnNames() []string {
	names := slices.Clone(t.names)
	if t.class != nil {
		names = append(names, "class")
	} else {
		for i := range t.labels[0] {
			names = append(names, fmt.Sprintf("label_%d", i))
		}
	}
	if t.groups != nil {
		names = append(names, "person")
	}
	return names
}

// libsvm writes the table; nil: it cannot, since a libsvm file has no groups, and no blanks in classes.
func (t *drawnTable) libsvm(r *rapid.T) *written {
	blank := func(text string) bool {
		return strings.ContainsFunc(text, unicode.IsSpace) || strings.ContainsAny(text, "#:,")
	}
	if t.groups != nil || t.class != nil && slices.ContainsFunc(t.class.texts, blank) {
		return nil
	}
	w, s := &written{name: "a.libsvm", o: t.options()}, &spelling{r: r, plain: true, refused: -1}
	var b strings.Builder
	base := rapid.IntRange(0, 1).Draw(r, "base")
	w.o.Libsvm.ZeroBased = base == 0
	fmt.Fprintf(&b, "# columns: %d\n", len(t.names))
	for i, row := range t.features {
		if t.class != nil {
			b.WriteString(s.identity(t.class, i))
		} else {
			for k, v := range t.labels[i] {
				if k > 0 {
					b.WriteString(",")
				}
				b.WriteString(strings.TrimSpace(s.number(v)))
			}
		}
		for k, v := range row {
			if v != 0 || rapid.Bool().Draw(r, "zero") {
				fmt.Fprintf(&b, " %d:%s", k+base, strings.TrimSpace(s.number(v)))
			}
		}
		b.WriteString("\n")
	}
	w.content, w.refused = []byte(b.String()), s.refused
	return w
}

// numpyMatrix writes numbers in one of the types that have all of them.
func numpyMatrix(r *rapid.T, rows [][]float64) []byte {
	var all []float64
	fortran := rapid.Bool().Draw(r, "fortran")
	single, whole := true, true
	width := len(rows[0])
	for i := range len(rows) * width {
		v := rows[i/width][i%width]
		if fortran {
			v = rows[i%len(rows)][i/len(rows)]
		}
		all = append(all, v)
		single = single && (float64(float32(v)) == v || v != v)
		whole = whole && v == math.Trunc(v) && math.Abs(v) < 1000 && !(v == 0 && math.Signbit(v))
	}
	shape := fmt.Sprintf("(%d, %d)", len(rows), width)
	switch kind := rapid.IntRange(0, 3).Draw(r, "type"); {
	case kind == 0 && single:
		return NpyBytes("<f4", fortran, shape, converted[float32](all))
	case kind == 1 && whole:
		return NpyBytes("<i2", fortran, shape, converted[int16](all))
	case kind == 2 && whole:
		return NpyBytes("<i8", fortran, shape, converted[int64](all))
	}
	return NpyBytes("<f8", fortran, shape, all)
}

func converted[T float32 | int16 | int64 | uint64](values []float64) (all []T) {
	for _, v := range values {
		all = append(all, T(v))
	}
	return all
}

// numpyIdentities writes classes or groups: as numbers of a type that has them all, as floats, or as texts.
func (w *written) numpyIdentities(r *rapid.T, c *identityColumn) []byte {
	shape := fmt.Sprintf("(%d,)", len(c.texts))
	most, missing := c.largest()
	if c.numbers != nil && !missing && rapid.Bool().Draw(r, "whole") {
		if most < math.MaxInt64 && rapid.Bool().Draw(r, "signed") {
			return NpyBytes("<i8", false, shape, c.numbers)
		}
		return NpyBytes("<u8", false, shape, c.numbers)
	}
	if c.numbers != nil && (most < 1<<53 || rapid.IntRange(0, 9).Draw(r, "floats") == 0) {
		if most >= 1<<53 {
			w.refused = refusedFloat
		}
		return NpyBytes("<f8", false, shape, c.floats())
	}
	s := &spelling{r: r, refused: -1}
	var runes []uint32
	texts, longest := []string{}, 1
	for i := range c.texts {
		texts = append(texts, s.identity(c, i))
		longest = max(longest, len([]rune(texts[i])))
	}
	for _, text := range texts {
		cell := make([]uint32, longest)
		for i, c := range []rune(text) {
			cell[i] = uint32(c)
		}
		runes = append(runes, cell...)
	}
	if s.refused >= 0 {
		w.refused = s.refused
	}
	return NpyBytes(fmt.Sprintf("<U%d", longest), false, shape, runes)
}

// floats are the numbers, NaN for a missing one.
func (c *identityColumn) floats() (all []float64) {
	for i, v := range c.numbers {
		if all = append(all, float64(v)); c.texts[i] == "" {
			all[i] = numbers.NaN
		}
	}
	return all
}

func (t *drawnTable) npz(r *rapid.T) *written {
	w, entries := t.arrays(r)
	w.content = NpzBytes(entries...)
	return w
}

// named writes the table as a file for each array, which a JSON object names.
func (t *drawnTable) named(r *rapid.T) *written {
	w, entries := t.arrays(r)
	w.name, w.arrays = "", entries
	return w
}

// arrays returns the names and arrays of the table in turn.
func (t *drawnTable) arrays(r *rapid.T) (*written, []any) {
	w := &written{name: "a.npz", o: t.options(), refused: -1}
	var entries []any
	if rapid.Bool().Draw(r, "sparse") {
		entries = csrArrays(r, t.features)
	} else {
		entries = []any{"features", numpyMatrix(r, t.features)}
	}
	if t.class != nil {
		entries = append(entries, "class", w.numpyIdentities(r, t.class))
	} else {
		entries = append(entries, "labels", numpyMatrix(r, t.labels))
	}
	if t.groups != nil {
		entries = append(entries, "person", w.numpyIdentities(r, t.groups))
		w.o.Beside.Groups = "person"
	}
	return w, entries
}

// csrArrays writes numbers as the arrays of a sparse matrix, with some of the zeros.
func csrArrays(r *rapid.T, rows [][]float64) []any {
	var values []float64
	var indices []int64
	indptr := []int64{0}
	for _, row := range rows {
		for c, v := range row {
			if v != 0 || rapid.IntRange(0, 3).Draw(r, "zero") == 0 {
				values, indices = append(values, v), append(indices, int64(c))
			}
		}
		indptr = append(indptr, int64(len(values)))
	}
	integers := func(all []int64) []byte {
		if shape := fmt.Sprintf("(%d,)", len(all)); rapid.Bool().Draw(r, "long") {
			return NpyBytes("<i8", false, shape, all)
		} else {
			return NpyBytes("<u4", false, shape, converted32(all))
		}
	}
	return []any{
		"features_data", NpyBytes("<f8", false, fmt.Sprintf("(%d,)", len(values)), values), "features_indices",
		integers(indices),
		"features_indptr", integers(indptr), "features_shape", integers([]int64{int64(len(rows)), int64(len(rows[0]))}),
	}
}

func converted32(values []int64) (all []uint32) {
	for _, v := range values {
		all = append(all, uint32(v))
	}
	return all
}

// npy writes the table as two files; nil: they cannot have groups.
func (t *drawnTable) npy(r *rapid.T) *written {
	if t.groups != nil {
		return nil
	}
	w := &written{name: "features.npy", o: t.options(), refused: -1}
	w.content = numpyMatrix(r, t.features)
	if t.class != nil {
		w.labels = w.numpyIdentities(r, t.class)
	} else {
		w.labels = numpyMatrix(r, t.labels)
	}
	return w
}

func byColumn(rows [][]float64) (all []float64) {
	for c := range rows[0] {
		for i := range rows {
			all = append(all, rows[i][c])
		}
	}
	return all
}

func (t *drawnTable) mat(r *rapid.T) *written {
	w := &written{name: "a.mat", o: t.options(), refused: -1}
	f := &mattest.File{Big: rapid.Bool().Draw(r, "big"), Compress: rapid.Bool().Draw(r, "compress")}
	rows := int32(len(t.features))
	f.AddDoubles("features", rows, int32(len(t.names)), byColumn(t.features)...)
	if t.class != nil {
		w.matIdentities(r, f, "class", t.class)
	} else {
		f.AddDoubles("labels", rows, int32(len(t.labels[0])), byColumn(t.labels)...)
	}
	if t.groups != nil {
		w.matIdentities(r, f, "person", t.groups)
		w.o.Beside.Groups = "person"
	}
	w.content = f.Bytes()
	return w
}

func (w *written) matIdentities(r *rapid.T, f *mattest.File, name string, c *identityColumn) {
	most, missing := c.largest()
	rows := int32(len(c.texts))
	switch kind := rapid.IntRange(0, 9).Draw(r, "class"); {
	case c.numbers != nil && !missing && kind < 3:
		f.AddWhole(name, most <= math.MaxInt64, rows, 1, c.numbers...)
	case c.numbers != nil && (most < 1<<53 && kind < 6 || kind == 9):
		if most >= 1<<53 {
			w.refused = refusedFloat
		}
		f.AddDoubles(name, 1, rows, c.floats()...)
	default:
		s := &spelling{r: r, refused: -1}
		var texts []string
		for i := range c.texts {
			texts = append(texts, s.identity(c, i))
		}
		if f.AddCells(name, texts...); s.refused >= 0 {
			w.refused = s.refused
		}
	}
}

// digest reads a file and returns all that does not depend on how it is written: the digest, the classes, the groups
// and the rows left out.
func (w *written) digest(t *testing.T) (string, error) {
	dir := t.TempDir()
	path := filepath.Join(dir, w.name)
	files := map[string][]byte{path: w.content, filepath.Join(dir, "labels.npy"): w.labels}
	object := map[string]string{}
	for i := 0; i < len(w.arrays); i += 2 {
		name := w.arrays[i].(string)
		object[name] = filepath.Join(dir, fmt.Sprint(i))
		files[object[name]] = w.arrays[i+1].([]byte)
	}
	if w.arrays != nil {
		b, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		path = string(b)
	}
	for file, content := range files {
		if content == nil {
			continue
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := Open(path, w.o)
	if err != nil {
		return "", err
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		return "", err
	}
	text := digestOf(m)
	if back := digestOf(convertedFile(t, src)); back != text {
		return "", fmt.Errorf("the converted file has %s, want %s", back, text)
	}
	return fmt.Sprintf("%s left out %v", text, m.LeftOutRows()), nil
}

func digestOf(m *dataset.Manifest) string {
	text := m.Digest()
	if m.LabelType.Classes {
		text += fmt.Sprintf(", classes %q", m.LabelNames)
	}
	if m.Groups != nil {
		text += fmt.Sprintf(", groups %q %s", m.Groups.Names, m.Groups.Digest)
	}
	return text
}

// convertedFile writes a lossless .npz file of src and reads it as ReadFlags says.
func convertedFile(t *testing.T, src dataset.Source) *dataset.Manifest {
	t.Helper()
	var b bytes.Buffer
	if _, err := write.WriteNPZ(&b, src, importer.Options{}, write.NPZOptions{Lossless: true, Store: true}); err != nil {
		t.Fatal(err)
	}
	info, o := src.Info(), OpenOptions{}
	for _, flag := range write.ReadFlags(&info) {
		name, value, _ := strings.Cut(flag, " ")
		var err error
		switch name {
		case "--labels":
			o.Labels.Kind = dataset.LabelKind(value)
		case "--range":
			o.Labels.Ordered = true
			o.Labels.Low, o.Labels.High, err = ParseRange(value)
		case "--values":
			o.Beside.Values = value
		case "--intervals":
			o.Beside.Intervals = strings.Split(value, ",")
		case "--groups":
			o.Beside.Groups = value
		case "--missing":
			o.Missing, err = dataset.ParseMissing(value)
		default:
			t.Fatalf("unknown flag %s", flag)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	back, err := Open(datasettest.WriteFile(t, "converted.npz", b.String()), o)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(back, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSameTableSameDigest: a table has one digest, whatever file holds it and however its numbers, identities and
// missing values are written.
func TestSameTableSameDigest(t *testing.T) {
	same, refused := 0, make([]int, len(mayBeRefused))
	rapid.Check(t, func(r *rapid.T) {
		table := drawTable(r)
		want := ""
		for _, write := range []func(*rapid.T) *written{table.csv, table.csv, table.csv, table.libsvm, table.npz, table.npz,
			table.named, table.npy, table.mat, table.mat, table.parquet, table.parquet, table.arff, table.arff} {
			w := write(r)
			if w == nil {
				continue
			}
			got, err := w.digest(t)
			if err != nil && w.refused >= 0 && errors.Is(err, mayBeRefused[w.refused].err) {
				refused[w.refused]++
				continue
			}
			if err != nil {
				r.Fatalf("%s: %v\n%q", w.name, err, w.content)
			}
			if w.refused == refusedFloat && strings.Contains(got, "left out []") { // the rows that are left out do not count
				r.Fatalf("%s: %s was read\n%q", w.name, mayBeRefused[w.refused].name, w.content)
			}
			if w.refused >= 0 {
				continue // each number has zeros in front wherever it stands: they are a part of the names
			}
			if want == "" {
				want = got
			}
			if same++; got != want {
				r.Fatalf("%s: %s, another file %s\n%q", w.name, got, want, w.content)
			}
		}
	})
	t.Logf("%d files had the digest of their table", same)
	for i, n := range refused {
		t.Logf("%d files were refused: %s", n, mayBeRefused[i].name)
		if n > same/4 {
			t.Errorf("%d of %d files were refused: %s", n, same, mayBeRefused[i].name)
		}
	}
}
