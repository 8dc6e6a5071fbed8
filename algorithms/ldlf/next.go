package ldlf

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// slotLimit bounds the F64 values of a min-max round: 8 MiB.
const slotLimit = 1 << 20

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	r := &t.round
	*r = round.Round{Kind: t.phase.kind(), Units: t.shards, How: round.Sum, Scope: round.Sharded, Roles: t.learns()}
	switch t.phase {
	case phaseSums:
		r.Op, r.Shape.F64 = opSums, 1+t.size.features
	case phaseSquares:
		means, _ := t.halves()
		t.vars[0] = round.Var{ID: varMeans, Version: 1 + t.passes, Data: num.Bytes64(means)}
		r.Op, r.Shape.F64, r.Vars = opSquares, 1+t.size.features, t.vars[:1]
	case phaseExtremes:
		t.extremesRound(r)
	case phaseStep:
		t.stepRound(r)
	case phaseLeaves:
		t.leavesRound(r)
	case phaseValidate:
		t.validationRound(r)
	case phaseDone:
		r.Done = true
	default:
		return nil, fmt.Errorf("ldlf: phase %d is unknown", t.phase)
	}
	return r, nil
}

func (t *trainer) extremesRound(r *round.Round) {
	from, to := t.chunk()
	t.columns = [2]float64{float64(from), float64(to)}
	t.vars[0] = round.Var{ID: varColumns, Version: uint64(from), Data: num.Bytes64(t.columns[:])}
	r.Op, r.Shape.F64, r.Vars = opExtremes, t.shards*(1+2*(to-from)), t.vars[:1]
}

// chunk returns the columns [from, to) of a min-max round: as many as keep its
// partials bounded.
func (t *trainer) chunk() (from, to int) {
	from = int(t.column)
	return from, min(t.size.features, from+max(1, slotLimit/(2*t.shards)))
}

func (t *trainer) stepRound(r *round.Round) {
	r.Op, r.Units = opStep, algorithms.BatchUnits(t.cfg.BatchSize, t.shards)
	r.Steps = [2]uint64{t.step, t.step + 1}
	r.Vars = t.parameters()
	r.Shape = t.f.gradientShape()
	r.Shape.F64 += gradientAt
}

func (t *trainer) leavesRound(r *round.Round) {
	r.Op, r.Units = opLeaves, algorithms.BatchUnits(t.cfg.BatchSize, t.shards)
	r.Steps = t.window()
	r.Vars = t.parameters()
	r.Shape.F64 = leafAt + t.size.q()
	if !t.tellsLoss() {
		r.Shape.F64++ // by which kernels know
	}
	r.DerivedVersion = t.leafUpdates + 1 // of which Θ and the window are functions
}

// tellsLoss reports whether an iteration of Eq. 12 computes the K-L: the last one of an
// update, and the first one of all, so that there is a loss to show.
func (t *trainer) tellsLoss() bool {
	return t.samples == 0 || t.iteration+1 == uint64(t.cfg.LeafIterations)
}

// validationRound evaluates the present state, and beside it the reference where the
// difference has to be judged by its standard error.
func (t *trainer) validationRound(r *round.Round) {
	r.Op, r.Shape.F64, r.Roles, r.Vars = opValidate, 2, dataset.Validation, t.parameters()
	if !t.compares() {
		return
	}
	n := len(r.Vars)
	t.vars[n] = round.Var{ID: varReferenceTheta, Version: t.reference.thetaVersion, Data: num.Bytes32(t.reference.theta)}
	t.vars[n+1] = round.Var{ID: varReferenceQ, Version: t.reference.qVersion, Data: num.Bytes32(t.reference.q)}
	r.Op, r.Shape.F64, r.Vars = opCompare, 4, t.vars[:n+2]
}

// compares reports whether a validation is held against the reference.
func (t *trainer) compares() bool { return t.reference.any }

// window returns the mini-batches of the leaf update at the present step: the last
// leaf_batches, or, for an update that begins the job, the first ones to come.
func (t *trainer) window() [2]uint64 {
	n := uint64(t.cfg.LeafBatches)
	to := max(t.step, n)
	return [2]uint64{to - n, to}
}

// parameters lists Θ, q and the scaling.
func (t *trainer) parameters() []round.Var {
	t.vars[0] = round.Var{ID: varTheta, Version: t.thetaVersion, Data: num.Bytes32(t.theta)}
	t.vars[1] = round.Var{ID: varQ, Version: t.qVersion, Data: num.Bytes32(t.q)}
	if t.input == nil {
		return t.vars[:2]
	}
	t.vars[2] = round.Var{ID: varScaling, Version: 1 + t.passes, Data: num.Bytes64(t.input)}
	return t.vars[:3]
}

// halves returns the shifts and the scales of the scaling.
func (t *trainer) halves() (shift, scale []float64) {
	n := t.size.features
	return t.input[:n], t.input[n:]
}
