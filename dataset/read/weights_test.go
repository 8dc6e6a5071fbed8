package read_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/dataset/write"
)

// weighted writes a CSV file of rows with these weights.
func weighted(t *testing.T, weights ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("w,a,b,label_p,label_q\n")
	for i, w := range weights {
		fmt.Fprintf(&b, "%s,%d,%d,0.25,0.75\n", w, i+1, i%3+1)
	}
	path := filepath.Join(t.TempDir(), "w.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// imported imports a file into a folder and returns the manifest and the weights by row.
func imported(t *testing.T, path, column string, missing dataset.Missing) (*dataset.Manifest, []float64, error) {
	t.Helper()
	src, err := read.Open(path, read.OpenOptions{Beside: read.BesideOptions{Weights: column}, Missing: missing})
	if err != nil {
		return nil, nil, err
	}
	dir := t.TempDir()
	m, err := importer.Import(src, dir, importer.Options{})
	if err != nil {
		return nil, nil, err
	}
	weights := make([]float64, m.Rows)
	for i, s := range m.Shards {
		r, closeFile, err := dataset.OpenShardFile(filepath.Join(dir, s.Digest))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.CheckShard(i, r); err != nil {
			t.Error(err)
		}
		for k, row := range r.Row {
			weights[row] = r.WeightOf(k)
		}
		closeFile()
	}
	return m, weights, nil
}

// TestWeights: weights survive the import, also where samples are left out, and files that are written have them.
func TestWeights(t *testing.T) {
	texts := strings.Fields(strings.Repeat("0.5 2 0 3 1e12 ", 8))
	path := weighted(t, texts...)
	m, got, err := imported(t, path, "w", dataset.Missing{})
	if err != nil {
		t.Fatal(err)
	}
	if !m.HasWeights || m.Features != 2 || fmt.Sprint(got[:5]) != "[0.5 2 0 3 1e+12]" {
		t.Errorf("the dataset has %d features and the weights %v", m.Features, got[:5])
	}
	for _, format := range []write.Format{write.NPZ, write.CSV, write.Parquet} {
		src, err := read.Open(path, read.OpenOptions{Beside: read.BesideOptions{Weights: "w"}})
		if err != nil {
			t.Fatal(err)
		}
		again := filepath.Join(t.TempDir(), "again."+string(format))
		f, err := os.Create(again)
		if err != nil {
			t.Fatal(err)
		}
		if err := write.Write(f, format, src, importer.Options{}, write.NPZOptions{}); err != nil {
			t.Fatal(err)
		}
		f.Close()
		other, _, err := imported(t, again, "weight", dataset.Missing{})
		if err != nil {
			t.Fatal(err)
		}
		if other.Digest() != m.Digest() {
			t.Errorf("%s: the dataset has another digest", format)
		}
	}
	texts[1], texts[6] = "", "NaN"
	if _, got, err = imported(t, weighted(t, texts...), "w", dataset.Missing{Drop: true}); err != nil {
		t.Fatal(err)
	}
	if len(got) != 38 || fmt.Sprint(got[:5]) != "[0.5 0 3 1e+12 0.5]" {
		t.Errorf("without the samples that lack a weight, the weights are %v", got)
	}
}

// TestWrongWeights: an error names the row or the file.
func TestWrongWeights(t *testing.T) {
	for text, want := range map[string]string{
		"-1 2":   "row 0 (counted from 0): the weight of the sample is -1",
		"1 1e13": "row 1 (counted from 0): the weight of the sample is 1e+13",
		"1 inf":  "row 1 (counted from 0): the weight of the sample is",
		"0 0":    "w.csv: the weights of all samples are zero",
		"1 x":    `"x" is not a number`,
		"1 na":   "missing",
	} {
		if _, _, err := imported(t, weighted(t, strings.Fields(text)...), "w", dataset.Missing{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("weights %s: error %v, want %q", text, err, want)
		}
	}
	if _, _, err := imported(t, weighted(t, "1", "2"), "v", dataset.Missing{}); err == nil ||
		!strings.Contains(err.Error(), `no column "v"`) {
		t.Errorf("error %v", err)
	}
}
