package dataset

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/internal/harness/allocs"
)

func openBytes(t *testing.T, name string, b []byte, o OpenOptions) (Source, error) {
	t.Helper()
	return openFile(t, name, string(b), o)
}

func goodMAT(f *mattest.File) []byte {
	f.AddDoubles("features", 3, 2, 1, 2, 3, 4, 5, 6)
	f.AddDoubles("other", 1, 1, 9)
	f.AddBytes("age", 1, 3, 10, 20, 30)
	f.AddDoubles("labels", 3, 2, 0.5, 0, 1, 0.5, 1, 0)
	return f.Bytes()
}

func TestMAT(t *testing.T) {
	for _, f := range []*mattest.File{{}, {Big: true}, {Compress: true}, {Big: true, Compress: true}} {
		src, err := openBytes(t, "a.MAT", goodMAT(f), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows := collect(t, src)
		if info := src.Info(); info.Rows != 3 || info.Features != 2 || info.Labels != 2 || len(rows) != 3 {
			t.Fatalf("%+v", info)
		}
		if r := rows[1]; !slices.Equal(r.Values, []float64{2, 5}) || !slices.Equal(r.Labels, []float64{0, 1}) {
			t.Errorf("row 1: %+v", r)
		}
		if r := rows[2]; !slices.Equal(r.Values, []float64{3, 6}) || !slices.Equal(r.Labels, []float64{1, 0}) {
			t.Errorf("row 2: %+v", r)
		}
	}
}

func TestMATOrdinaryLabels(t *testing.T) {
	b := goodMAT(&mattest.File{})
	src, err := openBytes(t, "a.mat", b, OpenOptions{Labels: LabelOptions{Kind: Age, Sigma: 0.1, Low: 10, High: 30}})
	if err != nil {
		t.Fatal(err)
	}
	if r := collect(t, src)[1]; r.Labels[10] < 0.999 {
		t.Errorf("age 20: %v", r.Labels)
	}
	src, err = openBytes(t, "a.mat", b, OpenOptions{LabelsVariable: "age", Labels: LabelOptions{Kind: Class}})
	if err != nil || !slices.Equal(src.Info().LabelNames, []string{"10", "20", "30"}) {
		t.Errorf("%v, %v", src, err)
	}
	_, err = openBytes(t, "a.mat", b, OpenOptions{Labels: LabelOptions{Kind: Class}})
	mustContain(t, err, `"labels" has 2 columns`)
	_, err = openBytes(t, "a.mat", b, OpenOptions{LabelsVariable: "truth"})
	mustContain(t, err, `no variable "truth"`)
	src, err = openBytes(t, "a.mat", b, OpenOptions{NoLabels: true})
	if err != nil || src.Info().Labels != 0 || len(collect(t, src)[0].Labels) != 0 {
		t.Errorf("%v, %v", src, err)
	}
}

func TestSparseMAT(t *testing.T) {
	f := &mattest.File{Compress: true}
	f.AddSparse("features", 3, 4, []int32{0, 2, 1, 2}, []int32{0, 2, 2, 2, 4}, []float64{1, 2, 3, 4})
	f.AddSparse("labels", 3, 2, []int32{0, 1, 2}, []int32{0, 1, 3}, []float64{1, 1, 1})
	f.AddCells("label_names", "calm", "sad")
	f.AddCells("row_names", "x", "", "z")
	f.AddCells("feature_names", "a", "b", "c", "d")
	src, err := openBytes(t, "a.mat", f.Bytes(), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	info, rows := src.Info(), collect(t, src)
	if !slices.Equal(info.LabelNames, []string{"calm", "sad"}) || len(info.FeatureNames) != 4 || !info.HasRowNames {
		t.Errorf("%+v", info)
	}
	want := [][]float64{{1, 0, 0, 0}, {0, 0, 0, 3}, {2, 0, 0, 4}}
	for i, r := range rows {
		if !r.Sparse || !slices.Equal(dense(r, 4), want[i]) || r.Labels[min(i, 1)] != 1 || r.Name != []string{"x", "", "z"}[i] {
			t.Errorf("row %d: %+v", i, r)
		}
	}
}

func TestMATErrors(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(*mattest.File)
		want error
		says string
	}{
		"no labels":   {func(f *mattest.File) { f.AddDoubles("features", 1, 1, 1) }, ErrNoLabels, `no variable "labels"`},
		"no features": {func(f *mattest.File) { f.AddDoubles("labels", 1, 1, 1) }, ErrFormat, `no variable "features"`},
		"row counts": {func(f *mattest.File) {
			f.AddDoubles("features", 3, 1, 1, 2, 3)
			f.AddDoubles("labels", 2, 2, 1, 1, 0, 0)
		}, ErrRowCount, `"features" has 3 rows, "labels" has 2`},
		"row names": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			f.AddDoubles("labels", 2, 1, 1, 1)
			f.AddCells("row_names", "a")
		}, ErrRowCount, `"row_names" has 1`},
		"label names": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			f.AddDoubles("labels", 2, 1, 1, 1)
			f.AddCells("label_names", "a", "b")
		}, nil, "2 label names for 1 labels"},
		"text":  {func(f *mattest.File) { f.AddCells("features", "a") }, nil, `"features" is not numeric`},
		"empty": {func(f *mattest.File) { f.Add(f.Head(6, "features", 0, 5)) }, ErrFormat, "features is 0 x 5"},
		"sparse rows from nowhere": {func(f *mattest.File) {
			f.AddSparse("features", 1<<31-1, 1, nil, []int32{0, 0}, nil)
		}, ErrFormat, "only 0 non-zero values"},
		"sparse labels from nowhere": {func(f *mattest.File) {
			f.AddSparse("labels", 60000, 60000, nil, make([]int32, 60001), nil)
		}, ErrFormat, "labels"},
	} {
		t.Log(name)
		f := &mattest.File{}
		c.add(f)
		_, err := openBytes(t, "a.mat", f.Bytes(), OpenOptions{})
		mustContain(t, err, "a.mat", c.says)
		if c.want != nil {
			mustBe(t, err, c.want)
		}
	}
}

func TestTruncatedMAT(t *testing.T) {
	for _, f := range []*mattest.File{{}, {Compress: true}} {
		b := goodMAT(f)
		for n := range len(b) {
			_, err := readMAT("a.mat", bytes.NewReader(b[:n]), &OpenOptions{})
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrNoLabels) {
				t.Fatalf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none.mat"), OpenOptions{})
	mustBe(t, err, os.ErrNotExist)
	mustContain(t, err, "none.mat")
	_, err = openFile(t, "a.parquet", "", OpenOptions{})
	mustContain(t, err, "a.parquet", "to_csv")
	_, err = openFile(t, "a.txt", "", OpenOptions{})
	mustContain(t, err, "a.txt", ".mat, .npz, .npy, .csv, .csv.gz, .tsv, .tsv.gz, .libsvm", "--data-format")
	_, err = openFile(t, "a.csv", "", OpenOptions{Format: "txt"})
	mustContain(t, err, `"txt"`, "csv.gz")
	if err := os.Mkdir(filepath.Join(dir, "d.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Open(filepath.Join(dir, "d.csv"), OpenOptions{})
	mustContain(t, err, "d.csv", "folder")
	_, err = Open(os.DevNull, OpenOptions{Format: "csv"})
	mustContain(t, err, os.DevNull, "cannot be read twice", "stdin")
	_, err = openBytes(t, "a.mat", append([]byte("MATLAB 7.3 MAT-file"), make([]byte, 300)...), OpenOptions{})
	mustContain(t, err, "a.mat", "v7.3", "HDF5", "-v7")
	mustBe(t, err, ErrFormat)
}

func FuzzMAT(f *testing.F) {
	f.Add(goodMAT(&mattest.File{}))
	f.Add(goodMAT(&mattest.File{Big: true, Compress: true}))
	s := &mattest.File{}
	s.AddSparse("features", 3, 4, []int32{0, 2, 1, 2}, []int32{0, 2, 2, 2, 4}, []float64{1, 2, 3, 4})
	s.AddSparse("labels", 3, 2, []int32{0, 1, 2}, []int32{0, 1, 3}, []float64{1, 1, 1})
	f.Add(s.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 { // zlib inflates to a thousand times as much
			return
		}
		var src Source
		var err error
		allocs.AtMost(t, inflated(len(b)), "a MAT file", func() { src, err = readMAT("a.mat", bytes.NewReader(b), &OpenOptions{}) })
		if err == nil && src.Info().Rows < 1<<16 {
			Blocks(src, 100, ImportOptions{}, func(*Rows, []string) error { return nil })
		}
	})
}
