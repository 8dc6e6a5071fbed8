package round

import "github.com/coppice-ldl/coppice/dataset"

// Combine says how the results of a round's tasks become one.
type Combine uint8

const (
	// Sum adds partials along the pinned tree (design section 8.4).
	Reduce Combine = iota
	// Gather returns each task's bytes, in task order.
	Gather
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
	Done bool
	Op   uint8 // which computation, as the algorithm numbers them
	// Kind names the round's tasks in metrics: "step", "tree". See ValidKind. It
	// affects no result.
	Kind  string
	Tasks int // task u has ID u; a Sharded round has a power of two of them
	Scope Scope
	How   Combine
	// Roles chooses the rows that the tasks see.
	Roles dataset.Roles
	// Steps is the range [from, to) of mini-batches, which each task draws
	// from its counter-based random stream.
	Steps [2]uint64
	// Vars are the values that the tasks read. A worker may keep the versions that it
	// received: a value is sent only to workers that lack its version.
	Vars []Var
	// DerivedVersion, when not 0, is the version of the value that Kernel.Derive
	// makes for each task. Later rounds with the same version may get it from a cache
	// (routing probabilities under Θ of a step). Versions grow.
	DerivedVersion uint64
	// Shape is the shape of every partial of a reduce round.
	Shape Shape
	// Payloads holds, for a gather round, each task's own bytes (may be nil).
	Payloads [][]byte
	// SubJob, where set, returns for a gather round the whole job that a task runs; the
	// task's result is then the child's encoded Outcome. It is made when it is asked for: a round
	// may have very many.
	SubJob func(unit int) *Job
	// Apart has the results of a gather round kept out of memory where that is possible:
	// Result.Load reads them.
	Apart bool
	// Groups says, for a gather round, which tasks take about as long as each other: by task, the
	// number of a group from 0 on; nil: that is not known. No result depends on it.
	Groups []int32
	// Has says, for a gather round, which tasks have their results in the trainer's
	// state already and need not run (may be nil).
	Has []bool
}

// Jobs returns a Round.SubJob of these jobs, by task.
func Jobs(list ...*Job) func(unit int) *Job {
	return func(unit int) *Job { return list[unit] }
}
