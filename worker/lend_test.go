package worker

import (
	"sync"
	"testing"

	"github.com/coppice-ldl/coppice/worker/batch"
)

// partsFunc is algorithms.Parts as a function.
type partsFunc func(i int)

func (f partsFunc) Part(i int, _ any) { f(i) }

// TestIdleLaneHelps: a lane without a unit computes parts of another's; a part that panics
// is the unit's panic, in whichever lane it was.
func TestIdleLaneHelps(t *testing.T) {
	b := newBench(t, dense(), nil)
	b.step() // the job is set up
	b.jobs.mu.Lock()
	j := b.jobs.machine.Jobs()[40].Local.(*job)
	b.jobs.mu.Unlock()
	pool := newExecutors(batch.Reduce)
	helper := &executor{stepper: stepper{jobs: b.jobs}, pool: pool, number: 1}
	pool.running.Go(helper.run)
	x := &executor{stepper: stepper{jobs: b.jobs}, pool: pool, number: 0, job: j}
	for range 20 {
		var here sync.WaitGroup
		here.Add(2)
		x.Do(2, partsFunc(func(int) {
			here.Done()
			here.Wait()
		}))
	}
	func() {
		defer func() {
			if r := recover(); r != "bad luck" {
				t.Errorf("panic %v", r)
			}
		}()
		var here sync.WaitGroup
		here.Add(2)
		x.Do(2, partsFunc(func(i int) {
			here.Done()
			here.Wait()
			if i == 1 {
				panic("bad luck")
			}
		}))
	}()
	pool.close()
	if len(pool.sharing) > 0 {
		t.Errorf("%d executors still ask for help", len(pool.sharing))
	}
	if n := b.jobs.busy.Load(); n != 0 {
		t.Errorf("%d executors are at work", n)
	}
}
