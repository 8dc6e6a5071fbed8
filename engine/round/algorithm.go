package round

import (
	"context"
	"io"

	"github.com/coppice-ldl/coppice/dataset"
)

// Trainer is the deterministic half of an algorithm. It has no clock, goroutine,
// I/O, map iteration or global randomness. Next and Fold alternate; AppendState
// may be called between Fold and Next only.
type Trainer interface {
	// Next returns the next round; it and what it points to stay valid and
	// unchanged until Fold. It returns nil if the training is complete.
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
// (Gather.Has).
type ResultTaker interface {
	// TakeResult takes the result of a task, between Next and Fold; AppendState may follow. The
	// round that Next returned stays as it is, and Fold takes the result again.
	TakeResult(task int, part []byte) error
}

// TaskReporter is implemented by Trainers of gather rounds: it gives the progress
// of a round whose tasks are not all done.
type TaskReporter interface {
	// ResultProgress returns what a task with these result bytes adds to Progress. It
	// changes nothing and may be called concurrently between Next and Fold.
	ResultProgress(part []byte) (Progress, error)
	// RoundProgress returns the job's Progress from the progress of each task of the round.
	RoundProgress(tasks []TaskProgress) Progress
}

// TaskCounter is implemented by TaskReporters whose rounds may have very many tasks, and whose progress needs of
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
	Time     TaskTime
}

// TaskTime is when a task was computed, in seconds since the round began here. It is zero if the result was known
// before.
type TaskTime struct {
	Began, Last float64 // when Note was called first and last
	From        uint64  // the Step at Began: earlier steps were computed elsewhere
}

// Note sets how far the task is, so many seconds after the beginning of the round.
func (t *TaskProgress) Note(p Progress, at float64) {
	if !t.Known {
		t.Time = TaskTime{Began: at, From: p.Step}
	}
	t.Progress, t.Known, t.Time.Last = p, true, at
}

// Timed reports whether the task was computed while this process watched.
func (t *TaskProgress) Timed() bool { return t.Time.Last > t.Time.Began }

// Progress is for display only. Losses are K-L divergences in nats.
type Progress struct {
	Step  uint64 `json:"step"`
	Steps uint64 `json:"steps"` // 0 where unknown
	// MostSteps is the greatest possible number of steps, with a refit, if
	// training may end earlier. If it is 0, training takes Steps.
	MostSteps uint64 `json:"most_steps,omitempty"`
	// BestStep is the step of the state with the least validation loss, BestLoss;
	// 0: none yet.
	BestStep uint64  `json:"best_step,omitempty"`
	BestLoss float64 `json:"best_loss,omitempty"`
	// Refit is the number of refit steps among Steps: training on training and
	// validation rows.
	Refit   uint64  `json:"refit_steps,omitempty"`
	Samples uint64  `json:"samples"` // rows processed so far
	Loss    float64 `json:"loss"`    // the last known training loss; negative: none yet
	// Validation is the last validation loss, of the state at step ValidatedAt; 0
	// there: none yet.
	Validation  float64 `json:"validation_loss,omitempty"`
	ValidatedAt uint64  `json:"validation_step,omitempty"`
	Phase       string  `json:"phase"` // "training", "leaf update", ...
}

// Kernel is the half of an algorithm that runs on workers. It is a pure function: the same
// task gives the same bytes on every machine. A kernel whose trainer asks for reduce rounds
// is a ReduceKernel, one whose trainer asks for gather rounds is a GatherKernel; a kernel
// may be both. Tasks may be computed concurrently, each with a scratch of its own.
type Kernel interface {
	// NewScratch makes the working memory of one lane, which computes one task at a time.
	NewScratch() any
}

// ReduceKernel computes the tasks of reduce rounds.
type ReduceKernel interface {
	Kernel
	// Derive computes the task's derived value. The engine may cache the value, and passes
	// it to every Run of that task with the same DerivedVersion. Derive is called only when
	// Reduce.DerivedVersion is not 0. A nil value is not cached: Run then gets nil.
	Derive(u Task, d *dataset.Data, v Vars, scratch any) (Derived, error)
	// Run computes the task into dst. The slices of dst have the lengths of Reduce.Shape.
	// Their elements are 0. If Reduce.Exact is true, they may be the sums of other tasks, to
	// which Run adds. derived is the result of Derive, or nil.
	Run(dst *Partial, u Task, d *dataset.Data, v Vars, derived Derived, scratch any) error
}

// GatherKernel computes the tasks of gather rounds.
type GatherKernel interface {
	Kernel
	// Gather computes the task's result as bytes. When ctx is done, Gather stops and
	// returns the error of ctx.
	Gather(ctx context.Context, u Task, d *dataset.Data, v Vars, scratch any) ([]byte, error)
}

// MemoryReleaser is implemented by Kernels that keep much memory between tasks.
// ReleaseMemory frees the memory that no running task uses. It may be called several times
// after training.
type MemoryReleaser interface{ ReleaseMemory() }

// Demanding is implemented by Kernels whose tasks on the whole dataset may need far more memory
// than the dataset, such as matrices between all rows. Demand returns the most that such a task takes, in
// bytes, and what it takes them for; 0: as much as others. In place of the latter it may say how a job needs no such
// task.
type Demanding interface {
	Demand() (bytes int64, what string)
}

// Derived is a value that Derive makes for a task. It counts its references: Derive returns
// it with one, Retain adds one and Release takes one away. When no reference is left, the
// kernel may use the memory of the value for another one.
type Derived interface {
	Bytes() int // the size that a cache counts for the value
	Retain()
	Release()
}

// Unpooled is embedded by Derived values whose memory is left to the garbage collector: their
// references need no count.
type Unpooled struct{}

// Retain implements Derived.
func (Unpooled) Retain() {}

// Release implements Derived.
func (Unpooled) Release() {}
