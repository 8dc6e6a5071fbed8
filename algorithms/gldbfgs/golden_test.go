package gldbfgs_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/gldbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, gldbfgs.New(), []contract.Case{
		{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(8), "stage_iterations": int64(4)}},
		{Name: "auto", Set: param.Values{"decay": "fixed", "iterations": int64(12), "validation_interval": int64(3)}},
		{Name: "path", Set: param.Values{"iterations": int64(50), "validation_interval": int64(7)}},
	}, map[string]string{
		"paper":        "0fcb55299bfdacf10a1e67100da144bda5408a38c5b535d705d3157adc5736c7",
		"auto":         "d559e7fded673b6773e915de3a2e4259c2c4f23531d48179239cb0bcbc27034c",
		"path":         "6cdd7cb4582b4cc341fc7d103bd0897f2a88e2da4e0c9260430ff91ca667506a",
		"paper sparse": "fc127fbb07fa80cee6aea8700751f978dae67bc20fe1d4c95e071e83e8bf6848",
		"auto sparse":  "fa6e5283a80b1595163d8b72b881ac9b40c0aad2d9ac5cd4aba19c14c57c5cf5",
		"path sparse":  "885a63ae0f92a9d36e0331ab7cc6175974d1677c262b8ce7b0d893f4410ff43f",
	})
}

// loss is the objective of the first stage by plain loops. The last value of a sample is its bias.
func loss(x, d, w [][]float64, l2 float64) (sum float64) {
	for i := range x {
		for c := range d[i] {
			s := 0.0
			for k, v := range x[i] {
				s += v * w[k][c]
			}
			e := math.Tanh(s) - (2*d[i][c] - 1)
			sum += e * e / float64(len(x))
		}
	}
	return sum + fittest.Decay(w, l2)
}

// objectives returns the objective of the first stage on the first fold of SJAFFE, by iteration.
func objectives(t *testing.T, given param.Values, standard bool, l2 float64) (got map[int]float64, last int) {
	t.Helper()
	f := fittest.OpenTargets(t, "SJAFFE")
	got = map[int]float64{}
	var x, d [][]float64
	f.First(t, gldbfgs.New(), given, func(tr algorithms.Trainer, data *dataset.Data) {
		by := tr.(*gldbfgs.Trainer)
		n := by.Optimiser.Iterations()
		if _, known := got[n]; known || by.Evaluations == 0 {
			return
		}
		if x == nil {
			x, d = fittest.Samples(data, standard)
		}
		last = n
		got[n] = loss(x, d, fittest.Matrix(by.Optimiser.Best(), f.Manifest.Labels), l2)
	})
	return got, last
}

// TestObjectives compares objectives on the first fold of SJAFFE with figures of SciPy's L-BFGS-B.
func TestObjectives(t *testing.T) {
	near := func(what string, got, want, share float64) {
		t.Helper()
		t.Logf("%s: %.6f, of SciPy %.6f", what, got, want)
		if math.Abs(got-want) > share*want+1e-6 {
			t.Errorf("%s: %.7f, want %.6f", what, got, want)
		}
	}
	got, _ := objectives(t, param.Values{"preset": "paper"}, false, 0)
	near("raw, after 1 iteration", got[1], .516337, 1e-5)
	near("raw, after 10 iterations", got[10], .103662, 1e-3)
	got, last := objectives(t, param.Values{"preset": "paper", "stages": int64(1), "scaling": "standard", "l2": 1.0}, true,
		1)
	near("standardised, at the end", got[last], .043484, 1e-6)
}

// TestFolds: the measures on ten folds equal the measures of an independent program, after the conversion of targets to
// distributions.
func TestFolds(t *testing.T) {
	sj := fittest.OpenTargets(t, "SJAFFE")
	sj.Measures(t, gldbfgs.New(), param.Values{"preset": "paper"}, 0.02,
		[6]float64{.0864, .3248, .6635, .0423, .9605, .8890})
	sj.KL(t, gldbfgs.New(), param.Values{"preset": "paper", "stages": int64(1), "scaling": "standard", "l2": 1.0}, 0.02,
		.0424)
	sj.KL(t, gldbfgs.New(), nil, 0.02, .0424)
	fittest.OpenTargets(t, "Yeast_spo5").KL(t, gldbfgs.New(), nil, 0.02, .0292)
	fittest.OpenTargets(t, "Yeast_spo5").KL(t, gldbfgs.New(), param.Values{"preset": "paper"}, 0.02, .0292)
}
