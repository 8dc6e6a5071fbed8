// Package batch decides what a worker does with the orders of its leader. It is a state machine:
// Step applies an event and returns the actions that follow from it. The package has no clock,
// lock, goroutine or I/O, so the same events always give the same actions. Package worker feeds it
// events and performs the actions.
//
// The machine knows jobs, the versions of their values, batches (the tasks of one Run message) and
// the tasks of gather rounds. Bytes stay outside: Job, Version, Batch and Task each have a field
// Local for the caller.
package batch

import (
	"errors"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Machine decides what a worker does. It is not safe for concurrent use.
type Machine struct {
	config Config
	out    []Action // of the present Step

	epoch  uint64          // the highest leader epoch seen. Invariant: a live reduce batch of a lower one is dropped.
	jobs   map[uint64]*Job // by ID. Invariant: none of them is forgotten.
	orders uint64          // the number of Setup and Run messages, for Job.touched
	past   int             // bytes of Job.past of all jobs. Invariant: at most MaxPast.

	// ready has the batches with tasks that no executor has begun. Invariant: a batch is in ready
	// if and only if its state is running and Batch.next is below the number of its tasks.
	ready [Executors][]*Batch
	clock [Executors]time.Duration // the highest Job.used of a job when one of its tasks began
}

// Config are the limits of a worker.
type Config struct {
	Worker string // its name, for errors
	Slots  int    // executors of each kind
	Memory int64  // bytes that a task on the whole dataset may take; 0: no limit
}

// Executor is a kind of executor.
type Executor int

// The kinds of executors. Tasks of reduce rounds, which are short, do not wait for tasks of gather
// rounds.
const (
	Reduce Executor = iota
	Gather
	Executors // the number of kinds
)

// jobState says whether a job can be computed.
type jobState int

// The states of a job.
const (
	opening jobState = iota // Opened has not come
	isOpen                  // its tasks can be computed once their shards are here
	failed                  // it cannot be opened
)

// Job is a job that the leader set up.
type Job struct {
	ID    uint64
	Local any // of the caller

	machine      *Machine
	epoch, start uint64 // of the latest Setup
	spec         string
	state        jobState
	failure      error  // why it cannot be opened. Invariant: set if and only if the state is failed.
	demand       demand // of a task on the whole dataset
	forgotten    bool   // Invariant: a forgotten job has no tasks, and its live batches are dropped.
	touched      uint64 // Machine.orders when it was used last

	shards shards
	values values
	past   []result // results of earlier rounds, the oldest first

	round   protocol.Stamp           // of the latest Run; zero before the first one
	pending []bool                   // by task of a reduce round. Invariant: true if and only if a live batch of round has it.
	live    []*Batch                 // not retired
	idle    []*Batch                 // retired, kept for their memory; at most maxIdle
	tasks   map[uint32]*Task         // of a gather round. Invariant: all are of the present round, and none is stopped.
	used    [Executors]time.Duration // time that executors spent on it
}

// demand is the memory that a task on the whole dataset needs.
type demand struct {
	shards  int64 // bytes of the dataset
	arrays  int64 // bytes of the arrays that the algorithm states
	purpose string
}

// shards are the shards of a job's dataset.
type shards struct {
	list     []shard
	absent   int // shards that are not here
	fetching int // shards that are being fetched
}

// shard is a shard of a dataset.
type shard struct {
	state   shardState
	err     error    // why it could not be fetched last
	waiting []*Batch // Invariant: Batch.waits is the number of shards that have the batch in this list.
}

// shardState is the place of a shard.
type shardState int

const (
	absent shardState = iota
	fetching
	here
)

// batchState says what a batch is waiting for.
type batchState int

// The states of a batch. A batch that is dropped leaves waiting at once, and the others when
// nothing uses it.
const (
	waiting   batchState = iota // for its job or for shards
	running                     // for executors
	answering                   // for Answered. Only batches of reduce rounds do.
	retired
)

// Batch is the tasks of one Run message that were neither in work nor done when it came.
type Batch struct {
	Local  any            // of the caller, also while the batch is retired
	Stamp  protocol.Stamp // of the Run message
	Reply  string         // the subject for answers
	Values []*Version     // that the tasks read, by the refs of the message. Invariant: each counts the batch as a user.

	job      *Job
	executor Executor
	of       int         // tasks of the round
	scope    round.Scope // Whole if each task is a sub-job
	partial  int         // bytes of a partial, without rows

	state   batchState
	tasks   []entry
	waits   int  // shards that it waits for. Invariant: 0 unless the batch is waiting.
	next    int  // the first task that no executor has begun
	left    int  // tasks that have not ended. Invariant: len(tasks)-next of them have not begun.
	dropped bool // true if nobody wants the answer. Invariant: it is not waiting, and next is len(tasks) if it is running.
}

// entry is a task of a batch.
type entry struct {
	index  int // in the Run message
	number uint32
	task   *Task // of a gather round; otherwise nil
}

// Task is a task of a gather round, until its result is given up.
type Task struct {
	Number uint32
	Stamp  protocol.Stamp // of the latest order, which another leader may have sent
	Reply  string         // of the latest order
	Local  any            // of the caller

	stopped bool // true if nobody wants the task. Invariant: it is not in Job.tasks.
	done    bool // true if its result is stored
	result  result
	took    time.Duration
}

// result is a stored result.
type result struct {
	digest string
	bytes  int
}

// values are the values of a job, by ID. There are at most protocol.MaxVars.
type values map[uint16]*variable

// variable is a value of a job.
type variable struct {
	versions []*Version // in the order of arrival, at most keptVersions. A version that is sent again arrives again.
	spare    *Version   // its memory serves a newer version; may be nil
}

// Version is one version of a value. Its bytes do not change while a batch reads it.
type Version struct {
	ID     uint16 // of the value
	Number uint64
	Local  any // of the caller: the bytes, or the chunks

	of     *variable
	bytes  int          // of its memory; of the chunks that were sent
	lent   bool         // true if its bytes stand in a message
	chunks map[int]bool // nil if it comes whole. By chunk: true if it is here, false if it was lost.
	total  int          // chunks
	here   int          // chunks that are here. Invariant: the number of true ones in chunks.
	users  int          // batches that read it
	listed bool         // Invariant: true if and only if it is in of.versions.
}

// EventKind says what has happened.
type EventKind int

// The events. The fields of Event that each one needs stand behind it.
const (
	// Heard: a message or a coordinator named a leader epoch. Epoch.
	Heard EventKind = iota
	// Setup: the leader sent a job. Setup, Spec.
	Setup
	// Value: the leader sent a version of a value. Epoch, ID, Ref, Bytes, Lent, Local.
	Value
	// Chunk: the leader sent a chunk of a version, or named it. Epoch, ID, Ref, Index, Of, Bytes,
	// Sent, Found, Local.
	Chunk
	// Run: the leader asks for tasks. Run, Reply. Step sorts Run.Tasks of a reduce round; Begin
	// hands the message over.
	Run
	// Forget: the leader needs a job no longer, or, with Tasks, some tasks of a gather round.
	// Epoch, ID, Round, Tasks.
	Forget

	// Opened: a job was opened, or Err says why not. Job, Err, Demand, DemandFor.
	Opened
	// Fetched: a shard was fetched and added to its job, or Err says why not. Job, Index, Err.
	Fetched
	// Free: an executor has nothing to do. Executor.
	Free
	// Ended: an executor ended a task, or Err says why it failed. It is free now, unless it shall
	// Answer. Batch, Index, Took, Err.
	Ended
	// Helped: an executor helped with a task of another one. Job, Executor, Took.
	Helped
	// Answered: an executor sent the sums of a batch. It is free now. Batch.
	Answered
	// Stored: the result of a task of a gather round was stored, or Err says why not. Task, Digest,
	// Bytes, Took, Err.
	Stored
	// ChunkLost: a chunk cannot be read any longer. Version, Index.
	ChunkLost
	// Damaged: the shards of a job turned out to be damaged. Job.
	Damaged
	// Reset: the worker stops, or enters another cluster. Epoch, from which it goes on.
	Reset
)

// Order is what a message of the leader says. The kind of its Event says which fields are set.
type Order struct {
	Epoch uint64
	ID    uint64 // of a job
	Round uint64
	Tasks []uint32
	Setup *protocol.Setup
	Spec  string // the job's specification in a form that can be compared; empty: it cannot be compared
	Run   *protocol.Run
	Reply string // the subject for answers
	Ref   protocol.Ref
	Lent  bool // true if the bytes of the value stay in the message
	Of    int  // chunks of the version
	Sent  bool // true if the message has the bytes of the chunk
	Found bool // true if the chunk is a result of this worker
}

// Event is what Step is told. Its Kind says which fields are set.
type Event struct {
	Kind EventKind
	Order

	Job       *Job
	Batch     *Batch
	Task      *Task
	Version   *Version
	Executor  Executor
	Index     int // of a shard, a chunk, or a task in its Run message
	Digest    string
	Bytes     int
	Took      time.Duration
	Demand    int64  // the memory that a task on the whole dataset needs, beyond shards
	DemandFor string // what needs it
	Err       error
	Local     any // of the caller, for Keep and KeepChunk
}

// ActionKind says what the caller shall do.
type ActionKind int

// The actions. The fields of Action that each one has stand behind it.
const (
	// Open: open the job, then report Opened. Job, Setup.
	Open ActionKind = iota
	// Fetch: fetch a shard and add it to the job, then report Fetched. Job, Index.
	Fetch
	// Cancel: end what the job has in work. Job.
	Cancel
	// Close: give up the shards and the memory of a cancelled job. Nothing uses it any longer. Job.
	Close
	// RefuseJob: do not open the job, because too many are in use. ID.
	RefuseJob
	// RefuseMessage: drop the message. Err.
	RefuseMessage

	// Keep: keep the bytes of a version. Version.Local may have memory of an older one. Version,
	// Bytes, Local.
	Keep
	// KeepChunk: keep a chunk of a version. Version, Index, Local.
	KeepChunk
	// Release: give up the memory of a version, or its chunks. Version.
	Release

	// Begin: prepare the memory of a batch. Batch, Run.
	Begin
	// Wake: N tasks are ready for executors. Each executor that waits, up to N of them, shall
	// report Free. Executor, N.
	Wake
	// Compute: compute a task, then report Ended. Batch, Task (of a gather round), Index.
	Compute
	// Answer: send the sums of a batch, then report Answered. Batch.
	Answer
	// Retire: nothing uses the batch any longer. Its memory serves another one. Batch.
	Retire
	// Stop: end a task of a gather round. Task.
	Stop
	// DropResult: give up a use of a stored result. Digest.
	DropResult

	// Need: tell the leader that the job, or values, are missing. Stamp, Reply; Refs, or none if it
	// is the job.
	Need
	// Fail: tell the leader that a task cannot be computed. Stamp, Reply, Unit, Err.
	Fail
	// Announce: tell the leader that a result is stored. Task, Stamp, Reply, Unit, Digest, Bytes,
	// Took.
	Announce
	// Report: tell all coordinators soon what the worker holds.
	Report
	// NoJobs: the last job was forgotten.
	NoJobs
	// CountStale and CountLate: count an order of an earlier leader, or of an earlier round.
	CountStale
	CountLate
)

// Action is what the caller shall do. Its Kind says which fields are set.
type Action struct {
	Kind     ActionKind
	Job      *Job
	Batch    *Batch
	Task     *Task
	Version  *Version
	Setup    *protocol.Setup
	Run      *protocol.Run
	Executor Executor
	ID       uint64
	Index    int
	N        int
	Stamp    protocol.Stamp
	Reply    string
	Number   uint32
	Refs     []protocol.Ref
	Digest   string
	Bytes    int
	Took     time.Duration
	Err      error
	Local    any
}

// do appends an action to the result of the present Step.
func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// Failure says why a task cannot be computed.
type Failure struct {
	Permanent bool // true if it would fail on every worker
	NonFinite bool // true if the partial has a NaN or an infinity
	Unable    bool // true if this worker can never compute it, but another one may
	Err       error
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Permanent returns a failure that would happen on every worker.
func Permanent(err error) error { return &Failure{Permanent: true, Err: err} }

// Passing returns a failure that a later attempt may not have.
func Passing(err error) error { return &Failure{Err: err} }

// Unable returns a failure that only other workers may not have.
func Unable(err error) error { return &Failure{Unable: true, Err: err} }

// FailureOf returns err as a failure. An error without a Failure comes from a kernel. It is
// permanent, because kernels are pure.
func FailureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		judged := *f
		judged.Err = err
		return &judged
	}
	return &Failure{Permanent: true, Err: err}
}
