package margin_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/margin"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// TestParts: the parts of losses by hand, at points with ties and at kinks.
func TestParts(t *testing.T) {
	p, d := []float64{.5, .2, .3, 0}, []float64{.4, .4, .2, 0}
	if got := margin.Greatest(d, -1); got != 0 {
		t.Errorf("the greatest of two equal degrees is label %d", got)
	}
	if got := margin.Greatest(p, 0); got != 2 {
		t.Errorf("the greatest but for the first is label %d", got)
	}
	if got := margin.Greatest([]float64{1}, 0); got != -1 {
		t.Errorf("the greatest of no label is %d", got)
	}
	for _, c := range []struct {
		name   string
		add    func(slopes []float64) float64
		want   float64
		slopes [4]float64
	}{
		{"distance", func(s []float64) float64 {
			margin.AddDistance(s, 2, p, d, -1)
			return margin.Distance(p, d, -1)
		}, .4, [4]float64{2, -2, 2, 0}},
		{"distance of three", func(s []float64) float64 {
			margin.AddDistance(s, 1, p, d, 0)
			return margin.Distance(p, d, 0)
		}, .3, [4]float64{0, -1, 1, 0}},
		{"from the top", func(s []float64) float64 {
			margin.AddFromTop(s, p, 0)
			return margin.FromTop(p, 0)
		}, 1, [4]float64{-1, 1, 1, 0}},
		{"hinges", func(s []float64) float64 { return margin.Hinges(s, .5, .25, p, 0) }, .05, [4]float64{-.5, 0, .5, 0}},
	} {
		var slopes [4]float64
		if got := c.add(slopes[:]); math.Abs(got-c.want) > 1e-15 || slopes != c.slopes {
			t.Errorf("%s: %v and %v, want %v and %v", c.name, got, slopes, c.want, c.slopes)
		}
	}
}

// TestReference: zero-one loss and error probability of SA-BFGS and of the mean baseline equal the measures of an
// independent program (NumPy and SciPy's L-BFGS-B, float64).
func TestReference(t *testing.T) {
	for name, want := range map[string][4]float64{
		"SJAFFE": {.4608, .7608, .8071, .8188}, "Yeast_spo5": {.5728, .6547},
	} {
		o := fittest.Open(t, name).Outcome(t, sabfgs.New(), param.Values{"preset": "paper", "bias": true,
			"scaling": "standard", "l2": 0.1})
		for i, a := range []*measures.Added{o.Added.Model, o.Added.MeanPredictor} {
			for k, measure := range []string{"zero_one", "error_probability"} {
				s, ok := measures.Value(measure, o.Measures, a)
				if want := want[2*i+k]; !ok || want > 0 && math.Abs(s.Mean-want) > 0.02*want {
					t.Errorf("%s: %s is %.4f, want %.4f", name, measure, s.Mean, want)
				}
				t.Logf("%s: %s is %.4f, of the independent program %.4f", name, measure, s.Mean, want[2*i+k])
			}
		}
	}
}
