package incomldl_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/incomldl"
	"github.com/coppice-ldl/coppice/algorithms/kit/eigen"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
	"github.com/coppice-ldl/coppice/internal/linalg"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper"}},
	{Name: "auto", Set: param.Values{"iterations": int64(20)}},
	{Name: "minmax", Set: param.Values{"iterations": int64(20), "scaling": "minmax", "lambda": 1.0, "rho": 0.5}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, incomldl.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, incomldl.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, incomldl.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, incomldl.New(), cases, map[string]string{
		"paper":         "491b60aa6af293776696599871ca25b8aaa4806ee56b1516a97a8339496b0aa3",
		"auto":          "42127bafb265f85931b91812eedfcd5c8f4d13d31fb1e2437ac725fa5805e20e",
		"minmax":        "8f11ba2aa9477bffaf86d9d82f2faf43a93ab3b5309118bfc62033c84ce1f927",
		"paper sparse":  "e4fc5d81cd1a430e713bf2408ee2bb32a182e427cd4d74993206335b664dece8",
		"auto sparse":   "d4611740d3923ab1b9ef12ef050299c3c6d3f1ca4a5db117f503b39fd8224b0f",
		"minmax sparse": "9c13ae2f1a412d6d9482f02b2fc53fcfb713f96bcaf5b611f151719ee13eedb4",
	})
}

// TestMaskedDigests pins the bits of small jobs on incomplete labels.
func TestMaskedDigests(t *testing.T) {
	fittest.MaskedDigests(t, incomldl.New(), dataset.Mask{Rate: 0.6, Unlabelled: 0.1}, cases, map[string]string{
		"paper":         "969662d6fb2a3cb972190cc35336102a8285d3688bebf100f0b8b95b33920d6d",
		"auto":          "c68bf95bd5fd74aaa2a1e56f84c8188ab4653fa66ac31501c12ea3caef82761c",
		"minmax":        "00c5ed2a19f7d790c4f117009dd79a599579e592bae74f9600048f6eac4be1dc",
		"paper sparse":  "c86b9f356093b64d85677ad79f85bb8285f46a74ed2a9f7bff32836b3bc97de2",
		"auto sparse":   "27451a0a2ccd050967df9163afc4b3b7d7b04b500e4cd02f9d161c64194062ac",
		"minmax sparse": "1b54505afea4d197491380bba86e78a819e4f6db7a2ba4453af445eb6cececf6",
	})
}

// objective returns ½‖O∘(XW - D)‖² + λ‖XW‖_tr by plain loops.
func objective(x, d, w [][]float64, lambda float64) (sum float64) {
	n := len(d[0])
	gram := linalg.New(n, n)
	for i, row := range x {
		p := make([]float64, n)
		for k, v := range row {
			for c := range p {
				p[c] += v * w[k][c]
			}
		}
		for a := range n {
			if v := d[i][a]; !math.IsNaN(v) {
				sum += (p[a] - v) * (p[a] - v) / 2
			}
			for b := range n {
				gram.Set(a, b, gram.At(a, b)+p[a]*p[b])
			}
		}
	}
	return sum + lambda*eigen.TraceNorm(gram)
}

// TestObjectives: the objective on the first fold of SJAFFE, in which 80 % of the degrees are missing, after 1, 2 and
// 10 steps equals NumPy's.
func TestObjectives(t *testing.T) {
	f := fittest.Open(t, "SJAFFE")
	f.Mask = dataset.Mask{Rate: 0.8, Golden: true}
	for steps, want := range map[int64]float64{1: .837901, 2: .829068, 10: .768843} {
		got := math.NaN()
		f.First(t, incomldl.New(), param.Values{"iterations": steps, "absolute": 0.0, "relative": 0.0},
			func(tr algorithms.Trainer, d *dataset.Data) {
				if r, err := tr.Next(); err != nil || r != nil {
					return
				}
				model, err := tr.Model()
				if err != nil {
					t.Fatal(err)
				}
				x, labels := fittest.Samples(d, false)
				got = objective(x, labels, fittest.Matrix(model.Tensors()[1].F64, f.Manifest.Labels), 0.1)
			})
		if t.Logf("objective %.6f after %d steps, of NumPy %.6f", got, steps, want); !(math.Abs(got-want) <= 2e-6) {
			t.Errorf("objective %.7f after %d steps", got, steps)
		}
	}
}

// TestFolds: the measures on ten folds equal NumPy's, where 80 % of the degrees of the training samples are missing.
func TestFolds(t *testing.T) {
	for _, c := range []struct {
		name, preset string
		want         [6]float64
	}{
		{"SJAFFE", "paper", [6]float64{.1285, .4974, .9755, .1776, .9166, .8364}},
		{"SJAFFE", "auto", [6]float64{.1111, .3993, .8259, .0630, .9398, .8587}},
		{"Yeast_spo5", "auto", [6]float64{.0914, .1842, .2829, .0295, .9740, .9086}},
	} {
		f := fittest.Open(t, c.name)
		f.Mask = dataset.Mask{Rate: 0.8, Golden: true}
		f.Measures(t, incomldl.New(), param.Values{"preset": c.preset}, 0.01, c.want)
	}
}

// TestRecovery: with 10 % of the degrees of all samples, the measures on their complete labels equal NumPy's. The paper
// has a Chebyshev distance of .1078 ± .0021 on SJAFFE, with λ chosen by inner folds, and .0912 on Yeast_spo5.
func TestRecovery(t *testing.T) {
	for name, want := range map[string][6]float64{"SJAFFE": {.1095, .3948, .8182, .0629, .9406, .8608},
		"Yeast_spo5": {.0912}} {
		f := fittest.Open(t, name)
		f.Mask = dataset.Mask{Rate: 0.9, Golden: true}
		f.Recovery(t, incomldl.New(), param.Values{"preset": "paper"}, 0.01, want)
	}
}
