package ldlf

import "github.com/coppice-ldl/coppice/algorithms/fields"

// stateFormat is the version of the fields of a state.
const stateFormat = 3

// State implements learner.Trainer. The layout is in DESIGN.md.
func (t *trainer) State(l *fields.List) {
	l.Byte((*byte)(&t.phase))
	l.Bool(&t.best.any, &t.reference.any)
	l.Uint64(&t.passes, &t.before, &t.step, &t.updates, &t.thetaVersion, &t.qVersion, &t.leafUpdates, &t.iteration, &t.column,
		&t.samples, &t.stale, &t.validatedAt,
		&t.best.step, &t.best.thetaVersion, &t.best.qVersion,
		&t.reference.step, &t.reference.thetaVersion, &t.reference.qVersion)
	l.Float64(&t.loss, &t.validation, &t.best.loss, &t.reference.loss)
	l.Float64s(t.input)
	l.Float32s(t.theta, t.first, t.second, t.q)
	for _, k := range []*kept{&t.best, &t.reference} {
		if k.any {
			l.Check(k.theta != nil, "it keeps a state that the job does not keep")
			l.Float32s(k.theta, k.q)
		}
	}
	t.checkState(l)
}

// checkState refuses a state that no run of the job can be in.
func (t *trainer) checkState(l *fields.List) {
	c := t.cfg
	scaling := t.phase <= phaseExtremes
	l.Check(!(t.phase >= phases ||
		scaling && t.input == nil ||
		t.phase == phaseExtremes && c.Scaling != scalingMinMax ||
		t.phase <= phaseSquares && c.Scaling != scalingStandard ||
		t.phase == phaseValidate && !t.validates() ||
		t.passes > 1 || t.refits() && !(c.Refit && t.best.any) ||
		t.reference.any && !t.best.any), "phase %d does not occur in it", t.phase)
	l.Check(t.validatedAt <= t.before+t.step, "a validation at step %d", t.validatedAt)
	l.Check(!(t.step > t.limit() || t.limit() > uint64(c.Steps) || t.before > uint64(c.Steps) || t.phase == phaseStep && t.ended()),
		"step %d of %d", t.step, t.limit())
	l.Check(t.iteration < uint64(c.LeafIterations), "iteration %d of %d", t.iteration, c.LeafIterations)
	l.Check(!(t.column > uint64(t.size.features) || t.phase == phaseExtremes && t.column == uint64(t.size.features)),
		"column %d of %d", t.column, t.size.features)
}
