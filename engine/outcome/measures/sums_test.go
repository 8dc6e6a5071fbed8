package measures

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// rows draws rows of float32 shares; predictions do not sum to 1.
func rows(t *rapid.T) (d, p [][]float32) {
	n := rapid.SampledFrom([]int{1, 3, 6, 18, 70, 150}).Draw(t, "labels")
	for range rapid.IntRange(1, 8).Draw(t, "rows") {
		x := distribution(t, n, "d")
		y := distribution(t, n, "p")
		scale := rapid.Float64Range(0.5, 2).Draw(t, "scale")
		a, b := make([]float32, n), make([]float32, n)
		for j := range x {
			a[j], b[j] = float32(x[j]), float32(y[j]*scale)
		}
		d, p = append(d, a), append(p, b)
	}
	return d, p
}

// slowRow is OfRow through All, with its own renormalisation.
func slowRow(d, p []float32) Row {
	x, y, sumD, sumP := make([]float64, len(d)), make([]float64, len(d)), 0.0, 0.0
	for j := range d {
		sumD += float64(d[j])
		sumP += float64(p[j])
	}
	for j := range p {
		x[j], y[j] = float64(d[j])/sumD, float64(p[j])/sumP
	}
	var r Row
	for i, m := range All {
		r[i] = m.Func(x, y)
	}
	return r
}

func TestAccumulate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, p := rows(t)
		whole, left, right := make([]float64, Width), make([]float64, Width), make([]float64, Width)
		cut := rapid.IntRange(0, len(d)).Draw(t, "cut")
		var columns [Count][]float64
		for k := range d {
			accumulate(whole, OfRow(d[k], p[k]))
			if k < cut {
				accumulate(left, OfRow(d[k], p[k]))
			} else {
				accumulate(right, OfRow(d[k], p[k]))
			}
			slow := slowRow(d[k], p[k])
			if OfRow(d[k], p[k]) != slow {
				t.Fatalf("row %d: %v, want %v", k, OfRow(d[k], p[k]), slow)
			}
			for i, v := range slow {
				columns[i] = append(columns[i], v)
			}
		}
		for i := range left {
			left[i] += right[i]
		}
		report, parts := reportFrom(whole), reportFrom(left)
		for i, m := range All {
			mean, std := stat.PopMeanStdDev(columns[i], nil)
			for _, got := range []Stat{report[i], parts[i]} {
				if !near(got.Mean, mean) || math.Abs(got.Std-std) > 1e-6*max(1, mean) {
					t.Errorf("%s: %v, want %v ± %v", m.Name, got, mean, std)
				}
			}
		}
	})
}

// TestNoDivergenceBelowZero checks labels whose sums differ from 1 by the rounding to float32 or by the tolerance of an
// import. No divergence is below 0, and each equals the divergence of the exact quotients.
func TestNoDivergenceBelowZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 5, 18, 70}).Draw(t, "labels")
		x := distribution(t, n, "d")
		off := rapid.Float64Range(-1e-4, 1e-4).Draw(t, "off")
		noise := rapid.SampledFrom([]float64{0, 1e-8, 1e-6, 1e-3}).Draw(t, "noise")
		d, p := make([]float32, n), make([]float32, n)
		for j := range x {
			d[j] = float32(x[j] * (1 + off))
			p[j] = float32(x[j] * (1 + noise*rapid.Float64Range(-1, 1).Draw(t, "by")))
		}
		for _, how := range []Clip{NoClip, PyLDL} {
			kl, js := ClippedRow(d, p, how)[0], MoreOfRow(d, p, how)[1]
			if kl < 0 || math.Signbit(kl) || js < 0 || math.Signbit(js) {
				t.Fatalf("clip %q: K-L %v, Jensen-Shannon %v of %v and %v", how, kl, js, d, p)
			}
		}
		if want := exactKL(d, p); math.Abs(OfRow(d, p)[0]-want) > 1e-14*float64(n) {
			t.Fatalf("K-L %v, want %v", OfRow(d, p)[0], want)
		}
	})
}

// exactKL is K-L of the quotients, from terms that are not negative: d ln(d/p) - d + p.
func exactKL(d, p []float32) float64 {
	sumD, sumP, kl := 0.0, 0.0, 0.0
	for j := range d {
		sumD, sumP = sumD+float64(d[j]), sumP+float64(p[j])
	}
	for j := range d {
		x, y := float64(d[j])/sumD, float64(p[j])/sumP
		switch least := max(y, MinPrediction); {
		case x == 0:
			kl += y
		case x < least/2:
			kl += x*math.Log(x/least) - x + y
		default:
			kl += x*math.Log1p((x-least)/least) - x + y
		}
	}
	return max(kl, 0)
}

func TestRowThatSumsToNothing(t *testing.T) {
	r := OfRow([]float32{0.5, 0.5}, []float32{0, 0})
	if want := -math.Log(2 * MinPrediction); !near(r[0], want) {
		t.Errorf("kl = %v, want %v", r[0], want)
	}
	if nan := OfRow([]float32{0.5, 0.5}, []float32{float32(math.NaN()), 1}); nan[0] == nan[0] || nan[6] == nan[6] {
		t.Errorf("a prediction that is no number has measures %v", nan)
	}
}

func TestAccumulateDoesNotAllocate(t *testing.T) {
	sums, d, p := make([]float64, Width), make([]float32, shortRow), make([]float32, shortRow)
	d[0], p[1] = 1, 1
	if n := testing.AllocsPerRun(20, func() { accumulate(sums, OfRow(d, p)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNoRows(t *testing.T) {
	for _, r := range []Report{reportFrom(make([]float64, Width)), OverFolds(nil)} {
		if s, _ := r.Get("kl"); s.Mean == s.Mean {
			t.Errorf("the mean of no rows is %v", s.Mean)
		}
	}
}

func TestOverFolds(t *testing.T) {
	var a, b Report
	a[0], b[0] = Stat{0.25, 9}, Stat{0.75, 9}
	got := OverFolds([]Report{a, b})
	if want := (Stat{0.5, 0.25}); got[0] != want {
		t.Errorf("folds of .25 and .75 make %v, want %v", got[0], want)
	}
	if one := OverFolds([]Report{a}); one[0] != (Stat{0.25, 0}) {
		t.Errorf("one fold makes %v", one[0])
	}
}

func TestReportJSON(t *testing.T) {
	var r Report
	for i := range r {
		r[i] = Stat{float64(i), 0.5}
	}
	r[9].Std = math.NaN()
	got, err := json.Marshal(map[string]any{"measures": r})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"measures":{"kl":{"mean":0,"std":0.5},"euclidean":{"mean":1,"std":0.5},"sorensen":{"mean":2,"std":0.5},` +
		`"chi2":{"mean":3,"std":0.5},"fidelity":{"mean":4,"std":0.5},"intersection":{"mean":5,"std":0.5},` +
		`"chebyshev":{"mean":6,"std":0.5},"clark":{"mean":7,"std":0.5},"canberra":{"mean":8,"std":0.5},` +
		`"cosine":{"mean":9,"std":null}}}`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
	var back struct{ Measures Report }
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(back.Measures[9].Std) {
		t.Errorf("null comes back as %v", back.Measures[9].Std)
	}
	back.Measures[9].Std, r[9].Std = 0, 0
	if back.Measures != r {
		t.Errorf("%v comes back as %v", r, back.Measures)
	}
	if err := json.Unmarshal([]byte(`{"measures":[]}`), &back); err == nil {
		t.Error("a list is taken for a report")
	}
}

func TestNamesAreStable(t *testing.T) {
	if len(All) != Count {
		t.Fatalf("%d measures, want %d", len(All), Count)
	}
	for i, m := range All {
		var r Report
		r[i].Mean = 7
		if s, ok := r.Get(m.Name); !ok || s.Mean != 7 {
			t.Errorf("Get(%q) = %v, %v", m.Name, s, ok)
		}
		if m.Title == "" || m.Formula == "" {
			t.Errorf("%s has no title or formula", m.Name)
		}
	}
	if _, ok := (Report{}).Get("accuracy"); ok {
		t.Error("a measure that does not exist has a value")
	}
}

func TestSumsOfTheWrongWidthPanic(t *testing.T) {
	for _, f := range []func(){
		func() { new(Plan).Read(make([]float64, 20)) },
		func() { new(Plan).Add(make([]float64, 20), rowsOf(1, 1), 0, []float32{1}) },
		func() { new(Plan).Add(make([]float64, Width), rowsOf(1, 1), 0, []float32{1, 2}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		}()
	}
}
