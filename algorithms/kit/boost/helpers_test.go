package boost_test

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aosoldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlogitboost"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// both are the algorithms of the package.
var both = []algorithms.Algorithm{ldlogitboost.New(), aosoldlogitboost.New()}

// jobOf resolves a job without validation rows, unless set or split say otherwise.
func jobOf(t contract.Test, a algorithms.Algorithm, m *dataset.Manifest, set param.Values,
	split dataset.Split) *round.Job {
	t.Helper()
	j := contract.Job(t, a, set, m, split)
	j.Seed = 1 // of the golden digests
	return j
}

// train trains on some lanes and returns the trainer.
func train(t contract.Test, a algorithms.Algorithm, j *round.Job, d *dataset.Data, lanes int) algorithms.Trainer {
	t.Helper()
	return contract.Train(t, a, j, d, lanes, nil)
}

// problem is a small dataset in float32, dense, row-major.
type problem struct {
	rows, features, labels int
	x, d                   []float32
}

// data cuts the problem into shards.
func (p *problem) data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	return contract.Dense{Rows: p.rows, Features: p.features, Labels: p.labels, X: p.x, D: p.d}.Data(shards, sparse,
		split)
}

func (p *problem) row(i int) []float32   { return p.x[i*p.features : (i+1)*p.features] }
func (p *problem) label(i int) []float32 { return p.d[i*p.labels : (i+1)*p.labels] }

// makeProblem draws features of all kinds (see featureValue), the same columns twice here and there, and
// degrees of which some are 0, which depend on the features.
func makeProblem(seed uint64, rows, features, labels int) *problem {
	p := &problem{rows: rows, features: features, labels: labels, x: make([]float32, rows*features),
		d: make([]float32, rows*labels)}
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	for i := range rows {
		x := p.row(i)
		for j := range x {
			if x[j] = featureValue(s, j); j > 0 && j%7 == 0 {
				x[j] = x[j-1]
			}
		}
		sum := float32(0)
		for c := range p.label(i) {
			v := float32(s.Uint64n(4))
			if x[c%features] > 0 {
				v += 4
			}
			p.label(i)[c] = v
			sum += v
		}
		for c := range p.label(i) {
			if sum == 0 {
				p.label(i)[c] = 1 / float32(labels)
			} else {
				p.label(i)[c] /= sum
			}
		}
	}
	return p
}

// featureValue draws a value of feature j: two values, mostly zeros; a few whole numbers of both signs,
// mostly zeros; many values; a few values, no zeros; many of both signs, mostly zeros.
func featureValue(s *num.Stream, j int) float32 {
	switch zero := s.Uint64n(3) > 0; {
	case zero && j%5 != 2 && j%5 != 3:
		return 0
	case j%5 == 0:
		return 1.5
	case j%5 == 1:
		return float32(s.Uint64n(7)) - 3
	case j%5 == 3:
		return float32(s.Uint64n(4)) + 0.25
	}
	return float32(s.Normal())
}

// tensors returns a model's tensors by name.
func tensors(t contract.Test, tr algorithms.Trainer) map[string]algorithms.Tensor {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]algorithms.Tensor)
	for _, x := range m.Tensors() {
		for _, piece := range x.Pieces {
			x.U32, x.F32, x.F64 = append(x.U32, piece.U32...), append(x.F32, piece.F32...), append(x.F64, piece.F64...)
		}
		all[x.Name] = x
	}
	return all
}
