package runner

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestSessionEndsAnytime: a session may be cancelled at any time, records may be slow to put and fail, runs may be slow to stop
// and have no result. It ends soon, no goroutine is left, and what was put is counted.
func TestSessionEndsAnytime(t *testing.T) {
	broken, full := errors.New("a shard cannot be read"), errors.New("the disk is full")
	for seed := range uint64(600) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			seconds := func(most float64) time.Duration { return time.Duration(r.Float64() * most * float64(time.Second)) }
			works := worksOf([]int{r.IntN(6), 1 + r.IntN(6)}, []int{1 + r.IntN(6), r.IntN(6)})
			cells := len(works[0].Cells) + len(works[1].Cells)
			w, o := watched(1 + r.IntN(3))
			if r.IntN(2) == 0 {
				o.Budgets = []*Budget{{Limit: 8 * r.Float64(), Spent: r.Float64()}, nil}
			}
			puts, slow := make([]time.Duration, cells), seconds(4)
			for i := range puts {
				puts[i] = seconds(slow.Seconds())
			}
			why := make(chan time.Time, 3) // when there was a reason to end
			bad := r.IntN(4 * cells)       // this record cannot be put
			note, noted := o.Put, false
			o.Put = func(of *Work, c *experiment.Cell, has *experiment.Record) error {
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
			took, stops, lacks := make([]time.Duration, cells), make([]time.Duration, cells), r.IntN(4*cells)
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
				if len(w.put)+len(w.dropped) != len(w.begun) || o.Budgets == nil && len(w.begun) != cells {
					t.Errorf("seed %d: %d of %d runs began, %d were put and %d dropped", seed, len(w.begun), cells, len(w.put), len(w.dropped))
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
			if w.last.Done != len(w.put) || w.last.Running != 0 || w.last.Cells != cells {
				t.Errorf("seed %d: at the end %+v, and %d were put", seed, w.last, len(w.put))
			}
		})
	}
}
