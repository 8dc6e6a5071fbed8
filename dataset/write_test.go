package dataset

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrittenFilesReadBackEqual(t *testing.T) {
	for name, src := range sources(t) {
		for _, file := range []string{"a.csv", "a.csv.gz", "a.npz"} {
			path := filepath.Join(t.TempDir(), file)
			if err := writeTo(path, src); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			back, err := Open(path, OpenOptions{NoLabels: src.Info().Labels == 0})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, _, err := Build(src, ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := Build(back, ImportOptions{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got.Reading = Reading{} // of the file
			if d := cmp.Diff(want, got); d != "" || want.Digest() != got.Digest() {
				t.Errorf("%s, %s: %s", name, file, d)
			}
		}
	}
}

func TestWriteOfUnknownLength(t *testing.T) {
	src := someRows(30)
	src.info.Rows = -1
	path := filepath.Join(t.TempDir(), "a.npz")
	if err := writeTo(path, src); err != nil {
		t.Fatal(err)
	}
	if back, err := Open(path, OpenOptions{}); err != nil || back.Info().Rows != 30 {
		t.Errorf("%v", err)
	}
}

func TestFailedWrite(t *testing.T) {
	for _, format := range []Format{CSV, CSVGZ, NPZ, "parquet"} {
		src := someRows(30)
		src.rows[29].Values[0] = math.NaN()
		if err := Write(io.Discard, format, src, ImportOptions{}, NPZOptions{}); err == nil {
			t.Errorf("%s: no error", format)
		}
	}
	if f, ok := FormatOf("a.parquet"); ok {
		t.Errorf("format %q of a.parquet", f)
	}
}

// writeTo writes src to a file in the format of its name.
func writeTo(path string, src Source) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	format, _ := FormatOf(path)
	return errors.Join(Write(f, format, src, ImportOptions{}, NPZOptions{}), f.Close())
}
