package worker

import (
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// lane is one goroutine that computes units. It lends its unit the lanes of its kind that
// wait for one (round.Lanes).
type lane struct {
	w      *worker
	lanes  *lanes
	number int
	job    *job // of the unit
	share  engine.Share
}

// Idle implements round.Lanes.
func (x *lane) Idle() int {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	return x.lanes.waiting
}

// Do implements round.Lanes.
func (x *lane) Do(n int, p round.Parts) {
	x.share.Begin(n, p)
	x.w.mu.Lock()
	x.lanes.offer(x, n-1)
	x.w.mu.Unlock()
	defer x.share.End()
	defer x.withdraw()
	x.share.Work(x.w.scratch(x.job, x.number))
}

func (x *lane) withdraw() {
	x.w.mu.Lock()
	defer x.w.mu.Unlock()
	x.lanes.withdraw(x)
}

// lend computes parts of another lane's unit, which x has joined. Memory in which a part
// panicked may be in any state; the unit fails by it.
func (x *lane) lend(other *lane) {
	began, j := time.Now(), other.job
	if stack := other.share.Help(x.w.scratch(j, x.number)); stack != nil {
		x.w.log.Error("a part of a task panicked", "job", j.id, "stack", string(stack))
		j.scratch[x.number] = nil
	}
	x.w.mu.Lock()
	x.w.busy--
	j.used[x.lanes.kind] += time.Since(began)
	x.w.mu.Unlock()
	other.share.Leave()
}
