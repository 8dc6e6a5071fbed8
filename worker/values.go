package worker

import (
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// keptVersions is how many versions of a value a job keeps: the one that a round
// in work reads, and the next.
const keptVersions = 2

// value is one version of a value. Its bytes never change while a batch holds
// it; afterwards its memory may serve a newer version.
type value struct {
	version uint64
	data    []byte
	message []byte // in which data stands; nil: it has memory of its own
	free    func(message []byte)
	pieces  *pieces // in place of data, if not nil
	users   int     // batches that hold it
	listed  bool
	of      *variable
}

// variable is a value of a job by its ID.
type variable struct {
	versions []*value // in the order of arrival, or of arriving again
	spare    *value   // memory for a newer version
}

// values keeps the newest versions of a job's values. The caller guards it.
type values map[uint16]*variable

// find returns a version that is at hand, or nil.
func (v values) find(ref protocol.Ref) *value {
	x := v[ref.ID]
	if x == nil {
		return nil
	}
	for _, y := range x.versions {
		if y.version == ref.Version {
			return y
		}
	}
	return nil
}

// maxValueBytes bounds the values of a job, in bytes.
const maxValueBytes = 8 * protocol.MaxMessage

// room reports whether a version of n bytes may be kept beside the others: a job has
// at most MaxVars values, of at most maxValueBytes in all.
func (v values) room(ref protocol.Ref, n int) bool {
	if v[ref.ID] == nil && len(v) >= protocol.MaxVars {
		return false
	}
	for _, x := range v {
		if x.spare != nil {
			n += cap(x.spare.data)
		}
		for _, y := range x.versions {
			n += cap(y.data) + y.pieces.size()
		}
	}
	return n <= maxValueBytes
}

// variable returns the value of an ID, with the versions that it has.
func (v values) variable(id uint16) *variable {
	x := v[id]
	if x == nil {
		x = &variable{versions: make([]*value, 0, keptVersions+1)}
		v[id] = x
	}
	return x
}

// blank returns memory of n bytes for a version of a value, to be filled and
// put.
func (v values) blank(ref protocol.Ref, n int) *value {
	x := v.variable(ref.ID)
	y := x.spare
	x.spare = nil
	if y == nil || cap(y.data) < n {
		y = &value{data: make([]byte, n), of: x}
	}
	y.version, y.data = ref.Version, y.data[:n]
	return y
}

// lend returns a version of a value whose bytes stay where they are, in a message, to be put. free takes the message when
// nobody reads it any more.
func (v values) lend(ref protocol.Ref, data, message []byte, free func([]byte)) *value {
	x := v.variable(ref.ID)
	x.spare = nil
	return &value{version: ref.Version, data: data, message: message, free: free, of: x}
}

// put lists y as the newest version and drops the oldest beyond keptVersions.
func (v values) put(y *value) {
	x := y.of
	y.listed = true
	x.versions = append(x.versions, y)
	if len(x.versions) > keptVersions {
		old := x.versions[0]
		x.versions = x.versions[:copy(x.versions, x.versions[1:])]
		old.listed = false
		old.reuse()
	}
}

// drop unlists y, of which something is missing.
func (v values) drop(y *value) {
	x := y.of
	x.versions = slices.DeleteFunc(x.versions, func(z *value) bool { return z == y })
	y.listed = false
	y.reuse()
}

// whole reports whether nothing of the version is missing.
func (y *value) whole() bool { return y.pieces == nil || y.pieces.whole() }

// renew makes y the newest version, so that the next one does not drop it.
func (v values) renew(y *value) {
	list := y.of.versions
	for i, z := range list {
		if z == y {
			copy(list[i:], list[i+1:])
			list[len(list)-1] = y
			return
		}
	}
}

// missing lists the refs whose versions are not at hand.
func (v values) missing(refs []protocol.Ref) []protocol.Ref {
	var lacks []protocol.Ref
	for _, ref := range refs {
		if y := v.find(ref); y == nil || !y.whole() {
			lacks = append(lacks, ref)
		}
	}
	return lacks
}

// hold appends the versions that refs name, all of them at hand, to vars and
// held.
func (v values) hold(refs []protocol.Ref, vars round.Vars, held []*value) (round.Vars, []*value) {
	for _, ref := range refs {
		y := v.find(ref)
		y.users++
		held = append(held, y)
		x := round.Var{ID: ref.ID, Version: ref.Version, Data: y.data}
		if y.pieces != nil {
			x.Pieces = y.pieces.list
		}
		vars = append(vars, x)
	}
	return vars, held
}

// release gives up what hold held.
func release(held []*value) {
	for _, y := range held {
		y.users--
		y.reuse()
	}
}

func (y *value) reuse() {
	if !y.listed && y.users == 0 {
		y.pieces.release()
		y.pieces = nil
		if message := y.message; message != nil {
			y.message, y.data = nil, nil
			y.free(message)
			return
		}
		y.of.spare = y
	}
}
