package learner_test

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// The nearest-mean algorithm is all of this file: algorithms/README.md tells how it is written.
// A label's mean is that of the rows, each weighted by its degree of the label; a row gets the
// label of the nearest mean.

type config struct {
	Shrink float64 // of each mean, towards the mean of all
}

var settings = param.Table[config]{
	param.Float("shrink", "share of the mean of all rows in the mean of each label", 0, 1, 0, func(c *config) *float64 {
		return &c.Shrink
	}),
}

// nearestMean returns the algorithm.
func nearestMean() algorithms.Algorithm {
	return learner.Define(learner.Definition[config]{
		Name: "nearest-mean", Doc: "a row gets the label of the nearest mean", Predicts: algorithms.Distribution,
		Settings: settings,
		Trainer: func(j *learner.Job[config]) (learner.Trainer, error) {
			n := j.Manifest.Labels * (1 + j.Manifest.Features)
			return &trainer{job: j, sums: make([]float64, n)}, nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[config]) (round.Kernel, error) {
			return kernel{features: j.Manifest.Features}, nil
		},
		Model: func(tensors []algorithms.Tensor) (algorithms.Model, error) {
			m := new(model)
			return m, learner.ReadTensors(tensors, m.tensors)
		},
		Memory: func(_ *config, m *dataset.Manifest) algorithms.Footprint {
			n := 8 * int64(m.Labels*(1+m.Features))
			return algorithms.Footprint{State: n + 2, Model: n + 12, Node: n, Nodes: int64(len(m.Shards))}
		},
	})
}

// trainer asks for one round, of the labels' sums.
type trainer struct {
	learner.Base
	job  *learner.Job[config]
	done bool
	sums []float64 // for each label: the weights, then the weighted features
}

func (t *trainer) State(l *fields.List) {
	l.Bool(&t.done)
	l.Float64s(t.sums)
}

func (t *trainer) Next() (*round.Round, error) {
	if t.done {
		return nil, nil
	}
	return &round.Round{Op: 1, Tasks: len(t.job.Manifest.Shards), Roles: dataset.Train, How: round.Sums(len(t.sums))}, nil
}

func (t *trainer) Fold(res *round.Result) error {
	copy(t.sums, res.Sum.F64)
	t.done = true
	return nil
}

func (t *trainer) Progress() round.Progress {
	return round.Progress{Steps: 1, Loss: -1, Phase: "means"}
}

func (t *trainer) Model() (algorithms.Model, error) {
	if !t.done {
		return nil, fmt.Errorf("no model yet")
	}
	m := &model{features: t.job.Manifest.Features, labels: t.job.Manifest.Labels}
	total, all := 0.0, make([]float64, m.features)
	each := func(f func(weight float64, sums []float64)) {
		for c := range m.labels {
			own := t.sums[c*(1+m.features):][:1+m.features]
			f(own[0], own[1:])
		}
	}
	each(func(weight float64, sums []float64) {
		total += weight
		for i, x := range sums {
			all[i] += x
		}
	})
	s := t.job.Config.Shrink
	each(func(weight float64, sums []float64) {
		for i, x := range sums {
			m.means = append(m.means, float32((1-s)*x/weight+s*all[i]/total))
		}
	})
	return m, nil
}

// kernel sums the rows of a unit.
type kernel struct{ features int }

func (k kernel) NewScratch() any { return make(values, k.features) }

// values is room for the features of a sparse row, zeros included.
type values []float32

// of returns the features of a row, which is dense or sparse.
func (v values) of(rows *dataset.Rows, pos int) []float32 {
	if !rows.Sparse {
		return rows.Dense(pos)
	}
	clear(v)
	columns, nonZeros := rows.NonZeros(pos)
	for i, c := range columns {
		v[c] = nonZeros[i]
	}
	return v
}
func (kernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}

func (kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, _ round.Vars, _ round.Derived, scratch any) error {
	for _, ref := range u.Rows(d) {
		rows := d.Shard(int(ref.Shard))
		features := scratch.(values).of(rows, int(ref.Pos))
		for c, degree := range rows.Label(int(ref.Pos)) {
			own := dst.F64[c*(1+rows.Features):]
			own[0] += float64(degree)
			for i, x := range features {
				own[1+i] += float64(float64(degree) * float64(x))
			}
		}
	}
	return nil
}

// model is the labels' means.
type model struct {
	features, labels int
	means            []float32 // labels×features
}

func (m *model) tensors(l *learner.Tensors) {
	l.Settings(1, learner.Within(&m.features, 1, dataset.MaxFeatures), learner.Within(&m.labels, 1, dataset.MaxLabels))
	l.F32("means", &m.means, m.labels, m.features)
}

func (m *model) Tensors() []algorithms.Tensor  { return learner.ListTensors(m.tensors) }
func (m *model) Shape() (features, labels int) { return m.features, m.labels }
func (m *model) NewScratch() any               { return make(values, m.features) }
func (m *model) Describe() [][2]string         { return [][2]string{{"labels", fmt.Sprint(m.labels)}} }

func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	clear(dst)
	for i, ref := range refs {
		features := scratch.(values).of(shard(ref.Shard), int(ref.Pos))
		best, least := 0, float32(-1)
		for c := range m.labels {
			far := float32(0)
			for j, x := range features {
				d := x - m.means[c*m.features+j]
				far += float32(d * d)
			}
			if least < 0 || far < least {
				best, least = c, far
			}
		}
		dst[i*m.labels+best] = 1
	}
}
