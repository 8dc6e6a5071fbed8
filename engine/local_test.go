package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

const songRounds = 20

// canaryDigest is what 20 rounds of the canary end with: the same on every machine.
const canaryDigest = "712c5650ea37db872947edc03f998b7e0d25300019fe907d96c6b85cb7e88c05"

// TestSlotsChangeNoBits: slots divide tasks, never the order of a sum.
func TestSlotsChangeNoBits(t *testing.T) {
	for _, lanes := range []int{0, 1, 2, 5, 64} {
		if got := sing(t, newCanary(songRounds), &canaryKernel{}, lanes); got != canaryDigest {
			t.Errorf("%d lanes: digest %s, want %s", lanes, got, canaryDigest)
		}
	}
}

// TestCanaryShowsAnotherOrder: the canary is worth its name. An executor that adds
// the tasks up from left to right ends with another digest.
func TestCanaryShowsAnotherOrder(t *testing.T) {
	c := newCanary(1)
	if err := Drive(t.Context(), c, 0, &wrongOrder{NewLocal(&canaryKernel{}, canaryData(), 1, nil)}, ignore); err != nil {
		t.Fatal(err)
	}
	if right := sing(t, newCanary(1), &canaryKernel{}, 1); c.digest() == right {
		t.Error("another order of the sum gives the same digest: the tests here test nothing")
	}
}

// wrongOrder sums from left to right.
type wrongOrder struct{ *Local }

func (x *wrongOrder) Do(_ context.Context, _ uint64, r *round.Round, res *round.Result) error {
	x.tree.Reset(r.Tasks, r.Reduce().Shape)
	var sum *round.Partial
	for id := range r.Tasks {
		p := x.tree.Partial()
		if err := RunTask(p, x.kernel, r.Task(id), x.data, r.Vars, x.cache, x.kernel.NewScratch()); err != nil {
			return err
		}
		if sum == nil {
			sum = p
			continue
		}
		sum = x.tree.add(0, sum, p)
	}
	res.Sum = sum
	return nil
}

// TestMissesDeriveTheSame: a cache that keeps nothing changes no bits.
func TestMissesDeriveTheSame(t *testing.T) {
	if got := sing(t, newCanary(songRounds), &canaryKernel{large: true}, 2); got != canaryDigest {
		t.Errorf("digest %s, want %s", got, canaryDigest)
	}
}

// TestErrorsNameTheLowestUnit, whichever slot fails first.
func TestErrorsNameTheLowestTask(t *testing.T) {
	bad := errors.New("bad luck")
	for _, lanes := range []int{1, 2, 5} {
		for _, number := range []uint64{0, 2} { // a summed one, a collected one
			late := make(chan struct{})
			var once sync.Once
			k := &canaryKernel{fail: func(u round.Task) error {
				switch u.ID {
				case 2: // fails last where slots run side by side
					if lanes > 1 {
						<-late
					}
					return bad
				case 3:
					once.Do(func() { close(late) })
					return bad
				}
				return nil
			}}
			c := newCanary(songRounds)
			c.done = number
			err := Drive(t.Context(), c, number, NewLocal(k, canaryData(), lanes, nil), ignore)
			if !errors.Is(err, bad) || !strings.Contains(err.Error(), "task 2:") ||
				strings.Contains(err.Error(), fmt.Sprintf("round %d:", number)) != (number > 0) {
				t.Errorf("%d lanes, round %d: error %v", lanes, number, err)
			}
		}
	}
}

// TestCancellation stops between tasks and returns ctx's error.
func TestCancellation(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		for _, number := range []uint64{0, 2} {
			ctx, cancel := context.WithCancel(t.Context())
			var ran atomic.Int32
			k := &canaryKernel{fail: func(round.Task) error {
				ran.Add(1)
				cancel()
				return nil
			}}
			c := newCanary(songRounds)
			c.done = number
			err := Drive(ctx, c, number, NewLocal(k, canaryData(), lanes, nil), ignore)
			if !errors.Is(err, context.Canceled) || c.done != number {
				t.Errorf("%d lanes, round %d: error %v after round %d", lanes, number, err, c.done)
			}
			if n := int(ran.Load()); n > lanes {
				t.Errorf("%d lanes: %d units were begun after the end", lanes, n-lanes)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Drive(ctx, newCanary(1), 0, nil, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("a job that was over before it began: error %v", err)
	}
}

// TestSumsDoNotKeepResults of the gather round before: they may be large, and training needs the memory.
func TestSumsDoNotKeepResults(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		var res round.Result
		var kept atomic.Int32
		k := &canaryKernel{fail: func(round.Task) error {
			if res.Gathered != nil || res.Digests != nil {
				kept.Add(1)
			}
			return nil
		}}
		c := newCanary(songRounds)
		r, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		res.Gathered, res.Digests = [][]byte{make([]byte, 1)}, []string{"a"}
		if err := NewLocal(k, canaryData(), lanes, nil).Do(t.Context(), 0, r, &res); err != nil {
			t.Fatal(err)
		}
		if kept.Load() > 0 {
			t.Errorf("%d lanes: the results were kept while %d tasks ran", lanes, kept.Load())
		}
	}
}

// laterKernel notes which tasks may leave their rows to be computed later.
type laterKernel struct {
	zeroKernel
	mu    sync.Mutex
	later map[bool]int
}

func (k *laterKernel) Run(_ *round.Partial, u round.Task, _ *dataset.Data, _ round.Vars, _ round.Derived, _ any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.later[u.Later]++
	return nil
}

// TestRowsMayComeLater if there are other tasks to sum them with.
func TestRowsMayComeLater(t *testing.T) {
	for units, want := range map[int]map[bool]int{1: {false: 1}, 2: {true: 2}, 5: {true: 5}} {
		k := &laterKernel{later: make(map[bool]int)}
		r := &round.Round{Tasks: units, Roles: dataset.AllRows, How: &round.Reduce{Shape: canaryShape}}
		if err := NewLocal(k, canaryData(), 2, nil).Do(t.Context(), 0, r, new(round.Result)); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(k.later, want) {
			t.Errorf("%d units: may their rows come later? %v, want %v", units, k.later, want)
		}
	}
}

// TestCollectSkipsWhatTheTrainerHas: tasks in Has do not run, and their parts are
// nil; the others' are in task order.
func TestGatherSkipsWhatTheTrainerHas(t *testing.T) {
	for _, lanes := range []int{1, 5} {
		var mu sync.Mutex
		ran := make(map[int]bool)
		k := &canaryKernel{fail: func(u round.Task) error {
			mu.Lock()
			defer mu.Unlock()
			ran[u.ID] = true
			return nil
		}}
		c := newCanary(3)
		c.done, c.has = 2, []bool{false, true, false, false, true, false, false, true}
		r, _ := c.Next()
		var res round.Result
		if err := NewLocal(k, canaryData(), lanes, nil).Do(t.Context(), 2, r, &res); err != nil {
			t.Fatal(err)
		}
		for u, has := range c.has {
			if ran[u] == has || (res.Gathered[u] == nil) != has {
				t.Errorf("unit %d: has %v, ran %v, part %x", u, has, ran[u], res.Gathered[u])
			}
			if want := gatheredPart(byte(u), c.state[:]); !has && string(res.Gathered[u]) != string(want) {
				t.Errorf("unit %d has the part of another", u)
			}
		}
		if res.Sum != nil {
			t.Error("a collected round has a sum")
		}
	}
}

// summing is a kernel that collects nothing.
type summing struct{ round.Kernel }

// TestCollectRunsChildren through the runner that the executor was given, and a
// kernel that collects nothing is an error.
func TestGatherRunsSubJobs(t *testing.T) {
	jobs := []*round.Job{{Seed: 5}, {Seed: 6}}
	r := &round.Round{Tasks: 2, How: &round.Gather{SubJob: round.Jobs(jobs...)}, Scope: round.Whole}
	child := func(_ context.Context, j *round.Job) ([]byte, error) { return []byte{byte(j.Seed)}, nil }
	var res round.Result
	if err := NewLocal(&canaryKernel{}, canaryData(), 2, child).Do(t.Context(), 0, r, &res); err != nil ||
		res.Gathered[0][0] != 5 || res.Gathered[1][0] != 6 {
		t.Errorf("parts %v, error %v", res.Gathered, err)
	}
	bad := errors.New("bad luck")
	fail := func(context.Context, *round.Job) ([]byte, error) { return nil, bad }
	if err := NewLocal(&canaryKernel{}, canaryData(), 1, fail).Do(t.Context(), 0, r, &res); !errors.Is(err, bad) ||
		!strings.Contains(err.Error(), "task 0") {
		t.Errorf("a child that fails: error %v", err)
	}
	r.Gather().SubJob = nil
	if err := NewLocal(summing{&canaryKernel{}}, canaryData(), 1, nil).Do(t.Context(), 0, r, &res); err == nil ||
		!strings.Contains(err.Error(), "no tasks whose results are gathered") {
		t.Errorf("a kernel that collects nothing: error %v", err)
	}
}

// TestLocalDoesNotAllocatePerRound beyond what starting slots costs.
func TestLocalDoesNotAllocatePerRound(t *testing.T) {
	l := NewLocal(zeroKernel{}, canaryData(), 1, nil)
	r := &round.Round{Tasks: canaryTasks, Roles: dataset.AllRows, How: &round.Reduce{Shape: canaryShape}}
	var res round.Result
	do := func() {
		if err := l.Do(t.Context(), 0, r, &res); err != nil {
			t.Fatal(err)
		}
	}
	do()
	if n := testing.AllocsPerRun(50, do); n > 2 {
		t.Errorf("%v allocations a round of %d units", n, r.Tasks)
	}
}

type zeroKernel struct{}

func (zeroKernel) NewScratch() any { return nil }
func (zeroKernel) Derive(round.Task, *dataset.Data, round.Vars, any) (round.Derived, error) {
	return nil, nil
}
func (zeroKernel) Run(*round.Partial, round.Task, *dataset.Data, round.Vars, round.Derived, any) error {
	return nil
}

// addingKernel adds the number of each task, counted from 1. Task fails returns an error after it has added.
type addingKernel struct {
	zeroKernel
	fails int
}

func (k *addingKernel) Run(dst *round.Partial, u round.Task, _ *dataset.Data, _ round.Vars, _ round.Derived,
	_ any) error {
	dst.F64[0] += float64(u.ID + 1)
	if u.ID == k.fails {
		return errors.New("bad luck")
	}
	return nil
}

// TestExactSums: exact sums are the same on any number of lanes, also after a round that failed halfway.
func TestExactSums(t *testing.T) {
	for _, lanes := range []int{1, 2} {
		k := &addingKernel{fails: -1}
		x := NewLocal(k, canaryData(), lanes, nil)
		for tasks := 1; tasks <= canaryTasks; tasks++ {
			for _, k.fails = range []int{tasks - 1, tasks / 2, -1} {
				r := &round.Round{Tasks: tasks, Scope: round.Sharded, Roles: dataset.Train, How: &round.Reduce{
					Shape: round.Shape{F64: 1}, Exact: true}}
				var res round.Result
				err := x.Do(t.Context(), 0, r, &res)
				if k.fails >= 0 {
					if err == nil {
						t.Errorf("%d lanes, %d tasks: task %d did not fail", lanes, tasks, k.fails)
					}
				} else if want := float64(tasks * (tasks + 1) / 2); err != nil || res.Sum.F64[0] != want {
					t.Errorf("%d lanes, %d tasks: sums %v, error %v, want %v", lanes, tasks, res.Sum, err, want)
				}
			}
		}
	}
}
