package ldlboost

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/internal/num"
)

// problem is a small dataset in float32, dense, row-major.
type problem struct {
	rows, features, labels int
	x, d                   []float32
	weights                []float64 // of rows; nil: none
}

// weigh draws weights, which are multiples of 1/8, so that sums of them are exact. Some are 0.
func (p *problem) weigh(seed uint64) {
	s := num.NewStream(num.NewKey(seed, "weights"), 0, 0)
	for range p.rows {
		p.weights = append(p.weights, float64(max(2, s.Uint64n(40))-2)/8)
	}
}

// weight returns the weight of a row.
func (p *problem) weight(i int) float64 {
	if p.weights == nil {
		return 1
	}
	return p.weights[i]
}

func (p *problem) row(i int) []float32   { return p.x[i*p.features : (i+1)*p.features] }
func (p *problem) label(i int) []float32 { return p.d[i*p.labels : (i+1)*p.labels] }

// makeProblem draws columns of two values, of a few values, of many values, without zeros, constant ones and copies,
// and degrees, some of them 0, that depend on the features.
func makeProblem(seed uint64, rows, features, labels int) *problem {
	p := &problem{rows: rows, features: features, labels: labels, x: make([]float32, rows*features),
		d: make([]float32, rows*labels)}
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	for i := range rows {
		x := p.row(i)
		for j := range x {
			x[j] = featureValue(s, j)
			if j%8 == 7 {
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

func featureValue(s *num.Stream, j int) float32 {
	zero := s.Uint64n(8) > 0
	switch {
	case j%8 == 5:
		return 3
	case j%8 == 3:
		return float32(s.Normal())
	case j%8 == 4:
		return float32(s.Uint64n(4)) + 0.25
	case zero && j%2 == 0:
		return 0
	case j%8 == 0:
		return 1.5
	case j%8 == 1:
		return float32(s.Uint64n(7)) - 3
	}
	return float32(s.Normal())
}

// data cuts the problem into shards.
func (p *problem) data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	return contract.Dense{Rows: p.rows, Features: p.features, Labels: p.labels, X: p.x, D: p.d,
		Weights: p.weights}.Data(shards, sparse, split)
}

// jobOf resolves a job.
func jobOf(t contract.Test, m *dataset.Manifest, set param.Values, split dataset.Split) *round.Job {
	t.Helper()
	j := contract.Job(t, New(), set, m, split)
	j.Seed = 1 // of the golden digests
	return j
}

// train trains on some lanes and returns the trainer.
func train(t contract.Test, j *round.Job, d *dataset.Data, lanes int) algorithms.Trainer {
	t.Helper()
	return contract.Train(t, New(), j, d, lanes, nil)
}

// model returns the trained model.
func model(t contract.Test, tr algorithms.Trainer) algorithms.Model {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// digest returns the digest of the trained model.
func digest(t contract.Test, tr algorithms.Trainer) string {
	t.Helper()
	return contract.Digest(t, New(), tr)
}

// softmaxOf returns the softmax of F.
func softmaxOf(f []float64) []float64 {
	p := append([]float64(nil), f...)
	boost.Softmax(p)
	return p
}
