package dispatch

import (
	"slices"
	"testing"
)

// TestWorkersOf: those that were given units of a job that runs, and are there.
func TestWorkersOf(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.join("w1", 1), l.join("w2", 1)
	l.join("w3", 1)
	if got := l.d.WorkersOf(jobID); got != nil {
		t.Errorf("before the job: %v", got)
	}
	x := l.executor(jobID)
	d := l.do(x, 1, summed(2))
	task1, task2 := w1.first(0), w2.first(0)
	if got := l.d.WorkersOf(jobID); !slices.Equal(got, []string{"w1", "w2"}) {
		t.Errorf("workers %v", got)
	}
	task1.parts()
	task2.parts()
	d.sums()
	l.d.SetDistrusted(map[string]string{"w1": "it lied"})
	if got := l.d.WorkersOf(jobID); !slices.Equal(got, []string{"w2"}) {
		t.Errorf("workers %v", got)
	}
	x.Close()
	if got := l.d.WorkersOf(jobID); got != nil {
		t.Errorf("after the job: %v", got)
	}
}
