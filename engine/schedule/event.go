package schedule

import (
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// Verifier stands in the place of a worker's name for the leader, which computes tasks to verify workers. No worker's
// name has a space.
const Verifier = "the leader"

// Event is something that has happened to a job: a pointer to one of the types below. Step keeps no pointer, so the
// memory may serve the next event.
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

// RecordingGivenUp: a result that a RecordingLate event was sent for is not recorded any more, because its round is
// over.
type RecordingGivenUp struct{ event }

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

// Action is something to do: a pointer to one of the types below. Actions and their slices are valid until the next
// Step.
type Action interface{ isAction() }

// action is embedded in each type of an Action.
type action struct{}

func (*action) isAction() {}

// SendSetup: send Worker the job.
type SendSetup struct {
	action
	Worker string
}

// SendValue: send Worker value number Var of the round.
type SendValue struct {
	action
	Worker string
	Var    int
}

// SendChunks: send Worker N chunks of value number Var, beginning with chunk From. If Known, send only their names.
type SendChunks struct {
	action
	Worker string
	Var    int
	From   int
	N      int
	Known  bool
}

// SendRun: ask Worker to compute Tasks.
type SendRun struct {
	action
	Worker string
	Tasks  []uint32
}

// SendStop: tell Worker not to compute Task any longer.
type SendStop struct {
	action
	Worker string
	Task   int
}

// SendForget: tell Worker to forget the job.
type SendForget struct {
	action
	Worker string
}

// SendHold: tell Worker to keep Shards on its disk.
type SendHold struct {
	action
	Worker string
	Shards []dataset.ShardRef
}

// UsePartial: put the partial of the event into the reduction tree.
type UsePartial struct{ action }

// KeepPartial: keep the partial of the event as the one of (Task, Worker): another is compared with it.
type KeepPartial struct {
	action
	Task   int
	Worker string
}

// UseKept: put the kept partial of (Task, Worker) into the tree.
type UseKept struct {
	action
	Task   int
	Worker string
}

// UseCheckpoint: keep the state of Task that the event brought from Worker.
type UseCheckpoint struct {
	action
	Task   int
	Worker string
}

// UseProgress: show what the event says of Task.
type UseProgress struct {
	action
	Task int
}

// Drop: do not use the message of the event.
type Drop struct {
	action
	Reason DropReason
}

// DropReason says why a message is not used.
type DropReason uint8

const (
	Stale     DropReason = iota // of another round, or not needed any longer
	Malformed                   // it does not fit the round
	Duplicate                   // of a task that has a result
)

// Store: bring Result of Task from Worker to the leader's disk. If Worker is Verifier, the leader has the bytes.
type Store struct {
	action
	Worker string
	Task   int
	Result Result
}

// Record: have a quorum sync Result of Task and commit it. Async is true if the round does not wait for it.
type Record struct {
	action
	Task   int
	Result Result
	Async  bool
}

// RecordSkips: commit that Tasks are not run, after Took of computing each.
type RecordSkips struct {
	action
	Tasks []uint32
	Took  time.Duration
}

// Compute: compute Task on the leader.
type Compute struct {
	action
	Task int
}

// Quarantine: record that the results of Worker, which had tasks of Jobs, are wrong for Reason, before any later action
// is performed.
type Quarantine struct {
	action
	Worker string
	Jobs   []uint64
	Reason string
}

// Restart: empty the reduction tree and begin the round again. No action follows it.
type Restart struct{ action }

// WakeOthers: send all other jobs a Woken event.
type WakeOthers struct{ action }

// WakeJob: send Job a Woken event.
type WakeJob struct {
	action
	Job uint64
}

// Ended: Task has Result.
type Ended struct {
	action
	Task   int
	Result Result
}

// EndedBefore: Tasks had ended before the round began, with the results that are known.
type EndedBefore struct {
	action
	Tasks []uint32
}

// NotRun: Tasks have ended without results.
type NotRun struct {
	action
	Tasks []uint32
}

// Retried: Task failed on Worker for Reason, and runs again after Pause. Worker may be Verifier.
type Retried struct {
	action
	Task   int
	Worker string
	Reason string
	Pause  time.Duration
	Err    error // names the task and has Reason
}

// RetriedLost: the result of Task could not be stored, for Err, and Task runs again.
type RetriedLost struct {
	action
	Task int
	Err  error
}

// RetriedNotFinite: the partial of Task from Worker is not finite, for Reason, and Task runs again elsewhere.
type RetriedNotFinite struct {
	action
	Task   int
	Worker string
	Reason string
}

// WorkerTrouble: because of Trouble with Worker, Tasks of its tasks are given out again. There may be none.
type WorkerTrouble struct {
	action
	Worker  string
	Trouble Trouble
	Reason  string // of Unusable, such as "left"
	Tasks   int
}

// Trouble says what is wrong with a worker that was sent a job.
type Trouble uint8

const (
	Unusable Trouble = iota // it cannot be used any longer; quarantine is told by Quarantine
	TooSlow                 // its tasks of a reduce round take too long
	LacksJob                // it does not have the job any longer, as after a restart
)

// Computed: Worker computed N tasks in Took.
type Computed struct {
	action
	Worker string
	N      int
	Took   time.Duration
}

// Count: add N to the counter Metric.
type Count struct {
	action
	Metric Metric
	N      int
}

// Metric is a counter that Count adds to.
type Metric uint8

const (
	TasksRetried     Metric = iota // given out again
	TasksWasted                    // computed in vain
	ResultsCompared                // of audited tasks
	ResultsDifferent               // of compared tasks
)

// Finish: the round is complete.
type Finish struct{ action }

// Fail: the job cannot go on, for Err.
type Fail struct {
	action
	Err error
}

// output collects the actions of a step. Each partial and each round of a worker needs some of the kinds that have a
// pool.
type output struct {
	actions   []Action
	computed  pool[Computed]
	sendValue pool[SendValue]
	sendRun   pool[SendRun]
	listed    []uint32 // memory of SendRun.Tasks and NotRun.Tasks
	// over is true if the round is complete, has failed or begins again: nothing more is given out.
	over bool
}

// pool is the memory of the actions of one kind. It serves every step.
type pool[T any] []T

func (p *pool[T]) put(a T) *T {
	*p = append(*p, a)
	return &(*p)[len(*p)-1]
}

// start begins a step, which appends its actions to dst.
func (o *output) start(dst []Action) {
	o.actions, o.listed = dst, o.listed[:0]
	o.computed, o.sendValue, o.sendRun = o.computed[:0], o.sendValue[:0], o.sendRun[:0]
}
