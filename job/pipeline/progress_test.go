package pipeline_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/enhance"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestSumFolds: a job of folds is never further than its end, whatever its folds say.
func TestSumFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folds := make([]round.TaskProgress, rapid.IntRange(1, 6).Draw(t, "folds"))
		done := 0
		for i := range folds {
			f := &folds[i]
			f.Loss = -1
			if f.Known = rapid.Bool().Draw(t, "known"); f.Known {
				f.Steps = rapid.Uint64Range(0, 1000).Draw(t, "steps")
				f.Step = rapid.Uint64Range(0, f.Steps).Draw(t, "step")
				f.Loss = rapid.Float64Range(-1, 5).Draw(t, "loss")
			}
			if f.Done = rapid.Bool().Draw(t, "done"); f.Done {
				done++
			}
		}
		p := pipeline.SumFolds(folds)
		if p.Step > p.Steps || p.Loss > 5 {
			t.Fatalf("%+v of %+v", p, folds)
		}
		if done == len(folds) && p.Step != p.Steps {
			t.Fatalf("all are done at step %d of %d", p.Step, p.Steps)
		}
	})
	got := pipeline.SumFolds([]round.TaskProgress{
		{Progress: round.Progress{Step: 40, Steps: 40, Samples: 400, Loss: 0.2}, Known: true, Done: true},
		{Progress: round.Progress{Step: 10, Steps: 100, Samples: 100, Loss: 0.6}, Known: true},
		{Progress: round.Progress{Loss: -1}},
	})
	want := round.Progress{Step: 50, Steps: 120, Samples: 500, Loss: 0.4, Phase: "1 of 3 folds done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	early := []round.TaskProgress{{Progress: round.Progress{Step: 10, Steps: 100, MostSteps: 150}, Known: true}, {}}
	if p := pipeline.SumFolds(early); p.MostSteps != 300 {
		t.Errorf("two folds of at most 150 steps take at most %d", p.MostSteps)
	}
	early[1] = round.TaskProgress{Progress: round.Progress{Step: 40, Steps: 40}, Known: true, Done: true}
	if p := pipeline.SumFolds(early); p.MostSteps != 0 || p.Steps != 80 {
		t.Errorf("once a fold has ended, the steps are expected: %+v", p)
	}
}

// rounds drives a job of an algorithm and returns the rounds' kinds with their numbers,
// and the progress after each, and that of the gatherer with all parts at hand.
func rounds(t *testing.T, w *work) (kinds map[string]int, progress []round.Progress) {
	t.Helper()
	m := w.data.Manifest
	d := datatest.Data(t, m, w.data.Shards, w.job.Split, nil)
	tr, err := pipeline.New(w.job, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := pipeline.NewKernel(w.job, m)
	if err != nil {
		t.Fatal(err)
	}
	child := func(_ context.Context, j *round.Job) ([]byte, error) { return w.run(t, j).Encode() }
	kinds = make(map[string]int)
	x := noting{Executor: engine.NewLocal(k, d, 1, child), t: t, kinds: kinds, tr: tr}
	err = engine.Drive(context.Background(), tr, 0, x, func(uint64, round.Trainer) error {
		progress = append(progress, tr.Progress())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds, progress
}

// noting notes the kinds of rounds, and holds what a TaskReporter says of their results
// against the progress once they are folded.
type noting struct {
	engine.Executor
	t     *testing.T
	kinds map[string]int
	tr    pipeline.Finisher
}

func (x noting) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if !round.ValidKind(r.Kind) || r.Kind == "" {
		x.t.Errorf("round %d is of kind %q", n, r.Kind)
	}
	x.kinds[r.Kind]++
	err := x.Executor.Do(ctx, n, r, res)
	if err != nil || r.Gather() == nil {
		return err
	}
	g := x.tr.(round.TaskReporter)
	units := make([]round.TaskProgress, r.Tasks)
	if p := g.RoundProgress(units); p.Step > p.Steps || r.Kind != "prediction" && p.Step != 0 {
		x.t.Errorf("before the round of each %s: %+v", r.Kind, p)
	}
	for u, part := range res.Gathered {
		p, err := g.ResultProgress(part)
		if err != nil {
			x.t.Error(err)
		}
		units[u] = round.TaskProgress{Progress: p, Known: true, Done: true}
	}
	before := g.RoundProgress(units)
	again := &round.Result{Gathered: append([][]byte{}, res.Gathered...)}
	if r.Kind == "prediction" {
		return nil
	}
	if err := x.tr.Fold(again); err != nil { // and once more by Drive
		return err
	}
	if diff := cmp.Diff(x.tr.Progress(), before); diff != "" {
		x.t.Errorf("%s: folded and gathered (-want +got):\n%s", r.Kind, diff)
	}
	return nil
}

// forestWork is a job of a forest.
func forestWork(t *testing.T) *work {
	t.Helper()
	w := artificial(t)
	a, err := registry.Find("structrf")
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := a.Resolve(param.Values{"trees": int64(5)}, w.data.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	w.job.Algorithm, w.job.Params = "structrf", resolved.Params
	w.job.Split.ValidationFraction, w.job.Split.ValidationMin = 0, 0
	return w
}

// TestProgressOfEnhancement: the results of a label enhancement are no trees.
func TestProgressOfEnhancement(t *testing.T) {
	w := forestWork(t)
	w.job.Enhance = &round.Enhance{Method: enhance.LabelPropagation, Normalise: enhance.Softmax, Binarise: 0.5}
	tr, err := pipeline.New(w.job, w.data.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := tr.Next(); err != nil || r.Kind != "label enhancement" {
		t.Fatalf("%+v, %v", r, err)
	}
	g := tr.(round.TaskReporter)
	p, err := g.ResultProgress([]byte{1, 0, 1})
	if err != nil || p.Loss != -1 {
		t.Errorf("a result: %+v, %v", p, err)
	}
	if all := g.RoundProgress([]round.TaskProgress{{Progress: p, Known: true, Done: true}}); all.Step != 0 ||
		all.Phase != "label enhancement" {
		t.Errorf("the round: %+v", all)
	}
}

// TestKindsAndProgress: each round names its kind of tasks, and a round that collects
// is as far, with all parts, as after it was folded.
func TestKindsAndProgress(t *testing.T) {
	forest := forestWork(t)
	for name, c := range map[string]struct {
		w     *work
		kinds []string
		steps uint64
	}{
		"ldlf": {artificial(t), []string{"scaling", "step", "leaf update", "validation", "label mean", "evaluation",
			"prediction"}, 0},
		"structrf": {forest, []string{"tree", "label mean", "evaluation", "prediction"}, 5},
		"folds":    {folds(t), []string{"fold"}, 0},
	} {
		kinds, progress := rounds(t, c.w)
		for _, kind := range c.kinds {
			if kinds[kind] == 0 {
				t.Errorf("%s has no %s: %v", name, kind, kinds)
			}
		}
		if len(kinds) != len(c.kinds) {
			t.Errorf("%s has units of %v, want %v", name, kinds, c.kinds)
		}
		last := progress[len(progress)-1]
		if last.Step == 0 || last.Samples == 0 || last.Step > last.Steps || last.Loss < 0 || c.steps != 0 &&
			last.Step != c.steps {
			t.Errorf("%s ends with %+v", name, last)
		}
	}
}
