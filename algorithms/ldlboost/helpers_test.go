package ldlboost

import (
	"context"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// fataler is a test of either kind.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

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

// data cuts the problem into shards of every so many rows, the last rows first, with the roles of split, in dense or
// sparse storage.
func (p *problem) data(shards int, sparse bool, split dataset.Split) *dataset.Data {
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: p.rows, Features: p.features, Labels: p.labels,
		Sparse: sparse, HasWeights: p.weights != nil, Shards: make([]dataset.ShardRef, shards)}
	roles, err := split.Assign(p.rows, nil)
	if err != nil {
		panic(err)
	}
	d := dataset.NewData(m, roles)
	for i := range shards {
		r := &dataset.Rows{Features: p.features, Labels: p.labels, Sparse: sparse}
		if sparse {
			r.Start = []uint32{0}
		}
		for row := (p.rows-1-i)/shards*shards + i; row >= 0; row -= shards {
			r.N++
			r.Row = append(r.Row, uint32(row))
			r.D = append(r.D, p.label(row)...)
			if p.weights != nil {
				r.Weight = append(r.Weight, p.weights[row])
			}
			if !sparse {
				r.X = append(r.X, p.row(row)...)
				continue
			}
			for j, v := range p.row(row) {
				if v != 0 {
					r.X, r.Index = append(r.X, v), append(r.Index, uint32(j))
				}
			}
			r.Start = append(r.Start, uint32(len(r.X)))
		}
		d.SetShard(i, r)
	}
	return d
}

// jobOf resolves a job.
func jobOf(t fataler, m *dataset.Manifest, set param.Values, split dataset.Split) *round.Job {
	t.Helper()
	r, err := New().Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	split.ValidationFraction, split.ValidationMin = r.ValidationFraction, r.ValidationMin
	return &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: r.Params,
		Split: split}
}

// train trains on some lanes and returns the trainer.
func train(t fataler, j *round.Job, d *dataset.Data, lanes int) algorithms.Trainer {
	t.Helper()
	tr, err := New().NewTrainer(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().NewKernel(j, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(context.Background(), tr, 0, engine.NewLocal(k, d, lanes, nil), none); err != nil {
		t.Fatal(err)
	}
	return tr
}

// model returns the trained model.
func model(t fataler, tr algorithms.Trainer) algorithms.Model {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// digest returns the digest of the trained model.
func digest(t fataler, tr algorithms.Trainer) string {
	t.Helper()
	return modelfile.Digest(Name, model(t, tr).Tensors())
}

// softmaxOf returns the softmax of F.
func softmaxOf(f []float64) []float64 {
	p := append([]float64(nil), f...)
	boost.Softmax(p)
	return p
}
