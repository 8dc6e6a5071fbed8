package dataset

import (
	"errors"
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
			if err := WriteFile(path, src, ImportOptions{}); err != nil {
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
	if err := WriteFile(path, src, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if back, err := Open(path, OpenOptions{}); err != nil || back.Info().Rows != 30 {
		t.Errorf("%v", err)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	for _, file := range []string{"a.csv", "a.csv.gz", "a.npz", "a.parquet"} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		src := someRows(30)
		src.rows[29].Values[0] = math.NaN()
		if err := WriteFile(path, src, ImportOptions{}); err == nil {
			t.Errorf("%s: no error", file)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "before" {
			t.Errorf("%s: %q, %v", file, b, err)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%s: left %v", file, entries)
		}
	}
	err := WriteFile("none/a.csv", someRows(1), ImportOptions{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
