package schedule

import (
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// Verifier stands in the place of a worker's name for the leader, which computes tasks to verify workers. No worker's name
// has a space.
const Verifier = "the leader"

// EventKind says what has happened.
type EventKind uint8

const (
	// Woken: the workers may have changed, or slots are free.
	Woken EventKind = iota
	// Tick: some time has passed.
	Tick
	// PartialArrived: Worker sent the partial of node (Level, Task) of the reduction tree.
	PartialArrived
	// ResultAnnounced: Worker has the result of a task of a gather round.
	ResultAnnounced
	// ResultStored: the result of Task is on the leader's disk.
	ResultStored
	// ResultRecorded: the log has the result of Task.
	ResultRecorded
	// RecordingLate: a result that is recorded asynchronously could not be recorded at the first try.
	RecordingLate
	// ResultLost: the result of Task could not be stored, or is on the leader's disk no longer.
	ResultLost
	// SkipsRecorded: the log has it that Tasks are not run.
	SkipsRecorded
	// TaskFailed: Worker could not compute Task, for Reason.
	TaskFailed
	// WorkerLacks: Worker was sent tasks, and lacks the job (Setup) or values (Values).
	WorkerLacks
	// CheckpointArrived, ProgressArrived: Worker says how far its sub-job, Task, is.
	CheckpointArrived
	ProgressArrived
	// LeaderComputed: the leader has computed Task, or could not, for Err.
	LeaderComputed
)

// Event is something that has happened to a job. Which fields are set depends on the kind.
type Event struct {
	Kind   EventKind
	Round  uint64
	Worker string
	Task   int
	Tasks  []uint32
	Level  int
	Result Result
	// Took is how long the worker computed for a partial or a result.
	Took time.Duration
	// Malformed is true if a partial does not fit the round's shape or tree.
	Malformed bool
	// Permanent is true if the task would fail everywhere, Unable if it would always fail on this worker.
	Permanent, Unable bool
	// BlobLost is true if no coordinator has a blob that the job needs: it does not fail meanwhile.
	BlobLost bool
	// Late is true if a RecordingLate event was sent for the result before.
	Late   bool
	Reason string
	Err    error
	Setup  bool
	Values []Value
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

// ActionKind says what to do.
type ActionKind uint8

const (
	// SendSetup: send Worker the job.
	SendSetup ActionKind = iota
	// SendValue: send Worker value number Var of the round.
	SendValue
	// SendChunks: send Worker N chunks of value number Var from number Chunk on, or only their names if Known.
	SendChunks
	// SendRun: ask Worker to compute Tasks.
	SendRun
	// SendStop: tell Worker not to compute Task any longer.
	SendStop
	// SendForget: tell Worker to forget the job.
	SendForget
	// SendHold: tell Worker to keep Shards on its disk.
	SendHold

	// UsePartial: put the partial of the event into the reduction tree.
	UsePartial
	// KeepPartial: keep the partial of the event as the one of (Task, Worker): another is compared with it.
	KeepPartial
	// UseKept: put the kept partial of (Task, Worker) into the tree.
	UseKept
	// UseCheckpoint, UseProgress: take what the event says of Task.
	UseCheckpoint
	UseProgress
	// Drop: do not use the message of the event, for Reason, a label of metrics.
	Drop

	// Store: bring Result of Task from Worker to the leader's disk. If Worker is Verifier, the leader has the bytes.
	Store
	// Record: have a quorum sync Result of Task and commit it. Async is true if the round does not wait for it.
	Record
	// RecordSkips: commit that Tasks are not run, after Took of computing each.
	RecordSkips
	// Compute: compute Task on the leader.
	Compute

	// Quarantine: record that Worker's results are wrong, for Reason, before any later action is performed.
	Quarantine
	// Restart: empty the reduction tree and begin the round again. No action follows it.
	Restart
	// WakeOthers: send all other jobs a Woken event; WakeJob: send it to Job.
	WakeOthers
	WakeJob

	// Ended: the one task of Tasks has Result. If Known, Tasks had ended before the round began, with the results that are known.
	// If Skipped, Tasks have no results.
	Ended
	// Retried: Task failed on Worker for Reason, and runs again after Pause.
	Retried
	// Computed: Worker computed N tasks in Took.
	Computed
	// Count: add N to the counter Metric.
	Count

	// Finish: the round is complete.
	Finish
	// Fail: the job cannot go on, for Err.
	Fail
)

// Metric is a counter that Count adds to.
type Metric uint8

const (
	TasksRetried     Metric = iota // given out again
	TasksWasted                    // computed in vain
	ResultsCompared                // of audited tasks
	ResultsDifferent               // of compared tasks
)

// DropReason says why a message is not used.
type DropReason uint8

const (
	Stale     DropReason = iota // of another round, or not needed any longer
	Malformed                   // it does not fit the round
	Duplicate                   // of a task that has a result
)

// Action is something to do. Which fields are set depends on the kind. Slices are valid until the next Step.
type Action struct {
	Kind    ActionKind
	Worker  string
	Task    int
	Tasks   []uint32
	Var     int
	Chunk   int
	Known   bool
	Skipped bool
	Async   bool
	Shards  []dataset.ShardRef
	Result  Result
	Jobs    []uint64 // of Quarantine: the jobs that Worker had tasks of
	Job     uint64
	Drop    DropReason
	Metric  Metric
	N       int
	Took    time.Duration
	Pause   time.Duration
	Reason  string
	Err     error
}

// Known is a result that the log has when a round begins. A zero Digest is a task that is not run.
type Known struct {
	Task   uint32
	Digest digests.Digest
	Took   time.Duration
}
