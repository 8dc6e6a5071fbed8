package ldlsf_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlsf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(20)}},
	{Name: "auto", Set: param.Values{"iterations": int64(20)}},
	{Name: "minmax", Set: param.Values{"iterations": int64(20), "scaling": "minmax", "lambda3": 0.05}},
}

func FuzzRestore(f *testing.F)     { contract.FuzzRestore(f, ldlsf.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F)    { contract.FuzzSettings(f, ldlsf.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) { contract.FuzzDecodeModel(f, ldlsf.New(), contract.Sets(cases)...) }

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ldlsf.New(), cases, map[string]string{
		"paper":         "0699810c0fcf9d4591fec27afacb158c4a1e6437b081cec769ef77304be289c2",
		"auto":          "2dcc4d83ceb0af9eedd3d7c747e892756c534f6dbaae5552191720ba435ad3a7",
		"minmax":        "3c98e29f461e4196ed18f33083dd76521f779b3a0047e2ebbb9e25c31890c7cd",
		"paper sparse":  "c8a84402d780aff4616d1328aead8ffc4579eb01cf1354bf83be1a9d1ad1dc4c",
		"auto sparse":   "de4138a2b6a3b8afc48d54044f92fa44e7747246570a76277f23822e6a1b9b48",
		"minmax sparse": "8fcf5acabf05ef04ac91160672c701ab999b3f83d8bd47a626796901713c0399",
	})
}

// TestErrors: the squared errors on the first fold of SJAFFE, with the term of the correlations, after
// 1, 2 and 10 steps of ADMM equal NumPy's: with the paper's weights, where W2 stays 0, and with other weights.
func TestErrors(t *testing.T) {
	f := fittest.Open(t, "SJAFFE")
	for _, c := range []struct {
		lambda1, lambda2, lambda3 float64
		steps                     int64
		want                      float64
	}{
		{1e-4, 1e-2, 1e-3, 1, 1.605462}, {1e-4, 1e-2, 1e-3, 2, 1.351330}, {1e-4, 1e-2, 1e-3, 10, 0.766153},
		{1e-3, 1e-4, 1e-2, 1, 1.584268}, {1e-3, 1e-4, 1e-2, 2, 1.285666}, {1e-3, 1e-4, 1e-2, 10, 0.645697},
	} {
		set := param.Values{"preset": "paper", "iterations": c.steps, "lambda1": c.lambda1, "lambda2": c.lambda2,
			"lambda3": c.lambda3}
		got := math.NaN()
		f.First(t, ldlsf.New(), set, func(tr algorithms.Trainer, d *dataset.Data) {
			if r, err := tr.Next(); err != nil || r != nil {
				return
			}
			model, err := tr.Model()
			if err != nil {
				t.Fatal(err)
			}
			x, labels := fittest.Samples(d, false)
			got = smooth(x, labels, fittest.Matrix(model.Tensors()[1].F64, f.Manifest.Labels), c.lambda3)
		})
		if !(math.Abs(got-c.want) <= 2e-6) {
			t.Errorf("%+v: %.7f", c, got)
		}
	}
}

// smooth returns ½‖XW - D‖² + λ3 tr(XW Ψ (XW)ᵀ) by plain loops.
func smooth(x, d, w [][]float64, lambda3 float64) (sum float64) {
	n := len(d[0])
	mean, product := make([]float64, n), make([][]float64, n)
	for c := range n {
		for _, row := range d {
			mean[c] += row[c] / float64(len(d))
		}
	}
	for a := range n {
		product[a] = make([]float64, n)
		for b := range n {
			for _, row := range d {
				product[a][b] += (row[a] - mean[a]) * (row[b] - mean[b])
			}
		}
	}
	for i, row := range x {
		p := make([]float64, n)
		for c := range n {
			for k, v := range row {
				p[c] += v * w[k][c]
			}
			sum += (p[c] - d[i][c]) * (p[c] - d[i][c]) / 2
		}
		for a := range n {
			for b := range n {
				r := product[a][b] / math.Sqrt(product[a][a]*product[b][b])
				sum += lambda3 * r * (p[a]*p[a] - p[a]*p[b])
			}
		}
	}
	return sum
}

// TestFolds: the measures on ten folds equal NumPy's. PyLDL, which minimises by L-BFGS, has .0879,
// .3757, .7421, .0585, .9581 and .8822 on SJAFFE.
func TestFolds(t *testing.T) {
	paper := param.Values{"preset": "paper"}
	fittest.Open(t, "SJAFFE").Measures(t, ldlsf.New(), paper, 0.01,
		[6]float64{.0880, .3766, .7433, .0589, .9580, .8821})
	fittest.Open(t, "Yeast_spo5").Measures(t, ldlsf.New(), paper, 0.01,
		[6]float64{.0914, .1841, .2828, .0293, .9741, .9086})
}
