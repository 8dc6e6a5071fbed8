package worker

import (
	"sync"
	"testing"
)

// partsFunc is algorithms.Parts as a function.
type partsFunc func(i int)

func (f partsFunc) Part(i int, _ any) { f(i) }

// TestIdleLaneHelps: a lane without a unit computes parts of another's; a part that panics
// is the unit's panic, in whichever lane it was.
func TestIdleLaneHelps(t *testing.T) {
	b := newBench(t, dense(), nil)
	b.step() // the job is set up
	b.mu.Lock()
	j := b.jobs[40]
	l := newLanes(sumLanes, &b.mu)
	b.mu.Unlock()
	helper := &lane{w: b.worker, lanes: l, number: 1}
	var crew sync.WaitGroup
	crew.Go(helper.run)
	x := &lane{w: b.worker, lanes: l, number: 0, job: j}
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
	b.mu.Lock()
	if len(l.lenders) > 0 {
		t.Errorf("%d lanes still ask for help", len(l.lenders))
	}
	l.close()
	b.mu.Unlock()
	crew.Wait()
	if b.busy != 0 {
		t.Errorf("%d lanes are at work", b.busy)
	}
}
