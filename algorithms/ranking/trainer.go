package ranking

import (
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// The phases of a training, once its features are scaled.
const (
	phaseRows    uint8 = iota // landmarks are collected
	phaseFit                  // the whole fit is one unit
	phaseSums                 // the mean of the features
	phaseSquares              // their deviation
	phaseStages               // the alternation, stage by stage
	phaseDone
)

// trainer implements learner.Trainer.
type trainer struct {
	learner.Base
	cfg      *Config
	manifest *dataset.Manifest
	wanted   rows.Wanted
	scaler   *scaling.Fit

	phase     uint8
	kept      *dataset.Rows
	deviation float64      // of the features
	count     uint64       // of the training rows
	mean      []float64    // until the deviation is known
	fit       *alternation // once there are landmarks
	version   uint64       // stages done

	round   round.Round
	vars    []round.Var
	encoded []byte // kept
	now     []float64
}

func newTrainer(j *learner.Job[Config]) *trainer {
	return &trainer{cfg: j.Config, manifest: j.Manifest, wanted: wanted(j), scaler: scaling.NewFit(j.Config.Scaling,
		j.Manifest)}
}

// Start implements learner.Trainer.
func (t *trainer) Start() { t.scaler.Begin() }

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	t.scaler.State(l)
	l.Byte(&t.phase)
	l.Check(t.scaler.Done() || t.phase == phaseRows, "the saved state has phase %d, which is not possible before the "+
		"features are scaled", t.phase)
	l.Check(t.phase <= phaseDone && (t.cfg.Landmarks == 0) == (t.phase == phaseFit) || t.phase == phaseRows ||
		t.phase == phaseDone, "phase %d is not possible", t.phase)
	rows.Field(l, &t.kept, t.manifest, &t.wanted)
	l.Check((t.kept != nil) == (t.phase > phaseRows), "the saved state has phase %d, which does not match its landmarks",
		t.phase)
	l.Float64(&t.deviation)
	l.Check(t.deviation >= 0 && t.deviation <= math.MaxFloat64, "a standard deviation is %v", t.deviation)
	l.Uint64(&t.count, &t.version)
	l.Known(&t.mean, t.manifest.Features)
	l.Check((t.mean != nil) == (t.phase == phaseSquares), "the saved state has phase %d, which does not match its mean",
		t.phase)
	if t.kept == nil {
		return
	}
	if l.Reading() {
		t.fit = newAlternation(t.cfg, t.kept.N)
	}
	if t.fit == nil { // what was read is wrong
		return
	}
	t.fit.state(l)
	l.Check((t.fit.stage == stageDone) == (t.phase == phaseDone),
		"the saved state has phase %d, which does not match its stage %d", t.phase, t.fit.stage)
}

// units returns how many units a round of sums has: a power of two, so that one has about as
// many rows as there are landmarks.
func units(c *Config, m *dataset.Manifest) int {
	n := 1
	for 2*n <= len(m.Shards) && 2*n*c.Landmarks <= m.Rows {
		n *= 2
	}
	return n
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	t.round, t.vars = round.Round{Tasks: units(t.cfg, t.manifest), Roles: dataset.Train}, t.vars[:0]
	r := &t.round
	if !t.scaler.Done() {
		r.Tasks = 0
		t.scaler.Next(r)
		return r, nil
	}
	switch t.phase {
	case phaseRows:
		r.Op, r.Kind, r.Tasks, r.How = opRows, "rows", len(t.manifest.Shards), &round.Gather{}
	case phaseFit:
		r.Op, r.Kind, r.Tasks, r.Scope, r.How = opFit, "fit", 1, round.Whole, &round.Gather{}
		t.vars = t.scaler.AppendVar(t.vars)
	case phaseSums:
		r.Op, r.Kind, r.How = opSums, "deviation", round.Sums(1+t.manifest.Features)
	case phaseSquares:
		r.Op, r.Kind, r.How = opSquares, "deviation", round.Sums(1)
		t.vars = t.scaler.AppendVar(append(t.vars, round.Var{ID: varMean, Version: 1, Data: num.Bytes64(t.mean)}))
	case phaseStages:
		t.nextStage(r)
	default:
		return nil, nil
	}
	if len(t.vars) > 0 {
		r.Vars = t.vars
	}
	return r, nil
}

// stageKinds name the rounds of the stages.
var stageKinds = [...]string{"gram", "residual", "weights", "weights", "costs"}

// nextStage describes the round of a stage.
func (t *trainer) nextStage(r *round.Round) {
	if t.encoded == nil {
		t.encoded = dataset.EncodeShard(t.kept, nil)
	}
	q := t.fit.request()
	t.now = append(append(append(t.now[:0], float64(q.stage)), q.now.u...), q.now.v...)
	var labels []float64
	if !q.middles {
		labels = append(append(labels, q.labels.u...), q.labels.v...)
	}
	r.Op, r.Kind, r.How = opStage, stageKinds[q.stage], &round.Reduce{Shape: round.Shape{F64: t.fit.size()},
		DerivedVersion: 1}
	t.vars = append(t.scaler.AppendVar(t.vars),
		round.Var{ID: varKept, Version: 1, Data: t.encoded},
		round.Var{ID: varWidth, Version: 1, Data: num.Bytes64([]float64{t.deviation})},
		round.Var{ID: varNow, Version: 1 + t.version, Data: num.Bytes64(t.now)},
		round.Var{ID: varLabels, Version: 1 + t.fit.rounds, Data: num.Bytes64(labels)},
	)
}

// Fold implements round.Trainer.
func (t *trainer) Fold(res *round.Result) error {
	if !t.scaler.Done() {
		return t.scaler.Fold(res.Sum.F64)
	}
	switch t.phase {
	case phaseRows:
		return t.foldRows(res.Gathered)
	case phaseFit:
		return t.foldFit(res.Gathered[0])
	case phaseSums:
		return t.foldSums(res.Sum.F64)
	case phaseSquares:
		t.deviation, t.mean, t.phase = math.Sqrt(res.Sum.F64[0]/float64(t.count)), nil, phaseStages
	case phaseStages:
		t.version++
		if t.fit.fold(res.Sum.F64); t.fit.stage == stageDone {
			t.phase = phaseDone
		}
		if !t.fit.finite() {
			return errNotFinite
		}
	}
	return nil
}

// errNotFinite says that no solution is to be had.
var errNotFinite = errors.New("ranking: the solution is not finite, because lambda is too small or the features are " +
	"too large: give a greater lambda, or scale the features")

func (t *trainer) foldRows(parts [][]byte) (err error) {
	if t.kept, err = rows.Join(parts, t.manifest, &t.wanted); err != nil {
		return err
	}
	t.fit = newAlternation(t.cfg, t.kept.N)
	t.phase = phaseSums
	if t.cfg.Landmarks == 0 {
		t.phase = phaseFit
	}
	return nil
}

func (t *trainer) foldSums(sum []float64) error {
	if sum[0] == 0 {
		return algorithms.ErrNoRows
	}
	t.count, t.mean, t.phase = uint64(sum[0]), append([]float64{}, sum[1:]...), phaseSquares
	for c := range t.mean {
		t.mean[c] /= sum[0]
	}
	return nil
}

// foldFit takes what encodeFit wrote.
func (t *trainer) foldFit(b []byte) error {
	m, n := t.kept.N, t.cfg.Kernels
	least := fitHead + n + m
	if count := len(b) / 8; len(b)%8 != 0 || count < least || count > least+mostTrace(t.cfg) {
		return fmt.Errorf("ranking: the fit has %d bytes, which does not match %d samples", len(b), m)
	}
	v := append([]float64{}, num.Float64s(b)...)
	a := t.fit
	for i, to := range []*uint64{&a.loops, &a.rounds, &a.damped} {
		x := v[1+i]
		if !(x >= 0 && x <= float64(mostTrace(t.cfg))) || x != math.Floor(x) {
			return fmt.Errorf("ranking: the fit has an impossible number of loops, rounds or factors: %v", x)
		}
		*to = uint64(x)
	}
	t.deviation, a.costs, t.count = v[0], v[4], uint64(m)
	copy(a.now.v, v[fitHead:])
	copy(a.now.u, v[fitHead+n:])
	a.trace, a.stage, t.phase = v[least:], stageDone, phaseDone
	if !(t.deviation >= 0) || !a.finite() {
		return errNotFinite
	}
	return nil
}

// finite tells whether the numbers that a model has are finite.
func (a *alternation) finite() bool {
	for _, all := range [][]float64{a.now.u, a.now.v, a.trace, {a.costs}} {
		for _, x := range all {
			if x-x != 0 {
				return false
			}
		}
	}
	return true
}

// Progress implements round.Trainer: a step is an inner loop.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Loss: -1, Phase: "fit", MostSteps: uint64(t.cfg.Rounds) * uint64(t.cfg.Loops)}
	if t.fit != nil {
		p.Step, p.Samples = t.fit.loops, t.count*t.fit.loops
	}
	p.Steps = p.MostSteps
	if !t.scaler.Done() {
		p.Phase = "scaling"
	}
	if t.phase == phaseDone {
		p.Steps = p.Step
	}
	return p
}

// Counters implements algorithms.Trainer.
func (t *trainer) Counters() map[string]uint64 {
	c := map[string]uint64{"inner_loops": 0, "em_rounds": 0, "damped_steps": 0}
	if t.fit != nil {
		c["inner_loops"], c["em_rounds"], c["damped_steps"] = t.fit.loops, t.fit.rounds, t.fit.damped
	}
	return c
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.phase != phaseDone {
		return nil, errors.New("ranking: there is no model yet, because the fit is not done")
	}
	a := t.fit
	m := &model{
		labels: t.manifest.Labels, kernels: a.n, damped: int(min(a.damped, math.MaxInt32)), rows: t.kept,
		sizes: rows.SizesOf(t.kept),
		kind:  t.cfg.Scaling, scaler: t.scaler.Values(), u: a.now.u, v: a.now.v, widths: widths(t.cfg, t.deviation),
		scale: t.cfg.Scale.Ends(t.manifest.Labels), trace: a.trace,
	}
	if t.cfg.Clip {
		m.clip = 1
	}
	return m, nil
}
