package ldlldm

import (
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// mostMeans is the greatest number of rounds of k-means.
const mostMeans = 100

// The stages of the rounds before the fit.
const (
	stageStart uint8 = iota
	stageMeans
	stageGram
	stageDone
	stages
)

// trainer is the leader's half.
type trainer struct {
	*maxent.Trainer
	cfg      *Config
	manifest *dataset.Manifest
	labels   int

	stage    uint8
	from     uint64    // rounds of k-means before the refit, and 1
	moved    uint64    // rounds of k-means, counted from there: the version of centres and matrices
	centres  []float64 // clusters×labels
	matrices []float64 // clusters×labels×labels: M_g

	values [2]round.Var // centres and matrices, as evaluations carry them
}

func newTrainer(j *learner.Job[Config]) *trainer {
	c, labels := j.Config, j.Manifest.Labels
	t := &trainer{
		Trainer: maxent.NewTrainer(&c.Settings, c.Search, c.L1, "clustering", j.Manifest), cfg: c,
		manifest: j.Manifest, labels: labels,
		centres: make([]float64, c.Clusters*labels), matrices: make([]float64, c.Clusters*labels*labels),
	}
	t.Objective.Summed, t.Objective.TermSums = true, 1
	t.Restart = t.cluster
	return t
}

// cluster begins again with the first centres, for a refit.
func (t *trainer) cluster() {
	t.stage = stageStart
	t.moved++
	t.from = t.moved
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	t.values = [2]round.Var{
		{ID: varCentres, Version: t.moved, Data: num.Bytes64(t.centres)},
		{ID: varMatrices, Version: t.moved, Data: num.Bytes64(t.matrices)},
	}
	t.Objective.Values = t.values[:]
	r, err := t.Trainer.Next()
	if err != nil || t.Phase != fullbatch.PhaseOwn {
		return r, err
	}
	switch t.stage {
	case stageStart:
		r.Op, r.How = opStart, &round.Gather{}
	case stageMeans:
		r.Op, r.Vars, r.How = opMeans, t.values[:1], round.Sums(t.cfg.Clusters*(1+t.labels))
	case stageGram:
		r.Op, r.Vars, r.How = opGram, t.values[:1], round.Sums((t.cfg.Clusters+1)*t.labels*t.labels)
	}
	return r, nil
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	switch {
	case t.Phase != fullbatch.PhaseOwn:
		return t.Trainer.Fold(r)
	case t.stage == stageStart:
		return t.started(r.Gathered)
	case t.stage == stageMeans:
		t.move(r.Sum.F64)
	case t.stage == stageGram:
		t.matrices = matrices(r.Sum.F64, t.cfg.Clusters, t.labels, t.cfg.L2, t.cfg.L3)
		t.stage = stageDone
		t.Resume()
	}
	return nil
}

// started makes the drawn rows the first centres: with fewer rows than clusters, the last one's copies
// are clusters without rows.
func (t *trainer) started(collected [][]byte) error {
	var drawn []entry
	for _, b := range collected {
		list, err := parseEntries(b, t.cfg.Clusters, t.labels)
		if err != nil {
			return err
		}
		for _, e := range list {
			drawn = insert(drawn, e, t.cfg.Clusters)
		}
	}
	if len(drawn) == 0 {
		return algorithms.Nothing(t.manifest)
	}
	for g := range t.cfg.Clusters {
		for c, x := range drawn[min(g, len(drawn)-1)].label {
			t.centres[g*t.labels+c] = float64(x)
		}
	}
	t.stage = stageMeans
	return nil
}

// move puts each centre to the mean of its cluster; one without rows stays. K-means ends where no
// centre moves.
func (t *trainer) move(sums []float64) {
	before := slices.Clone(t.centres)
	for g := range t.cfg.Clusters {
		own := sums[g*(1+t.labels):][:1+t.labels]
		if own[0] == 0 {
			continue
		}
		for c, x := range own[1:] {
			t.centres[g*t.labels+c] = x / own[0]
		}
	}
	if t.moved++; t.moved == t.from+mostMeans || slices.Equal(before, t.centres) {
		t.stage = stageGram
	}
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Byte(&t.stage)
	l.Uint64(&t.from, &t.moved)
	l.Float64s(t.centres, t.matrices)
	t.Trainer.State(l)
	l.Check(t.stage < stages && t.from <= t.moved && t.moved-t.from <= mostMeans &&
		(t.stage > stageStart || t.moved == t.from), "the saved state is at stage %d of clustering after %d rounds, which "+
		"is not possible", t.stage, t.moved)
	l.Check(t.Refitting == (t.from > 0) && t.from <= mostMeans+1,
		"the saved state has %d rounds of clustering before the refit, which is not possible", t.from)
	l.Check(t.occurs(), "the saved state is at stage %d of clustering in phase %d, which is not possible",
		t.stage, t.Phase)
}

// occurs reports whether a run of the job can be in the stage.
func (t *trainer) occurs() bool {
	switch t.Phase {
	case fullbatch.PhaseScaling:
		return t.stage == stageStart
	case fullbatch.PhaseOwn:
		return t.stage < stageDone
	}
	return t.stage == stageDone
}
