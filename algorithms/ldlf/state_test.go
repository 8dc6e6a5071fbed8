package ldlf

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// variants are small jobs that between them go through every phase.
func variants() map[string]*Config {
	standard := smallConfig()
	standard.Scaling, standard.ValidationFraction, standard.ValidationMargin = scaling.Standard, 0.2, 0.5
	minmax := smallConfig()
	minmax.Scaling, minmax.Optimizer, minmax.LearningRate, minmax.LeafFirst = scaling.MinMax, optimizerAdam, 0.02, true
	early := smallConfig()
	early.ValidationFraction, early.Patience, early.LearningRate, early.LeafBatches, early.Steps = 0.2, 1, 40, 2, 60
	plain := smallConfig()
	plain.Bias = false
	refit := smallConfig()
	refit.Scaling, refit.ValidationFraction, refit.Patience, refit.LeafFirst, refit.LeafBatches, refit.Steps =
		scaling.Standard, 0.2, 2, true, 2, 60
	refit.LearningRate, refit.Refit = 20, true
	return map[string]*Config{
		"standard": standard, "minmax": minmax, "early": early, "plain": plain, "refit": refit, "shrink": shrinkConfig(),
		"hidden layers": deepConfig(), "convolutions": imageConfig(),
		"rotate": rotateConfig(), "random tree": randomConfig(),
	}
}

// TestStateCuts cuts a job after every round: a trainer restored from the bytes
// goes on to the same model, whichever rounds were cut.
func TestStateCuts(t *testing.T) {
	p := makeProblem(4, 200, 7, 3, 0.5)
	for name, c := range variants() {
		for _, sparse := range []bool{false, true} {
			want := digest(train(t, c, p, 4, sparse, 1))
			if got := cutEverywhere(t, c, p, sparse); got != want {
				t.Errorf("%s (sparse %v): digest %s with cuts, %s without", name, sparse, got, want)
			}
		}
	}
}

// cutEverywhere runs a job with a new trainer for every round.
func cutEverywhere(t *testing.T, c *Config, p *problem, sparse bool) string {
	j := jobOf(c, 3)
	m, d := p.data(4, sparse, j.Split)
	var tr algorithms.Trainer
	tr, k := start(t, j, m)
	x := engine.NewLocal(k, d, 1, nil)
	var res round.Result
	for n := uint64(0); ; n++ {
		r, err := tr.Next()
		if err != nil {
			t.Fatal(err)
		}
		if r == nil {
			break
		}
		if err := x.Do(context.Background(), n, r, &res); err != nil {
			t.Fatal(err)
		}
		if err := tr.Fold(&res); err != nil {
			t.Fatal(err)
		}
		tr = restored(t, j, m, tr)
	}
	return digest(modelOf(t, tr.(*trainer)))
}

func restored(t *testing.T, j *round.Job, m *dataset.Manifest, tr algorithms.Trainer) algorithms.Trainer {
	t.Helper()
	state, err := tr.AppendState([]byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	state = state[len("before"):]
	again, err := New().NewTrainer(j, m, state)
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(state, second) {
		t.Fatal("a restored trainer writes another state")
	}
	if again.Progress() != tr.Progress() {
		t.Fatalf("progress %+v after the cut, %+v before", again.Progress(), tr.Progress())
	}
	return again
}

// TestNextIsRepeatable: Next only describes the state.
func TestNextIsRepeatable(t *testing.T) {
	p := makeProblem(4, 100, 5, 3, 1)
	c := variants()["standard"]
	m, _ := p.data(4, false, jobOf(c, 3).Split)
	tr, _ := start(t, jobOf(c, 3), m)
	a, _ := tr.Next()
	first, shape := *a, a.Reduce().Shape
	b, _ := tr.Next()
	if first.Op != b.Op || first.Tasks != b.Tasks || shape != b.Reduce().Shape {
		t.Errorf("Next gave %+v, then %+v", first, *b)
	}
}

// TestVersions: the same (ID, Version) never has other bytes within a job.
func TestVersions(t *testing.T) {
	type key struct {
		id      uint16
		version uint64
	}
	p := makeProblem(4, 200, 7, 3, 0.5)
	for name, c := range variants() {
		seen := map[key]string{}
		keeps := map[uint64][2]uint64{}
		j := jobOf(c, 3)
		m, d := p.data(4, false, j.Split)
		tr, k := start(t, j, m)
		drive(t, tr, k, d, 1, func(tr *trainer) {
			r, err := tr.Next()
			if err != nil {
				t.Fatal(err)
			}
			if r == nil {
				return
			}
			for _, v := range r.Vars {
				at := key{v.ID, v.Version}
				if old, ok := seen[at]; ok && old != string(v.Data) {
					t.Fatalf("%s: variable %d has two values of version %d", name, v.ID, v.Version)
				}
				seen[at] = string(v.Data)
			}
			if r.Reduce().DerivedVersion != 0 {
				routed := [2]uint64{tr.Vectors[0].Version, r.Reduce().Steps[0]}
				if old, ok := keeps[r.Reduce().DerivedVersion]; ok && old != routed {
					t.Fatalf("%s: keep %d names two routings", name, r.Reduce().DerivedVersion)
				}
				keeps[r.Reduce().DerivedVersion] = routed
			}
		})
	}
}

// TestRestoreRefuses: states of other jobs, cut short or bent.
func TestRestoreRefuses(t *testing.T) {
	c := variants()["standard"]
	j := jobOf(c, 3)
	m, _ := makeProblem(4, 100, 5, 3, 1).data(4, false, j.Split)
	tr, _ := start(t, j, m)
	state, err := tr.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	const phaseAt = 17 // format, leaf updates and iteration stand before
	changed := func(at int, b byte) []byte {
		bad := bytes.Clone(state)
		bad[at] = b
		return bad
	}
	for name, bad := range map[string][]byte{
		"empty":     {},
		"short":     state[:len(state)-1],
		"long":      append(bytes.Clone(state), 0),
		"format":    append([]byte{9}, state[1:]...),
		"iteration": changed(9, 200),
		"phase":     changed(phaseAt, byte(gradient.PhaseChoice+1)),
		"choice":    changed(phaseAt, byte(gradient.PhaseChoice)),
		"too early": changed(phaseAt, byte(gradient.PhaseOwn)),
		"refit":     changed(phaseAt+1, 1),
		"flag":      changed(phaseAt+1, 2),
		"too far":   changed(phaseAt+10, 255),
		"no state":  []byte("coppice"),
	} {
		if _, err := New().NewTrainer(j, m, bad); !errors.Is(err, fields.ErrState) {
			t.Errorf("%s: error %v, want ErrState", name, err)
		}
	}
}

// FuzzRestore: no bytes make a trainer panic, and what it accepts it writes again.
func FuzzRestore(f *testing.F) {
	var jobs []*round.Job
	var manifests []*dataset.Manifest
	for _, name := range []string{"standard", "minmax", "early", "plain", "refit"} {
		c := variants()[name]
		j := jobOf(c, 3)
		m, _ := makeProblem(4, 20, 2, 2, 1).data(2, false, j.Split)
		tr, _ := start(f, j, m)
		state, err := tr.AppendState(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(len(jobs)), state)
		jobs, manifests = append(jobs, j), append(manifests, m)
	}
	f.Fuzz(func(t *testing.T, which uint8, state []byte) {
		i := int(which) % len(jobs)
		if state == nil {
			return
		}
		tr, err := New().NewTrainer(jobs[i], manifests[i], state)
		if err != nil {
			return
		}
		if _, err := tr.Next(); err != nil {
			t.Fatalf("a state was accepted that has no next round: %v", err)
		}
		again, err := tr.AppendState(nil)
		if err != nil || !bytes.Equal(again, state) {
			t.Fatalf("an accepted state is written differently (%v)", err)
		}
	})
}
