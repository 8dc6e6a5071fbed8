package schedule

import "time"

// State is the state of a task. DESIGN.md has the transitions.
type State uint8

const (
	Waiting   State = iota // no lease
	Leased                 // one worker computes it, or two
	Storing                // its result is on the way to the leader's disk
	Recording              // its result is on the leader's disk, and the log is told
	Skipping               // the log is told that it is not run
	Done                   // its result is used, or stored
	Skipped                // it is not run
)

// check says why the results of two computers of a task are compared.
type check uint8

const (
	unchecked check = iota
	audited         // it is in the audit's sample
	doubted         // its first result was not finite
)

// task is a task of a round. A round may have a million, and few have an attempt.
type task struct {
	state State
	check check
	*attempt
}

// attempt is what is kept of a task from its first lease until it ends. nil: it has not begun.
type attempt struct {
	// leases are of different workers. The second is set only if the task is checked, or if the first takes too long.
	leases [2]Lease

	copies    uint8     // how often another worker got it because one took too long
	tries     int       // temporary failures
	failing   time.Time // first of them
	avoid     string    // worker of the last of them
	notBefore time.Time // it gets no lease earlier
	verifying bool      // true if the leader decides between two results
}

// leaseOf returns the lease that a worker has of the task, or nil.
func (s *task) leaseOf(worker string) *Lease {
	for i := range 2 {
		if s.attempt != nil && worker != "" && s.leases[i].worker == worker {
			return &s.leases[i]
		}
	}
	return nil
}

// isFree reports whether the task has no lease.
func (s *task) isFree() bool {
	return s.attempt == nil || s.leases[0].worker == "" && s.leases[1].worker == ""
}

// isOpen reports whether a result of the task is needed from a worker.
func (s *task) isOpen() bool { return s.state == Waiting || s.state == Leased }

// A task that fails for a reason that may pass (a full disk, a shard that is not available) is tried by each worker at once,
// and then after pauses that double.
const (
	firstPause = 50 * time.Millisecond
	// LongestPause is the longest wait of a task that failed.
	LongestPause = 5 * time.Second
)

// pauseAfter returns how long a task waits after its n-th failure if there are so many workers.
func pauseAfter(n, workers int) time.Duration {
	if n < workers {
		return 0
	}
	return min(LongestPause, firstPause<<min(n-workers, 20))
}

// isExhausted reports whether a task has failed for so long that its job fails. Time in which no coordinator has a blob that
// the job needs does not count: the job goes on once one has it again.
func (a *attempt) isExhausted(now time.Time, giveUp time.Duration, blobLost bool) bool {
	if now.Sub(a.failing) <= giveUp {
		return false
	}
	if blobLost {
		a.failing = now
	}
	return !blobLost
}
