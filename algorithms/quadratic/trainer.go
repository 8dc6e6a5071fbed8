package quadratic

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// trainer asks for one round, the fit.
type trainer struct {
	learner.Base
	cfg              *Config
	manifest         *dataset.Manifest
	features, labels int
	fit              []float64 // as fit.values orders them; nil until it is known
}

// State implements learner.Trainer.
func (t *trainer) State(l *fields.List) {
	l.Known(&t.fit, fitValues(t.features))
	if l.Reading() && t.fit != nil {
		l.Check(num.Finite64(t.fit), "one of its values is not finite")
	}
}

// Next implements round.Trainer.
func (t *trainer) Next() (*round.Round, error) {
	if t.fit != nil {
		return nil, nil
	}
	return &round.Round{Op: opFit, Kind: "fit", Tasks: 1, Scope: round.Whole, How: &round.Gather{}, Roles: dataset.Train},
		nil
}

// Fold implements round.Trainer. No bytes say that there are no training rows.
func (t *trainer) Fold(res *round.Result) error {
	b := res.Gathered[0]
	if len(b) == 0 {
		return algorithms.Nothing(t.manifest)
	}
	if want := 8 * fitValues(t.features); len(b) != want {
		return fmt.Errorf("quadratic: the fit has %d bytes, want %d", len(b), want)
	}
	fit := append([]float64{}, num.Float64s(b)...)
	if !num.Finite64(fit) {
		return fmt.Errorf("quadratic: the fit has a value that is not finite")
	}
	t.fit = fit
	return nil
}

// Progress implements round.Trainer.
func (t *trainer) Progress() round.Progress {
	p := round.Progress{Steps: 1, Loss: -1, Phase: "fit"}
	if t.fit != nil {
		p.Step = 1
	}
	return p
}

// Counters implements algorithms.Trainer.
func (t *trainer) Counters() map[string]uint64 {
	counters := map[string]uint64{"constant_columns": 0, "ridge_fits": 0}
	if t.fit == nil {
		return counters
	}
	f := fitOf(t.fit, t.features)
	counters["constant_columns"] = uint64(f.constantColumns())
	if f.Ridge > 0 {
		counters["ridge_fits"] = 1
	}
	return counters
}

// Model implements algorithms.Trainer.
func (t *trainer) Model() (algorithms.Model, error) {
	if t.fit == nil {
		return nil, fmt.Errorf("quadratic: there is no model yet")
	}
	m := &model{features: t.features, labels: t.labels, fit: fitOf(t.fit, t.features), scale: t.cfg.Scale.Ends(t.labels)}
	if t.cfg.Clip {
		m.clip = 1
	}
	return m, nil
}
