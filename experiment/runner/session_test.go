package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// worksOf makes the work of datasets that have so many cells of each row. Cells are in the order of folds.
func worksOf(datasets ...[]int) (list []*Work) {
	for d, cells := range datasets {
		p := &experiment.Plan{Manifest: &dataset.Manifest{Rows: 10, Features: 1}}
		p.Dataset.Name = fmt.Sprint("d", d)
		w := &Work{Plan: p, Ended: make(map[int]experiment.Ended)}
		for fold := range slices.Max(cells) {
			for row, n := range cells {
				if fold < n {
					w.Cells = append(w.Cells, experiment.Cell{Row: row, Key: fmt.Sprintf("d%d row %d fold %d", d, row, fold)})
				}
			}
		}
		list = append(list, w)
	}
	return list
}

// takes computes by sleeping for the seconds that a function says. A negative number is a run that fails after so long.
func takes(seconds func(r *run) float64) func(context.Context, *run) (*pipeline.Outcome, error) {
	return func(ctx context.Context, r *run) (*pipeline.Outcome, error) {
		s, o := seconds(r), new(pipeline.Outcome)
		if s < 0 {
			s, o.Error = -s, "it fails"
		}
		select {
		case <-time.After(time.Duration(s * float64(time.Second))):
			return o, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// byRow has the runs of each row take so many seconds.
func byRow(seconds ...float64) func(context.Context, *run) (*pipeline.Outcome, error) {
	return takes(func(r *run) float64 { return seconds[r.cell.Row] })
}

// watch notes what a session says.
type watch struct {
	begun, put, dropped []string
	shown               map[int]Status // by seconds since the beginning
	last                Status
}

// watched returns options that have a session watched.
func watched(lanes int) (*watch, Options) {
	w := &watch{shown: make(map[int]Status)}
	began := time.Now()
	return w, Options{
		Lanes: lanes,
		Begin: func(_ *Work, c *experiment.Cell) { w.begun = append(w.begun, c.Key) },
		Drop:  func(_ *Work, c *experiment.Cell) { w.dropped = append(w.dropped, c.Key) },
		Put: func(_ *Work, c *experiment.Cell, r *experiment.Record) error {
			w.put = append(w.put, c.Key)
			return nil
		},
		Show: func(s Status) {
			w.last = s
			w.shown[int(time.Since(began).Round(time.Millisecond)/time.Second)] = s
		},
	}
}

// TestSession: whatever runs take, each begins once, and at most one is computed in each lane. A run that begins
// is put or dropped, and none is dropped that has no budget.
func TestSession(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			rows, sets := 1+r.IntN(4), make([][]int, 1+r.IntN(3))
			for d := range sets {
				for range rows {
					sets[d] = append(sets[d], r.IntN(5))
				}
			}
			took := make(map[string]float64)
			works, cells := worksOf(sets...), 0
			for _, w := range works {
				cells += len(w.Cells)
				for _, c := range w.Cells {
					if took[c.Key] = r.ExpFloat64() * 3; r.IntN(5) == 0 {
						took[c.Key] = -took[c.Key]
					}
				}
			}
			w, o := watched(1 + r.IntN(4))
			var computing atomic.Int32
			bounded := r.IntN(2) == 0
			if bounded {
				shared := &Budget{Limit: 20 * r.Float64(), Spent: 2}
				o.Budgets = []*Budget{shared, nil, shared, {Limit: 5}}[:rows]
			}
			compute := takes(func(r *run) float64 { return took[r.cell.Key] })
			s := newSession(works, o, func(ctx context.Context, r *run) (*pipeline.Outcome, error) {
				if n := computing.Add(1); int(n) > o.Lanes {
					t.Errorf("seed %d: %d runs in %d lanes", seed, n, o.Lanes)
				}
				defer computing.Add(-1)
				return compute(ctx, r)
			})
			if err := s.run(t.Context()); err != nil {
				t.Error(err)
			}
			ended := slices.Sorted(slices.Values(slices.Concat(w.put, w.dropped)))
			slices.Sort(w.begun)
			if !slices.Equal(w.begun, ended) || len(slices.Compact(ended)) != len(w.begun) || !bounded && (len(w.begun) != cells || len(w.dropped) > 0) {
				t.Errorf("seed %d: of %d runs began %v, were put %v and dropped %v", seed, cells, w.begun, w.put, w.dropped)
			}
			if l := w.last; l.Done+l.Failed != len(w.put) || l.Running != 0 || l.Cells != cells || l.Estimate.Seconds != 0 || !l.Firsts {
				t.Errorf("seed %d: at the end %+v", seed, l)
			}
		})
	}
}

// TestSessionOrder: the first run of each method on each dataset comes before any second run, and runs that ended earlier count.
func TestSessionOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := worksOf([]int{20, 20}, []int{20})
		works[1].Ended[0] = experiment.Ended{Cells: 2, Seconds: 2, Well: 2, WellSeconds: 2}
		w, o := watched(1)
		if err := newSession(works, o, byRow(1, 1)).run(t.Context()); err != nil {
			t.Error(err)
		}
		want := []string{"d0 row 0 fold 0", "d0 row 1 fold 0", "d0 row 0 fold 1", "d0 row 1 fold 1", "d0 row 0 fold 2", "d0 row 1 fold 2", "d1 row 0 fold 0"}
		if !slices.Equal(w.begun[:len(want)], want) {
			t.Errorf("%q", w.begun[:len(want)])
		}
	})
}

// TestSessionShows: what is computed counts with what is left of it, as do runs that ended earlier. The times of runs that failed
// are no ground for an estimate. Nobody waits for the first run of a method that has ended earlier.
func TestSessionShows(t *testing.T) {
	well, failed := experiment.Ended{Cells: 2, Seconds: 20, Well: 2, WellSeconds: 20}, experiment.Ended{Cells: 1, Seconds: 50}
	for _, c := range []struct {
		name    string
		lanes   int
		earlier experiment.Ended
		took    []float64
		left    map[int]float64
		firsts  int // since when the first runs have ended
	}{
		{"one lane", 1, experiment.Ended{}, []float64{10, 10, 10}, map[int]float64{1: 0, 9: 0, 12: 18, 14: 16, 25: 5}, 10},
		{"two lanes", 2, experiment.Ended{}, []float64{10, 10, 10}, map[int]float64{4: 0, 14: 6}, 10},
		{"earlier runs", 1, well, []float64{10, 10, 10}, map[int]float64{1: 29, 12: 18}, 0},
		{"failed runs", 1, failed, []float64{-10, 7, 7}, map[int]float64{1: 0, 12: 0, 19: 5}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				works := worksOf([]int{len(c.took)})
				works[0].Ended[0] = c.earlier
				w, o := watched(c.lanes)
				s := newSession(works, o, takes(func(r *run) float64 { return c.took[r.task] }))
				if err := s.run(t.Context()); err != nil {
					t.Error(err)
				}
				for at, left := range c.left {
					if got := w.shown[at].Estimate.Seconds; got < left-1e-6 || got > left+1e-6 {
						t.Errorf("after %d s, %v s are left, want %v", at, got, left)
					}
				}
				for at, s := range w.shown {
					if s.Firsts != (at >= c.firsts) {
						t.Errorf("after %d s: %+v", at, s)
					}
				}
			})
		})
	}
}

// TestSessionBudget: a run that takes all of its budget is stopped soon. The runs that do not begin do not count in the
// estimate.
func TestSessionBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := watched(1)
		o.Budgets = []*Budget{{Limit: 60, Spent: 15}, nil}
		s, began := newSession(worksOf([]int{3, 2}), o, byRow(1e9, 10)), time.Now()
		if err := s.run(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 65*time.Second || took > 65*time.Second+3*tickEvery {
			t.Errorf("it took %v", took)
		}
		if len(w.dropped) != 1 || len(w.put) != 2 || len(w.begun) != 3 || w.last.Done != 2 || w.last.Cells != 5 {
			t.Errorf("%+v", w)
		}
		if left := w.shown[57].Estimate.Seconds; left < 7.5 || left > 8.5 {
			t.Errorf("%v s are left", left)
		}
	})
}

// TestSlowToStop: no run begins in the place of another one before that has stopped. A result that comes after the end of its budget
// is not put.
func TestSlowToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := watched(1)
		o.Budgets = []*Budget{{Limit: 5}, nil}
		computing := 0
		began := time.Now()
		s := newSession(worksOf([]int{1, 1}), o, func(_ context.Context, r *run) (*pipeline.Outcome, error) {
			if computing++; computing > 1 {
				t.Error("two runs in one lane")
			}
			time.Sleep(10 * time.Second)
			computing--
			return new(pipeline.Outcome), nil
		})
		if err := s.run(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %v", took)
		}
		if !slices.Equal(w.dropped, []string{"d0 row 0 fold 0"}) || !slices.Equal(w.put, []string{"d0 row 1 fold 0"}) {
			t.Errorf("%+v", w)
		}
	})
}

// TestSlowPut: runs wait for a disk that is slower than they are.
func TestSlowPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := watched(2)
		var begun atomic.Int32
		o.Begin = func(*Work, *experiment.Cell) { begun.Add(1) }
		o.Put = func(_ *Work, c *experiment.Cell, _ *experiment.Record) error {
			time.Sleep(10 * time.Second)
			if w.put = append(w.put, c.Key); int(begun.Load())-len(w.put) > 2*o.Lanes {
				t.Errorf("%d runs have begun, and %d are put", begun.Load(), len(w.put))
			}
			return nil
		}
		if err := newSession(worksOf([]int{20}), o, byRow(1)).run(t.Context()); err != nil || len(w.put) != 20 {
			t.Errorf("%d runs are put, error %v", len(w.put), err)
		}
	})
}

// TestSessionEnds: a run without a result, or the end of the context, ends the session. What has ended is put.
func TestSessionEnds(t *testing.T) {
	broken := errors.New("a shard cannot be read")
	for _, c := range []struct {
		name string
		want error
	}{{"error", broken}, {"cancel", context.Canceled}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				w, o := watched(2)
				o.Put = func(_ *Work, c *experiment.Cell, _ *experiment.Record) error {
					time.Sleep(3 * time.Second)
					w.put = append(w.put, c.Key)
					return nil
				}
				compute := byRow(1)
				s := newSession(worksOf([]int{10}), o, func(ctx context.Context, r *run) (*pipeline.Outcome, error) {
					switch {
					case r.task < 2:
						return compute(ctx, r)
					case r.task == 2 && c.want == broken:
						return nil, broken
					case r.task == 2:
						cancel()
					}
					<-ctx.Done()
					return nil, ctx.Err()
				})
				if err := s.run(ctx); !errors.Is(err, c.want) || len(w.put) != 2 || w.last.Running != 0 {
					t.Errorf("error %v, %+v", err, w)
				}
				cancel()
			})
		})
	}
}

// TestInterrupted is the second command of the example in engine/schedule/DESIGN.md: methods x, y and z on two datasets, two folds,
// a budget of 60 s for z, and records of the first five runs.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := worksOf([]int{2, 2, 2}, []int{2, 2, 2})
		for w, cells := range []int{3, 2} {
			for row := range cells {
				took := []float64{10, 10, 35}[row]
				works[w].Ended[row] = experiment.Ended{Cells: 1, Seconds: took, Well: 1, WellSeconds: took}
			}
			works[w].Cells = works[w].Cells[cells:]
		}
		z := &Budget{Limit: 60, Spent: 35}
		w, o := watched(2)
		o.Budgets = []*Budget{nil, nil, z}
		if err := newSession(works, o, byRow(10, 10, 1e9)).run(t.Context()); err != nil {
			t.Error(err)
		}
		slices.Sort(w.put)
		want := []string{"d0 row 0 fold 1", "d0 row 1 fold 1", "d1 row 0 fold 1", "d1 row 1 fold 1"}
		if !slices.Equal(w.dropped, []string{"d1 row 2 fold 0"}) || !slices.Equal(w.put, want) || len(w.begun) != 5 {
			t.Errorf("%+v", w)
		}
	})
}
