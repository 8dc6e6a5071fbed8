package schedule

import (
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// Verifier stands in the place of a worker's name for the leader, which computes tasks to verify workers. No worker's name
// has a space.
const Verifier = "the leader"

// Event is something that has happened to a job: a pointer to one of the types below. Step keeps no pointer, so the memory may
// serve the next event.
type Event interface{ isEvent() }

// event is embedded in each type of an Event.
type event struct{}

func (*event) isEvent() {}

// Woken: the workers may have changed, or slots are free.
type Woken struct{ event }

// Tick: some time has passed.
type Tick struct{ event }

// PartialArrived: Worker sent the partial of node (Level, Task) of the reduction tree.
type PartialArrived struct {
	event
	Round  uint64
	Worker string
	Level  int
	Task   int
	Digest digests.Digest // of the partial's numbers; zero: it is not compared
	Took   time.Duration  // of computing
	// Malformed is true if the partial does not fit the round's shape or tree.
	Malformed bool
}

// ResultAnnounced: Worker has the result of a task of a gather round.
type ResultAnnounced struct {
	event
	Round  uint64
	Worker string
	Task   int
	Result Result
}

// ResultStored: the result of Task is on the leader's disk.
type ResultStored struct {
	event
	Round  uint64
	Task   int
	Result Result
}

// ResultRecorded: the log has the result of Task.
type ResultRecorded struct {
	event
	Round  uint64
	Task   int
	Result Result
	Late   bool // true if a RecordingLate event was sent for the result before
}

// RecordingLate: a result that is recorded asynchronously could not be recorded at the first try.
type RecordingLate struct{ event }

// ResultLost: the result of Task could not be stored, or is on the leader's disk no longer.
type ResultLost struct {
	event
	Round uint64
	Task  int
	Err   error
	Late  bool // true if a RecordingLate event was sent for the result before
}

// SkipsRecorded: the log has it that Tasks are not run.
type SkipsRecorded struct {
	event
	Round uint64
	Tasks []uint32
}

// TaskFailed: Worker could not compute Task, for Reason.
type TaskFailed struct {
	event
	Round  uint64
	Worker string
	Task   int
	Reason string
	// Permanent is true if the task would fail everywhere, Unable if it would always fail on this worker.
	Permanent, Unable bool
	NotFinite         bool // true if a number of the task's partial is not finite
	BlobLost          bool // true if no coordinator has a blob that the job needs: it does not fail meanwhile
}

// WorkerLacks: Worker was sent tasks, and lacks the job (Setup) or values (Values).
type WorkerLacks struct {
	event
	Round  uint64
	Worker string
	Setup  bool
	Values []Value
}

// CheckpointArrived: Worker sent the state of its sub-job, Task.
type CheckpointArrived struct {
	event
	Round  uint64
	Worker string
	Task   int
}

// ProgressArrived: Worker says how far its sub-job, Task, is.
type ProgressArrived struct {
	event
	Round  uint64
	Worker string
	Task   int
}

// LeaderComputed: the leader has computed Task, or could not, for Err.
type LeaderComputed struct {
	event
	Round    uint64
	Task     int
	Result   Result
	Err      error
	BlobLost bool // true if no coordinator has a blob that the job needs: it does not fail meanwhile
}

// Value names one version of a value.
type Value struct {
	ID      uint16
	Version uint64
}

// Result is the result of a task as one computer of it has it. Two results are the same if their digests are.
type Result struct {
	// Digest is of the bytes, or of a partial's numbers. It is zero for a partial that is not compared.
	Digest digests.Digest
	Bytes  uint64
	Took   time.Duration // of computing
	// NotFinite says which number of the partial is not finite; empty: all are.
	NotFinite string
}

// same reports whether two results are equal, bit for bit. A result that is not finite equals none.
func (r *Result) same(other *Result) bool {
	return r.NotFinite == "" && other.NotFinite == "" && r.Digest == other.Digest
}

// Known is a result that the log has when a round begins. A zero Digest is a task that is not run.
type Known struct {
	Task   uint32
	Digest digests.Digest
	Took   time.Duration
}
