package read

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
)

// An error about numbers of rows that differ says which array has its rows as columns, and how to mend that.
func TestTransposedArraysAreNamed(t *testing.T) {
	numbers := func(n int) []float64 {
		all := make([]float64, n)
		for i := range all {
			all[i] = .5
		}
		return all
	}
	for _, c := range []struct {
		features, labels [2]int
		o                OpenOptions
		says             string // empty: no advice
	}{
		{[2]int{2, 5}, [2]int{5, 2}, OpenOptions{}, "seems to be transposed: "},
		{[2]int{2, 5}, [2]int{5, 3}, OpenOptions{}, "seems to be transposed: "},
		{[2]int{2, 5}, [2]int{5, 1}, OpenOptions{Labels: LabelOptions{Kind: dataset.Class}}, "seems to be transposed: "},
		{[2]int{2, 5}, [2]int{5, 1}, OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 1, High: 2}},
			"seems to be transposed: "},
		{[2]int{5, 3}, [2]int{2, 5}, OpenOptions{}, "seems to be transposed: "},
		{[2]int{5, 2}, [2]int{2, 5}, OpenOptions{}, "seems to be transposed: "},
		{[2]int{3, 7}, [2]int{2, 7}, OpenOptions{}, "seems to be transposed: "},
		{[2]int{5, 3}, [2]int{4, 3}, OpenOptions{}, ""},
		{[2]int{5, 3}, [2]int{4, 2}, OpenOptions{}, ""},
	} {
		f := &mattest.File{}
		f.AddDoubles("features", int32(c.features[0]), int32(c.features[1]), numbers(c.features[0]*c.features[1])...)
		f.AddDoubles("labels", int32(c.labels[0]), int32(c.labels[1]), numbers(c.labels[0]*c.labels[1])...)
		array := func(shape [2]int) []byte {
			return NpyBytes("<f8", false, fmt.Sprintf("(%d, %d)", shape[0], shape[1]), numbers(shape[0]*shape[1]))
		}
		for name, b := range map[string][]byte{"a.mat": f.Bytes(), "a.npz": NpzBytes("features", array(c.features), "labels",
			array(c.labels))} {
			_, err := OpenBytes(t, name, b, c.o)
			datasettest.MustContain(t, err, "rows")
			if !errors.Is(err, dataset.ErrRowCount) {
				t.Errorf("%s %v: %v", name, c, err)
			}
			how := map[string]string{"a.mat": "x.' transposes an array x in MATLAB",
				"a.npz": "x.T transposes an array x in NumPy"}[name]
			if c.says != "" {
				datasettest.MustContain(t, err, c.says+how)
			} else if err != nil && strings.Contains(err.Error(), "transposes") {
				t.Errorf("%s %v: %v", name, c, err)
			}
		}
	}
	folder := t.TempDir()
	for name, shape := range map[string]string{"features.npy": "(2, 5)", "labels.npy": "(5, 3)"} {
		if err := os.WriteFile(filepath.Join(folder, name),
			NpyBytes("<f8", false, shape, numbers(map[string]int{"(2, 5)": 10, "(5, 3)": 15}[shape])), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Open(filepath.Join(folder, "features.npy"), OpenOptions{})
	datasettest.MustContain(t, err, `"features.npy" (2 x 5) or "labels.npy" (5 x 3) seems to be transposed`)
	_, err = OpenBytes(t, "a.npz", NpzBytes("features", NpyBytes("<f8", false, "(2, 5)", numbers(10)), "labels",
		NpyBytes("<f8", false, "(2, 2)", numbers(4)),
		"row_names", NpyBytes("|S1", false, "(5,)", []byte("abcde"))), OpenOptions{})
	datasettest.MustContain(t, err, `"features" (2 x 5) or "row_names" (5 x 1) seems to be transposed`)
}
