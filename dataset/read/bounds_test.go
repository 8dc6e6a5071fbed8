package read

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// packed returns text as gzip.
func packed(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(text)
	z.Close()
	return b.Bytes()
}

// zeroArray is an array of n zeros of one byte.
func zeroArray(shape string, n int) []byte {
	return append(NpyBytes("|i1", false, shape, []byte{}), make([]byte, n)...)
}

// matBytes is a MATLAB file of compressed arrays, with features and labels of one row.
func matBytes(add func(f *mattest.File)) []byte {
	f := &mattest.File{Compress: true}
	f.AddDoubles("labels", 1, 2, 0.5, 0.5)
	add(f)
	return f.Bytes()
}

// TestHostileFiles: a small file that unpacks to very much is refused with the file, the bound and a way
// out, and takes memory for its bound alone.
func TestHostileFiles(t *testing.T) {
	testkit.WithoutRace(t)
	const million = 1 << 20
	one := []float64{0.5, 0.5}
	features, labels := NpyBytes("<f8", false, "(1, 2)", one), NpyBytes("<f8", false, "(1, 2)", one)
	var empty []any
	for i := range 5000 {
		empty = append(empty, fmt.Sprintf("e%d", i), []byte{})
	}
	beside := OpenOptions{Beside: BesideOptions{Groups: "who"}}
	for name, c := range map[string]struct {
		file  string
		bytes []byte
		o     OpenOptions
		most  int // MiB that may be allocated
		says  []string
	}{
		"commas": {"a.csv.gz", packed(bytes.Repeat([]byte(","), 16*million)), OpenOptions{}, 400,
			[]string{"1,048,576 columns", ".npz"}},
		"commas, not packed": {"a.csv", bytes.Repeat([]byte(","), 2*million), OpenOptions{}, 400,
			[]string{"1,048,576 columns", ".npz"}},
		"other delimiter": {"a.csv.gz", packed(bytes.Repeat([]byte("é"), 4*million)),
			OpenOptions{CSV: CSVOptions{Delimiter: 'é'}}, 400, []string{"1,048,576 columns"}},
		"columns of a row": {"a.csv.gz", packed(append([]byte("a,y_1,y_2\n"), bytes.Repeat([]byte(","), 16*million)...)),
			OpenOptions{}, 400, []string{"row 0", "1,048,576 columns"}},
		"an open quote": {"a.csv.gz", packed(append([]byte("a,y_1,y_2\n\""), bytes.Repeat([]byte("x"), 100*million)...)),
			OpenOptions{}, 400, []string{"33,554,432 bytes", "quote"}},
		"rows without end": {"a.csv.gz", packed(append([]byte("a,y_1,y_2\n"), bytes.Repeat([]byte("1111111111111111,0,1\n"),
			4*million)...)), OpenOptions{}, 1200, []string{"200 times", "64.0 MiB", "gunzip"}},
		"a long line": {"a.libsvm.gz", packed(append([]byte("1,0 1:"), bytes.Repeat([]byte("0"), 100*million)...)),
			OpenOptions{}, 400, []string{"line 1", "33,554,432 bytes", ".npz"}},
		"labels": {"a.libsvm.gz", packed(append([]byte("1"), bytes.Repeat([]byte(",0"), 4*million)...)),
			OpenOptions{}, 100, []string{"row 0", "65536 labels"}},
		"names of features": {"a.libsvm.gz", packed(append([]byte("# features: "), bytes.Repeat([]byte(","), 20*million)...)),
			OpenOptions{}, 400, []string{"features", "16777216"}},
		"a high index": {"a.libsvm", []byte("1,0 16777216:1\n"), OpenOptions{}, 1,
			[]string{"16,777,216 features", "15 bytes", "1,048,576", "without gaps"}},
		"a stated index": {"a.libsvm", []byte("# columns: 2000000\n1,0 1:1\n"), OpenOptions{}, 1,
			[]string{"2,000,000 features", "without gaps"}},
		"empty arrays": {"a.npz", NpzBytes(empty...), OpenOptions{}, 20, []string{"5,000 arrays", "4,096", "numpy.savez"}},
		"fewer of them": {"a.npz", NpzBytes(empty[:8000]...), OpenOptions{}, 60,
			[]string{`no array "features"`, "--features-variable"}},
		"features": {"a.npz", NpzBytes("features", zeroArray("(1, 2097152)", 2*million), "labels", labels),
			OpenOptions{}, 1, []string{"2,097,152 features", "1,048,576", "numpy.savez"}},
		"rows": {"a.npz", NpzBytes("features", zeroArray("(67108864, 1)", 64*million), "labels", labels),
			OpenOptions{}, 1, []string{`"features"`, "200 times", "numpy.savez"}},
		"label names": {"a.npz", NpzBytes("features", features, "labels", labels, "label_names",
			append(NpyBytes("|S1", false, "(8388608,)", []byte{}), make([]byte, 8*million)...)), OpenOptions{}, 1,
			[]string{`"label_names" has 8388608`}},
		"groups": {"a.npz", NpzBytes("features", zeroArray("(8388608, 1)", 8*million), "labels",
			zeroArray("(8388608, 1)", 8*million), "who", append(NpyBytes("|S1", false, "(8388608,)", []byte{}),
				make([]byte, 8*million)...)), beside, 1, []string{`"who" has 8,388,608 values`, "1,048,576", "numpy.savez"}},
		"a long name": {"a.npz", NpzBytes("features", features, "labels", labels, "row_names",
			append(NpyBytes("<U4000000", false, "(1,)", []byte{}), make([]byte, 16*million)...)), OpenOptions{}, 1,
			[]string{`"row_names"`, "65536"}},
		"a claim": {"a.npy", NpyBytes("<f4", false, "(1, 16777216)", []byte{}),
			OpenOptions{NoLabels: true, Features: 1 << 24}, 1, []string{"truncated"}},
		"matlab features": {"a.mat", matBytes(func(f *mattest.File) {
			f.AddDoubles("features", 1, 2*million, make([]float64, 2*million)...)
		}), OpenOptions{}, 1, []string{"2,097,152 features", "-v6"}},
		"matlab bytes": {"a.mat", matBytes(func(f *mattest.File) {
			f.AddDoubles("features", 9*million, 1, make([]float64, 9*million)...)
		}), OpenOptions{}, 500, []string{"200 times", "-v6"}},
		"matlab names": {"a.mat", matBytes(func(f *mattest.File) {
			f.Add(append(f.Head(4, "row_names", 4*million, 1), f.Element(16, bytes.Repeat([]byte("a"), 4*million))...))
		}), OpenOptions{}, 1, []string{`"row_names" has 4,194,304 values`, "-v6"}},
		"matlab starts": {"a.mat", matBytes(func(f *mattest.File) {
			f.AddSparse("features", 2, 1, []int32{0}, make([]int32, 8*million), []float64{1})
		}), OpenOptions{}, 1, []string{"8388608 column starts"}},
	} {
		path := filepath.Join(t.TempDir(), c.file)
		if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		c.bytes = nil
		var err error
		n := allocs.Of(func() {
			var src dataset.Source
			if src, err = Open(path, c.o); err == nil {
				err = src.Scan(func(*dataset.Row) error { return nil })
			}
		})
		if n > uint64(c.most)*million {
			t.Errorf("%s: %d MiB were allocated, at most %d are expected", name, n/million, c.most)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, text := range append(c.says, c.file) {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: error %q lacks %q", name, err, text)
			}
		}
		if len(err.Error()) > 4000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// TestBoundsAreReached: what is just within the bounds is read.
func TestBoundsAreReached(t *testing.T) {
	wide := strings.Repeat("1,", dataset.MaxColumns-2) + "1,0\n"
	for name, c := range map[string]struct {
		file, text string
		o          OpenOptions
	}{
		"columns of CSV": {"a.csv", wide + wide, OpenOptions{CSV: CSVOptions{Header: dataset.HeaderNo},
			Labels: LabelOptions{Columns: []string{"1048574:1048575"}}}},
		"a high index":       {"a.libsvm", "1,0 1048576:1\n", OpenOptions{}},
		"an index, by bytes": {"a.libsvm", "1,0 2000000:1\n#" + strings.Repeat("x", 2000000), OpenOptions{}},
		"an index, by model": {"a.libsvm", "1,0 2000000:1\n", OpenOptions{Features: 2000000}},
		"a dropped index":    {"a.libsvm", "1,0 2000000:1\n", OpenOptions{Features: 2000000, Drop: []string{"3"}}},
	} {
		src, err := OpenFile(t, c.file, c.text, c.o)
		if err == nil {
			err = src.Scan(func(*dataset.Row) error { return nil })
		}
		if err != nil {
			t.Errorf("%s: %.300v", name, err)
		}
	}
}

// TestNameBounds: a name that is too long is refused, wherever it stands, in few words.
func TestNameBounds(t *testing.T) {
	long := strings.Repeat("n", dataset.MaxName+1)
	for name, c := range map[string]struct {
		file, text string
		o          OpenOptions
		says       string
	}{
		"a header":  {"a.csv", long + ",y_1,y_2\n1,0,1\n", OpenOptions{}, "line 1: the name of column 0"},
		"a label's": {"a.libsvm", "# labels: a," + long + "\n1,0 1:1\n", OpenOptions{}, "the name of label 1"},
		"a class": {"a.csv", "a,class\n1,x\n2," + long + "\n", OpenOptions{Labels: LabelOptions{Kind: dataset.Class}},
			"row 1 (counted from 0): the class of the sample"},
		"a row's": {"a.csv", "name,a,y_1,y_2\n" + long + ",1,0,1\n", OpenOptions{},
			"row 0 (counted from 0): the name of the sample"},
		"a row's, libsvm": {"a.libsvm", "1,0 1:1 # " + long + "\n", OpenOptions{},
			"row 0 (counted from 0): the name of the sample"},
	} {
		src, err := OpenFile(t, c.file, c.text, c.o)
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "has 4,097 bytes, at most 4,096 are allowed") || len(err.Error()) > 500 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}

// TestClassesAreCopied: the texts of classes do not keep their rows in memory.
func TestClassesAreCopied(t *testing.T) {
	record := strings.Repeat("r", 4000) + "c0"
	classes, _, err := distinctClasses(&datasettest.Listed{Rows: []dataset.Row{{Text: record[4000:]}}})
	if err != nil || len(classes) != 1 || classes[0] != "c0" {
		t.Fatal(classes, err)
	}
	if unsafe.StringData(classes[0]) == unsafe.StringData(record[4000:]) {
		t.Error("a class shares the memory of its record")
	}
}

// TestGeneratedFilesCanBeRead: a generated file never unpacks to more than may be read, however few of its features are
// not 0.
func TestGeneratedFilesCanBeRead(t *testing.T) {
	const features = 20000
	for _, density := range []float64{1, 0.01, 1. / 199, 1. / 202, 1e-5} {
		src, err := generate.New(generate.Options{Rows: 20, Features: features, Labels: 2, Density: density})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []write.Format{write.CSVGZ, write.NPZ} {
			var packed, plain bytes.Buffer
			if err := write.Write(&packed, f, src, importer.Options{}, write.NPZOptions{}); err != nil {
				t.Fatal(err)
			}
			size := 4 * 20 * features
			if f == write.CSVGZ {
				if err := write.Write(&plain, write.CSV, src, importer.Options{}, write.NPZOptions{}); err != nil {
					t.Fatal(err)
				}
				size = plain.Len()
			}
			if ratio := size / packed.Len(); ratio > maxRatio*3/4 {
				t.Errorf("%s, density %v: %d bytes of %d, %d times", f, density, size, packed.Len(), ratio)
			}
		}
	}
	src, err := generate.New(generate.Options{Rows: 1, Features: dataset.MaxColumns, Labels: 1, Density: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	if err := write.WriteCSV(io.Discard, src, importer.Options{}); err == nil || !strings.Contains(err.Error(), ".npz") {
		t.Errorf("a CSV file that is too wide: %v", err)
	}
}
