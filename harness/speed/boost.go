package speed

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlboost"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// The peers of LDLBoost, as their scripts call themselves.
const (
	PeerXGBoost  = "xgboost"
	PeerLightGBM = "lightgbm"
)

// Boosting is which trees LDLBoost and its peers boost. All begin at the mean label distribution, and use every sample
// and feature for each tree.
type Boosting struct {
	Trees, Depth, Bins int
	Rate, L2           float64
}

// UsualBoosting is the boosting of the tables.
var UsualBoosting = Boosting{Trees: 10, Depth: 6, Bins: 255, Rate: 0.1, L2: 1}

// boostAgreement is how far a peer's loss may be off Coppice's, as a share: LightGBM has a tree for each label.
const boostAgreement = 0.5

// Case measures the boosting on a dataset, in seconds of processor time. file is the dataset's for peers; empty: there
// are none.
func (b Boosting) Case(s *Set, file string) (Case, error) {
	r, err := ldlboost.New().Resolve(param.Values{
		"rounds": int64(b.Trees), "max_depth": int64(b.Depth), "leaves": int64(1) << b.Depth, "leaf_rows": int64(1),
		"bins": int64(b.Bins), "learning_rate": b.Rate, "l2": b.L2, "feature_fraction": 1.0, "validation_fraction": 0.0,
	}, s.Manifest)
	if err != nil {
		return Case{}, err
	}
	j := &round.Job{Algorithm: ldlboost.Name, Numerics: round.Numerics, Seed: 1, Dataset: s.Manifest.Digest(),
		Params: r.Params}
	c := Case{
		Name: s.Name,
		Of: []string{fmt.Sprintf("%d trees", b.Trees), "bins", "a tree", "  scores, derivatives, sums of the root",
			"  sums of later levels", "  search for splits"},
		PeerOf: 3, Agreement: boostAgreement, Cold: true,
		Run: func(ctx context.Context) (Figures, error) { return b.run(ctx, s, j) },
	}
	if file != "" {
		job := Job{"kind": kindBoost, "data": file, "trees": b.Trees, "depth": b.Depth, "bins": b.Bins, "rate": b.Rate,
			"l2": b.L2}
		c.Jobs = map[string]Job{PeerXGBoost: job, PeerLightGBM: job}
	}
	return c, nil
}

// run trains once, one task at a time, as a job in one process does.
func (b Boosting) run(ctx context.Context, s *Set, j *round.Job) (f Figures, err error) {
	runtime.GC() // what ran before leaves no garbage to it
	w := &treeTimes{began: processorTime()}
	trainer, err := ldlboost.New().NewTrainer(j, s.Manifest, nil)
	if err != nil {
		return f, err
	}
	w.Trainer = trainer
	k, err := ldlboost.New().NewKernel(j, s.Manifest)
	if err != nil {
		return f, err
	}
	if err := engine.Drive(ctx, w, 0, engine.NewLocal(k, s.Data, 1, nil), nothing); err != nil {
		return f, err
	}
	if len(w.steps) != b.Trees {
		return f, fmt.Errorf("want %d trees, got %d", b.Trees, len(w.steps))
	}
	m, err := trainer.Model()
	if err != nil {
		return f, err
	}
	f.Loss = s.loss(predict(s, m))
	w.steps[b.Trees-1].Loss = f.Loss
	f.Start, f.Steps, f.Seconds = w.start, w.steps, w.figures()
	return f, nil
}

// treeTimes is a trainer of LDLBoost that adds up the processor time of its rounds.
type treeTimes struct {
	round.Trainer
	began, asked time.Duration
	kind         string
	tree         bool // true if the round is not the first one of its tree

	before, search, later time.Duration
	first                 []time.Duration // of each tree's first round
	start                 float64         // K-L divergence without trees
	steps                 []Step
}

// Next implements round.Trainer. Its own time counts as search.
func (t *treeTimes) Next() (*round.Round, error) {
	began := processorTime()
	r, err := t.Trainer.Next()
	if err == nil && r != nil {
		t.kind = r.Kind
	}
	t.asked = processorTime()
	t.search += t.asked - began
	return r, err
}

// Fold implements round.Trainer.
func (t *treeTimes) Fold(r *round.Result) error {
	now := processorTime()
	computed, trees := now-t.asked, t.Progress().Step
	err := t.Trainer.Fold(r)
	after := processorTime()
	if t.kind != "histogram" {
		t.before += after - t.asked
		return err
	}
	t.search += after - now
	if t.tree {
		t.later += computed
	} else {
		t.first = append(t.first, computed)
		if loss := t.Progress().Loss; len(t.steps) > 0 {
			t.steps[len(t.steps)-1].Loss = loss
		} else {
			t.start = loss
		}
	}
	if t.tree = t.Progress().Step == trees; !t.tree {
		t.steps = append(t.steps, Step{Seconds: (after - t.began).Seconds()})
	}
	return err
}

// figures returns the seconds in the order of Case.Of. The first round of the first tree puts values into bins, too:
// what it takes longer than the other first rounds counts as bins.
func (t *treeTimes) figures() []float64 {
	n, usual := time.Duration(len(t.steps)), time.Duration(0)
	if n == 1 {
		usual = t.first[0]
	}
	for _, d := range t.first[1:] {
		usual += d / (n - 1)
	}
	total := t.steps[n-1].Seconds
	bins := t.before + t.first[0] - usual
	return []float64{total, bins.Seconds(), (total - bins.Seconds()) / float64(n), usual.Seconds(),
		(t.later / n).Seconds(), (t.search / n).Seconds()}
}

// processorTime is the time that processors have spent on this process, which other processes hardly change.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // no system that Coppice runs on refuses it
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
