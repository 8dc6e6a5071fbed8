package speed

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Training is what is trained of LDLF, by Coppice and its peers: the paper's forest, and
// after every so many steps a leaf update over their mini-batches. There is no validation.
type Training struct {
	Trees, Depth, Outputs int
	Rate, Momentum        float64 // of stochastic gradient descent
	Interval              int     // steps from one leaf update to the next
	Intervals             int     // that are measured
	Iterations            int     // of Eq. 12 in a leaf update
	Hidden                int     // tasks of the hidden layer; 0: the feature function is linear
}

// PaperTraining is the training of the tables.
var PaperTraining = Training{Trees: 5, Depth: 7, Outputs: 64, Rate: 1, Momentum: 0.9, Interval: 100, Intervals: 2,
	Iterations: 20}

// PaperNetwork is the same on a network of one hidden layer.
var PaperNetwork = Training{Trees: 5, Depth: 7, Outputs: 64, Rate: 0.1, Momentum: 0.9, Interval: 100, Intervals: 2,
	Iterations: 20, Hidden: 256}

// The peers of LDLF and of the forests, as their scripts call themselves.
const (
	PeerTorch   = "torch"   // PyTorch as a user writes it
	PeerTuned   = "tuned"   // written for speed
	PeerSklearn = "sklearn" // scikit-learn's random forest
)

// lossAgreement is how far a peer's loss may be off Coppice's, as a share: what other
// random starts and mini-batches make of it.
const lossAgreement = 0.15

// standardise reports whether features are scaled: the rule of `preset: auto`.
func (s *Set) standardise() bool {
	m := s.Manifest
	return float64(m.NonZeros) >= 0.2*float64(m.Rows)*float64(m.Features)
}

// Case measures the training on a dataset with mini-batches of so many rows. file is the
// dataset's for peers; empty: there are none.
func (t Training) Case(s *Set, batch int, file string) (Case, error) {
	j, err := t.job(s, batch)
	if err != nil {
		return Case{}, err
	}
	c := Case{
		Name: fmt.Sprintf("%s, batch %d", s.Name, batch), Of: []string{"a step with leaf updates", "a leaf update",
			"a step without leaf updates"},
		Agreement: lossAgreement,
		Run:       func(ctx context.Context) (Figures, error) { return t.run(ctx, s, j) },
	}
	if file != "" {
		job := Job{
			"kind": "ldlf", "data": file, "batch": batch, "standardise": s.standardise(), "seed": 1, "trees": t.Trees,
			"depth":   t.Depth,
			"outputs": t.Outputs, "rate": t.Rate, "momentum": t.Momentum, "set": t.Interval, "sets": t.Intervals,
			"iterations": t.Iterations,
		}
		c.Jobs = map[string]Job{PeerTorch: job, PeerTuned: job}
		if t.Hidden > 0 {
			job["hidden"] = t.Hidden
			c.Jobs = map[string]Job{PeerTorch: job}
		}
	}
	return c, nil
}

// job resolves the training: the steps before the first leaf update have no gradient, and
// only fill its window.
func (t Training) job(s *Set, batch int) (*round.Job, error) {
	scaling := "none"
	if s.standardise() {
		scaling = "standard"
	}
	given := param.Values{
		"preset": "paper", "trees": int64(t.Trees), "depth": int64(t.Depth), "outputs": int64(t.Outputs), "scaling": scaling,
		"batch_size": int64(batch), "learning_rate": t.Rate, "learning_rate_step": int64(0), "momentum": t.Momentum,
		"leaf_batches": int64(t.Interval), "leaf_iterations": int64(t.Iterations),
		"steps":               int64(t.Interval * (t.Intervals + 1)),
		"validation_fraction": 0.0,
	}
	if t.Hidden > 0 {
		given["features"], given["hidden"], given["dropout"] = network.MLP, strconv.Itoa(t.Hidden), 0.0
	}
	r, err := ldlf.New().Resolve(given, s.Manifest)
	if err != nil {
		return nil, err
	}
	return &round.Job{Algorithm: "ldlf", Numerics: round.Numerics, Seed: 1, Dataset: s.Manifest.Digest(),
		Params: r.Params}, nil
}

// run trains once, one task at a time, as a job in one process does.
func (t Training) run(ctx context.Context, s *Set, j *round.Job) (f Figures, err error) {
	trainer, err := ldlf.New().NewTrainer(j, s.Manifest, nil)
	if err != nil {
		return f, err
	}
	k, err := ldlf.New().NewKernel(j, s.Manifest)
	if err != nil {
		return f, err
	}
	w := &phases{Trainer: trainer}
	runtime.GC() // what ran before leaves no garbage to it
	if err := engine.Drive(ctx, w, 0, engine.NewLocal(k, s.Data, 1, nil), nothing); err != nil {
		return f, err
	}
	steps, updates := float64(t.Interval*t.Intervals), float64(t.Intervals)
	if w.steps != int(steps) || w.iterations != t.Intervals*t.Iterations {
		return f, fmt.Errorf("want %[3]v steps and %[4]d iterations, got %[1]d and %[2]d", w.steps, w.iterations, steps,
			t.Intervals*t.Iterations)
	}
	step, leaves := w.stepping.Seconds(), w.updating.Seconds()
	f.Seconds = []float64{(step + leaves) / steps, leaves / updates, step / steps}
	f.Loss = trainer.Progress().Loss
	return f, nil
}

func nothing(uint64, round.Trainer) error { return nil }

// phases is a trainer that adds up the time from Next to Fold by what the round was, from
// the first gradient step on.
type phases struct {
	round.Trainer
	kind  string
	began time.Time

	steps, iterations  int
	stepping, updating time.Duration
}

// Next implements round.Trainer.
func (p *phases) Next() (*round.Round, error) {
	p.began = time.Now()
	r, err := p.Trainer.Next()
	if err == nil && r != nil {
		p.kind = r.Kind
	}
	return r, err
}

// Fold implements round.Trainer.
func (p *phases) Fold(r *round.Result) error {
	err := p.Trainer.Fold(r)
	spent := time.Since(p.began)
	switch {
	case p.kind == "step":
		p.steps++
		p.stepping += spent
	case p.kind == "leaf update" && p.steps > 0:
		p.iterations++
		p.updating += spent
	}
	return err
}
