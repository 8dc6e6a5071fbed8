package write

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/datasettest/sources"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/google/go-cmp/cmp"
)

func TestWrittenFilesReadBackEqual(t *testing.T) {
	for name, src := range sources.All(t) {
		for _, file := range []string{"a.csv", "a.csv.gz", "a.npz", "a.parquet"} {
			path := filepath.Join(t.TempDir(), file)
			if err := writeTo(path, src); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			back, err := read.Open(path, read.OpenOptions{NoLabels: src.Info().Labels == 0})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, _, err := importer.Build(src, importer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := importer.Build(back, importer.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got.Reading = dataset.Reading{} // of the file
			if d := cmp.Diff(want, got); d != "" || want.Digest() != got.Digest() {
				t.Errorf("%s, %s: %s", name, file, d)
			}
		}
	}
}

func TestWriteOfUnknownLength(t *testing.T) {
	src := datasettest.SomeRows(30)
	src.Described.Rows = -1
	path := filepath.Join(t.TempDir(), "a.npz")
	if err := writeTo(path, src); err != nil {
		t.Fatal(err)
	}
	if back, err := read.Open(path, read.OpenOptions{}); err != nil || back.Info().Rows != 30 {
		t.Errorf("%v", err)
	}
}

func TestFailedWrite(t *testing.T) {
	for _, format := range []Format{CSV, CSVGZ, NPZ, Parquet, "feather"} {
		src := datasettest.SomeRows(30)
		src.Rows[29].Values[0] = math.NaN()
		if err := Write(io.Discard, format, src, importer.Options{}, NPZOptions{}); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
	if f, ok := FormatOf("a.feather"); ok {
		t.Errorf("format %q of a.feather", f)
	}
}

// writeTo writes src to a file in the format of its name.
func writeTo(path string, src dataset.Source) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	format, _ := FormatOf(path)
	return errors.Join(Write(f, format, src, importer.Options{}, NPZOptions{}), f.Close())
}
