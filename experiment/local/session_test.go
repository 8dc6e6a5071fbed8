package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// worksOf makes the work of datasets that have so many runs of each method. Runs are in the order of folds.
func worksOf(datasets ...[]int) (list []*work) {
	for d, runs := range datasets {
		p := &experiment.Plan{Manifest: &dataset.Manifest{Rows: 10, Features: 1}}
		p.Dataset.Name = fmt.Sprint("d", d)
		w := &work{planned: p, Ended: make(map[int]experiment.Ended)}
		for fold := range slices.Max(runs) {
			for method, n := range runs {
				if fold < n {
					w.Runs = append(w.Runs, experiment.Run{Method: method, Key: fmt.Sprintf("d%d row %d fold %d", d, method, fold)})
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

// byMethod has the runs of each method take so many seconds.
func byMethod(seconds ...float64) func(context.Context, *run) (*pipeline.Outcome, error) {
	return takes(func(r *run) float64 { return seconds[r.planned.Method] })
}

// watch notes what a session says.
type watch struct {
	begun, put, dropped []string
	shown               map[int]Status // by seconds since the beginning
	last                Status
}

// quiet sets the callbacks and names that a test does not need.
func quiet(o sessionOptions) sessionOptions {
	if o.Methods == nil {
		for i := range 5000 {
			o.Methods = append(o.Methods, strconv.Itoa(i))
		}
	}
	if o.Show == nil {
		o.Show = func(Status) {}
	}
	if o.Begin == nil {
		o.Begin, o.Drop = func(*work, *experiment.Run) {}, func(*work, *experiment.Run) {}
	}
	return o
}

// watched returns options that have a session watched.
func watched(lanes int) (*watch, sessionOptions) {
	w := &watch{shown: make(map[int]Status)}
	began := time.Now()
	return w, quiet(sessionOptions{
		Lanes: lanes,
		Begin: func(_ *work, c *experiment.Run) { w.begun = append(w.begun, c.Key) },
		Drop:  func(_ *work, c *experiment.Run) { w.dropped = append(w.dropped, c.Key) },
		Put: func(_ *work, c *experiment.Run, r *experiment.Record) error {
			w.put = append(w.put, c.Key)
			return nil
		},
		Show: func(s Status) {
			w.last = s
			w.shown[int(time.Since(began).Round(time.Millisecond)/time.Second)] = s
		},
	})
}

// TestSession: whatever runs take, each begins once, and at most one is computed in each lane. A run that begins
// is put or dropped, and none is dropped that has no budget.
func TestSession(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			methods, sets := 1+r.IntN(4), make([][]int, 1+r.IntN(3))
			for d := range sets {
				for range methods {
					sets[d] = append(sets[d], r.IntN(5))
				}
			}
			took := make(map[string]float64)
			works, runs := worksOf(sets...), 0
			for _, w := range works {
				runs += len(w.Runs)
				for _, c := range w.Runs {
					if took[c.Key] = r.ExpFloat64() * 3; r.IntN(5) == 0 {
						took[c.Key] = -took[c.Key]
					}
				}
			}
			w, o := watched(1 + r.IntN(4))
			var computing atomic.Int32
			bounded := r.IntN(2) == 0
			if bounded {
				shared := &budget{Limit: 20 * r.Float64(), Spent: 2}
				o.Budgets = []*budget{shared, nil, shared, {Limit: 5}}[:methods]
			}
			compute := takes(func(r *run) float64 { return took[r.planned.Key] })
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
			if !slices.Equal(w.begun, ended) || len(slices.Compact(ended)) != len(w.begun) || !bounded &&
				(len(w.begun) != runs || len(w.dropped) > 0) {
				t.Errorf("seed %d: of %d runs began %v, were put %v and dropped %v", seed, runs, w.begun, w.put, w.dropped)
			}
			if l := w.last; l.Done+l.Failed != len(w.put) || l.Running != 0 || l.Runs != runs || l.Estimate.Seconds != 0 ||
				!l.Firsts {
				t.Errorf("seed %d: at the end %+v", seed, l)
			}
		})
	}
}

// TestSessionOrder: the first run of each method on each dataset comes before any second run, and runs that ended
// earlier count.
func TestSessionOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := worksOf([]int{20, 20}, []int{20})
		works[1].Ended[0] = experiment.Ended{Runs: 2, Seconds: 2, Well: 2, WellSeconds: 2}
		w, o := watched(1)
		if err := newSession(works, o, byMethod(1, 1)).run(t.Context()); err != nil {
			t.Error(err)
		}
		want := []string{"d0 row 0 fold 0", "d0 row 1 fold 0", "d0 row 0 fold 1", "d0 row 1 fold 1", "d0 row 0 fold 2",
			"d0 row 1 fold 2", "d1 row 0 fold 0"}
		if !slices.Equal(w.begun[:len(want)], want) {
			t.Errorf("%q", w.begun[:len(want)])
		}
	})
}

// TestSessionShows: what is computed counts with what is left of it, as do runs that ended earlier. The times of runs
// that failed are no ground for an estimate. Nobody waits for the first run of a method that has ended earlier.
func TestSessionShows(t *testing.T) {
	well, failed := experiment.Ended{Runs: 2, Seconds: 20, Well: 2, WellSeconds: 20}, experiment.Ended{Runs: 1,
		Seconds: 50}
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
		o.Budgets = []*budget{{Limit: 60, Spent: 15}, nil}
		s, began := newSession(worksOf([]int{3, 2}), o, byMethod(1e9, 10)), time.Now()
		if err := s.run(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 65*time.Second || took > 65*time.Second+3*tickEvery {
			t.Errorf("it took %v", took)
		}
		if len(w.dropped) != 1 || len(w.put) != 2 || len(w.begun) != 3 || w.last.Done != 2 || w.last.Runs != 5 {
			t.Errorf("%+v", w)
		}
		if left := w.shown[57].Estimate.Seconds; left < 7.5 || left > 8.5 {
			t.Errorf("%v s are left", left)
		}
	})
}

// TestSlowToStop: no run begins in the place of another one before that has stopped. A result that comes after the end
// of its budget is not put.
func TestSlowToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := watched(1)
		o.Budgets = []*budget{{Limit: 5}, nil}
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

// TestBudgetEndsBeforeItsRun: the budget of a run that waits for a lane may be over before the run begins. Nobody waits
// for its end.
func TestBudgetEndsBeforeItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := watched(1)
		o.Budgets = []*budget{{Limit: 5}, {Limit: 2}}
		s := newSession(worksOf([]int{1, 1}), o, func(context.Context, *run) (*pipeline.Outcome, error) {
			time.Sleep(10 * time.Second)
			return new(pipeline.Outcome), nil
		})
		if err := s.run(t.Context()); err != nil {
			t.Error(err)
		}
		if !slices.Equal(w.begun, []string{"d0 row 0 fold 0"}) || !slices.Equal(w.dropped, w.begun) || !w.last.Firsts {
			t.Errorf("%+v", w)
		}
	})
}

// TestSlowPut: runs wait for a disk that is slower than they are.
func TestSlowPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, o := watched(2)
		var begun atomic.Int32
		o.Begin = func(*work, *experiment.Run) { begun.Add(1) }
		o.Put = func(_ *work, c *experiment.Run, _ *experiment.Record) error {
			time.Sleep(10 * time.Second)
			if w.put = append(w.put, c.Key); int(begun.Load())-len(w.put) > 2*o.Lanes {
				t.Errorf("%d runs have begun, and %d are put", begun.Load(), len(w.put))
			}
			return nil
		}
		if err := newSession(worksOf([]int{20}), o, byMethod(1)).run(t.Context()); err != nil || len(w.put) != 20 {
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
				o.Put = func(_ *work, c *experiment.Run, _ *experiment.Record) error {
					time.Sleep(3 * time.Second)
					w.put = append(w.put, c.Key)
					return nil
				}
				compute := byMethod(1)
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

// TestInterrupted is the second command of the example in engine/schedule/DESIGN.md: methods x, y and z on two
// datasets, two folds, a budget of 60 s for z, and records of the first five runs.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works := worksOf([]int{2, 2, 2}, []int{2, 2, 2})
		for w, runs := range []int{3, 2} {
			for method := range runs {
				took := []float64{10, 10, 35}[method]
				works[w].Ended[method] = experiment.Ended{Runs: 1, Seconds: took, Well: 1, WellSeconds: took}
			}
			works[w].Runs = works[w].Runs[runs:]
		}
		z := &budget{Limit: 60, Spent: 35}
		w, o := watched(2)
		o.Budgets = []*budget{nil, nil, z}
		if err := newSession(works, o, byMethod(10, 10, 1e9)).run(t.Context()); err != nil {
			t.Error(err)
		}
		slices.Sort(w.put)
		want := []string{"d0 row 0 fold 1", "d0 row 1 fold 1", "d1 row 0 fold 1", "d1 row 1 fold 1"}
		if !slices.Equal(w.dropped, []string{"d1 row 2 fold 0"}) || !slices.Equal(w.put, want) || len(w.begun) != 5 {
			t.Errorf("%+v", w)
		}
	})
}

// BenchmarkSession measures what a run costs apart from computing it, in an experiment with many methods.
func BenchmarkSession(b *testing.B) {
	methods := slices.Repeat([]int{20}, 250)
	budgets := make([]*budget, len(methods))
	for i, shared := 0, []*budget{{Limit: 1e9}, {Limit: 1e9}, {Limit: 1e9}}; i < len(budgets); i++ {
		budgets[i] = shared[i%len(shared)]
	}
	for name, budgets := range map[string][]*budget{"no budget": nil, "budgets": budgets} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, o := watched(4)
				o.Budgets = budgets
				s := newSession(worksOf(methods, methods, methods, methods), o,
					func(context.Context, *run) (*pipeline.Outcome, error) {
						return new(pipeline.Outcome), nil
					})
				if err := s.run(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*20_000), "µs/run")
		})
	}
}

// TestLine: the line says how many runs have ended and failed, and when the rest will have.
func TestLine(t *testing.T) {
	s := Status{Done: 2, Failed: 1, Running: 2, Runs: 4000, Estimate: state.Estimate{Seconds: 90,
		From: "from 3 of 4,000 runs"}}
	if got, want := s.Line(), "  0 %  3 of 4,000 runs, 2 running, 1 failed  ETA 1m30s, from 3 of 4,000 runs"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// sixRuns is work of six runs that take milliseconds.
func sixRuns(t *testing.T) *work {
	t.Helper()
	s, err := experiment.Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [aa-knn]\nfolds: 6"))
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Artificial(t, 60)
	w := &work{Data: &local.Data{Manifest: m, Shards: shards}}
	if w.planned, err = experiment.NewPlan(t.Context(), s, &s.Datasets[0], &experiment.Data{Manifest: m}); err != nil {
		t.Fatal(err)
	}
	if w.Runs, err = w.planned.Runs(); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPutBesideComputing: while a record is written others compute; a run counts once its record
// is written, in the order in which records are.
func TestPutBesideComputing(t *testing.T) {
	running, put := make(chan struct{}, 1), 0
	err := runAll(t.Context(), []*work{sixRuns(t)}, quiet(sessionOptions{
		Lanes: 1,
		Put: func(_ *work, _ *experiment.Run, r *experiment.Record) error {
			if put == 0 {
				testkit.Receive(t, "another run to run", running)
			}
			put++
			return nil
		},
		Show: func(s Status) {
			if s.Done > put {
				t.Errorf("%d runs count, %d records are written", s.Done, put)
			}
			if s.Running > 0 && s.Done == 0 {
				select {
				case running <- struct{}{}:
				default:
				}
			}
		},
	}))
	if err != nil || put != 6 {
		t.Errorf("%d records, error %v", put, err)
	}
}

// TestPutFails: the run ends with the error, and nothing is written behind it.
func TestPutFails(t *testing.T) {
	full, put := errors.New("the disk is full"), 0
	err := runAll(t.Context(), []*work{sixRuns(t)},
		quiet(sessionOptions{Lanes: 2, Put: func(*work, *experiment.Run, *experiment.Record) error {
			if put++; put == 2 {
				return full
			}
			return nil
		}}))
	if !errors.Is(err, full) || put != 2 {
		t.Errorf("%d records, error %v", put, err)
	}
}

// TestRunIsCancelled: what ended before is written.
func TestRunIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	put := 0
	err := runAll(ctx, []*work{sixRuns(t)},
		quiet(sessionOptions{Lanes: 1, Put: func(*work, *experiment.Run, *experiment.Record) error {
			put++
			cancel()
			return nil
		}}))
	if !errors.Is(err, context.Canceled) || put < 1 || put > 5 {
		t.Errorf("%d records, error %v", put, err)
	}
}

// TestSessionEndsAnytime: a session may be cancelled at any time, records may be slow to put and fail, runs may be slow
// to stop and have no result. It ends soon, no goroutine is left, and what was put is counted.
func TestSessionEndsAnytime(t *testing.T) {
	broken, full := errors.New("a shard cannot be read"), errors.New("the disk is full")
	for seed := range uint64(600) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			seconds := func(most float64) time.Duration { return time.Duration(r.Float64() * most * float64(time.Second)) }
			works := worksOf([]int{r.IntN(6), 1 + r.IntN(6)}, []int{1 + r.IntN(6), r.IntN(6)})
			runs := len(works[0].Runs) + len(works[1].Runs)
			w, o := watched(1 + r.IntN(3))
			if r.IntN(2) == 0 {
				o.Budgets = []*budget{{Limit: 8 * r.Float64(), Spent: r.Float64()}, nil}
			}
			puts, slow := make([]time.Duration, runs), seconds(4)
			for i := range puts {
				puts[i] = seconds(slow.Seconds())
			}
			why := make(chan time.Time, 3) // when there was a reason to end
			bad := r.IntN(4 * runs)        // this record cannot be put
			note, noted := o.Put, false
			o.Put = func(of *work, c *experiment.Run, has *experiment.Record) error {
				if noted {
					t.Errorf("seed %d: a record is put after an error", seed)
				}
				if time.Sleep(puts[len(w.put)]); len(w.put) == bad {
					noted = true
					why <- time.Now()
					return full
				}
				return note(of, c, has)
			}
			took, stops, lacks := make([]time.Duration, runs), make([]time.Duration, runs), r.IntN(4*runs)
			for i := range took {
				took[i], stops[i] = seconds(5), seconds(2)
			}
			s := newSession(works, o, func(ctx context.Context, r *run) (*pipeline.Outcome, error) {
				select {
				case <-time.After(took[r.task]):
				case <-ctx.Done():
					if time.Sleep(stops[r.task]); r.task%2 == 0 {
						return nil, ctx.Err()
					}
				}
				if r.task == lacks {
					why <- time.Now()
					return nil, broken
				}
				return new(pipeline.Outcome), nil
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			timer := time.AfterFunc(seconds(60), func() { why <- time.Now(); cancel() })
			defer timer.Stop()
			err := s.run(ctx)
			switch {
			case err == nil:
				if len(w.put)+len(w.dropped) != len(w.begun) || o.Budgets == nil && len(w.begun) != runs {
					t.Errorf("seed %d: %d of %d runs began, %d were put and %d dropped", seed, len(w.begun), runs, len(w.put),
						len(w.dropped))
				}
			case !errors.Is(err, context.Canceled) && !errors.Is(err, broken) && !errors.Is(err, full):
				t.Errorf("seed %d: %v", seed, err)
			default:
				if late, most := time.Since(<-why), 2*time.Second+time.Duration(2*o.Lanes+1)*slow; late > most {
					t.Errorf("seed %d: it ended %v after %v", seed, late, err)
				}
			}
			for _, key := range slices.Concat(w.put, w.dropped) {
				if !slices.Contains(w.begun, key) {
					t.Errorf("seed %d: %s did not begin", seed, key)
				}
			}
			if w.last.Done != len(w.put) || w.last.Running != 0 || w.last.Runs != runs {
				t.Errorf("seed %d: at the end %+v, and %d were put", seed, w.last, len(w.put))
			}
		})
	}
}
