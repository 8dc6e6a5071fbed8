package enhance

import (
	"context"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// near fails if got differs from want by more than a share of want.
func near(t *testing.T, name string, got, want, share float64) {
	t.Helper()
	if !(math.Abs(got-want) <= share*math.Abs(want)) {
		t.Errorf("%s: %.6f, want %.6f ± %v %%", name, got, want, 100*share)
	}
}

// real builds a real dataset, all of whose samples train, and its true distributions by original row number.
func real(t *testing.T, name string) (*dataset.Data, []float32) {
	t.Helper()
	m, shards := datatest.Shared(t, name+".mat")
	d := datatest.Data(t, m, shards, dataset.Split{}, nil)
	u := round.Task{Of: 1, Scope: round.Whole, Roles: Enhanced}
	return d, rows.Gather(u, d, &rows.Wanted{Labels: true}).D
}

// TestGolden compares the recovery of real datasets with the figures of independent programs (NumPy, float64), whose
// measures are ± 2 %.
func TestGolden(t *testing.T) {
	for _, x := range []struct {
		set, method, normalise string
		want                   [6]float64
	}{
		{"SJAFFE", "logical", "sum", [6]float64{.2134, 1.8740, 4.0105, 10.1136, .8267, .5928}},
		{"SJAFFE", "logical", "softmax", [6]float64{.0873, .3788, .7858, .0499, .9573, .8711}},
		{"SJAFFE", "lp", "softmax", [6]float64{.0810, .2868, .5865, .0331, .9671, .8991}},
		{"SJAFFE", "lp", "sum", [6]float64{.1068, .5015, 1.0637, 0, .9414, .8368}},
		{"SJAFFE", "km", "softmax", [6]float64{.0855, .3065, .6292, .0372, .9640, .8928}},
		{"SJAFFE", "km", "sum", [6]float64{.2316, 1.8807, 4.0325, 10.1749, .8192, .5854}},
		{"SJAFFE", "glle", "softmax", [6]float64{.0888, .3178, .6473, .0412, .9604, .8892}},
		{"Yeast_spo5", "logical", "sum", [6]float64{.2762, 1.0589, 1.3823, 7.0370, .8819, .7238}},
		{"Yeast_spo5", "logical", "softmax", [6]float64{.1139, .2770, .4045, .0459, .9697, .8861}},
		{"Yeast_spo5", "lp", "softmax", [6]float64{.0748, .1549, .2359, .0168, .9855, .9252}},
		{"Yeast_spo5", "lp", "sum", [6]float64{.1144, .2738, .4007, .0461, .9686, .8856}},
		{"Yeast_spo5", "km", "softmax", [6]float64{.0703, .1466, .2229, .0172, .9855, .9297}},
		{"Yeast_spo5", "glle", "softmax", [6]float64{.0963, .1914, .2971, .0312, .9722, .9037}},
	} {
		d, truth := real(t, x.set)
		e := &round.Enhance{Method: x.method, Normalise: x.normalise, Binarise: DefaultBinarise}
		p, _, err := Run(context.Background(), e, d, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, name := Recovered(truth, p, d.Manifest.Labels), x.set+" "+x.method+" "+x.normalise
		got := [6]float64{r.Chebyshev, r.Clark, r.Canberra, r.KL, r.Cosine, r.Intersection}
		t.Logf("%s: %.4f reverse %.4f", name, got, r.ReverseKL)
		for i, want := range x.want {
			if want > 0 {
				near(t, name, got[i], want, 0.02)
			}
		}
	}
}

// TestObjective compares the objective of glle after each minimisation over the weights.
func TestObjective(t *testing.T) {
	for set, want := range map[string][]float64{
		"SJAFFE":     {212.9093, 195.7513, 188.6916, 183.1805, 178.0626},
		"Yeast_spo5": {1635.237},
	} {
		d, _ := real(t, set)
		u := round.Task{Of: 1, Op: opLabels, Scope: round.Whole, Roles: Enhanced}
		k := NewKernel(&round.Enhance{Method: GraphLaplacian, Normalise: Softmax, Binarise: DefaultBinarise}, d.Manifest)
		samples, from := k.prepare(u, d)
		logical, err := k.readLogical(u, d)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGraph(context.Background(), samples, from, from.NewScratch(), logical, d.Manifest.Labels)
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		g.traced = func(objective float64) { got = append(got, objective) }
		if _, err := g.fit(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.4f", set, got)
		for i, w := range want {
			near(t, set, got[i], w, 0.005)
		}
	}
}
