package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
)

// TestResumeFromAnyRound: the state after any round, restored elsewhere with
// another number of slots, ends with the same digest; rounds are counted from
// the job's beginning.
func TestResumeFromAnyRound(t *testing.T) {
	var states [][]byte
	c := newCanary(songRounds)
	err := Drive(t.Context(), c, 0, NewLocal(&canaryKernel{}, canaryData(), 2, nil),
		func(rounds uint64, tr round.Trainer) error {
			if rounds != uint64(len(states))+1 {
				t.Errorf("%d rounds after %d observations", rounds, len(states))
			}
			state, err := tr.AppendState(nil)
			states = append(states, state)
			return err
		})
	if err != nil || c.digest() != canaryDigest || len(states) != songRounds {
		t.Fatalf("digest %s after %d rounds, error %v", c.digest(), len(states), err)
	}
	for i, state := range states {
		r := restoredCanary(songRounds, state)
		if got := sing(t, r, &canaryKernel{}, i%3+1); got != canaryDigest {
			t.Errorf("from round %d: digest %s", i+1, got)
		}
	}
}

// TestObserverStopsTheJob, with its own error, after the round it was told of.
func TestObserverStopsTheJob(t *testing.T) {
	stop := errors.New("stop")
	c := newCanary(songRounds)
	err := Drive(t.Context(), c, 0, NewLocal(&canaryKernel{}, canaryData(), 1, nil),
		func(rounds uint64, _ round.Trainer) error {
			if rounds == 5 {
				return stop
			}
			return nil
		})
	if !errors.Is(err, stop) || c.done != 5 {
		t.Errorf("error %v after %d rounds", err, c.done)
	}
}

// unable is a Trainer that has no next round.
type unable struct{ *canary }

func (unable) Next() (*round.Round, error) { return nil, errors.New("no idea") }

// executorFunc is an Executor.
type executorFunc func(ctx context.Context, n uint64, r *round.Round, res *round.Result) error

func (f executorFunc) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	return f(ctx, n, r, res)
}

// TestErrorsNameTheRound that the trainer or the executor failed in.
func TestErrorsNameTheRound(t *testing.T) {
	bad := errors.New("bad luck")
	var asked []uint64
	x := executorFunc(func(_ context.Context, n uint64, _ *round.Round, res *round.Result) error {
		asked = append(asked, n)
		if n == 9 {
			return bad
		}
		*res = round.Result{Sum: new(round.Partial)}
		return nil
	})
	if err := Drive(t.Context(), newCanary(100), 7, x, ignore); !errors.Is(err, bad) ||
		!strings.HasPrefix(err.Error(), "round 9: ") {
		t.Errorf("an executor that fails: error %v", err)
	}
	if len(asked) != 3 || asked[0] != 7 {
		t.Errorf("rounds %v were asked for", asked)
	}
	broken := newCanary(5)
	broken.broken = bad
	if err := Drive(t.Context(), broken, 4, x, ignore); !errors.Is(err, bad) ||
		!strings.HasPrefix(err.Error(), "round 4: ") {
		t.Errorf("a trainer that cannot fold: error %v", err)
	}
	for _, first := range []round.Trainer{broken, unable{newCanary(1)}} {
		if err := Drive(t.Context(), first, 0, x, ignore); err == nil || strings.Contains(err.Error(), "round") {
			t.Errorf("a trainer that fails before the first round has ended: error %v", err)
		}
	}
	if err := Drive(t.Context(), unable{newCanary(1)}, 3, x, ignore); err == nil ||
		!strings.HasPrefix(err.Error(), "round 3: no idea") {
		t.Errorf("a trainer without a next round: error %v", err)
	}
}

// TestResultWithoutSum: the trainer does not see the result of a reduce round without a sum.
func TestResultWithoutSum(t *testing.T) {
	empty := func(*round.Round, *round.Result) {}
	tr := &canary{rounds: 1}
	err := Drive(t.Context(), tr, 0, doing(empty), func(uint64, round.Trainer) error { return nil })
	if err == nil || tr.done > 0 {
		t.Errorf("%d rounds are done, error %v", tr.done, err)
	}
}

// doing is an Executor.
type doing func(r *round.Round, res *round.Result)

func (d doing) Do(_ context.Context, _ uint64, r *round.Round, res *round.Result) error {
	d(r, res)
	return nil
}
