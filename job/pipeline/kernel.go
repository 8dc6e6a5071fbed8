package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/enhance"
)

var (
	_ round.ReduceKernel = (*kernel)(nil)
	_ round.GatherKernel = (*kernel)(nil)
)

// kernel adds the pipeline's operations to an algorithm's.
type kernel struct {
	inner  round.Kernel
	linear *linearKernel // nil: the job has no linear baseline
	shared *sharedModel  // nil unless the trainer is in this process
	plan   *measures.Plan
	// predicted is round.Job.PredictedRows, and seed is the seed of the split, which draws them.
	predicted int
	seed      uint64

	enhance *enhance.Kernel // nil: the job has no label enhancement
	demand  int64           // of a task of the enhancement, in bytes
	what    string          // that it takes them for

	fills  bool // missing features are filled
	scales bool // targets are scaled
	filled view

	// The mean predictor depends on the weights of rows; so do measures. Predictions of sub-jobs have the weights, which
	// ensembles need.
	weighs struct{ mean, measures, predictions bool }

	mask    dataset.Mask // of the job's split
	partial bool         // degrees may be missing where the algorithm learns
	masked  view

	mu     sync.Mutex       // held while a model is decoded: other slots wait for the model
	model  algorithms.Model // decoded from variable varModel
	bytes  []byte           // that model was decoded from
	chunks []round.Chunk    // or composed of
}

// scratch is the working memory of one slot.
type scratch struct {
	inner  any
	lent   lent
	linear any // of the kernel of the linear baseline

	model   algorithms.Model // that the fields below are for
	predict any
	rows    []float32
	mean    []float32 // what the model must beat predicts of every row

	linearModel   *maxent.Model // that the fields below are for
	linearPredict any
	linearRows    []float32

	one []float64 // what a row adds to weighted measures
}

// NewKernel returns the kernel of a job. Errors wrap ErrNumerics or are the algorithm's.
func NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	if err := checkNumerics(j); err != nil {
		return nil, err
	}
	if j.Cells != nil {
		return newCellsKernel(j, m)
	}
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return nil, err
	}
	inner, err := a.NewKernel(j, m)
	if err != nil {
		return nil, err
	}
	plan, err := JobPlan(j, m)
	if err != nil {
		return nil, err
	}
	linear, err := newLinearKernel(j, m)
	if err != nil {
		return nil, err
	}
	k := &kernel{inner: inner, linear: linear, plan: plan, predicted: j.PredictedRows, seed: j.Split.Seed,
		fills: j.Fill != "", scales: j.Bounds != nil, mask: j.Split.Mask, partial: incomplete(j, m)}
	k.weighs.mean, k.weighs.measures, k.weighs.predictions = weighsMean(m, plan), j.WeightedMeasures, j.NoModel
	if j.Enhance != nil {
		if err := CheckEnhance(a, j.Enhance, m); err != nil {
			return nil, err
		}
		k.enhance = enhance.NewKernel(j.Enhance, m, enhance.Enhanced(&j.Split))
		k.demand, k.what = enhance.Demand(j.Enhance, m)
	}
	return k, nil
}

// NewScratch implements round.Kernel.
func (k *kernel) NewScratch() any { return &scratch{inner: k.inner.NewScratch()} }

// These errors say that a round is not of the kind that the algorithm computes.
var (
	errSum    = errors.New("the algorithm has no reduce rounds")
	errGather = errors.New("the algorithm has no gather rounds")
	errChunks = errors.New("the algorithm cannot build its model from chunks")
)

// Demand implements round.Demanding: the demand of the algorithm or of the label enhancement, for tasks of folds too.
func (k *kernel) Demand() (bytes int64, what string) {
	if inner, ok := k.inner.(round.Demanding); ok {
		bytes, what = inner.Demand()
	}
	if k.demand > bytes {
		return k.demand, k.what
	}
	return bytes, what
}

// prepared are the samples of a job as the algorithm sees them: filled, masked and enhanced.
func (k *kernel) prepared(d *dataset.Data, v round.Vars) *dataset.Data {
	return k.enhanced(k.maskedData(k.filledData(d, v)), v)
}

// enhanced has the distributions that are made of logical labels, if the round has them.
func (k *kernel) enhanced(d *dataset.Data, v round.Vars) *dataset.Data {
	if k.enhance == nil {
		return d
	}
	return k.enhance.Data(d, v)
}

// Derive implements round.ReduceKernel.
func (k *kernel) Derive(u round.Task, d *dataset.Data, v round.Vars, s any) (round.Derived, error) {
	own := s.(*scratch)
	if k.linear.has(&u) {
		u, d, s := k.linear.sampled(u, k.prepared(d, v), &own.linear)
		return k.linear.Derive(u, d, v, s)
	}
	inner, ok := k.inner.(round.ReduceKernel)
	if !ok {
		return nil, errSum
	}
	own.lend(&u)
	return inner.Derive(u, k.prepared(d, v), v, own.inner)
}

// Run implements round.ReduceKernel.
func (k *kernel) Run(dst *round.Partial, u round.Task, d *dataset.Data, v round.Vars, derived round.Derived,
	s any) error {
	own := s.(*scratch)
	if u.Op >= opMean {
		k.releaseMemory()
	}
	if k.linear.has(&u) {
		u, d, s := k.linear.sampled(u, k.prepared(d, v), &own.linear)
		return k.linear.Run(dst, u, d, v, derived, s)
	}
	switch u.Op {
	case opSums:
		sumFeatures(dst.F64, u, d)
		return nil
	case opDigits:
		countDigits(dst.F64, u, d, v)
		return nil
	case opMean:
		sumLabels(dst.F64, u, k.enhanced(k.maskedData(d), v), k.partial, k.weighs.mean)
		return nil
	case opEvaluate:
		m, err := k.evaluatedModel(v)
		if err != nil {
			return err
		}
		own.evaluate(dst.F64, k, m, k.linear.evaluated(v, d.Manifest), u, d, v)
		return nil
	}
	inner, ok := k.inner.(round.ReduceKernel)
	if !ok {
		return errSum
	}
	own.lend(&u)
	return inner.Run(dst, u, k.prepared(d, v), v, derived, own.inner)
}

func (k *kernel) releaseMemory() {
	if r, ok := k.inner.(round.MemoryReleaser); ok {
		r.ReleaseMemory()
	}
}

// Gather implements round.GatherKernel: for predictions, and for algorithms with gather rounds.
func (k *kernel) Gather(ctx context.Context, u round.Task, d *dataset.Data, v round.Vars, s any) ([]byte, error) {
	if u.Op == opMean && k.plan.Number {
		k.releaseMemory()
		return k.gatherNumbers(u, d), nil
	}
	if u.Op == opExtremes {
		return gatherExtremes(u, d), nil
	}
	if u.Op == opPredict {
		k.releaseMemory()
		m, err := k.evaluatedModel(v)
		if err != nil {
			return nil, err
		}
		return s.(*scratch).predictRows(k, m, u, d, v), nil
	}
	if k.enhance.Has(&u) {
		return k.enhance.Gather(ctx, u, k.filledData(d, v), v, nil)
	}
	inner, ok := k.inner.(round.GatherKernel)
	if !ok {
		return nil, errGather
	}
	return inner.Gather(ctx, u, k.prepared(d, v), v, s.(*scratch).inner)
}

// sumLabels adds to dst the numbers of training, validation and test rows, then the sums of
// the label degrees of the rows that are not test rows. If degrees may be missing, the numbers of the others follow, by
// label. If weighs is true, degrees and their numbers are weighted, and the sum of the weights comes last.
func sumLabels(dst []float64, u round.Task, d *dataset.Data, partial, weighs bool) {
	for _, ref := range u.Rows(d) {
		shard := d.Shard(int(ref.Shard))
		switch role := d.Role(shard.Row[ref.Pos]); {
		case role&dataset.Test != 0:
			dst[2]++
		case role == dataset.Validation:
			dst[1]++
		default:
			dst[0]++
		}
		if !d.Learned(shard.Row[ref.Pos]) {
			continue
		}
		label, weight := shard.Label(int(ref.Pos)), 1.0
		if weighs {
			weight = shard.WeightOf(int(ref.Pos))
			dst[len(dst)-1] += weight
		}
		for c, degree := range label {
			if !partial {
				dst[3+c] += float64(weight * float64(degree))
			} else if degree == degree {
				dst[3+c] += float64(weight * float64(degree))
				dst[3+len(label)+c] += weight
			}
		}
	}
}

// weighsMean reports whether the mean predictor is the weighted mean.
func weighsMean(m *dataset.Manifest, plan *measures.Plan) bool { return m.HasWeights && !plan.Number }

// gatherNumbers returns what a task gives for the mean and the median: the sums, then the numbers of the
// rows that are not test rows, as float64.
func (k *kernel) gatherNumbers(u round.Task, d *dataset.Data) []byte {
	sums := make([]float64, 3+d.Manifest.Labels)
	sumLabels(sums, u, d, false, false)
	for _, ref := range u.Rows(d) {
		if rows := d.Shard(int(ref.Shard)); d.Learned(rows.Row[ref.Pos]) {
			sums = append(sums, k.plan.Type.Scale.Number(rows, int(ref.Pos)))
		}
	}
	return num.Bytes64(sums)
}

// evaluateRows is how many rows are predicted at a time.
const evaluateRows = 256

// evaluate sums the measures of the model, then the measures of the mean predictor or the median, then the differences
// of the K-L divergences of both. If linear is not nil, its measures follow, and the model's differences from it.
func (s *scratch) evaluate(dst []float64, k *kernel, m algorithms.Model, linear *maxent.Model, u round.Task,
	d *dataset.Data, v round.Vars) {
	plan, read := k.planFor(v), k.filledData(d, v)
	s.prepare(plan, m, v)
	if linear != nil && s.linearModel != linear {
		s.linear, s.linearModel, s.linearPredict, s.linearRows = nil, linear, linear.NewScratch(),
			make([]float32, evaluateRows*linear.Labels)
	}
	shard := func(i uint32) *dataset.Rows { return read.Shard(int(i)) }
	width, sums := len(s.mean), plan.Width()
	add := plan.Add
	if k.weighs.measures {
		if len(s.one) != sums {
			s.one = make([]float64, sums)
		}
		add = func(dst []float64, r *dataset.Rows, i int, predicted []float32) float64 {
			return plan.AddWeighted(dst, s.one, r, i, predicted)
		}
	}
	for refs := u.Rows(d); len(refs) > 0; refs = refs[min(evaluateRows, len(refs)):] {
		block := refs[:min(evaluateRows, len(refs))]
		s.model.Predict(s.rows[:len(block)*width], block, shard, s.predict)
		if linear != nil {
			linear.Predict(s.linearRows[:len(block)*width], block, shard, s.linearPredict)
		}
		unscale(plan.Bounds, s.rows[:len(block)*width])
		for i, ref := range block {
			rows, at := d.Shard(int(ref.Shard)), int(ref.Pos)
			kl := add(dst[:sums], rows, at, s.rows[i*width:(i+1)*width])
			measures.AddDifference(dst[2*sums:], kl-add(dst[sums:2*sums], rows, at, s.mean))
			if linear != nil {
				of := dst[2*sums+measures.DifferenceWidth:]
				measures.AddDifference(of[sums:], kl-add(of[:sums], rows, at, s.linearRows[i*width:(i+1)*width]))
			}
		}
	}
}

// planFor returns the plan with the bounds of targets that the round carries.
func (k *kernel) planFor(v round.Vars) *measures.Plan {
	if !k.scales {
		return k.plan
	}
	return bounded(k.plan, boundsOf(v))
}

// unscale replaces predictions of rows by targets, if there are bounds.
func unscale(b *dataset.Bounds, rows []float32) {
	if b == nil {
		return
	}
	for n := len(b.Low); len(rows) > 0; rows = rows[n:] {
		b.Unscale(rows[:n])
	}
}

// evaluatedModel returns the model to evaluate: the trainer's if it is in this process, else
// the model in varModel, a model file or chunks, which is decoded once for all slots.
func (k *kernel) evaluatedModel(v round.Vars) (algorithms.Model, error) {
	if k.shared != nil {
		return k.shared.model, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	x := v.Find(varModel)
	if same(x.Data, k.bytes) || same(x.Chunks, k.chunks) {
		return k.model, nil
	}
	var m algorithms.Model
	var err error
	if len(x.Chunks) == 0 {
		_, m, err = registry.Model(x.Data)
	} else if c, ok := k.inner.(algorithms.Composer); ok {
		m, err = c.Compose(x.Chunks)
	} else {
		err = errChunks
	}
	if err != nil {
		return nil, fmt.Errorf("the model cannot be evaluated: %w", err)
	}
	k.model, k.bytes, k.chunks = m, x.Data, x.Chunks
	return m, nil
}

// same reports whether two slices are the same memory, and not empty.
func same[T any](a, b []T) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// prepare makes the working memory for a model, unless the last call was for the same model.
func (s *scratch) prepare(plan *measures.Plan, m algorithms.Model, v round.Vars) {
	if s.model == m {
		return
	}
	_, width := m.Shape()
	mean := num.Float64s(v.Get(varMean))
	if plan.Number {
		width, mean = 1, mean[plan.Labels:]
	}
	s.model, s.predict = m, m.NewScratch()
	s.rows = make([]float32, evaluateRows*width)
	s.mean = make([]float32, width)
	for c, degree := range mean {
		s.mean[c] = float32(degree)
	}
}

// lent is the lanes of a task as the algorithm's kernel sees them: each has the kernel's own
// scratch.
type lent struct {
	round.Lanes
	parts round.Parts
}

// lend has the algorithm's kernel see u's lanes with its own scratch.
func (s *scratch) lend(u *round.Task) {
	if u.Lanes != nil {
		s.lent.Lanes = u.Lanes
		u.Lanes = &s.lent
	}
}

// Do implements round.Lanes.
func (l *lent) Do(n int, p round.Parts) {
	l.parts = p
	l.Lanes.Do(n, l)
}

// Part implements round.Parts.
func (l *lent) Part(i int, s any) { l.parts.Part(i, s.(*scratch).inner) }

// maskedData are rows of a job without the degrees that the mask hides.
func (k *kernel) maskedData(d *dataset.Data) *dataset.Data {
	if !k.mask.Any() {
		return d
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.masked.made(d, func() *dataset.Data { return d.Masked(k.mask, k.seed) })
}

// view is data that is made of other data. The kernel's mutex is held while it is used.
type view struct{ of, data *dataset.Data }

// made returns what make makes of d, or made of d in the last call.
func (v *view) made(d *dataset.Data, make func() *dataset.Data) *dataset.Data {
	if v.of != d {
		v.of, v.data = d, make()
	}
	return v.data
}
