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
	// Collect keeps each unit's bytes, in unit order.
	Collect
)

// MaxKind is the greatest length of a Round's Kind, in bytes.
const MaxKind = 32

// ValidKind reports whether a Round may have this Kind; empty: it names none.
func ValidKind(kind string) bool {
	for i := range len(kind) {
		c := kind[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == ' ' || c == '-') {
			return false
		}
	}
	return len(kind) <= MaxKind
}

// Scope says which part of the dataset a unit needs.
type Scope uint8

const (
	// Sharded units own consecutive shards: see Unit.Shards.
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
	Op   uint8 // which computation: the algorithm's own numbering
	// Kind is the word for the units of the round in metrics: "step", "tree". It is
	// a to z, digits, blanks and "-", at most MaxKind of them, and decides nothing.
	Kind  string
	Units int // unit u has ID u; a Sharded round has a power of two of them
	Scope Scope
	How   Combine
	// Roles chooses the rows that the units see.
	Roles dataset.Roles
	// Steps is the range [from, to) of mini-batches that a unit draws again from
	// its counter-based stream.
	Steps [2]uint64
	// Vars are the values that the units read. A worker may keep a version that
	// it has, so data is only sent to those that lack it.
	Vars []Var
	// Keep, when not 0, names a value worth deriving once and keeping for later
	// rounds with the same Keep (routing probabilities under Θ of a step).
	Keep uint64
	// Shape is the shape of every partial of a Sum round.
	Shape Shape
	// Payloads holds, for a Collect round, each unit's own bytes (may be nil).
	Payloads [][]byte
	// Children holds, for a Collect round, a whole job for each unit to run; the
	// part is then the child's encoded Outcome.
	Children []*Job
	// Has lists the units of a Collect round whose parts are already folded into
	// the trainer's state and need not run (may be nil).
	Has []bool
}

// Var is a named, versioned value. The same (ID, Version) always has the same
// bytes within a job.
type Var struct {
	ID      uint16
	Version uint64
	Data    []byte // little-endian
}

// Vars are the values at hand for a unit.
type Vars []Var

// Get returns the bytes of a value, and panics when the round did not list it.
func (v Vars) Get(id uint16) []byte {
	for i := range v {
		if v[i].ID == id {
			return v[i].Data
		}
	}
	panic(fmt.Sprintf("algorithms: variable %d is not part of the round", id))
}

// Version returns the version of a value of the round.
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
	ID      int
	Of      int // units in the round
	Op      uint8
	Scope   Scope
	Roles   dataset.Roles
	Steps   [2]uint64
	Keep    uint64
	Payload []byte
	Child   *Job
	// Room, where set, takes so many bytes for the derived value that Derive is about
	// to make, and tells whether there are as many.
	Room func(bytes int) bool
	// Lanes, where set, lends idle lanes to Derive and Run. They change no bits.
	Lanes Lanes
}

// Helpers returns how many idle lanes there are to help with the unit.
func (u *Unit) Helpers() int {
	if u.Lanes == nil {
		return 0
	}
	return u.Lanes.Idle()
}

// Fits takes room for a derived value of so many bytes; where there is none, Derive
// returns nil.
func (u *Unit) Fits(bytes int) bool { return u.Room == nil || u.Room(bytes) }

// Unit returns unit id of the round.
func (r *Round) Unit(id int) Unit {
	u := Unit{ID: id, Of: r.Units, Op: r.Op, Scope: r.Scope, Roles: r.Roles, Steps: r.Steps, Keep: r.Keep}
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
