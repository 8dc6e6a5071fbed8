package algorithms

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
)

// Combine says how the results of a round's units become one.
type Combine uint8

const (
	// Sum adds partials along the pinned tree (design section 8.4).
	Sum Combine = iota
	// Collect returns each unit's bytes, in unit order.
	Collect
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

// Scope says which shards of the dataset a unit needs.
type Scope uint8

const (
	// Sharded units read consecutive shards: see Unit.Shards.
	Sharded Scope = iota
	// Whole units need every shard.
	Whole
	// None units need no data.
	None
)

// Round is one exchange: values for the workers, units of work, and the way
// their results are combined.
type Round struct {
	Done bool
	Op   uint8 // which computation, as the algorithm numbers them
	// Kind names the round's units in metrics: "step", "tree". See ValidKind. It
	// affects no result.
	Kind  string
	Units int // unit u has ID u; a Sharded round has a power of two of them
	Scope Scope
	How   Combine
	// Roles chooses the rows that the units see.
	Roles dataset.Roles
	// Steps is the range [from, to) of mini-batches, which each unit draws
	// from its counter-based random stream.
	Steps [2]uint64
	// Vars are the values that the units read. A worker may keep the versions that it
	// received: a value is sent only to workers that lack its version.
	Vars []Var
	// DerivedVersion, when not 0, is the version of the value that Kernel.Derive
	// makes for each unit. Later rounds with the same version may get it from a cache
	// (routing probabilities under Θ of a step). Versions grow.
	DerivedVersion uint64
	// Shape is the shape of every partial of a Sum round.
	Shape Shape
	// Payloads holds, for a Collect round, each unit's own bytes (may be nil).
	Payloads [][]byte
	// Children holds, for a Collect round, a whole job for each unit to run; the
	// unit's result is then the child's encoded Outcome.
	Children []*Job
	// Has says, for a Collect round, which units have their results in the trainer's
	// state already and need not run (may be nil).
	Has []bool
}

// Var is a named, versioned value. The same (ID, Version) always has the same
// bytes within a job.
type Var struct {
	ID      uint16
	Version uint64
	Data    []byte // little-endian
}

// Vars are the values that a unit can read.
type Vars []Var

// Get returns the bytes of a value. It panics if the round did not list the value.
func (v Vars) Get(id uint16) []byte {
	for i := range v {
		if v[i].ID == id {
			return v[i].Data
		}
	}
	panic(fmt.Sprintf("algorithms: variable %d is not part of the round", id))
}

// Version returns the version of a value. It panics if the round did not list the value.
func (v Vars) Version(id uint16) uint64 {
	for i := range v {
		if v[i].ID == id {
			return v[i].Version
		}
	}
	panic(fmt.Sprintf("algorithms: variable %d is not part of the round", id))
}

// Unit is one idempotent piece of a round, as its kernel sees it.
type Unit struct {
	ID             int
	Of             int // units in the round
	Op             uint8
	Scope          Scope
	Roles          dataset.Roles
	Steps          [2]uint64
	DerivedVersion uint64
	Payload        []byte
	Child          *Job
	// Reserve, if set, reserves bytes for the derived value that Derive is about to
	// make, and reports whether so many are free.
	Reserve func(bytes int) bool
	// Lanes, if set, lends idle lanes to Derive and Run. They change no bits.
	Lanes Lanes
}

// Helpers returns how many idle lanes can help with the unit.
func (u *Unit) Helpers() int {
	if u.Lanes == nil {
		return 0
	}
	return u.Lanes.Idle()
}

// TryReserve reserves memory for a derived value of so many bytes. If it reports false,
// Derive returns nil.
func (u *Unit) TryReserve(bytes int) bool { return u.Reserve == nil || u.Reserve(bytes) }

// Unit returns unit id of the round.
func (r *Round) Unit(id int) Unit {
	u := Unit{ID: id, Of: r.Units, Op: r.Op, Scope: r.Scope, Roles: r.Roles, Steps: r.Steps, DerivedVersion: r.DerivedVersion}
	if r.Payloads != nil {
		u.Payload = r.Payloads[id]
	}
	if r.Children != nil {
		u.Child = r.Children[id]
	}
	return u
}

// Shards returns the range [lo, hi) of shards, of s in all, that the unit needs.
func (u Unit) Shards(s int) (lo, hi int) {
	switch u.Scope {
	case Whole:
		return 0, s
	case None:
		return 0, 0
	}
	return u.ID * s / u.Of, (u.ID + 1) * s / u.Of
}

// Rows lists the rows that the unit sees.
func (u Unit) Rows(d *dataset.Data) []dataset.RowRef {
	lo, hi := u.Shards(len(d.Manifest.Shards))
	return d.Select(lo, hi, u.Roles)
}

// BatchUnits returns U, the number of units of a round on a mini-batch of b rows
// of a dataset with s shards: min(s, the largest power of two at most b/32, 1 at
// least) (design section 8.3).
func BatchUnits(b, s int) int {
	u := 1
	for u*2 <= b/32 {
		u *= 2
	}
	return min(u, s)
}

// BatchShare returns b_u, the rows that unit u of n draws of a batch of b rows.
func BatchShare(u, n, b int) int { return (u+1)*b/n - u*b/n }
