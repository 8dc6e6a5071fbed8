package round

import "io"

// Trainer is the deterministic half of an algorithm. It has no clock, goroutine,
// I/O, map iteration or global randomness. Next and Fold alternate; AppendState
// may be called between Fold and Next only.
type Trainer interface {
	// Next returns the next round; it and what it points to stay valid and
	// unchanged until Fold. A Round with Done set ends the job.
	Next() (*Round, error)
	// Fold takes the result of the round that Next returned.
	Fold(*Result) error
	// AppendState appends the state to dst: NewTrainer with it continues to the
	// same bits.
	AppendState(dst []byte) ([]byte, error)
	// Progress tells how far the job is.
	Progress() Progress
}

// StateWriter is implemented by Trainers that write their state, the bytes that AppendState appends,
// without memory for all of it. WriteState may be called when AppendState may.
type StateWriter interface {
	WriteState(w io.Writer) error
}

// ResultTaker is implemented by Trainers that keep results of a gather round before all are
// there: the state has them then, and the round that Next describes after a restart says so
// (Round.Has).
type ResultTaker interface {
	// TakeResult takes the result of a task, between Next and Fold; AppendState may follow. The
	// round that Next returned stays as it is, and Fold takes the result again.
	TakeResult(unit int, part []byte) error
}

// TaskReporter is implemented by Trainers whose rounds are collected: it gives the progress
// of a round whose tasks are not all done.
type TaskReporter interface {
	// ResultProgress returns what a task with these result bytes adds to Progress. It
	// changes nothing and may be called concurrently between Next and Fold.
	ResultProgress(part []byte) (Progress, error)
	// RoundProgress returns the job's Progress from that of the round's tasks, of which
	// tasks lists each.
	RoundProgress(units []TaskProgress) Progress
}

// TaskCounter is implemented by UnitReporters whose rounds may have very many tasks, and whose progress needs of
// them their number alone.
type TaskCounter interface {
	// HasFailed reports whether a task that has ended so failed.
	HasFailed(p Progress) bool
	// CountedProgress is RoundProgress of tasks that are counted so.
	CountedProgress(n TaskCounts) Progress
}

// TaskCounts are how many tasks of a round have ended, and of these failed or were not run, and how many run.
type TaskCounts struct {
	Tasks, Done, Failed, NotRun, Running int
	Samples                              uint64 // of all tasks together
}

// TaskProgress is how far a task of a gather round is.
type TaskProgress struct {
	Progress      // of the task alone
	Known    bool // Progress is set
	Done     bool // its result has arrived
	NotRun   bool // it is Done without a result: see Result.Load
}
