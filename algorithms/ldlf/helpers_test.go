package ldlf

import (
	"context"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// problem is a small dataset in float32, dense, row-major.
type problem struct {
	n, features, labels int
	x, d                []float32
}

// makeProblem draws rows whose labels depend on their features; share is the
// share of non-zero features.
func makeProblem(seed uint64, n, features, labels int, share float64) *problem {
	p := &problem{n: n, features: features, labels: labels, x: make([]float32, n*features), d: make([]float32, n*labels)}
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	w := make([]float64, labels*features)
	for i := range w {
		w[i] = s.Normal()
	}
	for i := range n {
		x := p.x[i*features : (i+1)*features]
		for j := range x {
			if s.Float64() < share {
				x[j] = float32(s.Normal() + 0.5)
			}
		}
		p.label(i, w)
	}
	return p
}

func (p *problem) label(i int, w []float64) {
	d := p.d[i*p.labels : (i+1)*p.labels]
	sum := 0.0
	e := make([]float64, p.labels)
	for c := range e {
		a := 0.0
		for j, v := range p.x[i*p.features : (i+1)*p.features] {
			a += float64(v) * w[c*p.features+j]
		}
		e[c] = num.Exp(a / (1 + float64(p.features)/4))
		sum += e[c]
	}
	for c := range d {
		d[c] = float32(e[c] / sum)
	}
}

// data cuts the problem into shards in row order, with the roles of split.
func (p *problem) data(shards int, sparse bool, split dataset.Split) (*dataset.Manifest, *dataset.Data) {
	m := &dataset.Manifest{
		Format: dataset.ManifestFormat, Rows: p.n, Features: p.features, Labels: p.labels, Sparse: sparse,
		Shards: make([]dataset.ShardRef, shards),
	}
	for _, v := range p.x {
		if v != 0 {
			m.NonZeros++
		}
	}
	roles, err := split.Assign(p.n, nil)
	if err != nil {
		panic(err)
	}
	d := dataset.NewData(m, roles)
	for i := range shards {
		from, to := dataset.ShardSpan(i, shards, p.n)
		d.SetShard(i, p.shard(from, to, sparse))
	}
	return m, d
}

func (p *problem) shard(from, to int, sparse bool) *dataset.Rows {
	r := &dataset.Rows{N: to - from, Features: p.features, Labels: p.labels, Sparse: sparse,
		D: p.d[from*p.labels : to*p.labels]}
	for i := from; i < to; i++ {
		r.Row = append(r.Row, uint32(i))
	}
	if !sparse {
		r.X = p.x[from*p.features : to*p.features]
		return r
	}
	r.Start = []uint32{0}
	for i := from; i < to; i++ {
		for j, v := range p.x[i*p.features : (i+1)*p.features] {
			if v != 0 {
				r.X, r.Index = append(r.X, v), append(r.Index, uint32(j))
			}
		}
		r.Start = append(r.Start, uint32(len(r.X)))
	}
	return r
}

// smallConfig is a forest that trains in milliseconds.
func smallConfig() *Config {
	return &Config{
		Network: settings.Default().Network, Strategy: strategyJoint, Preset: param.Auto, Trees: 3, Depth: 4, Outputs: 9,
		Bias: true, Scaling: scaling.None, BatchSize: 64,
		Optimizer: optimizerSGD, LearningRate: 1, LearningRateStep: 7, LearningRateDecay: 0.9, Momentum: 0.9,
		WeightDecay: 1e-4,
		Init:        initNormal, InitStd: 0.3, LeafIterations: 3, LeafBatches: 5, Patience: 3, Steps: 24,
	}
}

func jobOf(c *Config, seed uint64) *round.Job {
	raw, err := settings.JSON(c)
	if err != nil {
		panic(err)
	}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: seed, Params: raw}
	j.Split = dataset.Split{Seed: seed, ValidationFraction: c.ValidationFraction}
	return j
}

// start makes the trainer and kernel of a job.
func start(t testing.TB, j *round.Job, m *dataset.Manifest) (*trainer, *kernel) {
	t.Helper()
	tr, err := New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	return tr.(*trainer), k.(*kernel)
}

// train runs a job to its end on a number of lanes.
func train(t testing.TB, c *Config, p *problem, shards int, sparse bool, lanes int) *model {
	t.Helper()
	j := jobOf(c, 3)
	m, d := p.data(shards, sparse, j.Split)
	tr, k := start(t, j, m)
	drive(t, tr, k, d, lanes, func(*trainer) {})
	return modelOf(t, tr)
}

func drive(t testing.TB, tr *trainer, k *kernel, d *dataset.Data, lanes int, each func(*trainer)) {
	t.Helper()
	x := engine.NewLocal(k, d, lanes, nil)
	err := engine.Drive(context.Background(), tr, 0, x, func(uint64, round.Trainer) error {
		each(tr)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func modelOf(t testing.TB, tr *trainer) *model {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m.(*model)
}

func digest(m *model) string { return modelfile.Digest(Name, m.Tensors()) }

// predictAll predicts every row of d, by original row number.
func predictAll(m *model, d *dataset.Data) []float32 {
	refs := d.Select(0, len(d.Manifest.Shards), dataset.AllRows)
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	out := make([]float32, len(refs)*m.labels)
	s := m.NewScratch()
	for _, ref := range refs {
		row := int(shard(ref.Shard).Row[ref.Pos])
		m.Predict(out[row*m.labels:(row+1)*m.labels], []dataset.RowRef{ref}, shard, s)
	}
	return out
}

func maxDifference[A, B float32 | float64](a []A, b []B) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, abs(float64(a[i])-float64(b[i])))
	}
	return worst
}

func abs(x float64) float64 { return max(x, -x) }
