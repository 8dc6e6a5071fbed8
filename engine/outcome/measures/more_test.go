package measures

import (
	floats "cmp"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// TestMoreByHand: the correlations with ties against SciPy 1.17.1 (stats.spearmanr and kendalltau), Jensen-Shannon
// against the square of scipy.spatial.distance.jensenshannon; the others by hand.
func TestMoreByHand(t *testing.T) {
	for _, c := range []struct{ d, p, want []float64 }{
		{[]float64{.5, .2, .2, .1}, []float64{.3, .4, .2, .1},
			[]float64{0.632455532033676, 0.029623480640325058, 1, .8, 0.5477225575051662, .9, .02, 1, 1}},
		{[]float64{.4, .1, .1, .2, .2}, []float64{.1, .3, .2, .2, .2},
			[]float64{-0.8249579113843053, 0.08284354828343655, 1, .9, -0.8017837257372731, .75 + 2./3 + .5, .028, 0, 1. / 3}},
		{[]float64{1}, []float64{1}, []float64{0, 0, 0, 0, 0, 0, 0, 1, 1}},
		{[]float64{1, 0}, []float64{0, 1}, []float64{-1, math.Ln2, 1, 1, -1, 2, 1, 1, 1}},
	} {
		for i, want := range c.want {
			if got := More[i].Func(c.d, c.p); !near(got, want) {
				t.Errorf("%s of %v and %v = %v, want %v", More[i].Name, c.d, c.p, got, want)
			}
		}
	}
	d, flat := []float64{.5, .2, .2, .1}, []float64{.25, .25, .25, .25}
	if s, k := Spearman(d, flat), Kendall(d, flat); s != 0 || k != 0 {
		t.Errorf("correlations with equal degrees: %v, %v", s, k)
	}
	if got := ZeroOne([]float64{.5, .5}, []float64{.5, .5}); got != 0 {
		t.Errorf("a tie with itself: %v", got)
	}
}

func TestMoreTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "labels")
		d, p := distribution(t, n, "d"), distribution(t, n, "p")
		if got, want := JensenShannon(d, p), stat.JensenShannon(d, p); math.Abs(got-want) > 1e-10 {
			t.Errorf("Jensen-Shannon %v, gonum has %v", got, want)
		}
		ranks := func(v []float64) (r []float64) {
			sorted := slices.Sorted(slices.Values(v))
			for _, x := range v {
				first, _ := slices.BinarySearch(sorted, x)
				last := first
				for last < n && sorted[last] == x {
					last++
				}
				r = append(r, float64(first+last+1)/2)
			}
			return r
		}
		top := func(v []float64, k int) map[int]bool { // sorted whole, the lowest of equal labels first
			order := make([]int, n)
			for j := range order {
				order[j] = j
			}
			slices.SortStableFunc(order, func(a, b int) int { return floats.Compare(v[b], v[a]) })
			in := make(map[int]bool)
			for _, j := range order[:min(k, n)] {
				in[j] = true
			}
			return in
		}
		for k, got := range map[int]float64{2: Top2(d, p), 3: Top3(d, p)} {
			both, of := 0, top(p, k)
			for j := range top(d, k) {
				if of[j] {
					both++
				}
			}
			if want := float64(both) / float64(min(k, n)); got != want {
				t.Errorf("top %d of %v and %v: %v, want %v", k, d, p, got, want)
			}
		}
		distinct := func(v []float64) bool { return len(slices.Compact(slices.Sorted(slices.Values(v)))) == n }
		if want := stat.Kendall(d, p, nil); distinct(d) && distinct(p) && math.Abs(Kendall(d, p)-want) > 1e-12 {
			t.Errorf("Kendall %v, gonum has %v", Kendall(d, p), want)
		}
		if want := stat.Correlation(ranks(d), ranks(p), nil); want == want && math.Abs(Spearman(d, p)-want) > 1e-9 {
			t.Errorf("Spearman %v, the correlation of ranks is %v", Spearman(d, p), want)
		}
	})
}

// TestClip: the six measures are those of clipped rows, the others of the rows as they are; rows
// without small degrees do not change.
func TestClip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 150).Draw(t, "labels")
		x, y := distribution(t, n, "d"), distribution(t, n, "p")
		d, p, sumD, sumP := make([]float32, n), make([]float32, n), 0.0, 0.0
		for j := range d {
			d[j], p[j] = float32(x[j]), float32(y[j])
			sumD += float64(d[j])
			sumP += float64(p[j])
		}
		cd, cp := make([]float64, n), make([]float64, n)
		for j := range d {
			x[j], y[j] = float64(d[j])/sumD, float64(p[j])/sumP
			cd[j], cp[j] = max(2.220446049250313e-16, x[j]), max(2.220446049250313e-16, y[j])
		}
		kl := 0.0
		for j := range cd {
			kl += cd[j] * (math.Log(cd[j]) - math.Log(cp[j]))
		}
		got, more := ClippedRow(d, p, PyLDL), MoreOfRow(d, p, PyLDL)
		want := Row{
			kl, Euclidean(x, y), Sorensen(cd, cp), Chi2(cd, cp), Fidelity(x, y), Intersection(x, y), Chebyshev(x, y),
			Clark(cd, cp), Canberra(cd, cp), Cosine(x, y),
		}
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-9 {
				t.Errorf("%s = %v, want %v", All[i].Name, got[i], want[i])
			}
		}
		if wantMore := (MoreRow{Spearman(x, y), JensenShannon(cd, cp), ZeroOne(x, y),
			ErrorProbability(x, y), Kendall(x, y), WaveHedges(cd, cp), MSE(x, y), Top2(x, y), Top3(x, y)}); more != wantMore {
			t.Errorf("%v, want %v", more, wantMore)
		}
		if plain := ClippedRow(d, p, NoClip); plain != OfRow(d, p) {
			t.Errorf("without clipping %v, want %v", plain, OfRow(d, p))
		}
	})
}

// TestPlanOfMore: the sums of More stand between those of the ten and of the type of the labels,
// which do not change.
func TestPlanOfMore(t *testing.T) {
	for _, typ := range []dataset.LabelType{{}, {Classes: true}, {Scale: &dataset.Scale{True: dataset.TrueMode}}} {
		d, predicted := []float32{1, 0, 0, 0, 0, 1}, [][]float32{{.7, .2, .1}, {.5, .3, .2}}
		bare, few := read(&Plan{Labels: 3, Type: typ}, rowsOf(3, d...), predicted)
		r, all := read(&Plan{Labels: 3, Type: typ, More: true}, rowsOf(3, d...), predicted)
		if r != bare || all.Distribution == nil {
			t.Fatalf("%v, want %v; %+v", r, bare, all)
		}
		want := &Added{Distribution: all.Distribution}
		if few != nil {
			want.Classes, want.Scale = few.Classes, few.Scale
		}
		if diff := cmp.Diff(want, all, cmpopts.EquateNaNs()); diff != "" {
			t.Error(diff)
		}
		if z := all.Distribution[2]; z != (Stat{.5, .5}) {
			t.Errorf("zero-one loss %v", z)
		}
		over := AddedOverFolds([]*Added{all, all})
		if got := over.Distribution[2]; got != (Stat{.5, 0}) {
			t.Errorf("over folds %v", got)
		}
		text, err := json.Marshal(over)
		back := new(Added)
		if err != nil || json.Unmarshal(text, back) != nil || cmp.Diff(over, back, cmpopts.EquateNaNs()) != "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPlanOfBoth: a plan of both has what a plan without clipping has, and what one with it has.
func TestPlanOfBoth(t *testing.T) {
	for _, typ := range []dataset.LabelType{{}, {Classes: true}, {Scale: &dataset.Scale{True: dataset.TrueMode}}} {
		d, predicted := []float32{1, 0, 0, 0, 0, 1}, [][]float32{{.7, 0, .3}, {.5, .3, .2}}
		both := &Plan{Labels: 3, Type: typ, More: true, Both: true}
		plain, added := read(&Plan{Labels: 3, Type: typ, More: true}, rowsOf(3, d...), predicted)
		want := new(Clipped)
		var of *Added
		want.Ten, of = read(&Plan{Labels: 3, Type: typ, More: true, Clip: PyLDL}, rowsOf(3, d...), predicted)
		want.More = of.Distribution
		r, a := read(both, rowsOf(3, d...), predicted)
		if diff := cmp.Diff(added, a, cmpopts.EquateNaNs()); diff != "" || r != plain {
			t.Errorf("%v, want %v\n%s", r, plain, diff)
		}
		sums := make([]float64, both.Width())
		for i := range predicted {
			both.Add(sums, rowsOf(3, d...), i, predicted[i])
		}
		if diff := cmp.Diff(want, both.ReadClipped(sums), cmpopts.EquateNaNs()); diff != "" {
			t.Error(diff)
		}
		if want.Ten == plain {
			t.Error("clipping changes nothing here")
		}
	}
	number := &Plan{Labels: 3, Type: dataset.LabelType{Scale: &dataset.Scale{True: dataset.TrueMode}}, Number: true,
		Both: true}
	if sums := make([]float64, number.Width()); number.ReadClipped(sums) != nil {
		t.Error("numbers have clipped degrees")
	}
}

func TestFind(t *testing.T) {
	if len(More) != CountMore {
		t.Fatalf("%d measures", len(More))
	}
	seen := make(map[string]bool)
	for _, name := range Names() {
		m, ok := Find(name)
		if !ok || m.Name != name || m.Title == "" || m.Formula == "" || seen[name] {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
		seen[name] = true
	}
	if _, ok := Find("odd"); ok {
		t.Error("a measure that does not exist is found")
	}
	var r Report
	r[1].Mean = 7
	a := &Added{Classes: &Classes{LogLoss: Stat{Mean: 3}}, Distribution: &OfDistribution{1: Stat{Mean: 5}}}
	for name, want := range map[string]float64{"euclidean": 7, "log_loss": 3, "jensen_shannon": 5} {
		if got, ok := Value(name, r, a); !ok || got.Mean != want {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	for _, name := range []string{"mae", "mae_mode", "odd"} {
		if _, ok := Value(name, r, a); ok {
			t.Errorf("%s has a value", name)
		}
	}
	if _, ok := Value("log_loss", r, nil); ok {
		t.Error("no measures beside the ten, and one has a value")
	}
}
