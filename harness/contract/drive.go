package contract

import (
	"bytes"
	"context"
	"maps"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// Sets returns the settings of cases.
func Sets(cases []Case) (sets []param.Values) {
	for _, c := range cases {
		sets = append(sets, c.Set)
	}
	return sets
}

// Test is a testing.TB, or a test of package rapid.
type Test interface {
	Helper()
	Fatal(args ...any)
	Context() context.Context
}

// Job resolves settings into a job; its split also keeps the validation rows that the settings
// ask for.
func Job(t Test, a algorithms.Algorithm, given param.Values, m *dataset.Manifest, split dataset.Split) *round.Job {
	t.Helper()
	r, err := a.Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	split.ValidationFraction, split.ValidationMin = r.ValidationFraction, r.ValidationMin
	return &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: seed, Dataset: m.Digest(), Split: split,
		Params: r.Params, Bounds: m.LabelType.Bounds}
}

// Begin returns the trainer and a kernel of a job.
func Begin(t Test, a algorithms.Algorithm, j *round.Job, m *dataset.Manifest) (algorithms.Trainer, round.Kernel) {
	t.Helper()
	tr, err := a.NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	return tr, k
}

// Train runs a job to its end on so many lanes. If each is not nil, Train calls it with the trainer after every round,
// and goes on with the trainer that it returns.
func Train(t Test, a algorithms.Algorithm, j *round.Job, d *dataset.Data, lanes int,
	each func(algorithms.Trainer) algorithms.Trainer) algorithms.Trainer {
	t.Helper()
	tr, k := Begin(t, a, j, d.Manifest)
	return Follow(t, tr, Lanes(t, k, d, lanes), each)
}

// Follow runs the rounds of a trainer to their end, and returns the last trainer. do computes a round. If each is not
// nil, Follow calls it with the trainer after every round, and goes on with the trainer that it returns.
func Follow[T round.Trainer](t Test, tr T, do func(*round.Round) *round.Result, each func(T) T) T {
	t.Helper()
	for range maxRounds {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			return tr
		}
		if err := tr.Fold(do(r)); err != nil {
			t.Fatal(err)
		}
		if each != nil {
			tr = each(tr)
		}
	}
	t.Fatal(errEndless)
	return tr
}

// Lanes returns a function for Follow that computes rounds by one kernel on so many lanes.
func Lanes(t Test, k round.Kernel, d *dataset.Data, lanes int) func(*round.Round) *round.Result {
	x, n, res := engine.NewLocal(k, d, lanes, subJobs(d)), uint64(0), new(round.Result)
	return func(r *round.Round) *round.Result {
		t.Helper()
		if err := x.Do(t.Context(), n, r, res); err != nil {
			t.Fatal(err)
		}
		n++
		return res
	}
}

// Apart runs a job to its end as so many workers do, and returns the last trainer. Each worker has a kernel of its own,
// and computes other tasks in every round. Workers die and forget everything; leaders do too, some in the middle of a
// round. If see is not nil, Apart calls it with every round.
func Apart(t Test, a algorithms.Algorithm, j *round.Job, d *dataset.Data, workers int,
	see func(*round.Round)) algorithms.Trainer {
	t.Helper()
	tr, first := Begin(t, a, j, d.Manifest)
	kernels := []round.Kernel{first}
	for len(kernels) < workers {
		_, k := Begin(t, a, j, d.Manifest)
		kernels = append(kernels, k)
	}
	n, cut := 0, Cut(t, a, j, d.Manifest)
	return Follow(t, tr, func(r *round.Round) *round.Result {
		t.Helper()
		if see != nil {
			see(r)
		}
		return Compute(t, r, d, func(task int) round.Kernel { return kernels[(task*3+n)%workers] })
	}, func(tr algorithms.Trainer) algorithms.Trainer {
		t.Helper()
		if n++; n%5 == 3 {
			_, kernels[n%workers] = Begin(t, a, j, d.Manifest)
		}
		if n%2 == 0 {
			return tr
		}
		if n%4 == 1 { // the round has begun
			if _, err := tr.Next(); err != nil {
				t.Fatal(err)
			}
		}
		return cut(tr)
	})
}

// Compute computes a round, each task with the kernel of(task), in new memory.
func Compute(t Test, r *round.Round, d *dataset.Data, of func(task int) round.Kernel) *round.Result {
	t.Helper()
	res := new(round.Result)
	if r.Gather() != nil {
		for id := range r.Tasks {
			k := of(id)
			part, err := engine.RunGather(t.Context(), k, r.Task(id), d, r.Vars, subJobs(d), k.NewScratch())
			if err != nil {
				t.Fatal(err)
			}
			res.Gathered = append(res.Gathered, part)
		}
		return res
	}
	var tree engine.Tree
	tree.Reset(r.Tasks, r.Reduce().Shape)
	for id := range r.Tasks {
		p, err := task(r, id, d, of(id), tree.Partial())
		if err == nil {
			err = tree.PutTask(id, p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	res.Sum = tree.Root()
	return res
}

// By returns a function for Compute that knows one kernel.
func By(k round.Kernel) func(task int) round.Kernel { return func(int) round.Kernel { return k } }

// Refused returns the error of the first task of a reduce round whose variables are others.
func Refused(r *round.Round, vars round.Vars, d *dataset.Data, k round.Kernel) error {
	var tree engine.Tree
	tree.Reset(r.Tasks, r.Reduce().Shape)
	changed := *r
	changed.Vars = vars
	_, err := task(&changed, 0, d, k, tree.Partial())
	return err
}

// task computes a task of a reduce round without a cache of derived values.
func task(r *round.Round, id int, d *dataset.Data, k round.Kernel, p *round.Partial) (*round.Partial, error) {
	return p, engine.RunTask(p, k, r.Task(id), d, r.Vars, engine.NewDerivedCache(0), k.NewScratch())
}

// Cut returns a function for Train that goes on with a new trainer, restored from the state of the
// last, after every round.
func Cut(t Test, a algorithms.Algorithm, j *round.Job,
	m *dataset.Manifest) func(algorithms.Trainer) algorithms.Trainer {
	return func(tr algorithms.Trainer) algorithms.Trainer {
		t.Helper()
		state, err := tr.AppendState(nil)
		if err != nil {
			t.Fatal(err)
		}
		next, err := a.NewTrainer(j, m, bytes.Clone(state))
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
}

// Digest returns the digest of a trained model.
func Digest(t Test, a algorithms.Algorithm, tr algorithms.Trainer) string {
	t.Helper()
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return modelfile.Digest(a.Name(), m.Tensors())
}

// CheckRefit trains by run with early stopping and a refit, and then by itself what the refit repeats: without
// validation, by as many iterations as were best. Both train on the same rows, so that their models have the same bits.
// The settings end no search before its last iteration.
func CheckRefit(t testing.TB, a algorithms.Algorithm, set param.Values, run func(param.Values) algorithms.Trainer) {
	t.Helper()
	whole := run(set)
	p := whole.Progress()
	if p.Refit == 0 || p.Refit != p.BestStep || p.Step <= 2*p.BestStep || p.Step != p.Steps {
		t.Fatalf("progress %+v: want a refit by as many iterations as were best, after validations that were worse", p)
	}
	alone := maps.Clone(set)
	alone["validation_fraction"], alone["iterations"] = 0.0, int64(p.BestStep)
	if one, want := Digest(t, a, whole), Digest(t, a, run(alone)); one != want {
		t.Errorf("the model of the refit is %s, want %s, of a job without validation", one, want)
	}
}
