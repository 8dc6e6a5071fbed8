package pipeline_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestRestoreAtEveryRound: the state after any round (of training, of the mean, of
// the evaluation) ends with the same outcome and the same model file.
func TestRestoreAtEveryRound(t *testing.T) {
	testkit.WithoutRace(t)
	for name, w := range map[string]*work{"dense": artificial(t), "sparse": sparse(t), "folds": folds(t),
		"forest": forestOf(t, "structrf"), "linear baseline": withLinear(artificial(t), 100),
		"screening": withScreen(artificial(t))} {
		var states [][]byte
		phases := make(map[string]bool)
		want := w.drive(t, nil, 0, func(state []byte, phase string) {
			states = append(states, state)
			phases[phase] = true
		})
		if name != "folds" && name != "forest" && (!phases["evaluation"] || !phases["training"] || !phases["leaf update"]) {
			t.Errorf("%s: the rounds went through %v only", name, phases)
		}
		if phases["linear baseline"] != (name == "linear baseline") {
			t.Errorf("%s: the rounds went through %v", name, phases)
		}
		for i, state := range states {
			got := w.drive(t, state, uint64(i+1), ignore)
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("%s, from round %d of %d (-want +got):\n%s", name, i+1, len(states), diff)
			}
		}
	}
}

// TestStateIsItsOwn: a state that is restored appends itself again.
func TestStateIsItsOwn(t *testing.T) {
	for _, w := range []*work{artificial(t), folds(t), withLinear(artificial(t), 100), withScreen(artificial(t))} {
		w.drive(t, nil, 0, func(state []byte, _ string) {
			tr, err := pipeline.New(w.job, w.data.Manifest, state)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := tr.AppendState(nil); err != nil || !bytes.Equal(again, state) {
				t.Fatalf("%d bytes of state, then %d, error %v", len(state), len(again), err)
			}
		})
	}
}

// TestDamagedStates are refused.
func TestDamagedStates(t *testing.T) {
	for name, w := range map[string]*work{"single": artificial(t), "folds": folds(t),
		"linear baseline": withLinear(artificial(t), 100)} {
		var last []byte
		w.drive(t, nil, 0, func(state []byte, _ string) { last = state })
		for n := range 300 {
			if _, err := pipeline.New(w.job, w.data.Manifest, last[:min(n, len(last)-1)]); err == nil {
				t.Errorf("%s: the first %d bytes of a state were taken", name, n)
			}
		}
		for what, change := range map[string]func([]byte) []byte{
			"another version": func(b []byte) []byte { b[0]++; return b },
			"another phase":   func(b []byte) []byte { b[1]--; return b },
			"no such phase":   func(b []byte) []byte { b[1] = 9; return b },
			"a byte too many": func(b []byte) []byte { return append(b, 0) },
			"no bytes":        func([]byte) []byte { return []byte{} },
		} {
			if _, err := pipeline.New(w.job, w.data.Manifest, change(bytes.Clone(last))); err == nil {
				t.Errorf("%s: a state with %s was taken", name, what)
			} else if what == "another version" && !errors.Is(err, fields.ErrState) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

func TestWhatIsNotDoneHasNoOutcome(t *testing.T) {
	for _, w := range []*work{artificial(t), folds(t)} {
		tr, err := pipeline.New(w.job, w.data.Manifest, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Outcome(); err == nil {
			t.Error("an outcome of a job that has not begun")
		}
	}
}

// TestForeignJobsAreRefused, naming both numerics, or what is known.
func TestForeignJobsAreRefused(t *testing.T) {
	w := artificial(t)
	w.job.Numerics = 77
	if _, err := pipeline.New(w.job, w.data.Manifest, nil); err == nil ||
		!strings.Contains(err.Error(), "arithmetic version 77") || !strings.Contains(err.Error(), "has 1") {
		t.Errorf("another numerics: error %v", err)
	}
	w = artificial(t)
	w.job.Algorithm = "oracle"
	if _, err := pipeline.New(w.job, w.data.Manifest, nil); err == nil || !strings.Contains(err.Error(), "ldlf") {
		t.Errorf("another algorithm: error %v", err)
	}
	if _, err := pipeline.NewKernel(w.job, w.data.Manifest); err == nil {
		t.Error("a kernel of another algorithm")
	}
}

// FuzzRestore: any bytes are a state or an error, never a panic; a state appends
// itself again and can be gone on from.
func FuzzRestore(f *testing.F) {
	single, many := withLinear(artificial(f), 100), folds(f)
	for _, w := range []*work{single, many} {
		var states [][]byte
		w.drive(f, nil, 0, func(state []byte, _ string) { states = append(states, state) })
		for _, i := range []int{0, len(states) / 2, len(states) - 3, len(states) - 2, len(states) - 1} {
			f.Add(w == many, states[max(i, 0)])
		}
	}
	f.Add(true, []byte{1, 0, 0, 0, 0})
	f.Add(true, append([]byte{1, 3, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 40)...))
	f.Fuzz(func(t *testing.T, ofFolds bool, state []byte) {
		w := single
		if ofFolds {
			w = many
		}
		tr, err := pipeline.New(w.job, w.data.Manifest, bytes.Clone(state))
		if err != nil {
			return
		}
		if again, err := tr.AppendState(nil); err != nil || !bytes.Equal(again, state) {
			t.Fatalf("a state of %d bytes appends itself as %d, error %v", len(state), len(again), err)
		}
		tr.Progress()
		r, err := tr.Next()
		if err != nil || r != nil {
			return
		}
		o, err := tr.Outcome()
		if err != nil {
			return
		}
		if _, err := o.Encode(); err != nil && !strings.Contains(err.Error(), "unsupported value") {
			t.Fatal(err)
		}
	})
}
