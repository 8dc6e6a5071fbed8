package ldlf

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// shape is a dataset's shape for benchmarks, with generated values.
type shape struct {
	name                   string
	rows, features, labels int
	share                  float64
	sparse                 bool
	scaling                string
}

var shapes = []shape{
	{name: "Yeast_alpha_2465x24x18", rows: 2465, features: 24, labels: 18, share: 1, sparse: false,
		scaling: scaling.Standard},
	{name: "Movie_7755x1869x5", rows: 7755, features: 1869, labels: 5, share: 0.011, sparse: true, scaling: scaling.None},
}

// benchJob is the paper's forest (5 trees, depth 7, 64 units) on a shape, brought
// to where q is no longer uniform.
func benchJob(b *testing.B, s shape, batch int) (*trainer, *kernel, *dataset.Data) {
	p := makeProblem(1, s.rows, s.features, s.labels, s.share)
	c := &Config{Network: settings.Default().Network, Strategy: strategyJoint, Scaling: s.scaling, LearningRate: 0.5}
	c.Preset, c.Trees, c.Depth, c.Outputs, c.Bias = param.Paper, 5, 7, 64, true
	c.BatchSize, c.Optimizer, c.Momentum, c.WeightDecay = batch, optimizerSGD, 0.9, 1e-5
	c.LearningRateDecay, c.Init, c.Patience = 1, initXavier, 1
	c.LeafBatches, c.LeafIterations, c.Steps = 100, 20, 1<<30
	j := jobOf(c, 1)
	m, d := p.data(16, s.sparse, j.Split)
	tr, k := start(b, j, m)
	copy(tr.q.Data, randomQ(tr.size))
	for i := range tr.Fit.Values().Scale {
		tr.Fit.Values().Scale[i] = 1
	}
	return tr, k, d
}

func randomQ(z sizes) []float32 {
	s := num.NewStream(num.NewKey(2, "bench"), 0, 0)
	q := make([]float32, z.q())
	for l := 0; l < len(q); l += z.labels {
		sum := float32(0)
		for c := range z.labels {
			q[l+c] = float32(s.Float64() + 0.1)
			sum += q[l+c]
		}
		for c := range z.labels {
			q[l+c] /= sum
		}
	}
	return q
}

// round runs the trainer's next round: kernel, sum and fold, on one core.
type roundRunner struct {
	tr        *trainer
	k         *kernel
	d         *dataset.Data
	s         any
	sum, part round.Partial
	derived   map[int]round.Derived
}

func (x *roundRunner) run(b *testing.B) {
	r, err := x.tr.Next()
	if err != nil {
		b.Fatal(err)
	}
	for id := range r.Tasks {
		dst := &x.part
		if id == 0 {
			dst = &x.sum
		}
		dst.Reset(r.Reduce().Shape)
		u := r.Task(id)
		if u.DerivedVersion != 0 && x.derived[id] == nil {
			if x.derived[id], err = x.k.Derive(u, x.d, r.Vars, x.s); err != nil {
				b.Fatal(err)
			}
		}
		if err := x.k.Run(dst, u, x.d, r.Vars, x.derived[id], x.s); err != nil {
			b.Fatal(err)
		}
		if id > 0 && r.Reduce().Shape.Rows == 0 {
			num.Add64(x.sum.F64, dst.F64)
			num.Add32(x.sum.F32, dst.F32)
		}
	}
	if err := x.tr.Fold(&round.Result{Sum: &x.sum}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStep is one gradient step: kernel and trainer, without reduction of
// sparse rows.
func BenchmarkStep(b *testing.B) {
	for _, s := range shapes {
		for _, batch := range []int{64, 512} {
			b.Run(fmt.Sprintf("%s/batch=%d", s.name, batch), func(b *testing.B) {
				tr, k, d := benchJob(b, s, batch)
				x := &roundRunner{tr: tr, k: k, d: d, s: k.NewScratch()}
				b.ReportAllocs()
				for b.Loop() {
					tr.Phase = gradient.PhaseStep
					x.run(b)
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/step")
			})
		}
	}
}

// BenchmarkLeafUpdate is one leaf update: 20 iterations of Eq. 12 over 100
// mini-batches, routing included.
func BenchmarkLeafUpdate(b *testing.B) {
	for _, s := range shapes {
		for _, batch := range []int{64, 512} {
			b.Run(fmt.Sprintf("%s/batch=%d", s.name, batch), func(b *testing.B) {
				tr, k, d := benchJob(b, s, batch)
				x := &roundRunner{tr: tr, k: k, d: d, s: k.NewScratch()}
				b.ReportAllocs()
				q, best := slices.Clone(tr.q.Data), time.Hour
				for b.Loop() {
					for _, r := range x.derived {
						r.(*routing).Release()
					}
					x.derived = map[int]round.Derived{}
					copy(tr.q.Data, q) // many updates without a step make subnormal values of it
					tr.q.Version++
					tr.Step, tr.Phase = 100, gradient.PhaseOwn
					began := time.Now()
					for tr.Phase == gradient.PhaseOwn {
						x.run(b)
					}
					best = min(best, time.Since(began))
				}
				work := x.sum.F64[0] * float64(tr.size.q()*tr.cfg.LeafIterations) * 2 * 2 // two products
				b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				b.ReportMetric(work/best.Seconds()/1e9, "GFLOP/s-best")
			})
		}
	}
}

// BenchmarkLeafLanes is a leaf update of one unit in several lanes, as the engine runs it.
func BenchmarkLeafLanes(b *testing.B) {
	for _, s := range shapes {
		for lanes := 1; lanes <= 4; lanes++ {
			b.Run(fmt.Sprintf("%s/lanes=%d", s.name, lanes), func(b *testing.B) {
				tr, k, d := benchJob(b, s, 63) // one unit
				x, q := engine.NewLocal(k, d, lanes, nil), slices.Clone(tr.q.Data)
				var res round.Result
				b.ReportAllocs()
				for b.Loop() {
					copy(tr.q.Data, q)
					tr.q.Version++
					tr.Step, tr.Phase = 100, gradient.PhaseOwn
					for tr.Phase == gradient.PhaseOwn {
						r, err := tr.Next()
						if err != nil {
							b.Fatal(err)
						}
						if err := x.Do(b.Context(), 1, r, &res); err != nil {
							b.Fatal(err)
						}
						if err := tr.Fold(&res); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkLocalStep is one gradient step as a process with one lane computes it: the units,
// their sum along the tree, and the trainer's part.
func BenchmarkLocalStep(b *testing.B) {
	for _, s := range shapes {
		for _, batch := range []int{64, 512} {
			b.Run(fmt.Sprintf("%s/batch=%d", s.name, batch), func(b *testing.B) {
				tr, k, d := benchJob(b, s, batch)
				x := engine.NewLocal(k, d, 1, nil)
				var res round.Result
				b.ReportAllocs()
				for b.Loop() {
					tr.Phase = gradient.PhaseStep
					localRound(b, x, tr, &res)
				}
			})
		}
	}
}

// localRound runs and folds the trainer's next round.
func localRound(b *testing.B, x *engine.Local, tr *trainer, res *round.Result) {
	r, err := tr.Next()
	if err != nil {
		b.Fatal(err)
	}
	if err := x.Do(b.Context(), 1, r, res); err != nil {
		b.Fatal(err)
	}
	if err := tr.Fold(res); err != nil {
		b.Fatal(err)
	}
}
