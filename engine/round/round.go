// Package round is the contract between algorithms and what runs them. An algorithm is a
// Trainer, the leader's half, which asks for one Round after another, and a Kernel, the
// workers' half, which computes the tasks of a round. engine, protocol, worker and
// coordinator know nothing else of an algorithm; engine/DESIGN.md says how a round is run.
package round

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
)

// MaxKind is the greatest length of Round.Kind, in bytes.
const MaxKind = 32

// ValidKind reports whether a Round may have this Kind; the empty Kind is valid.
func ValidKind(kind string) bool {
	for i := range len(kind) {
		c := kind[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == ' ' || c == '-') {
			return false
		}
	}
	return len(kind) <= MaxKind
}

// Scope says which shards of the dataset a task needs.
type Scope uint8

const (
	// Sharded tasks read consecutive shards: see Task.Shards.
	Sharded Scope = iota
	// Whole tasks need every shard.
	Whole
	// None tasks need no data.
	None
)

// Round is one exchange: values for the workers, tasks, and the way
// their results are combined.
type Round struct {
	Op uint8 // which computation, as the algorithm numbers them
	// Kind names the round's tasks in metrics: "step", "tree". See ValidKind. It
	// affects no result.
	Kind  string
	Tasks int // task u has ID u; a Sharded round has a power of two of them
	Scope Scope
	// Roles chooses the rows that the tasks see.
	Roles dataset.Roles
	// Vars are the values that the tasks read. A worker may keep the versions that it
	// received: a value is sent only to workers that lack its version.
	Vars []Var
	// How is *Reduce or *Gather.
	How Combine
}

// Combine says how the results of a round's tasks become one: *Reduce or *Gather.
type Combine interface{ combine() }

// Reduce adds the partials of a round's tasks along the pinned tree (design section 8.4).
type Reduce struct {
	// Shape is the shape of every partial.
	Shape Shape
	// Steps is the range [from, to) of mini-batches, which each task draws
	// from its counter-based random stream.
	Steps [2]uint64
	// DerivedVersion, when not 0, is the version of the value that Kernel.Derive
	// makes for each task. Later rounds with the same version may get it from a cache
	// (routing probabilities under Θ of a step). Versions grow.
	DerivedVersion uint64
	// Exact is true if sums are exact in any order and have no rows. Kernel.Run adds its numbers to a partial, which may
	// have the sums of other tasks.
	Exact bool
}

// Gather collects the bytes that each task of a round returns, in task order.
type Gather struct {
	// Payloads holds each task's own bytes (may be nil).
	Payloads [][]byte
	// SubJob, if set, returns the whole job that a task runs; the task's result is then
	// the sub-job's encoded Outcome. It is made when it is asked for: a round may have very many.
	SubJob func(task int) *Job
	// Apart has the results kept out of memory where that is possible: Result.Load reads them.
	Apart bool
	// Groups says which tasks take about as long as each other: by task, the number of a
	// group from 0 on; nil: that is not known. No result depends on it.
	Groups []int32
	// Has says which tasks have their results in the trainer's state already and need not
	// run (may be nil).
	Has []bool
}

// Sums returns how partials of n float64 values are added.
func Sums(n int) *Reduce { return &Reduce{Shape: Shape{F64: n}} }

func (*Reduce) combine() {}
func (*Gather) combine() {}

// Reduce returns How of a reduce round, or nil.
func (r *Round) Reduce() *Reduce {
	how, _ := r.How.(*Reduce)
	return how
}

// Gather returns How of a gather round, or nil.
func (r *Round) Gather() *Gather {
	how, _ := r.How.(*Gather)
	return how
}

// Skips reports whether the trainer's state already has the result of a task (Has).
func (g *Gather) Skips(task int) bool { return g.Has != nil && g.Has[task] }

// Jobs returns a Gather.SubJob of these jobs, by task.
func Jobs(list ...*Job) func(task int) *Job {
	return func(task int) *Job { return list[task] }
}

// Task is one idempotent piece of a round, as its kernel sees it.
type Task struct {
	ID             int
	Of             int // tasks in the round
	Op             uint8
	Scope          Scope
	Roles          dataset.Roles
	Steps          [2]uint64
	DerivedVersion uint64
	Payload        []byte
	SubJob         *Job
	// Reserve, if set, reserves bytes for the derived value that Derive is about to
	// make, and reports whether so many are free.
	Reserve func(bytes int) bool
	// Later permits Run to leave the partial's rows to be computed later (Partial.Later).
	Later bool
	// Lanes, if set, lends idle lanes to Derive and Run. They change no bits.
	Lanes Lanes
}

// Helpers returns how many idle lanes can help with the task.
func (u *Task) Helpers() int {
	if u.Lanes == nil {
		return 0
	}
	return u.Lanes.Idle()
}

// TryReserve reserves memory for a derived value of so many bytes. If it reports false,
// Derive returns nil.
func (u *Task) TryReserve(bytes int) bool { return u.Reserve == nil || u.Reserve(bytes) }

// Task returns task id of the round.
func (r *Round) Task(id int) Task {
	u := Task{ID: id, Of: r.Tasks, Op: r.Op, Scope: r.Scope, Roles: r.Roles}
	switch how := r.How.(type) {
	case *Reduce:
		u.Steps, u.DerivedVersion = how.Steps, how.DerivedVersion
	case *Gather:
		if how.Payloads != nil {
			u.Payload = how.Payloads[id]
		}
		if how.SubJob != nil {
			u.SubJob = how.SubJob(id)
		}
	}
	return u
}

// Shards returns the range [lo, hi) of shards, of s in all, that the task needs.
func (u Task) Shards(s int) (lo, hi int) {
	switch u.Scope {
	case Whole:
		return 0, s
	case None:
		return 0, 0
	}
	return u.ID * s / u.Of, (u.ID + 1) * s / u.Of
}

// Rows lists the rows that the task sees.
func (u Task) Rows(d *dataset.Data) []dataset.RowRef {
	lo, hi := u.Shards(len(d.Manifest.Shards))
	return d.Select(lo, hi, u.Roles)
}

// Lanes lends a task the lanes of its process that have no task of their own.
type Lanes interface {
	// Idle returns how many lanes have nothing to do: a moment later it may be another number.
	Idle() int
	// Do calls p.Part(i) for every i in [0, n), each once, in this lane and in idle ones, and
	// returns when all have returned. A part that panics has Do panic.
	Do(n int, p Parts)
}

// Parts are pieces of a task that may be computed side by side.
type Parts interface {
	// Part computes piece i; scratch is the working memory of the lane that does.
	Part(i int, scratch any)
}

// Var is a named, versioned value. The same (ID, Version) always has the same
// bytes within a job.
type Var struct {
	ID      uint16
	Version uint64
	Data    []byte // little-endian
	// Chunks, if set, are the value in place of Data: results of gathered tasks. They travel
	// one by one, and none to a worker that has it already.
	Chunks []Chunk
}

// Chunk is a piece of a value. Its methods may be called concurrently.
type Chunk interface {
	// Digest returns the SHA-256, in hex, of the bytes.
	Digest() string
	// Bytes returns the bytes, which nobody may change, and which the caller may keep.
	Bytes() ([]byte, error)
}

// Vars are the values that a task can read.
type Vars []Var

// Find returns a value. It panics if the round did not list the value.
func (v Vars) Find(id uint16) *Var {
	for i := range v {
		if v[i].ID == id {
			return &v[i]
		}
	}
	panic(fmt.Sprintf("round: variable %d is not part of the round", id))
}

// Get returns the bytes of a value. It panics if the round did not list the value.
func (v Vars) Get(id uint16) []byte { return v.Find(id).Data }

// Version returns the version of a value. It panics if the round did not list the value.
func (v Vars) Version(id uint16) uint64 { return v.Find(id).Version }

// Shape is the shape of a reduce round's partials.
type Shape struct {
	F64 int // float64 values
	F32 int // float32 values
	// I32 is how many int32 values there are. The trainer knows a bound: no sum over all tasks is outside of int32.
	I32 int
	// Rows and Width describe row-sparse float32 values: at most Rows rows of
	// Width values each. Rows 0: none.
	Rows, Width int
}

// Rows are rows of values that are computed when they are needed.
type Rows interface {
	// Compute sets dst to whole rows, from row from on. No value is -0.
	Compute(dst []float32, from int)
}

// Partial is one node of a reduction: sums, never averages.
type Partial struct {
	F64 []float64
	F32 []float32
	I32 []int32
	// Index lists the rows that are present, ascending; Values holds
	// len(Index)×Width values. An absent row is +0.
	Index  []uint32
	Values []float32
	Width  int
	// Later, if Run may leave it, computes the rows of Index; Values is empty then.
	Later Rows
	// Before is Later of a round before: Run may use its memory again.
	Before Rows
	// Lent is true if the numbers stand in memory that was lent, such as a message's, which
	// nobody keeps for other rounds. Message is that memory, if it is to be given back.
	Lent    bool
	Message []byte
}

// Reset shapes p for s and zeroes it, reusing its memory.
func (p *Partial) Reset(s Shape) {
	p.F64 = zeroed(p.F64, s.F64)
	p.F32 = zeroed(p.F32, s.F32)
	p.I32 = zeroed(p.I32, s.I32)
	p.Index = p.Index[:0]
	p.Values = p.Values[:0]
	p.Width = s.Width
	if p.Later != nil {
		p.Before, p.Later = p.Later, nil
	}
}

// keptUnused is how many numbers a partial may have memory for that a shape leaves unused.
const keptUnused = 1 << 19

// zeroed returns n zeros, in the memory of v if it is large enough. If it is much too large, it is given up: rounds of
// float64 and of int32 sums may follow each other.
func zeroed[T float32 | float64 | int32](v []T, n int) []T {
	if cap(v) < n || cap(v)-n > keptUnused && n < cap(v)/8 {
		return make([]T, n)
	}
	v = v[:n]
	clear(v)
	return v
}

// Check returns an error that says how p differs from shape s, or nil.
func (p *Partial) Check(s Shape) error {
	rows := len(p.Index)
	if p.Later != nil {
		rows = 0
	}
	if len(p.F64) != s.F64 || len(p.F32) != s.F32 || len(p.I32) != s.I32 || p.Width != s.Width ||
		len(p.Values) != rows*s.Width || len(p.Index) > s.Rows {
		return fmt.Errorf("round: the partial result has %d float64, %d float32, %d int32 and %d rows of %d values, "+
			"want %+v", len(p.F64), len(p.F32), len(p.I32), len(p.Index), p.Width, s)
	}
	for i, row := range p.Index {
		if int(row) >= s.Rows || i > 0 && p.Index[i-1] >= row {
			return fmt.Errorf("round: the rows of a partial result are not ascending, or not below %d", s.Rows)
		}
	}
	return nil
}

// Result is what Trainer.Fold receives.
type Result struct {
	Sum *Partial // of a reduce round, which always has one: valid during Fold only
	// Gathered has the bytes of each task of a gather round, in task order; nil for
	// tasks of Gather.Has. Fold may set elements to nil to free their memory.
	Gathered [][]byte
	// Digests has the SHA-256, in hex, of each of Gathered, if the executor knows it; otherwise
	// it is nil, or an element is empty.
	Digests []string
	// Load, if set, reads the bytes of one task of a round with Gather.Apart, which Gathered
	// does not have then; none: the task was not run, and is to have no result.
	Load func(task int) ([]byte, error)
	// Took is how long each of them was computed, in nanoseconds, as workers say; 0: not known.
	// nil: of none. No result depends on it.
	Took []uint64
}
