package engine

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
)

// TestPanicIsAnError of the task that panicked, with its stack, in a round of either kind, on
// one lane and on several: goroutines that nobody guards would end the process.
func TestPanicIsAnError(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		for _, number := range []uint64{0, 2} {
			c, k := newCanary(songRounds), &canaryKernel{fail: panicAtTwo}
			c.done = number
			err := Drive(t.Context(), c, number, NewLocal(k, canaryData(), lanes, nil), ignore)
			if err == nil || !strings.Contains(err.Error(), "task 2: computing the task panicked: bad luck") {
				t.Errorf("%d lanes, round %d: error %v", lanes, number, err)
			}
			if !strings.Contains(PanicStack(err), "panicAtTwo") {
				t.Errorf("%d lanes, round %d: the stack is %q", lanes, number, PanicStack(err))
			}
		}
	}
}

func panicAtTwo(u round.Task) error {
	if u.ID == 2 {
		panic("bad luck")
	}
	return nil
}

// TestGuard leaves errors alone, and gives the panic's error, if it is one, to errors.As.
func TestGuard(t *testing.T) {
	run := func(f func() error) (err error) {
		defer Guard(&err, "a test")
		return f()
	}
	bad := errors.New("bad luck")
	if err := run(func() error { return bad }); err != bad || PanicStack(err) != "" {
		t.Errorf("error %v", err)
	}
	if err := run(func() error { return nil }); err != nil {
		t.Errorf("error %v", err)
	}
	var none []int
	err := run(func() error { none[len(none)]++; return nil })
	var fault runtime.Error
	if !errors.As(err, &fault) || !strings.HasPrefix(err.Error(), "a test panicked: runtime error: index out of range") {
		t.Errorf("error %v", err)
	}
}
