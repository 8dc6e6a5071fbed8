package pipeline

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldl4c"
	"github.com/coppice-ldl/coppice/algorithms/ldlhr"
	"github.com/coppice-ldl/coppice/algorithms/ldllc"
	"github.com/coppice-ldl/coppice/algorithms/ldlldm"
	"github.com/coppice-ldl/coppice/algorithms/ldllrr"
	"github.com/coppice-ldl/coppice/algorithms/ldlm"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/algorithms/saiis"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The linear baseline is a linear maximum-entropy model, which sa-bfgs fits to a sample of the
// training rows of a large dataset. The fit comes after the training, in rounds of its own. The test
// rows then show whether the algorithm of the job is worse than a linear model.

// The rounds of the fit have the operations of sa-bfgs plus linearOps, and the versions of their
// values and derived values have the bit linearVersion. So they differ from the rounds of the job's algorithm.
const (
	linearOps         = 24
	opLinear          = 200 + linearOps // the least of these operations
	linearVersion     = 1 << 63
	varLinear         = 0xff04 // the weights, for the evaluation
	linearKind        = "linear baseline"
	linearIterations  = 30
	minLinearRows     = 20_000 // training and validation rows from which on a job has a linear baseline
	maxLinearSample   = 20_000
	minLinearSample   = 5_000
	maxLinearProducts = 100_000_000 // of a feature value and a weight, in an evaluation: about 60 ms of one core
	maxLinearWeights  = 50_000
	standardErrors    = 2
)

// linearFamily are the algorithms that train linear maximum-entropy models.
var linearFamily = []string{sabfgs.Name, saiis.Name, ldlldm.Name, ldllrr.Name, ldllc.Name, ldl4c.Name,
	ldlhr.Name, ldlm.Name}

// LinearSamples returns how many training rows, at most, the linear baseline of a job without
// sub-jobs is fitted to; 0: the job has none.
func LinearSamples(j *round.Job, m *dataset.Manifest) int {
	s := &j.Split
	if incomplete(j, m) || s.TestFraction <= 0 || s.Folds > 0 || slices.Contains(linearFamily, j.Algorithm) ||
		registry.Output(j.Algorithm) == algorithms.Number || m.LabelType.Bounds != nil {
		return 0
	}
	rows := s.Divided(m.Rows)
	rows -= int(s.TestFraction * float64(rows))
	if s.TrainFraction > 0 {
		rows = int(s.TrainFraction * float64(rows))
	}
	weights := int64(maxent.Evaluation(m.Features, m.Labels))
	if rows < minLinearRows || m.Labels < 2 || weights > maxLinearWeights {
		return 0
	}
	products := weights
	if m.Sparse {
		products = (m.NonZeros/int64(m.Rows) + 1) * int64(m.Labels)
	}
	if n := min(maxLinearSample, maxLinearProducts/products); n >= minLinearSample {
		return int(n)
	}
	return 0
}

// linearJob returns the job by which sa-bfgs fits the linear baseline of a job: by few iterations,
// without decay and validation.
func linearJob(j *round.Job, m *dataset.Manifest) (algorithms.Algorithm, *round.Job, error) {
	a, err := registry.Find(sabfgs.Name)
	if err != nil {
		return nil, nil, err
	}
	r, err := a.Resolve(param.Values{"iterations": int64(linearIterations), "decay": maxent.DecayFixed, "l2": 0.0,
		"validation_fraction": 0.0}, m)
	if err != nil {
		return nil, nil, fmt.Errorf("linear baseline: %w", err)
	}
	of := *j
	of.Algorithm, of.Params, of.Split.ValidationFraction, of.Split.ValidationMin = sabfgs.Name, r.Params, 0, 0
	return a, &of, nil
}

// LinearFootprint estimates the memory that the linear baseline of a job adds; nothing if it has none.
func LinearFootprint(j *round.Job, m *dataset.Manifest) (f algorithms.Footprint, err error) {
	if j.LinearSamples == 0 {
		return f, nil
	}
	a, of, err := linearJob(j, m)
	if err != nil {
		return f, err
	}
	return a.Footprint(of, m)
}

// linear is the leader's half of the linear baseline.
type linear struct {
	algorithm algorithms.Algorithm
	job       *round.Job
	manifest  *dataset.Manifest

	fit     algorithms.Trainer // nil except in phaseLinear
	weights []float64          // nil before the end of the fit, and if it failed
	round   round.Round
}

func newLinear(j *round.Job, m *dataset.Manifest) (*linear, error) {
	if j.LinearSamples <= 0 {
		return nil, nil
	}
	a, of, err := linearJob(j, m)
	return &linear{algorithm: a, job: of, manifest: m}, err
}

// fitted reports whether there is a linear baseline to evaluate.
func (l *linear) fitted() bool { return l != nil && l.weights != nil }

// begin begins the fit, or continues it from a state.
func (l *linear) begin(state []byte) (err error) {
	l.fit, err = l.algorithm.NewTrainer(l.job, l.manifest, state)
	return err
}

// next returns the next round of the fit. It returns nil at the end: the weights are known then.
func (l *linear) next() (*round.Round, error) {
	r, err := l.fit.Next()
	if err != nil {
		return nil, err
	}
	if r != nil {
		l.round = *r
		l.round.Op += linearOps
		l.round.Kind = linearKind
		l.round.Vars = slices.Clone(r.Vars)
		for i := range l.round.Vars {
			l.round.Vars[i].Version |= linearVersion
		}
		if how := r.Reduce(); how.DerivedVersion > 0 {
			derived := *how
			derived.DerivedVersion |= linearVersion
			l.round.How = &derived
		}
		return &l.round, nil
	}
	model, err := l.fit.Model()
	if err == nil {
		l.weights, l.fit = model.(*maxent.Model).Weights, nil
	}
	return nil, err
}

// state lists the fields of a training state: the weights, or the state of the fit in progress.
func (l *linear) state(f *fields.List, fitting bool) {
	f.Known(&l.weights, maxent.Evaluation(l.manifest.Features, l.manifest.Labels))
	f.Check(l.weights == nil || !fitting && num.Finite64(l.weights),
		"the saved state has weights of a linear baseline that are not possible")
	var fit []byte
	if !f.Reading() && l.fit != nil {
		fit, _ = l.fit.AppendState(nil) // fails only if a writer does
	}
	f.Bytes(&fit)
	f.Check(fitting == (len(fit) > 0), "the saved state of the linear baseline does not match the phase")
	if f.Reading() && fitting {
		err := l.begin(fit)
		f.Check(err == nil, "%w", err)
	}
}

// linearKernel is the workers' half of the linear baseline.
type linearKernel struct {
	round.ReduceKernel
	samples int
	key     num.Key

	mu         sync.Mutex
	of, sample *dataset.Data // the data of the job, and the sample of it
	model      *maxent.Model // with the weights of varLinear; nil: none yet
}

func newLinearKernel(j *round.Job, m *dataset.Manifest) (*linearKernel, error) {
	if j.LinearSamples <= 0 {
		return nil, nil
	}
	a, of, err := linearJob(j, m)
	if err != nil {
		return nil, err
	}
	k, err := a.NewKernel(of, m)
	if err != nil {
		return nil, err
	}
	return &linearKernel{ReduceKernel: k.(round.ReduceKernel), samples: j.LinearSamples,
		key: num.NewKey(j.Split.Seed, linearKind)}, nil
}

// has reports whether a task is of the fit.
func (k *linearKernel) has(u *round.Task) bool { return k != nil && u.Op >= opLinear && u.Op < opSums }

// sampled returns the task and the data as sa-bfgs has them, and makes its working memory if there is none.
func (k *linearKernel) sampled(u round.Task, d *dataset.Data, scratch *any) (round.Task, *dataset.Data, any) {
	if *scratch == nil {
		*scratch = k.NewScratch()
	}
	u.Op -= linearOps
	u.Lanes = nil // they have the scratch of the job's kernel
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != d {
		k.of, k.sample = d, d.Sample(k.samples, k.key)
	}
	return u, k.sample, *scratch
}

// evaluated returns the model to evaluate, or nil if the round has none.
func (k *linearKernel) evaluated(v round.Vars, m *dataset.Manifest) *maxent.Model {
	at := slices.IndexFunc(v, func(x round.Var) bool { return x.ID == varLinear })
	if k == nil || at < 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.model == nil { // a job has one linear baseline
		k.model = &maxent.Model{Features: m.Features, Labels: m.Labels, Weights: slices.Clone(num.Float64s(v[at].Data))}
	}
	return k.model
}

// width returns the number of sums of an evaluation: the measures of the model and of the mean, and the differences of
// their K-L divergences. If there is a linear baseline, its measures and the differences from it follow.
func (l *linear) width(p *measures.Plan) int {
	width := 2*p.Width() + measures.DifferenceWidth
	if l.fitted() {
		width += p.Width() + measures.DifferenceWidth
	}
	return width
}

// LinearBaseline are the measures of the linear baseline on the test rows.
type LinearBaseline struct {
	// Samples is the number of training rows that the linear model was fitted to.
	Samples  int             `json:"samples"`
	Measures measures.Report `json:"measures"`
	// Difference is the K-L divergence of the job's model minus the linear model's, over test rows.
	Difference measures.Stat `json:"kl_difference"`
	// Better is true if the mean difference is more than two standard errors above 0.
	Better bool `json:"better"`
}

// read returns what the sums of an evaluation say of the linear baseline.
func (l *linear) read(p *measures.Plan, sums []float64, counts [3]uint64) *LinearBaseline {
	width, n := p.Width(), float64(counts[2])
	of, differences := sums[:width], sums[width:]
	b := &LinearBaseline{Samples: min(l.job.LinearSamples, int(counts[0])), Difference: measures.StatOf(n, differences[0],
		differences[1])}
	b.Measures, _ = p.Read(of)
	b.Better = b.Difference.Mean > standardErrors*b.Difference.Std/math.Sqrt(n)
	return b
}
