package read

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"
)

// NpyBytes makes an array by hand.
func NpyBytes(descr string, fortran bool, shape string, data any) []byte {
	order := map[bool]string{false: "False", true: "True"}[fortran]
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	b := append([]byte("\x93NUMPY"), 1, 0)
	b = append(binary.LittleEndian.AppendUint16(b, uint16(len(header))), header...)
	var body bytes.Buffer
	binary.Write(&body, binary.LittleEndian, data)
	return append(b, body.Bytes()...)
}

// NpzBytes makes an archive of names and arrays in turn.
func NpzBytes(entries ...any) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		w, _ := z.Create(entries[i].(string) + ".npy")
		w.Write(entries[i+1].([]byte))
	}
	z.Close()
	return b.Bytes()
}

func goodNPZ(fortran bool) []byte {
	features, labels := []float32{1, 4, 2, 5, 3, 6}, []float64{0.5, 0.5, 0, 1, 1, 0}
	if fortran {
		features, labels = []float32{1, 2, 3, 4, 5, 6}, []float64{0.5, 0, 1, 0.5, 1, 0}
	}
	return NpzBytes(
		"features", NpyBytes("<f4", fortran, "(3, 2)", features),
		"labels", NpyBytes("<f8", fortran, "(3, 2)", labels),
		"age", NpyBytes("<i8", false, "(3,)", []int64{10, 20, 30}),
		"class", NpyBytes("|S1", false, "(3,)", []byte("bab")),
		"label_names", NpyBytes("|S4", false, "(2,)", []byte("calmsad\x00")),
		"row_names", NpyBytes("|S1", false, "(3,)", []byte("xyz")),
	)
}

func TestNPZ(t *testing.T) {
	for _, fortran := range []bool{false, true} {
		src, err := OpenBytes(t, "a.npz", goodNPZ(fortran), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info, rows := src.Info(), datasettest.Collect(t, src)
		if info.Rows != 3 || info.Features != 2 || !slices.Equal(info.LabelNames, []string{"calm", "sad"}) ||
			!info.HasRowNames {
			t.Errorf("%+v", info)
		}
		if r := rows[1]; !slices.Equal(r.Values, []float64{2, 5}) || !slices.Equal(r.Labels, []float64{0, 1}) ||
			r.Name != "y" {
			t.Errorf("Fortran %v: row 1: %+v", fortran, r)
		}
		if len(datasettest.Collect(t, src)) != 3 {
			t.Error("a second scan differs")
		}
	}
}

func TestNPZOrdinaryLabels(t *testing.T) {
	for _, fortran := range []bool{false, true} {
		b := goodNPZ(fortran)
		src, err := OpenBytes(t, "a.npz", b, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}})
		if err != nil {
			t.Fatal(err)
		}
		rows := datasettest.Collect(t, src)
		if !slices.Equal(src.Info().LabelNames, []string{"a", "b"}) || !slices.Equal(rows[1].Labels, []float64{1, 0}) {
			t.Errorf("%+v, %+v", src.Info(), rows)
		}
		src, err = OpenBytes(t, "a.npz", b, OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 0.1, Low: 10,
			High: 30}})
		if err != nil {
			t.Fatal(err)
		}
		if r := datasettest.Collect(t, src)[2]; r.Labels[20] < 0.999 {
			t.Errorf("%+v", r)
		}
		src, err = OpenBytes(t, "a.npz", b, OpenOptions{Arrays: ArrayOptions{LabelsVariable: "age"},
			Labels: LabelOptions{Kind: dataset.Class}})
		if err != nil || !slices.Equal(src.Info().LabelNames, []string{"10", "20", "30"}) {
			t.Errorf("%v", err)
		}
		src, err = OpenBytes(t, "a.npz", b, OpenOptions{NoLabels: true})
		if err != nil || src.Info().Labels != 0 || len(datasettest.Collect(t, src)) != 3 {
			t.Errorf("%v", err)
		}
	}
}

// Archives that another implementation wrote.
func TestNPZFromNpyio(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npz")
	err := npz.Write(path, map[string]any{
		"features.npy": mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6}),
		"labels.npy":   mat.NewDense(2, 2, []float64{1, 0, 0.25, 0.75}),
	})
	if err != nil {
		t.Fatal(err)
	}
	src, err := Open(path, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := datasettest.Collect(t, src)[1]
	if !slices.Equal(r.Values, []float64{4, 5, 6}) || !slices.Equal(r.Labels, []float64{0.25, 0.75}) {
		t.Errorf("%+v", r)
	}
}

func TestNPZErrors(t *testing.T) {
	good, other := NpyBytes("<f4", false, "(2, 1)", []float32{1, 2}), NpyBytes("<f4", false, "(3, 1)", []float32{1, 1, 1})
	text := NpyBytes("|S1", false, "(2,)", []byte("ab"))
	for name, c := range map[string]struct {
		b    []byte
		want error
		says string
	}{
		"not a zip":   {[]byte("hello"), dataset.ErrFormat, "zip"},
		"cut short":   {goodNPZ(false)[:300], dataset.ErrFormat, ""},
		"no features": {NpzBytes("labels", good), dataset.ErrFormat, `no array "features"`},
		"no labels":   {NpzBytes("features", good), dataset.ErrNoLabels, `no array "labels"`},
		"row counts": {NpzBytes("features", good, "labels", other), dataset.ErrRowCount,
			`but "features" has 2 rows and "labels" has 3`},
		"row names": {NpzBytes("features", other, "labels", other, "row_names", text), dataset.ErrRowCount,
			`"row_names" has 2`},
		"strings": {NpzBytes("features", text, "labels", good), dataset.ErrFormat,
			`array "features" holds texts, want numbers`},
		"dimensions": {NpzBytes("features", NpyBytes("<f4", false, "(2, 1, 1, 1, 1)", []float32{1, 2}), "labels", good),
			dataset.ErrFormat, "5 dimensions"},
		"no .npy": {NpzBytes("features", []byte("hello"), "labels", good), dataset.ErrFormat, `"features"`},
		"few values": {NpzBytes("features", NpyBytes("<f4", false, "(2, 1)", []float32{1}), "labels", good),
			dataset.ErrFormat, "an array of shape [2 1] with 4 bytes for each element does not fit in the 4 bytes of the file"},
		"more values": {NpzBytes("features", good, "labels", NpyBytes("<f4", false, "(2, 1)", []float32{1, 1, 1})),
			dataset.ErrFormat, `"labels"`},
		"claimed size": {NpzBytes("features", NpyBytes("<f4", false, "(4000000000, 16777216)", []byte{}), "labels",
			NpyBytes("<f4", false, "(4000000000, 1)", []byte{})), dataset.ErrFormat, "truncated"},
		"claimed, by columns": {NpzBytes("features", NpyBytes("<f4", true, "(4000000000, 16777216)", []byte{}),
			"labels", NpyBytes("<f4", true, "(4000000000, 1)", []byte{})), dataset.ErrFormat, "features"},
	} {
		t.Log(name)
		src, err := OpenBytes(t, "a.npz", c.b, OpenOptions{})
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		datasettest.MustContain(t, err, "a.npz", c.says)
		datasettest.MustBe(t, err, c.want)
	}
}

func TestNPYPair(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	features := write("set_features.npy", NpyBytes("<i2", false, "(2, 2)", []int16{1, 2, 3, 4}))
	labels := write("set_labels.npy", NpyBytes("<f8", true, "(2, 2)", []float64{0, 1, 1, 0}))
	short := write("short.npy", NpyBytes("<f8", false, "(1, 2)", []float64{0, 1}))
	for _, o := range []OpenOptions{{}, {Arrays: ArrayOptions{LabelsFile: labels}}} {
		src, err := Open(features, o)
		if err != nil {
			t.Fatal(err)
		}
		if r := datasettest.Collect(t, src)[1]; !slices.Equal(r.Values, []float64{3, 4}) ||
			!slices.Equal(r.Labels, []float64{1, 0}) {
			t.Errorf("%+v", r)
		}
	}
	_, err := Open(features, OpenOptions{Arrays: ArrayOptions{LabelsFile: short}})
	datasettest.MustBe(t, err, dataset.ErrRowCount)
	datasettest.MustContain(t, err, "set_features.npy", "short.npy", "has 1")
	_, err = Open(features, OpenOptions{Arrays: ArrayOptions{LabelsFile: filepath.Join(dir, "none.npy")}})
	datasettest.MustBe(t, err, os.ErrNotExist)
	_, err = Open(short, OpenOptions{})
	datasettest.MustBe(t, err, dataset.ErrNoLabels)
	src, err := Open(short, OpenOptions{NoLabels: true})
	if err != nil || len(datasettest.Collect(t, src)) != 1 {
		t.Errorf("%v", err)
	}
}

func FuzzNPZ(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.npz")
	f.Add(goodNPZ(false))
	f.Add(goodNPZ(true))
	f.Add(archiveOf(goodCSR()))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<14 {
			return
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		var src dataset.Source
		var err error
		allocs.AtMost(t, inflated(len(b)), "an NPZ file", func() { src, err = Open(path, OpenOptions{}) })
		if err == nil && src.Info().Rows < 1<<16 {
			importer.Blocks(src, 100, importer.Options{}, func(*dataset.Rows, []string) error { return nil })
		}
	})
}

// TestNPZOtherTypes: arrays of types that are not read are named as NumPy does, with what makes texts or numbers of
// them.
func TestNPZOtherTypes(t *testing.T) {
	features, labels := NpyBytes("<f4", false, "(2, 1)", []float32{1, 2}), NpyBytes("<f4", false, "(2, 1)",
		[]float32{1, 1})
	of := func(descr string) []byte { return NpyBytes(descr, false, "(2,)", make([]byte, 64)) }
	structured := bytes.ReplaceAll(NpyBytes("[('shape', '<f8'), ('b', '<i4')]", false, "(2,)", make([]byte, 24)),
		[]byte("'["), []byte("["))
	structured = bytes.ReplaceAll(structured, []byte("]'"), []byte("]  "))
	class := LabelOptions{Kind: dataset.Class}
	for name, c := range map[string]struct {
		b       []byte
		o       OpenOptions
		says    string
		without string
	}{
		"names": {NpzBytes("features", features, "labels", labels, "label_names", of("|O")), OpenOptions{},
			`"label_names": array elements of type object (Python objects, which NumPy pickles) cannot be read; in NumPy, for an array x, x.astype(str) converts it to texts`, "astype(float)"},
		"row names": {NpzBytes("features", features, "labels", labels, "row_names", of("|T16")), OpenOptions{},
			"save numbers as float64 and texts as str", ""},
		"features": {NpzBytes("features", of("|O"), "labels", labels), OpenOptions{},
			"x.astype(float) converts it to numbers", "(str)"},
		"labels": {NpzBytes("features", features, "labels", of("|O")), OpenOptions{},
			"x.astype(float) converts it to numbers", "(str)"},
		"classes": {NpzBytes("features", features, "class", of("|O")), OpenOptions{Labels: class},
			"x.astype(float) converts it to numbers and x.astype(str) converts it to texts", ""},
		"groups": {NpzBytes("features", features, "labels", labels, "who", of("|O")),
			OpenOptions{Beside: BesideOptions{Groups: "who"}},
			"x.astype(float) converts it to numbers and x.astype(str) converts it to texts", ""},
		"dates":     {NpzBytes("features", of("<M8[ns]"), "labels", labels), OpenOptions{}, "<M8[ns]", "astype(float)"},
		"durations": {NpzBytes("features", of("<m8[s]"), "labels", labels), OpenOptions{}, "<m8[s]", "astype(float)"},
		"date groups": {NpzBytes("features", features, "labels", labels, "who", of("<M8[D]")),
			OpenOptions{Beside: BesideOptions{Groups: "who"}}, "x.astype(str) converts it to texts", ""},
		"complex":     {NpzBytes("features", of("<c16"), "labels", labels), OpenOptions{}, "<c16", "astype(float)"},
		"long double": {NpzBytes("features", of("<f16"), "labels", labels), OpenOptions{}, "<f16", ""},
		"bfloat16":    {NpzBytes("features", of("|V2"), "labels", labels), OpenOptions{}, "|V2", "astype(float)"},
		"structured": {NpzBytes("features", structured, "labels", labels), OpenOptions{},
			"structured_to_unstructured(x)", ""},
		"listed": {NpzBytes("X", of("|O"), "labels", labels), OpenOptions{},
			"X (2 object (Python objects, which NumPy pickles))", "unreadable"},
		"text features": {NpzBytes("features", of("<U2"), "labels", labels), OpenOptions{},
			`array "features" holds texts, want numbers; in NumPy, x.astype(float) converts an array x`, ""},
		"text labels": {NpzBytes("features", features, "labels", of("|S2")), OpenOptions{},
			`array "labels" holds texts, want numbers; --labels class reads texts as classes`, ""},
		"number names": {NpzBytes("features", features, "labels", labels, "row_names", NpyBytes("<i8", false, "(2,)",
			[]int64{1, 2})), OpenOptions{}, "int64, want texts; in NumPy, x.astype(str) converts an array x to texts", ""},
		"matrix of text": {NpzBytes("features", features, "class", NpyBytes("|S1", false, "(2, 1)", []byte("ab"))),
			OpenOptions{Labels: class}, "x.ravel()", ""},
		"Latin-1": {NpzBytes("features", features, "class", NpyBytes("|S2", false, "(2,)", []byte("ab\xe9a"))),
			OpenOptions{Labels: class}, "numpy.char.decode(x, 'latin-1')", ""},
		"half a pair": {NpzBytes("features", features, "class", NpyBytes("<U1", false, "(2,)", []uint32{'a', 0xd83d})),
			OpenOptions{Labels: class}, "not Unicode", ""},
	} {
		src, err := OpenBytes(t, "a.npz", c.b, c.o)
		if err == nil {
			_, err = datasettest.TryCollect(src)
		}
		t.Log(name, err)
		datasettest.MustContain(t, err, "a.npz", c.says)
		if err != nil && c.without != "" && strings.Contains(err.Error(), c.without) {
			t.Errorf("%s: %v has %q", name, err, c.without)
		}
	}
}
