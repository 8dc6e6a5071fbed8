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

// Event is what has happened: a pointer to one of the types below. Step does not keep it.
type Event interface{ event() }

// The events about what the leader says. Their leader epochs decide whether they count.
type (
	// Heard says that a message or a coordinator named a leader epoch.
	Heard struct{ Epoch uint64 }
	// Setup says that the leader sent a job.
	Setup struct {
		*protocol.Setup
		Spec string // the job's specification in a form that can be compared; empty: it cannot be compared
	}
	// Value says that the leader sent a version of a value.
	Value struct {
		Epoch, Job uint64
		Ref        protocol.Ref
		Bytes      int
		Local      any // Version.Local if the bytes stay in the message; otherwise nil
	}
	// Chunk says that the leader sent a chunk of a version, or named it.
	Chunk struct {
		Epoch, Job uint64
		Ref        protocol.Ref
		Index, Of  int
		Bytes      int  // in the message
		Sent       bool // true if the message has the bytes of the chunk
		Found      bool // true if the chunk is a result of this worker
		Local      any  // of the caller, for KeepChunk
	}
	// Run says that the leader asks for tasks. Step sorts the tasks of a reduce round. Begin hands
	// the message over, and an older one is there in exchange.
	Run struct {
		*protocol.Run
		Reply string // the subject for answers
	}
	// Forget says that the leader needs a job no longer, or, with tasks, some tasks of a gather round.
	Forget struct{ *protocol.Forget }
)

// The events about what the caller has done.
type (
	// Opened says that a job was opened, or Err says why not.
	Opened struct {
		Job       *Job
		Demand    int64  // the memory that a task on the whole dataset needs, beyond shards
		DemandFor string // what needs it
		Err       error
	}
	// Fetched says that a shard was fetched and added to its job, or Err says why not.
	Fetched struct {
		Job   *Job
		Index int
		Err   error
	}
	// Free says that an executor has nothing to do.
	Free struct{ Executor Executor }
	// Ended says that an executor ended a task, or Err says why it failed. It is free now, unless
	// Answer follows. The assignment is no longer the executor's.
	Ended struct {
		*Assignment
		Took time.Duration
		Err  error
	}
	// Helped says that an executor helped with a task of another one.
	Helped struct {
		Job      *Job
		Executor Executor
		Took     time.Duration
	}
	// Answered says that an executor sent the sums of a batch. It is free now.
	Answered struct{ Batch *Batch }
	// Stored says that the result of a task of a gather round was stored, or Err says why not.
	Stored struct {
		Job    *Job
		Task   *Task
		Digest string
		Bytes  int
		Took   time.Duration
		Err    error
	}
	// ChunkLost says that a chunk cannot be read any longer.
	ChunkLost struct {
		Version *Version
		Index   int
	}
	// Damaged says that the shards of a job turned out to be damaged.
	Damaged struct{ Job *Job }
	// Reset says that the worker stops, or enters another cluster. It goes on from Epoch.
	Reset struct{ Epoch uint64 }
)

func (*Heard) event()     {}
func (*Setup) event()     {}
func (*Value) event()     {}
func (*Chunk) event()     {}
func (*Run) event()       {}
func (*Forget) event()    {}
func (*Opened) event()    {}
func (*Fetched) event()   {}
func (*Free) event()      {}
func (*Ended) event()     {}
func (*Helped) event()    {}
func (*Answered) event()  {}
func (*Stored) event()    {}
func (*ChunkLost) event() {}
func (*Damaged) event()   {}
func (*Reset) event()     {}

// Action is what the caller shall do. A type with a single pointer needs no memory as an Action, so
// the actions of a steady round are such types.
type Action interface{ action() }

// The actions about jobs.
type (
	// Open asks to open the job, then to report Opened.
	Open struct {
		Job   *Job
		Setup *protocol.Setup
	}
	// Fetch asks to fetch a shard and to add it to the job, then to report Fetched.
	Fetch struct {
		Job   *Job
		Index int
	}
	// Cancel asks to end what the job has in work.
	Cancel struct{ Job *Job }
	// Close asks to give up the shards and the memory of a cancelled job. Nothing uses it any longer.
	Close struct{ Job *Job }
	// RefuseJob says that the job is not opened, because too many are in use.
	RefuseJob struct{ Job uint64 }
	// RefuseMessage says why the message is dropped.
	RefuseMessage struct{ Err error }
)

// The actions about values.
type (
	// Keep asks to keep the bytes of a version that came whole. Its Local may have memory of an older
	// one.
	Keep struct{ Version *Version }
	// KeepChunk asks to keep a chunk of a version.
	KeepChunk struct {
		Version *Version
		Index   int
		Local   any // of Chunk
	}
	// Release asks to give up the memory of a version, or its chunks.
	Release struct{ Version *Version }
)

// The actions about tasks.
type (
	// Begin asks to prepare the memory of a batch.
	Begin struct{ Batch *Batch }
	// Wake says that the tasks of a batch are ready. Each executor that waits, up to as many as there
	// are tasks, shall report Free.
	Wake struct{ Batch *Batch }
	// Compute asks to compute a task, then to report Ended.
	Compute struct{ *Assignment }
	// Answer asks to send the sums of a batch, then to report Answered.
	Answer struct{ Batch *Batch }
	// Retire says that nothing uses the batch any longer. Its memory serves another one.
	Retire struct{ Batch *Batch }
	// Stop asks to end a task of a gather round.
	Stop struct{ Task *Task }
	// DropResult asks to give up a use of a stored result.
	DropResult struct{ Digest string }
)

// The actions that send something.
type (
	// Need asks to tell the leader that values, or the job if there are no Refs, are missing.
	Need struct {
		Request
		Refs []protocol.Ref
	}
	// Fail asks to tell the leader that a task cannot be computed.
	Fail struct {
		Request
		Task uint32
		Err  error
	}
	// Announce asks to tell the leader that a result is stored.
	Announce struct {
		Request
		Task   *Task
		Digest string
		Bytes  int
		Took   time.Duration
	}
	// Notice is an action that needs no further words.
	Notice int
)

// The notices.
const (
	Report     Notice = iota // tell all coordinators soon what the worker holds
	NoJobs                   // the last job was forgotten
	CountStale               // count an order of an earlier leader
	CountLate                // count an order of an earlier round
)

func (Open) action()          {}
func (Fetch) action()         {}
func (Cancel) action()        {}
func (Close) action()         {}
func (RefuseJob) action()     {}
func (RefuseMessage) action() {}
func (Keep) action()          {}
func (KeepChunk) action()     {}
func (Release) action()       {}
func (Begin) action()         {}
func (Wake) action()          {}
func (Compute) action()       {}
func (Answer) action()        {}
func (Retire) action()        {}
func (Stop) action()          {}
func (DropResult) action()    {}
func (Need) action()          {}
func (Fail) action()          {}
func (Announce) action()      {}
func (Notice) action()        {}

// Request names a Run message to its leader.
type Request struct {
	Stamp protocol.Stamp
	Reply string // the subject for answers
}

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

	round protocol.Stamp // of the latest Run; zero before the first one
	// by task of a reduce round. Invariant: true if and only if a live batch of round has it, and it has not failed there.
	pending []bool
	live    []*Batch                 // not retired
	idle    []*Batch                 // retired, kept for their memory; at most maxIdle
	tasks   map[uint32]*Task         // of a gather round. Invariant: all are of the present round, and none is stopped.
	used    [Executors]time.Duration // time that executors spent on it
}

// demand is the memory that a task on the whole dataset needs.
type demand struct {
	shards  int64  // bytes of the dataset
	arrays  int64  // bytes of the arrays that the algorithm states
	purpose string // of the arrays; if there are none, how a job needs no such task
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
	Request
	Job      *Job
	Executor Executor
	Local    any          // of the caller, also while the batch is retired
	Run      protocol.Run // the message
	Values   []*Version   // that the tasks read, by the refs of the message. Invariant: each counts the batch as a user.

	of      int         // tasks of the round
	scope   round.Scope // Whole if each task is a sub-job
	partial int         // bytes of a partial, without rows

	state   batchState
	tasks   []Assignment
	waits   int  // shards that it waits for. Invariant: 0 unless the batch is waiting.
	next    int  // the first task that no executor has begun
	left    int  // tasks that have not ended. Invariant: len(tasks)-next of them have not begun.
	dropped bool // true if nobody wants the answer. Invariant: it is not waiting, and next is len(tasks) if it is running.
}

// Tasks returns the number of its tasks.
func (b *Batch) Tasks() int { return len(b.tasks) }

// Assignment is a task of a batch. Once its executor has ended it, it may become another one.
type Assignment struct {
	Batch *Batch
	Index int   // in the Run message
	Task  *Task // of a gather round; otherwise nil

	number uint32
	failed bool // true if the leader was told that it failed, and may have asked for it again
}

// Task is a task of a gather round, until its result is given up.
type Task struct {
	Number  uint32
	Request     // the latest one, which another leader may have sent
	Local   any // of the caller

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
	Bytes  int // if it came whole
	Local  any // of the caller: the memory of the bytes, or the chunks

	of     *variable
	bytes  int          // of its memory; of the chunks that were sent
	lent   bool         // true if its bytes stand in a message
	chunks map[int]bool // nil if it comes whole. By chunk: true if it is here, false if it was lost.
	total  int          // chunks
	here   int          // chunks that are here. Invariant: the number of true ones in chunks.
	users  int          // batches that read it
	listed bool         // Invariant: true if and only if it is in of.versions.
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
