package ptbayes_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ptbayes"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/fittest"
)

// cases are the jobs of the golden digests and of the fuzz targets.
var cases = []contract.Case{
	{Name: "paper", Set: param.Values{"preset": "paper"}},
	{Name: "auto", Set: nil},
	{Name: "given", Set: param.Values{"smoothing": 0.5}},
}

func FuzzRestore(f *testing.F)  { contract.FuzzRestore(f, ptbayes.New(), contract.Sets(cases)...) }
func FuzzSettings(f *testing.F) { contract.FuzzSettings(f, ptbayes.New(), contract.Sets(cases)...) }
func FuzzDecodeModel(f *testing.F) {
	contract.FuzzDecodeModel(f, ptbayes.New(), contract.Sets(cases)...)
}

// TestDigests pins the bits of small jobs.
func TestDigests(t *testing.T) {
	fittest.Digests(t, ptbayes.New(), cases, map[string]string{
		"paper":        "71b6891f108d7803cfa4f913c39b711ca46be2c8b49ecc13e535a4293e7316e0",
		"auto":         "664aefcbad90368dac336d64fd2345ccd6efb3fa505db4a07510d5cf406cd7f2",
		"given":        "f0e1f14ff3d4d73b6c5dbb200910be02e549d76b704c60c770224dd63b5568a1",
		"paper sparse": "26235562b47b56533fa45dcf163b108fd5b2c7dd953ee012de5843db05d833b7",
		"auto sparse":  "3e1133441703a389a918dc5791940a1e54653d819c8ddd60e702fab95bc781ce",
		"given sparse": "c74cbd558d5e089ffcccbc7faad882514bb120048238ec5574dac588976bd1f6",
	})
}

// slow returns the prediction of a row by plain sums over the training samples, whose features and label distributions
// are x and d.
func slow(x, d [][]float64, row []float64, smoothing float64) []float64 {
	n, greatest := float64(len(x)), 0.0
	for k := range row {
		mean, square := 0.0, 0.0
		for _, one := range x {
			mean += one[k] / n
		}
		for _, one := range x {
			square += (one[k] - mean) * (one[k] - mean) / n
		}
		greatest = math.Max(greatest, square)
	}
	p, sum := make([]float64, len(d[0])), 0.0
	for c := range p {
		weight := 0.0
		for i := range x {
			weight += d[i][c]
		}
		p[c] = math.Log(weight / n)
		for k, v := range row {
			mean, square := 0.0, smoothing*greatest
			for i, one := range x {
				mean += d[i][c] * one[k] / weight
			}
			for i, one := range x {
				square += d[i][c] * (one[k] - mean) * (one[k] - mean) / weight
			}
			p[c] -= math.Log(square)/2 + (v-mean)*(v-mean)/(2*square)
		}
	}
	most := p[0]
	for _, v := range p {
		most = math.Max(most, v)
	}
	for c := range p {
		p[c] = math.Exp(p[c] - most)
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
	return p
}

// TestPredictions: predictions are those of plain sums, on dense and on sparse samples, with a given smoothing and with
// the one that has the lowest K-L on the validation samples.
func TestPredictions(t *testing.T) {
	for _, density := range []float64{1, 0.1} {
		m, shards := fittest.Problem(t, generate.Options{Rows: 150, Features: 20, Labels: 4, Density: density, Seed: 2})
		if m.Sparse != (density < 1) {
			t.Fatal("the samples of small density are not sparse")
		}
		for _, given := range []param.Values{{"smoothing": 0.01}, {"validation_fraction": 0.3}} {
			j := contract.Job(t, ptbayes.New(), given, m, dataset.Split{Seed: 5, TestFraction: 0.2})
			d := datatest.Data(t, m, shards, j.Split, nil)
			x, labels := samples(d, dataset.Train)
			held, truth := samples(d, dataset.Validation)
			best, least := 0.01, math.Inf(1)
			for _, smoothing := range []float64{1e-3, 1e-2, 1e-1, 1, 10, 100, 1000} {
				loss := 0.0
				for i, row := range held {
					loss += fittest.KL(truth[i], slow(x, labels, row, smoothing))
				}
				if len(held) > 0 && loss < least {
					best, least = smoothing, loss
				}
			}
			x, labels = samples(d, dataset.Train|dataset.Validation)
			model, err := contract.Train(t, ptbayes.New(), j, d, 1, nil).Model()
			if err != nil {
				t.Fatal(err)
			}
			refs := d.Select(0, len(m.Shards), dataset.Test)
			p := make([]float32, len(refs)*m.Labels)
			model.Predict(p, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, model.NewScratch())
			rows, _ := samples(d, dataset.Test)
			for i, row := range rows {
				for c, want := range slow(x, labels, row, best) {
					if got := float64(p[i*m.Labels+c]); math.Abs(got-want) > 1e-6 {
						t.Fatalf("density %v, %v, row %d: probability %v, want %v with the smoothing %v", density, given, i, got,
							want, best)
					}
				}
			}
		}
	}
}

// samples returns the features and the label distributions of the rows of some roles.
func samples(d *dataset.Data, roles dataset.Roles) (x, labels [][]float64) {
	for _, ref := range d.Select(0, len(d.Manifest.Shards), roles) {
		rows := d.Shard(int(ref.Shard))
		row, degrees := make([]float64, rows.Features), make([]float64, rows.Labels)
		if rows.Sparse {
			columns, values := rows.NonZeros(int(ref.Pos))
			for i, c := range columns {
				row[c] = float64(values[i])
			}
		} else {
			for i, v := range rows.Dense(int(ref.Pos)) {
				row[i] = float64(v)
			}
		}
		maxent.Degrees(degrees, rows.Label(int(ref.Pos)))
		x, labels = append(x, row), append(labels, degrees)
	}
	return x, labels
}

// TestDrawn: samples that are drawn are, on average, the weighted ones: the priors of many samples are nearly the mean
// label distribution.
func TestDrawn(t *testing.T) {
	m, shards := fittest.Problem(t, generate.Options{Rows: 4000, Features: 2, Labels: 40, Density: 1, Seed: 2})
	priors := func(samples string) []float64 {
		j := contract.Job(t, ptbayes.New(), param.Values{"samples": samples, "smoothing": 1.0}, m, dataset.Split{})
		model, err := contract.Train(t, ptbayes.New(), j, datatest.Data(t, m, shards, j.Split, nil), 1, nil).Model()
		if err != nil {
			t.Fatal(err)
		}
		return model.Tensors()[1].F64
	}
	want, worst := priors("weighted"), 0.0
	for c, got := range priors("drawn") {
		// the deviation of a share: 160,000 samples are drawn
		worst = math.Max(worst, math.Abs(got-want[c])/math.Sqrt(want[c]/160_000))
	}
	if worst > 4 || worst < 0.5 {
		t.Errorf("a prior is %.2f deviations from the share of its label", worst)
	}
}

// TestFolds: the measures on ten folds are those of scikit-learn 1.9 (GaussianNB with var_smoothing and sample_weight).
func TestFolds(t *testing.T) {
	sjaffe, yeast := fittest.Open(t, "SJAFFE"), fittest.Open(t, "Yeast_spo5")
	sjaffe.Measures(t, ptbayes.New(), param.Values{"smoothing": 0.1}, 0,
		[6]float64{.1111, .3932, .8135, .0625, .9403, .8606})
	sjaffe.Measures(t, ptbayes.New(), param.Values{"smoothing": 0.001}, 0,
		[6]float64{.3107, 1.2134, 2.5758, .7917, .7901, .6424})
	yeast.Measures(t, ptbayes.New(), param.Values{"smoothing": 0.1}, 0,
		[6]float64{.0946, .1898, .2922, .0314, .9720, .9054})
}
