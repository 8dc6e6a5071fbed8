package engine

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// partsFunc is Parts as a function.
type partsFunc func(i int, scratch any)

func (f partsFunc) Part(i int, scratch any) { f(i, scratch) }

// TestShareComputesEachPartOnce, in no more lanes than there are, each with a scratch of
// its own.
func TestShareComputesEachPartOnce(t *testing.T) {
	for lanes := 1; lanes <= 5; lanes++ {
		var l lender
		for i := range lanes {
			l.newLane(i)
		}
		x := l.take()
		for n := range 40 {
			counts := make([]atomic.Int32, n)
			used := make([]atomic.Bool, lanes)
			x.Do(n, partsFunc(func(i int, scratch any) {
				counts[i].Add(1)
				if used[scratch.(int)].Swap(true) {
					t.Error("two parts use a scratch at the same time")
				}
				used[scratch.(int)].Store(false)
			}))
			for i := range counts {
				if got := counts[i].Load(); got != 1 {
					t.Errorf("%d lanes: part %d of %d is computed %d times", lanes, i, n, got)
				}
			}
			if l.Idle() != lanes-1 {
				t.Fatalf("%d lanes are idle afterwards, want %d", l.Idle(), lanes-1)
			}
		}
	}
}

// TestIdleLanesHelp: parts that wait for each other end, since each has a lane.
func TestIdleLanesHelp(t *testing.T) {
	var l lender
	for i := range 3 {
		l.newLane(i)
	}
	x := l.take()
	for range 20 {
		var here sync.WaitGroup
		here.Add(3)
		x.Do(3, partsFunc(func(int, any) {
			here.Done()
			here.Wait()
		}))
	}
	if n := testing.AllocsPerRun(100, func() { x.Do(3, nothing{}) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestOpen: there are parts to begin from Begin on until the last one has begun, or one has panicked.
func TestOpen(t *testing.T) {
	var s Share
	open := func(want bool, when string) {
		t.Helper()
		if s.Open() != want {
			t.Errorf("%s: are there parts to begin? %v", when, s.Open())
		}
	}
	open(false, "before")
	s.Begin(2, partsFunc(func(i int, _ any) { open(i == 0, "in a part") }))
	open(true, "ready")
	s.Work(nil)
	open(false, "all done")
	s.End()
	s.Begin(3, partsFunc(func(int, any) { panic("bad luck") }))
	s.Join()
	s.Help(nil)
	s.Leave()
	open(false, "after a panic")
	func() {
		defer func() { _ = recover() }()
		s.End()
	}()
	open(false, "at the end")
}

// TestNoMoreLanesThanParts: a task of few parts leaves the other lanes idle.
func TestNoMoreLanesThanParts(t *testing.T) {
	var l lender
	for i := range 5 {
		l.newLane(i)
	}
	x := l.take()
	for range 200 {
		x.Do(1, partsFunc(func(int, any) {
			if n := l.Idle(); n != 4 {
				t.Errorf("%d lanes are idle while one computes the only part, want 4", n)
			}
		}))
	}
}

// TestStackOfALentLane: if a part panics in a lane that was lent, its stack is written to the standard error, and
// nothing is if none panics.
func TestStackOfALentLane(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	os.Stderr = file
	written := func() string {
		b, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var l lender
	l.newLane("borrowed")
	l.newLane("own")
	x := l.take()
	twoLanes := func(work func(scratch any)) {
		var here sync.WaitGroup
		here.Add(2)
		x.Do(2, partsFunc(func(_ int, scratch any) {
			here.Done()
			here.Wait()
			work(scratch)
		}))
	}
	twoLanes(func(any) {})
	if got := written(); got != "" {
		t.Errorf("without a panic: %q", got)
	}
	defer func() {
		if r := recover(); r != "bad luck" || !strings.Contains(written(), "panicIfBorrowed") {
			t.Errorf("panic %v, with the stack %q", r, written())
		}
	}()
	twoLanes(panicIfBorrowed)
}

func panicIfBorrowed(scratch any) {
	if scratch == "borrowed" {
		panic("bad luck")
	}
}

type nothing struct{}

func (nothing) Part(int, any) {}

// TestPanicOfAPart is the panic of the task that has it, whichever lane computed it, once
// nobody computes any more; then the lanes go on.
func TestPanicOfAPart(t *testing.T) {
	for bad := range 3 {
		var l lender
		for i := range 3 {
			l.newLane(i)
		}
		x := l.take()
		var here sync.WaitGroup
		here.Add(3)
		func() {
			defer func() {
				if r := recover(); r != "bad luck" {
					t.Errorf("part %d: panic %v", bad, r)
				}
			}()
			x.Do(5, partsFunc(func(i int, _ any) {
				if i >= 3 {
					return
				}
				here.Done()
				here.Wait()
				if i == bad {
					panic("bad luck")
				}
			}))
			t.Errorf("part %d: no panic", bad)
		}()
		if l.Idle() != 2 {
			t.Errorf("part %d: %d lanes are idle afterwards", bad, l.Idle())
		}
		x.Do(4, nothing{})
	}
}
