package binning

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// cutsOf returns what is half way between the bins of values.
func cutsOf(all []value, most int) (cuts []float32) {
	for _, g := range divide(all, most) {
		cuts = append(cuts, (g.Lower+g.Upper)/2)
	}
	return cuts
}

// TestCuts: values have bins of their own if there are enough, otherwise bins have about equally many rows.
func TestCuts(t *testing.T) {
	list := func(counts ...uint32) (all []value) {
		for i, n := range counts {
			all = append(all, value{float32(i), n})
		}
		return all
	}
	for _, c := range []struct {
		all  []value
		most int
		want []float32
	}{
		{list(1, 1, 1, 1), 4, []float32{0.5, 1.5, 2.5}},
		{list(slices.Repeat([]uint32{1}, 100)...), 4, []float32{24.5, 49.5, 74.5}},
		{list(1, 1, 1000, 1, 1, 1, 1, 1, 1, 1), 3, []float32{1.5, 2.5}},
		{list(1, 1, 1, 1000), 3, []float32{1.5, 2.5}}, // not one bin, as if the column were constant
		{list(1000, 1, 1, 1), 2, []float32{0.5}},
		{list(1, 1000, 1), 2, []float32{1.5}}, // no bin is left for a run
		{list(9, 1, 1, 8, 1, 1, 1, 1), 6, []float32{0.5, 2.5, 3.5, 5.5, 6.5}},
		{list(1), 4, nil},
	} {
		if got := cutsOf(c.all, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%d bins of %v: cuts %v, want %v", c.most, c.all, got, c.want)
		}
	}
	c := Column{Cuts: []float32{0.5, 1.5}}
	for x, want := range map[float32]int{-1: 0, 0.25: 0, 0.5: 1, 1: 1, 1.5: 2, 9: 2} {
		if got := c.BinOf(x); got != want {
			t.Errorf("the bin of %v is %d, want %d", x, got, want)
		}
	}
}

// slowBins divides values into bins as cut says, by lists.
type slowBins struct {
	all   []value
	most  int
	alone map[float32]bool
}

// runs returns the values that are not alone: lists of neighbours, and the rows of all.
func (w *slowBins) runs() (runs [][]value, rows int) {
	joins := false
	for _, v := range w.all {
		if w.alone[v.x] {
			joins = false
			continue
		}
		if !joins {
			runs = append(runs, nil)
		}
		joins = true
		runs[len(runs)-1] = append(runs[len(runs)-1], v)
		rows += int(v.n)
	}
	return runs, rows
}

// share returns the rows of a share of the values that are not alone.
func (w *slowBins) share() float64 {
	runs, rows := w.runs()
	return float64(rows) / float64(w.most-len(w.alone)-len(runs)+1)
}

// isolate isolates the heaviest value that may be alone. It reports false if there is none.
func (w *slowBins) isolate() bool {
	runs, _ := w.runs()
	var heaviest value
	for _, run := range runs {
		for _, v := range run {
			if v.n > heaviest.n {
				heaviest = v
			}
		}
	}
	if float64(heaviest.n) <= w.share() {
		return false
	}
	w.alone[heaviest.x] = true
	if runs, _ = w.runs(); len(w.alone)+len(runs) > w.most {
		delete(w.alone, heaviest.x)
		return false
	}
	return true
}

// bins returns the bins as the slow program makes them.
func (w *slowBins) bins() (bins [][]value) {
	w.alone = make(map[float32]bool)
	if len(w.all) <= w.most {
		for _, v := range w.all {
			bins = append(bins, []value{v})
		}
		return bins
	}
	for w.isolate() {
	}
	for _, v := range w.all {
		if w.alone[v.x] {
			bins = append(bins, []value{v})
		}
	}
	runs, rest := w.runs()
	left, open := w.most-len(bins), len(w.all)-len(bins)
	for i, run := range runs {
		for len(run) > 0 {
			n, own := 0, 0
			for n < len(run) {
				own += int(run[n].n)
				n++
				if float64(own) >= float64(rest)/float64(left-(len(runs)-1-i)) || open-n < left {
					break
				}
			}
			bins = append(bins, run[:n])
			run, rest, left, open = run[n:], rest-own, left-1, open-n
		}
	}
	slices.SortFunc(bins, func(a, b []value) int {
		if a[0].x < b[0].x {
			return -1
		}
		return 1
	})
	return bins
}

// TestCutsOfAnyValues: the bins equal the slow program's, and there are as many as allowed. The heaviest value has a
// bin of its own if it has more rows than a share. A bin of several values has fewer rows than a share and its
// heaviest value together.
func TestCutsOfAnyValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []value
		weight := rapid.OneOf(rapid.Uint32Range(1, 2), rapid.Uint32Range(1, 9), rapid.Uint32Range(1, 2000))
		heaviest, rows := value{}, 0
		for i := range rapid.IntRange(1, 60).Draw(t, "values") {
			v := value{float32(i - 20), weight.Draw(t, "rows")}
			if v.n > heaviest.n {
				heaviest = v
			}
			all, rows = append(all, v), rows+int(v.n)
		}
		w := &slowBins{all: all, most: rapid.IntRange(2, 24).Draw(t, "bins")}
		want := w.bins()
		c := Column{Cuts: cutsOf(slices.Clone(all), w.most)}
		got := make([][]value, c.Bins())
		for _, v := range all {
			got[c.BinOf(v.x)] = append(got[c.BinOf(v.x)], v)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%d bins of %v: %v, the slow program has %v", w.most, all, got, want)
		}
		if len(got) != min(w.most, len(all)) {
			t.Fatalf("%d bins of %d values, want %d", len(got), len(all), w.most)
		}
		for _, bin := range got {
			own, most := 0, 0
			for _, v := range bin {
				own, most = own+int(v.n), max(most, int(v.n))
			}
			if len(bin) > 1 && (float64(own) >= w.share()+float64(most) ||
				w.most > 2 && slices.Contains(bin, heaviest) && int(heaviest.n)*w.most > rows) {
				t.Fatalf("%d bins of %v: the bin %v has %d rows, a share is %v", w.most, all, bin, own, w.share())
			}
		}
	})
}

// FuzzMake: no bytes make Make panic or take memory out of proportion. Gaps of what it accepts ascend.
func FuzzMake(f *testing.F) {
	good := []byte{3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 128, 63, 2, 0, 0, 0, 0, 0, 0, 0}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(bytes.Repeat([]byte{0xff}, 24))
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 64*len(b)+64<<10, "the bins of two features", func() {
			err := Make([][]byte{b}, 2, 4, func(feature uint32, _ bool, gaps []Gap) {
				for i, g := range gaps {
					if feature > 1 || len(gaps) > 3 || !(g.Lower < g.Upper) || i > 0 && g.Lower < gaps[i-1].Upper {
						t.Fatalf("feature %d has the gaps %v", feature, gaps)
					}
				}
			})
			if err != nil && !errors.Is(err, ErrBins) && !errors.Is(err, algorithms.ErrNoRows) {
				t.Fatalf("error %v", err)
			}
		})
	})
}

// TestFinder: a finder and BinOf find the same bins, for any number of columns, cuts and values, in vectors or not.
func TestFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns, all := rapid.IntRange(1, 20).Draw(t, "columns"), rapid.SliceOfN(rapid.Float32(), 1, 300).Draw(t, "all")
		all = append(all, 0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.NaN()), math.MaxFloat32)
		s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "seed"), "test"), 0, 0)
		b, values := new(Bins), make([]float32, 2*columns)
		for i := range values {
			values[i] = all[s.Uint64n(uint64(len(all)))]
		}
		for i := range columns {
			var cuts []float32
			for range 1 + s.Uint64n(Most-1) {
				cuts = append(cuts, math.Float32frombits(uint32(s.Uint64n(1<<32))), all[s.Uint64n(uint64(len(all)))])
			}
			cuts = slices.DeleteFunc(cuts, func(x float32) bool { return x-x != 0 })
			slices.Sort(cuts)
			b.Add(Column{Feature: uint32(2 * i), Sparse: s.Uint64n(4) == 0, Cuts: cuts[:min(len(cuts), Most-1)]})
		}
		codes, f := make([]uint8, b.Dense+1), newFinder(b, 2*columns)
		if f.row(codes[:b.Dense], values); len(f.keys) != b.Dense {
			t.Fatalf("%d of %d columns are dense, and %d have keys", b.Dense, columns, len(f.keys))
		}
		for i := range b.Columns {
			c := &b.Columns[i]
			if x := values[2*i]; !c.Sparse && int(codes[c.At]) != c.BinOf(x) {
				t.Fatalf("column %d: the bin of %v is %d, want %d", i, x, codes[c.At], c.BinOf(x))
			}
		}
		if codes[b.Dense] != 0 {
			t.Fatal("a code behind the others was written")
		}
	})
}

// TestFindersShared: all tasks of a job share the keys of the cuts, so memory does not depend on the number of slots.
func TestFindersShared(t *testing.T) {
	testkit.WithoutRace(t)
	const features = 500
	b := new(Bins)
	for i := range features {
		b.Add(Column{Feature: uint32(i), Cuts: []float32{float32(i)}})
	}
	d := dataset.NewData(&dataset.Manifest{Features: features, Shards: make([]dataset.ShardRef, 1)}, nil)
	d.SetShard(0, &dataset.Rows{N: 1, Features: features, X: make([]float32, features), Row: []uint32{0}})
	refs := make([]dataset.RowRef, 1)
	Find(d, refs, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Find(d, refs, b)
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 4*Most*features/8 {
		t.Errorf("a task allocates %d bytes for one sample of %d features", made, features)
	}
}
