package aaknn

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// brute are the k nearest training rows of each test row, by a search that sorts all plain
// distances, which are sums over ascending columns.
func brute(x, y [][]float64, k int) (all [][]uint32) {
	distances := make([]float64, len(y))
	for _, a := range x {
		for j, b := range y {
			distances[j] = 0
			for c := range a {
				d := a[c] - b[c]
				distances[j] += float64(d * d)
			}
		}
		var nearest []uint32
		for _, j := range order(distances)[:k] {
			nearest = append(nearest, uint32(j))
		}
		slices.Sort(nearest)
		all = append(all, nearest)
	}
	return all
}

// order returns the positions of distances from the nearest on, ties by position.
func order(distances []float64) []int {
	all := make([]int, len(distances))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(distances[a], distances[b]) })
	return all
}

// script searches like brute, in NumPy, on float64 files of a rows×columns array each.
const script = `
import sys, numpy as np
x, y = (np.fromfile(f).reshape(-1, int(sys.argv[4])) for f in sys.argv[1:3])
k = int(sys.argv[3])
live = [c for c in range(x.shape[1]) if x[:, c].any() or y[:, c].any()]
out = []
for at in range(0, len(x), 32):
    b = x[at:at + 32]
    d = np.zeros((len(b), len(y)))
    for c in live:
        t = b[:, c, None] - y[None, :, c]
        d += t * t
    out.append(np.sort(np.argsort(d, axis=1, kind="stable")[:, :k], axis=1))
np.concatenate(out).astype("<u4").tofile(sys.argv[5])
`

// numpy runs the script, or skips the test where there is no Python with NumPy.
func numpy(t *testing.T, x, y [][]float64, k int) (all [][]uint32) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no Python:", err)
	}
	if exec.Command(python, "-c", "import numpy").Run() != nil {
		t.Skip("Python has no NumPy")
	}
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, m := range map[string][][]float64{"x": x, "y": y} {
		if err := os.WriteFile(file(name), num.Bytes64(slices.Concat(m...)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), python, "-c", script, file("x"), file("y"), fmt.Sprint(k), fmt.Sprint(len(x[0])),
		file("out"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(file("out"))
	if err != nil || len(b) != 4*k*len(x) {
		t.Fatalf("%d bytes, error %v", len(b), err)
	}
	for nearest := range slices.Chunk(num.Uint32s(b), k) {
		all = append(all, nearest)
	}
	return all
}

// expanded returns the scaled features of rows in float64.
func expanded(r *dataset.Rows, scale []float64) (all [][]float64) {
	for i := range r.N {
		x := make([]float64, r.Features)
		if r.Sparse {
			columns, values := r.NonZeros(i)
			for k, c := range columns {
				x[c] = float64(values[k])
			}
		} else {
			for c, v := range r.Dense(i) {
				x[c] = float64(v)
			}
		}
		for c := range scale {
			x[c] *= scale[c]
		}
		all = append(all, x)
	}
	return all
}

// found returns what a model of training rows finds for other rows.
func found(y, x *dataset.Rows, scale []float64, k int) (all [][]uint32) {
	m := &model{Sizes: rows.SizesOf(y), k: k, kind: scaling.None, kept: *y,
		scale: scaling.Values{Shift: scale, Scale: scale}}
	s, shard := m.NewScratch().(*scratch), func(uint32) *dataset.Rows { return x }
	refs := make([]dataset.RowRef, x.N)
	for i := range refs {
		refs[i].Pos = uint32(i)
	}
	s.search.Find(refs, shard, func(_ int, nearest []uint32) { all = append(all, slices.Clone(nearest)) })
	return all
}

// fold returns training rows and test rows of a real data set's first fold.
func fold(t *testing.T, name string) (y, x *dataset.Rows) {
	t.Helper()
	m, shards := datatest.Shared(t, name+".mat")
	assigned, folds, err := read.FoldsFile(testkit.Shared(t, "folds/"+name+".csv"), m.Rows)
	if err != nil {
		t.Fatal(err)
	}
	d := datatest.Data(t, m, shards, dataset.Split{Folds: folds, Assigned: "folds of the test"}, assigned)
	return rows.Gather(whole(dataset.Train), d, &wanted), rows.Gather(whole(dataset.Test), d, &wanted)
}

// TestNeighbours: the neighbours of every test row of a fold, and of every training row, are
// those of an exhaustive search in NumPy, and of a slow one here.
func TestNeighbours(t *testing.T) {
	testkit.WithoutRace(t)
	for name, k := range map[string]int{"SJAFFE": 5, "Yeast_spo5": 32, "Movie": 8} {
		t.Run(name, func(t *testing.T) {
			if name == "Movie" && (testkit.Race || testing.Short()) {
				t.Skip("takes seconds: not with -short or -race")
			}
			y, x := fold(t, name)
			var scale []float64
			if !y.Sparse {
				scale = deviations(y)
			}
			got := found(y, x, scale, k)
			if name != "Movie" {
				compare(t, "the twin", got, brute(expanded(x, scale), expanded(y, scale), k))
				compare(t, "NumPy, of training rows,", found(y, y, scale, k), numpy(t, expanded(y, scale), expanded(y, scale), k))
			}
			compare(t, "NumPy", got, numpy(t, expanded(x, scale), expanded(y, scale), k))
		})
	}
}

func compare(t *testing.T, who string, got, want [][]uint32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, %s has %d", len(got), who, len(want))
	}
	for i := range got {
		if !bytes.Equal(num.BytesU32(got[i]), num.BytesU32(want[i])) {
			t.Fatalf("the neighbours of row %d are %v, those that %s finds %v", i, got[i], who, want[i])
		}
	}
}

// deviations returns one over the deviation of each column.
func deviations(r *dataset.Rows) []float64 {
	scale := make([]float64, r.Features)
	for c := range scale {
		sum, squares := 0.0, 0.0
		for i := range r.N {
			sum += float64(r.Dense(i)[c]) / float64(r.N)
		}
		for i := range r.N {
			d := float64(r.Dense(i)[c]) - sum
			squares += d * d / float64(r.N)
		}
		scale[c] = 1 / max(1e-9, math.Sqrt(squares))
	}
	return scale
}
