package read

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

func OpenBytes(t *testing.T, name string, b []byte, o OpenOptions) (dataset.Source, error) {
	t.Helper()
	return OpenFile(t, name, string(b), o)
}

func GoodMAT(f *mattest.File) []byte {
	f.AddDoubles("features", 3, 2, 1, 2, 3, 4, 5, 6)
	f.AddDoubles("other", 1, 1, 9)
	f.AddBytes("age", 1, 3, 10, 20, 30)
	f.AddDoubles("labels", 3, 2, 0.5, 0, 1, 0.5, 1, 0)
	return f.Bytes()
}

func TestMAT(t *testing.T) {
	for _, f := range []*mattest.File{{}, {Big: true}, {Compress: true}, {Big: true, Compress: true}} {
		src, err := OpenBytes(t, "a.MAT", GoodMAT(f), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows := datasettest.Collect(t, src)
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
	b := GoodMAT(&mattest.File{})
	src, err := OpenBytes(t, "a.mat", b, OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 0.1, Low: 10,
		High: 30}})
	if err != nil {
		t.Fatal(err)
	}
	if r := datasettest.Collect(t, src)[1]; r.Labels[10] < 0.999 {
		t.Errorf("age 20: %v", r.Labels)
	}
	src, err = OpenBytes(t, "a.mat", b, OpenOptions{Arrays: ArrayOptions{LabelsVariable: "age"},
		Labels: LabelOptions{Kind: dataset.Class}})
	if err != nil || !slices.Equal(src.Info().LabelNames, []string{"10", "20", "30"}) {
		t.Errorf("%v, %v", src, err)
	}
	_, err = OpenBytes(t, "a.mat", b, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
	datasettest.MustContain(t, err, `"labels" has 2 columns`)
	_, err = OpenBytes(t, "a.mat", b, OpenOptions{Arrays: ArrayOptions{LabelsVariable: "truth"}})
	datasettest.MustContain(t, err, `no variable "truth"`)
	src, err = OpenBytes(t, "a.mat", b, OpenOptions{NoLabels: true})
	if err != nil || src.Info().Labels != 0 || len(datasettest.Collect(t, src)[0].Labels) != 0 {
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
	src, err := OpenBytes(t, "a.mat", f.Bytes(), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	info, rows := src.Info(), datasettest.Collect(t, src)
	if !slices.Equal(info.LabelNames, []string{"calm", "sad"}) || len(info.FeatureNames) != 4 || !info.HasRowNames {
		t.Errorf("%+v", info)
	}
	want := [][]float64{{1, 0, 0, 0}, {0, 0, 0, 3}, {2, 0, 0, 4}}
	for i, r := range rows {
		if !r.Sparse || !slices.Equal(datasettest.Dense(r, 4), want[i]) || r.Labels[min(i, 1)] != 1 ||
			r.Name != []string{"x", "", "z"}[i] {
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
		"no labels": {func(f *mattest.File) {
			f.AddDoubles("features", 1, 1, 1)
		}, dataset.ErrNoLabels, `no variable "labels"`},
		"no features": {func(f *mattest.File) {
			f.AddDoubles("labels", 1, 1, 1)
		}, dataset.ErrFormat, `no variable "features"`},
		"row counts": {func(f *mattest.File) {
			f.AddDoubles("features", 3, 1, 1, 2, 3)
			f.AddDoubles("labels", 2, 2, 1, 1, 0, 0)
		}, dataset.ErrRowCount, `but "features" has 3 rows and "labels" has 2`},
		"row names": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			f.AddDoubles("labels", 2, 1, 1, 1)
			f.AddCells("row_names", "a")
		}, dataset.ErrRowCount, `"row_names" has 1`},
		"label names": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			f.AddDoubles("labels", 2, 1, 1, 1)
			f.AddCells("label_names", "a", "b")
		}, nil, "2 label names for 1 labels"},
		"text":  {func(f *mattest.File) { f.AddCells("features", "a") }, nil, `variable "features" has class cell`},
		"empty": {func(f *mattest.File) { f.Add(f.Head(6, "features", 0, 5)) }, dataset.ErrFormat, "features is 0 x 5"},
		"sparse rows from nowhere": {func(f *mattest.File) {
			f.AddSparse("features", 1<<31-1, 1, nil, []int32{0, 0}, nil)
		}, dataset.ErrFormat, "only 0 non-zero values"},
		"sparse labels from nowhere": {func(f *mattest.File) {
			f.AddSparse("labels", 60000, 60000, nil, make([]int32, 60001), nil)
		}, dataset.ErrFormat, "labels"},
	} {
		t.Log(name)
		f := &mattest.File{}
		c.add(f)
		_, err := OpenBytes(t, "a.mat", f.Bytes(), OpenOptions{})
		datasettest.MustContain(t, err, "a.mat", c.says)
		if c.want != nil {
			datasettest.MustBe(t, err, c.want)
		}
	}
}

func TestTruncatedMAT(t *testing.T) {
	for _, f := range []*mattest.File{{}, {Compress: true}} {
		b := GoodMAT(f)
		for n := range len(b) {
			_, err := readMAT("a.mat", bytes.NewReader(b[:n]), &OpenOptions{})
			if !errors.Is(err, dataset.ErrFormat) && !errors.Is(err, dataset.ErrNoLabels) {
				t.Fatalf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "none.mat"), OpenOptions{})
	datasettest.MustBe(t, err, os.ErrNotExist)
	datasettest.MustContain(t, err, "none.mat")
	_, err = OpenFile(t, "a.feather", "", OpenOptions{})
	datasettest.MustContain(t, err, "a.feather", "pandas.read_feather", "to_parquet")
	for name, advice := range map[string]string{"a.csv.bz2": "decompress", "a.CSV.XZ": "decompress",
		"a.tar.gz": "decompress", "a.b.pkl": `a.b.csv", index=False)`} {
		_, err = OpenFile(t, name, "", OpenOptions{})
		datasettest.MustContain(t, err, name, "cannot be read", advice)
	}
	_, err = OpenFile(t, "a.txt", "", OpenOptions{})
	datasettest.MustContain(t, err, "a.txt", ".mat, .npz, .npy, .csv, .csv.gz, .tsv, .tsv.gz, .libsvm", "--data-format")
	_, err = OpenFile(t, "a.csv", "", OpenOptions{Format: "txt"})
	datasettest.MustContain(t, err, `"txt"`, "csv.gz")
	if err := os.Mkdir(filepath.Join(dir, "d.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = Open(filepath.Join(dir, "d.csv"), OpenOptions{})
	datasettest.MustContain(t, err, "d.csv", "folder")
	_, err = Open(os.DevNull, OpenOptions{Format: "csv"})
	datasettest.MustContain(t, err, os.DevNull, "cannot be read twice", "stdin")
	_, err = OpenBytes(t, "a.mat", append([]byte("MATLAB 7.3 MAT-file"), make([]byte, 300)...), OpenOptions{})
	datasettest.MustContain(t, err, "a.mat", "v7.3", "HDF5", "-v7")
	datasettest.MustBe(t, err, dataset.ErrFormat)
}

func FuzzMAT(f *testing.F) {
	f.Add(GoodMAT(&mattest.File{}))
	f.Add(GoodMAT(&mattest.File{Big: true, Compress: true}))
	s := &mattest.File{}
	s.AddSparse("features", 3, 4, []int32{0, 2, 1, 2}, []int32{0, 2, 2, 2, 4}, []float64{1, 2, 3, 4})
	s.AddSparse("labels", 3, 2, []int32{0, 1, 2}, []int32{0, 1, 3}, []float64{1, 1, 1})
	f.Add(s.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 { // zlib inflates to a thousand times as much
			return
		}
		var src dataset.Source
		var err error
		allocs.AtMost(t, inflated(len(b)), "a MAT file", func() {
			src, err = readMAT("a.mat", bytes.NewReader(b), &OpenOptions{})
		})
		if err == nil && src.Info().Rows < 1<<16 {
			importer.Blocks(src, 100, importer.Options{}, func(*dataset.Rows, []string) error { return nil })
		}
	})
}

// classified is a file of three rows with classes that add adds.
func classified(add func(*mattest.File)) []byte {
	f := &mattest.File{Compress: true}
	f.AddDoubles("features", 3, 2, 1, 2, 3, 4, 5, 6)
	add(f)
	return f.Bytes()
}

// TestMATTextClasses: classes, and groups, are cells of texts in a row or a column, or the lines of a character matrix;
// an empty cell is a missing class.
func TestMATTextClasses(t *testing.T) {
	cells := func(f *mattest.File, name string, rows, columns int32, texts ...string) {
		e := f.Head(1, name, rows, columns)
		for _, s := range texts {
			e = append(e, f.Element(14, append(f.Head(4, "", 1, int32(len(s))), f.Element(16, []byte(s))...))...)
		}
		f.Add(e)
	}
	for name, add := range map[string]func(*mattest.File){
		"row":    func(f *mattest.File) { cells(f, "class", 1, 3, "sad", "calm", "sad") },
		"column": func(f *mattest.File) { cells(f, "class", 3, 1, "sad", "calm", "sad") },
		"lines": func(f *mattest.File) {
			f.Add(append(f.Head(4, "class", 3, 4), f.Element(16, []byte("scsaaadld m "))...))
		},
		"labels": func(f *mattest.File) { cells(f, "labels", 3, 1, "sad", "calm", "sad") },
	} {
		for _, groups := range []string{"", "class"} {
			if name == "labels" && groups != "" {
				groups = "labels"
			}
			src, err := OpenBytes(t, "a.mat", classified(add), OpenOptions{Labels: LabelOptions{Kind: dataset.Class},
				Beside: BesideOptions{Groups: groups}})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			rows := datasettest.Collect(t, src)
			if !slices.Equal(src.Info().LabelNames, []string{"calm", "sad"}) || len(rows) != 3 ||
				!slices.Equal(rows[0].Labels, []float64{0, 1}) || !slices.Equal(rows[1].Labels, []float64{1, 0}) {
				t.Errorf("%s: %q, %+v", name, src.Info().LabelNames, rows)
			}
			if groups != "" && (rows[0].Group != "sad" || rows[1].Group != "calm") {
				t.Errorf("%s: groups %+v", name, rows)
			}
		}
	}
	missing := classified(func(f *mattest.File) { cells(f, "class", 3, 1, "sad", "", "calm") })
	_, err := OpenBytes(t, "a.mat", missing, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
	datasettest.MustContain(t, err, "row 1", "empty", "--missing drop")
	src, err := OpenBytes(t, "a.mat", missing, OpenOptions{Labels: LabelOptions{Kind: dataset.Class},
		Missing: dataset.Missing{Drop: true}})
	if err != nil || !datasettest.Collect(t, src)[1].LeftOut {
		t.Errorf("%v", err)
	}
}

// TestMATOtherKinds: variables that cannot be read are named by their class, with what makes arrays of them in MATLAB.
func TestMATOtherKinds(t *testing.T) {
	object := func(f *mattest.File, name, class string) {
		word := func(s string) []byte { return f.Element(1, []byte(s)) }
		f.Add(slices.Concat(f.Element(6, f.Ints(17, 0)[8:]), word(name), word("MCOS"), word(class)))
	}
	structure := func(f *mattest.File, name string, n int32) {
		f.Add(slices.Concat(f.Head(2, name, 1, n), f.Ints(16),
			f.Element(1, []byte("features\x00\x00\x00\x00\x00\x00\x00\x00labels\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))))
	}
	numbers := func(f *mattest.File) { f.AddDoubles("labels", 2, 2, 1, 1, 0, 0) }
	class := LabelOptions{Kind: dataset.Class}
	for name, c := range map[string]struct {
		add  func(*mattest.File)
		o    OpenOptions
		says []string
	}{
		"table": {func(f *mattest.File) {
			object(f, "features", "table")
			numbers(f)
		}, OpenOptions{}, []string{`variable "features" has class table`, "features = table2array(features)", "writetable"}},
		"other name": {func(f *mattest.File) {
			object(f, "T", "table")
			numbers(f)
		}, OpenOptions{}, []string{`no variable "features"`, "T (table), labels (2 x 2 double)", "--features-variable",
			"features = table2array(T)"}},
		"struct": {func(f *mattest.File) { structure(f, "data", 1) }, OpenOptions{},
			[]string{"it has data (1 x 1 struct with the fields features, labels); in MATLAB, features = data.features " +
				"extracts a field"}},
		"structs": {func(f *mattest.File) {
			structure(f, "features", 9)
		}, OpenOptions{}, []string{"features = vertcat(features.features)"}},
		"field": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			structure(f, "data", 1)
		}, OpenOptions{}, []string{`no variable "labels"`,
			"name the right variable with --labels-variable, or, in MATLAB, labels = data.labels extracts a field"}},
		"cell": {func(f *mattest.File) {
			f.AddCells("features", "a")
			numbers(f)
		}, OpenOptions{}, []string{`variable "features" has class cell, want numbers`, "cell2mat"}},
		"complex": {func(f *mattest.File) {
			f.Add(append(f.Head(6|0x0800, "features", 1, 2), f.Doubles(1, 2)...))
		}, OpenOptions{}, []string{"complex double", "real(features)"}},
		"dimensions": {func(f *mattest.File) {
			f.Add(append(f.Head(6, "features", 1, 2, 2), f.Doubles(1, 2, 3, 4)...))
		}, OpenOptions{}, []string{`variable "features" has class double`, "reshape(features, size(features, 1), [])"}},
		"categorical": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			object(f, "class", "categorical")
		}, OpenOptions{Labels: class}, []string{`variable "class" has class categorical`, "class = cellstr(class)"}},
		"datetime": {func(f *mattest.File) {
			object(f, "features", "datetime")
		}, OpenOptions{}, []string{`variable "features" has class datetime`, "double(features)"}},
		"java": {func(f *mattest.File) {
			object(f, "features", "java.lang.Double[]")
		}, OpenOptions{}, []string{`variable "features" has class java.lang.Double[]`, "double(features)"}},
		"strings": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			numbers(f)
			object(f, "label_names", "string")
		}, OpenOptions{}, []string{`variable "label_names" has class string`, "cellstr(label_names)"}},
		"numbers as names": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			numbers(f)
			f.AddDoubles("row_names", 2, 1, 7, 8)
		}, OpenOptions{},
			[]string{`variable "row_names" has class double`, "row_names = cellstr(string(row_names))"}},
		"texts": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			f.AddCells("labels", "a", "b")
		}, OpenOptions{}, []string{`variable "labels" has class cell, want numbers; --labels class reads texts as classes`}},
		"ages": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			f.AddCells("age", "7", "8")
		}, OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 1, High: 9}},
			[]string{`variable "age" has class cell, want numbers; in MATLAB`}},
		"groups": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			numbers(f)
			object(f, "who", "categorical")
		}, OpenOptions{Beside: BesideOptions{Groups: "who"}},
			[]string{`variable "who" has class categorical`, "who = cellstr(who)"}},
		"no groups": {func(f *mattest.File) {
			f.AddDoubles("features", 2, 1, 1, 2)
			numbers(f)
			structure(f, "s", 1)
		}, OpenOptions{Beside: BesideOptions{Groups: "who"}},
			[]string{`no variable "who"`, "who = s.FIELD"}},
		"cells of numbers": {func(f *mattest.File) {
			f.AddDoubles("features", 1, 1, 1)
			f.Add(append(f.Head(1, "class", 1, 1), f.Element(14, append(f.Head(6, "", 1, 1), f.Doubles(3)...))...))
		}, OpenOptions{Labels: class}, []string{`array "class": cell 0 (counted from 0): the cell has class double`,
			"class = cellstr(string(class))"}},
	} {
		f := &mattest.File{}
		c.add(f)
		_, err := OpenBytes(t, "a.mat", f.Bytes(), c.o)
		t.Log(name, err)
		datasettest.MustContain(t, err, append([]string{"a.mat"}, c.says...)...)
		if err != nil && strings.Contains(err.Error(), "%!") {
			t.Error(err)
		}
	}
}
