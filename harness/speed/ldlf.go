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
var PaperTraining = Training{Trees: 5, Depth: 7, Outputs: 64, Rate: 1, Momentum: 0.9, Interval: 100, Intervals: 2, Iterations: 20}

// PaperNetwork is the same on a network of one hidden layer.
var PaperNetwork = Training{Trees: 5, Depth: 7, Outputs: 64, Rate: 0.1, Momentum: 0.9, Interval: 100, Intervals: 2, Iterations: 20, Hidden: 256}

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
	distinct := 0.0
	c := Case{
		Name: fmt.Sprintf("%s, batch %d", s.Name, batch), Of: []string{"a step with leaf updates", "a leaf update", "a step without leaf updates"},
		Agreement: lossAgreement,
		Run: func(ctx context.Context) (f Figures, err error) {
			f, distinct, err = t.run(ctx, s, j)
			return f, err
		},
		Work: func() []Work {
			step, leaves := t.stepWork(s, batch), t.leafWork(s, distinct)
			return []Work{step.add(leaves.times(1 / float64(t.Interval))), leaves, step}
		},
	}
	if file != "" {
		job := Job{
			"kind": "ldlf", "data": file, "batch": batch, "standardise": s.standardise(), "seed": 1, "trees": t.Trees, "depth": t.Depth,
			"outputs": t.Outputs, "rate": t.Rate, "momentum": t.Momentum, "set": t.Interval, "sets": t.Intervals, "iterations": t.Iterations,
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
		"leaf_batches": int64(t.Interval), "leaf_iterations": int64(t.Iterations), "steps": int64(t.Interval * (t.Intervals + 1)),
		"validation_fraction": 0.0,
	}
	if t.Hidden > 0 {
		given["features"], given["hidden"], given["dropout"] = network.MLP, strconv.Itoa(t.Hidden), 0.0
	}
	r, err := ldlf.New().Resolve(given, s.Manifest)
	if err != nil {
		return nil, err
	}
	return &round.Job{Algorithm: "ldlf", Numerics: round.Numerics, Seed: 1, Dataset: s.Manifest.Digest(), Params: r.Params}, nil
}

// run trains once, one task at a time, as a job in one process does. distinct are the
// different rows of a leaf update's window.
func (t Training) run(ctx context.Context, s *Set, j *round.Job) (f Figures, distinct float64, err error) {
	trainer, err := ldlf.New().NewTrainer(j, s.Manifest, nil)
	if err != nil {
		return f, 0, err
	}
	k, err := ldlf.New().NewKernel(j, s.Manifest)
	if err != nil {
		return f, 0, err
	}
	w := &phases{Trainer: trainer}
	runtime.GC() // what ran before leaves no garbage to it
	if err := engine.Drive(ctx, w, 0, engine.NewLocal(k, s.Data, 1, nil), nothing); err != nil {
		return f, 0, err
	}
	steps, updates := float64(t.Interval*t.Intervals), float64(t.Intervals)
	if w.steps != int(steps) || w.iterations != t.Intervals*t.Iterations {
		return f, 0, fmt.Errorf("want %[3]v steps and %[4]d iterations, got %[1]d and %[2]d", w.steps, w.iterations, steps, t.Intervals*t.Iterations)
	}
	step, leaves := w.stepping.Seconds(), w.updating.Seconds()
	f.Seconds = []float64{(step + leaves) / steps, leaves / updates, step / steps}
	f.Loss = trainer.Progress().Loss
	return f, w.distinct, nil
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
	distinct           float64 // rows of the last iteration
}

// Next implements round.Trainer.
func (p *phases) Next() (*round.Round, error) {
	p.began = time.Now()
	r, err := p.Trainer.Next()
	if err == nil {
		p.kind = r.Kind
	}
	return r, err
}

// Fold implements round.Trainer.
func (p *phases) Fold(r *round.Result) error {
	before := p.Progress().Samples
	err := p.Trainer.Fold(r)
	spent := time.Since(p.began)
	switch {
	case p.kind == "step":
		p.steps++
		p.stepping += spent
	case p.kind == "leaf update" && p.steps > 0:
		p.iterations++
		p.updating += spent
		p.distinct = float64(p.Progress().Samples - before)
	}
	return err
}

// weights returns the weights that a row of the batch is multiplied by, in the first layer and in the one behind it,
// where there is one; the first takes so many values of the row.
func (t Training) weights(values float64) (first, behind float64) {
	outputs, hidden := float64(t.Outputs), float64(t.Hidden)
	if t.Hidden == 0 {
		return values * outputs, 0
	}
	return values * hidden, hidden * outputs
}

// stepWork is what a gradient step needs: the two products of the feature function, of a second layer three, and the
// two of the trees, sigmoids, walks over the nodes, ratios, and the optimiser, which
// reads gradient, momentum and Θ and writes the last two.
func (t Training) stepWork(s *Set, batch int) Work {
	rows, outputs := float64(batch), float64(t.Outputs)
	values, leaves, labels := s.values()/float64(s.Manifest.Rows), float64(int(1)<<(t.Depth-1)), float64(s.Manifest.Labels)
	first, behind := t.weights(values)
	width, rest := t.weights(float64(s.Manifest.Features + 1))
	trees, theta := float64(t.Trees), width+rest
	products := rows*(4*first+6*behind) + rows*trees*4*leaves*labels
	return Work{
		Products: products,
		F32:      products + rows*(2*outputs+trees*(7*leaves+labels)) + 4*theta,
		F64:      rows * outputs * sigmoidOps,
		Bytes:    5*4*theta + rows*4*(values+labels), Set: 3 * 4 * theta,
	}
}

// leafWork is what a leaf update needs: the routing of its distinct rows, and in each
// iteration g = p·q in float32 and pᵀr in float64, for which p is read once.
func (t Training) leafWork(s *Set, rows float64) Work {
	outputs, trees, iterations := float64(t.Outputs), float64(t.Trees), float64(t.Iterations)
	values, leaves, labels := s.values()/float64(s.Manifest.Rows), float64(int(1)<<(t.Depth-1)), float64(s.Manifest.Labels)
	first, behind := t.weights(values)
	product := 2 * rows * trees * leaves * labels
	p := 4 * rows * trees * leaves
	return Work{
		Products: 2 * iterations * product,
		F32:      iterations*(product+rows*trees*labels) + rows*(2*(first+behind)+2*trees*leaves),
		F64:      iterations*product + rows*outputs*sigmoidOps,
		Bytes:    (iterations + 1) * p, Set: p,
	}
}
