package engine

import (
	"os"
	"sync"

	"github.com/coppice-ldl/coppice/engine/round"
)

// lender has the lanes of a Local that are at nothing.
type lender struct {
	mu   sync.Mutex
	idle []*lane
}

// lane is one lane of a Local. It lends the idle ones to its task (round.Lanes).
type lane struct {
	*lender
	scratch any
	own     Share  // of its task
	helps   *Share // of another lane's
	help    func() // helps with it; made once, so that lending takes no memory
}

// newLane adds a lane, which is idle.
func (l *lender) newLane(scratch any) {
	x := &lane{lender: l, scratch: scratch}
	x.help = x.helpOut
	l.give(x)
}

// take takes an idle lane; nil: there is none.
func (l *lender) take() *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.idle)
	if n == 0 {
		return nil
	}
	x := l.idle[n-1]
	l.idle = l.idle[:n-1]
	return x
}

func (l *lender) give(x *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, x)
}

// Idle implements round.Lanes.
func (l *lender) Idle() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.idle)
}

// Do implements round.Lanes.
func (x *lane) Do(n int, p round.Parts) {
	x.own.Begin(n, p)
	defer x.own.End()
	for range n - 1 {
		helper := x.take()
		if helper == nil {
			break
		}
		x.own.Join()
		helper.helps = &x.own
		go helper.help()
	}
	x.own.Work(x.scratch)
}

// helpOut is a lent lane's work. It is idle again before the one that it helped goes on.
func (x *lane) helpOut() {
	s := x.helps
	if stack := s.Help(x.scratch); stack != nil {
		os.Stderr.Write(stack) // the lender panics, and its stack does not have this one
	}
	x.give(x)
	s.Leave()
}
