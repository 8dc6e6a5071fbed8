package mlpregression

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer is the coordinator's half: a round that computes the target's mean and deviation, then
// a gradient.Descent whose intervals are passes.
type trainer struct {
	*gradient.Descent
	cfg    *Config
	shape  *dataset.Manifest
	rows   uint64     // training rows; 0: the target is not known
	target [2]float64 // the mean and the deviation of the rows' numbers
}

// beginTrainer makes the trainer of a job.
func beginTrainer(j *learner.Job[Config]) (learner.Trainer, error) {
	t := newTrainer(j.Config, j.Seed, j.Manifest)
	return t, j.Config.Initial.Give(t.Function, j.WeightsFile)
}

// fitsWeights returns an error if the weights to begin from are not of the job's network.
func fitsWeights(c *Config, m *dataset.Manifest, file []byte) error {
	return c.Initial.Fits(newFunction(c, 0, m).Layers, file)
}

func newTrainer(c *Config, seed uint64, m *dataset.Manifest) *trainer {
	d := gradient.NewDescent(descentSettings(c, 0), newFunction(c, seed, m), num.NewKey(seed, "mlp-regression/theta"), m)
	return &trainer{Descent: d, cfg: c, shape: m}
}

// Start implements learner.Trainer: the descent starts once the target is known.
func (t *trainer) Start() {}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	if t.rows == 0 {
		return &round.Round{
			Op: opTarget, Kind: "target", Tasks: len(t.shape.Shards), Scope: round.Sharded, Roles: dataset.Train,
			How: round.Sums(targetSums),
		}, nil
	}
	r, err := t.Descent.Next()
	if err == nil && t.Phase == gradient.PhaseStep {
		r.Vars = append(r.Vars, round.Var{ID: varTarget, Version: 1, Data: num.Bytes64(t.target[:])})
	}
	return r, err
}

// Fold implements round.Trainer.
func (t *trainer) Fold(r *round.Result) error {
	var err error
	if t.rows == 0 {
		err = t.foldTarget(r)
	} else {
		err = t.Descent.Fold(r)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	return nil
}

// foldTarget takes the rows and the sums of their numbers, and of the squares, from the scale's
// first number on. A constant target has the deviation 1.
func (t *trainer) foldTarget(r *round.Result) error {
	weights, sum, squares, rows := r.Sum.F64[0], r.Sum.F64[1], r.Sum.F64[2], r.Sum.F64[3]
	switch {
	case weights == 0 && rows > 0:
		return algorithms.ErrNoWeights
	case weights == 0:
		return algorithms.ErrNoRows
	}
	mean := sum / weights
	deviation := math.Sqrt(max(0, squares/weights-float64(mean*mean)))
	if deviation == 0 {
		deviation = 1
	}
	t.rows, t.target = uint64(rows), [2]float64{float64(t.cfg.Scale.Low) + mean, deviation}
	t.plan()
	t.Descent.Start()
	return nil
}

// plan sets what the number of rows decides.
func (t *trainer) plan() { t.Settings = descentSettings(t.cfg, t.rows) }

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	if t.rows == 0 {
		return round.Progress{Loss: -1, Phase: "target"}
	}
	return t.Descent.Progress()
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Uint64(&t.rows)
	l.Check(t.rows <= uint64(t.shape.Rows), "the saved state has %d training samples, but the dataset has %d samples",
		t.rows, t.shape.Rows)
	if t.rows == 0 {
		return
	}
	l.Float64(&t.target[0], &t.target[1])
	l.Check(num.Finite64(t.target[:]) && t.target[1] > 0,
		"the saved state has the mean %v and the standard deviation %v of the samples' numbers, which is not possible",
		t.target[0], t.target[1])
	t.plan()
	t.Descent.State(l)
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	v, err := t.Trained()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return &model{
		features: t.shape.Features, labels: t.shape.Labels, hidden: t.cfg.Hidden, kind: t.cfg.Scaling, target: t.target[:],
		f: t.Function, weights: gradient.Weights{Theta: v[0].Data, Input: t.Fit.Values()},
	}, nil
}
