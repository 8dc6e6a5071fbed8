package read

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/google/go-cmp/cmp"
)

// TestColumnReader: the rows of a matrix by columns come as they are, over several windows,
// of columns that are read several or one at a time.
func TestColumnReader(t *testing.T) {
	testkit.WithoutRace(t)
	for _, shape := range [][2]int{{1, 1}, {3, 2}, {5, 40}, {1 << 21, 3}, {3, 1 << 21}, {1000, 5000}} {
		rows, columns := shape[0], shape[1]
		value := func(i, j int) float32 { return float32((i*31 + j*7) % 1000003) }
		byColumn := make([]float32, 0, rows*columns)
		for j := range columns {
			for i := range rows {
				byColumn = append(byColumn, value(i, j))
			}
		}
		const head = 12
		b := append(make([]byte, head), dataset.NativeBytes(byColumn)...)
		f := &columnFile{in: bytes.NewReader(b), base: head, rows: rows, columns: columns, size: 4,
			decode: (&npy.Header{Kind: 'f', Size: 4, Order: binary.NativeEndian}).Decode}
		r := f.begin()
		for i := range rows {
			row, err := r.next()
			if err != nil {
				t.Fatal(shape, err)
			}
			for j, v := range row {
				if v != float64(value(i, j)) {
					t.Fatalf("%v: row %d, column %d: %v", shape, i, j, v)
				}
			}
		}
		f.in = bytes.NewReader(b[:len(b)-1])
		r = f.begin()
		var err error
		for i := 0; i < rows && err == nil; i++ {
			_, err = r.next()
		}
		if err == nil {
			t.Errorf("%v: a file that is cut short has no error", shape)
		}
	}
}

// testMatrix is a set of rows for files of all kinds.
type testMatrix struct {
	rows, features, labels int
	x, d                   []float32 // row by row
}

func newTestMatrix(rows, features, labels int, zeros float64) *testMatrix {
	m := &testMatrix{rows: rows, features: features, labels: labels}
	s := num.NewStream(num.NewKey(1, "test matrix"), 0, 0)
	for range rows * features {
		v := float32(s.Uint64n(1<<16)) / 4
		if float64(s.Uint64n(1000)) < 1000*zeros {
			v = 0
		}
		m.x = append(m.x, v)
	}
	for range rows {
		for range labels { // a power of two of them
			m.d = append(m.d, 1/float32(labels))
		}
	}
	return m
}

// byColumns returns values column by column.
func byColumns(values []float32, rows, width int) []float32 {
	out := make([]float32, 0, len(values))
	for j := range width {
		for i := range rows {
			out = append(out, values[i*width+j])
		}
	}
	return out
}

func doubles(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// files returns the matrix as files of every kind.
func (m *testMatrix) files() map[string][]byte {
	arrays := func(fortran bool) (x, d []byte) {
		xs, ds := m.x, m.d
		if fortran {
			xs, ds = byColumns(xs, m.rows, m.features), byColumns(ds, m.rows, m.labels)
		}
		return NpyBytes("<f4", fortran, fmt.Sprintf("(%d, %d)", m.rows, m.features), xs),
			NpyBytes("<f8", fortran, fmt.Sprintf("(%d, %d)", m.rows, m.labels), doubles(ds))
	}
	files := map[string][]byte{}
	for name, fortran := range map[string]bool{"c": false, "fortran": true} {
		x, d := arrays(fortran)
		files[name+"_features.npy"], files[name+"_labels.npy"] = x, d
		files[name+".npz"] = NpzBytes("features", x, "labels", d)
	}
	for name, compress := range map[string]bool{"packed.mat": true, "plain.mat": false} {
		f := &mattest.File{Compress: compress}
		f.AddDoubles("features", int32(m.rows), int32(m.features), doubles(byColumns(m.x, m.rows, m.features))...)
		f.AddDoubles("labels", int32(m.rows), int32(m.labels), doubles(byColumns(m.d, m.rows, m.labels))...)
		files[name] = f.Bytes()
	}
	files["text.csv"], files["text.libsvm"] = m.text()
	return files
}

func (m *testMatrix) text() (csv, libsvm []byte) {
	var c, l strings.Builder
	for j := range m.features {
		fmt.Fprintf(&c, "x%d,", j)
	}
	for j := range m.labels {
		fmt.Fprintf(&c, "y_%d,", j)
	}
	text := strings.TrimSuffix(c.String(), ",") + "\n"
	c.Reset()
	c.WriteString(text)
	fmt.Fprintf(&l, "# columns: %d\n", m.features)
	for i := range m.rows {
		x, d := m.x[i*m.features:(i+1)*m.features], m.d[i*m.labels:(i+1)*m.labels]
		for _, v := range x {
			fmt.Fprintf(&c, "%v,", v)
		}
		c.WriteString(strings.Trim(strings.ReplaceAll(fmt.Sprint(d), " ", ","), "[]") + "\n")
		l.WriteString(strings.Trim(strings.ReplaceAll(fmt.Sprint(d), " ", ","), "[]"))
		for j, v := range x {
			if v != 0 {
				fmt.Fprintf(&l, " %d:%v", j+1, v)
			}
		}
		l.WriteString("\n")
	}
	return []byte(c.String()), []byte(l.String())
}

// TestEveryReaderImportsTheSame: the same rows in files of every kind become the same
// shards, whether in memory or by temporary files.
func TestEveryReaderImportsTheSame(t *testing.T) {
	testkit.WithoutRace(t)
	for _, m := range []*testMatrix{newTestMatrix(700, 20, 4, 0.1), newTestMatrix(700, 60, 4, 0.9)} {
		dir := t.TempDir()
		var want *dataset.Manifest
		files := m.files()
		for name, b := range files {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "_labels.npy") {
				continue
			}
			if strings.HasSuffix(name, "_features.npy") {
				labels := strings.Replace(name, "features", "labels", 1)
				if err := os.WriteFile(filepath.Join(dir, labels), files[labels], 0o600); err != nil {
					t.Fatal(err)
				}
			}
			built, imported := importBoth(t, path)
			if d := cmp.Diff(imported, built); d != "" {
				t.Errorf("%s: Import and Build differ: %s", name, d)
			}
			if want == nil {
				want = built
			}
			if built.Digest() != want.Digest() {
				t.Errorf("%s: digest %.12s, of another file %.12s", name, built.Digest(), want.Digest())
			}
		}
		src := &datasettest.Listed{Described: dataset.Info{Rows: m.rows, Features: m.features, Labels: m.labels}}
		for i := range m.rows {
			src.Rows = append(src.Rows, dataset.Row{
				Values: doubles(m.x[i*m.features : (i+1)*m.features]), Labels: doubles(m.d[i*m.labels : (i+1)*m.labels]),
			})
		}
		plain, _, err := importer.Build(src, importer.Options{})
		if err != nil || plain.Digest() != want.Digest() {
			t.Errorf("the files have digest %.12s, their rows %.12s, %v", want.Digest(), plain.Digest(), err)
		}
	}
}

func importBoth(t *testing.T, path string) (built, imported *dataset.Manifest) {
	t.Helper()
	src, err := Open(path, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if built, _, err = importer.Build(src, importer.Options{}); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if imported, err = importer.Import(src, t.TempDir(), importer.Options{}); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return built, imported
}

// TestMatricesOnDisk: a matrix by columns that is too large for memory is read as one that
// is not, and leaves no file behind.
func TestMatricesOnDisk(t *testing.T) {
	testkit.WithoutRace(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	const rows, width = 70000, 64 // above smallSpool bytes
	byColumn := make([]float64, rows*width)
	for i := range byColumn {
		byColumn[i] = float64(i % 1000)
	}
	h := npy.Header{Kind: 'f', Size: 8, Order: binary.NativeEndian, Fortran: true, Shape: []int{rows, width}}
	values, err := spool(bytes.NewReader(dataset.NativeBytes(byColumn)), int64(8*len(byColumn)))
	if err != nil {
		t.Fatal(err)
	}
	if _, onDisk := values.(*os.File); !onDisk {
		t.Error("the matrix is in memory")
	}
	m, err := storedArray("m", h, values).matrix(width)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		row, err := m.next()
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range row {
			if v != byColumn[j*rows+i] {
				t.Fatalf("row %d, column %d: %v", i, j, v)
			}
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v are left behind, %v", left, err)
	}
}

// TestImportMemory: the memory of an import does not grow with the file.
func TestImportMemory(t *testing.T) {
	testkit.WithoutRace(t)
	if testing.Short() {
		t.Skip("it writes files of some 200 MB")
	}
	const rows, features, limit = 400000, 120, 110 << 20
	dir := t.TempDir()
	x := NpyBytes("<f4", true, fmt.Sprintf("(%d, %d)", rows, features), slices.Repeat([]float32{1, 2, 3, 4, 5},
		rows*features/5))
	d := NpyBytes("<f4", false, fmt.Sprintf("(%d, 2)", rows), slices.Repeat([]float32{0.25, 0.75}, rows))
	if err := os.WriteFile(filepath.Join(dir, "features.npy"), x, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "labels.npy"), d, 0o600); err != nil {
		t.Fatal(err)
	}
	x, d = nil, nil
	runtime.GC()
	src, err := Open(filepath.Join(dir, "features.npy"), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	most, calls := uint64(0), 0
	_, err = importer.Import(src, t.TempDir(), importer.Options{Progress: func(importer.Progress) {
		if calls++; calls%50 == 0 {
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			most = max(most, s.HeapInuse)
		}
	}})
	if err != nil || most > limit {
		t.Errorf("%d MiB of heap for a file of %d MiB, %v", most>>20, 4*rows*features>>20, err)
	}
}
