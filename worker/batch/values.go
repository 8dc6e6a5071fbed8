package batch

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// keptVersions is how many versions of a value a job keeps: a round in work reads one, and the
	// next round another.
	keptVersions = 2
	// maxValueBytes bounds the values of a job, in bytes.
	maxValueBytes = 8 * protocol.MaxMessage
)

// find returns a version that is here, or nil.
func (v values) find(ref protocol.Ref) *Version {
	x := v[ref.ID]
	if x == nil {
		return nil
	}
	for _, y := range x.versions {
		if y.Number == ref.Version {
			return y
		}
	}
	return nil
}

// room reports whether a job may keep bytes more for a value.
func (v values) room(id uint16, bytes int) bool {
	if v[id] == nil && len(v) >= protocol.MaxVars {
		return false
	}
	for _, x := range v {
		if x.spare != nil {
			bytes += x.spare.bytes
		}
		for _, y := range x.versions {
			bytes += y.bytes
		}
	}
	return bytes <= maxValueBytes
}

// variable returns a value, with the versions that are here.
func (v values) variable(id uint16) *variable {
	x := v[id]
	if x == nil {
		x = &variable{versions: make([]*Version, 0, keptVersions+1)}
		v[id] = x
	}
	return x
}

// Whole reports whether nothing of the version is missing.
func (v *Version) Whole() bool { return v.here == v.total }

// list makes v the newest version, so that it is dropped last, and drops the oldest one beyond
// keptVersions.
func (j *Job) list(v *Version) {
	x := v.of
	if at := slices.Index(x.versions, v); at >= 0 {
		x.versions = slices.Delete(x.versions, at, at+1)
	}
	x.versions, v.listed = append(x.versions, v), true
	if len(x.versions) > keptVersions {
		j.unlist(x.versions[0])
	}
}

// unlist drops a version.
func (j *Job) unlist(v *Version) {
	at := slices.Index(v.of.versions, v)
	v.of.versions = slices.Delete(v.of.versions, at, at+1)
	v.listed = false
	j.reuse(v)
}

// reuse gives up a version that is neither listed nor read. Its memory, unless it is a message's,
// serves a newer one.
func (j *Job) reuse(v *Version) {
	switch {
	case v.listed || v.users > 0:
	case v.lent || v.chunks != nil:
		j.machine.do(Action{Kind: Release, Version: v})
	default:
		v.of.spare = v
	}
}

// keep keeps a version that came whole.
func (j *Job) keep(e *Event) {
	if v := j.values.find(e.Ref); v != nil && v.Whole() {
		j.list(v)
		return
	} else if v != nil {
		j.unlist(v)
	}
	if !j.values.room(e.Ref.ID, e.Bytes) {
		j.refuse("a value of %d bytes is larger than a worker keeps for a job", e.Bytes)
		return
	}
	x := j.values.variable(e.Ref.ID)
	v := x.spare
	x.spare = nil
	if v == nil || v.bytes < e.Bytes || e.Lent {
		v = &Version{of: x, bytes: e.Bytes}
	}
	v.ID, v.Number, v.lent = e.Ref.ID, e.Ref.Version, e.Lent
	j.list(v)
	j.machine.do(Action{Kind: Keep, Version: v, Bytes: e.Bytes, Local: e.Local})
}

// keepChunk keeps a chunk of a version. Its bytes came with the message, or it is a result of this
// worker.
func (j *Job) keepChunk(e *Event) {
	v := j.values.find(e.Ref)
	if v == nil && j.values.room(e.Ref.ID, 0) {
		v = &Version{ID: e.Ref.ID, Number: e.Ref.Version, of: j.values.variable(e.Ref.ID), total: e.Of, chunks: make(map[int]bool)}
	}
	if v == nil || !j.values.room(e.Ref.ID, e.Bytes) {
		j.refuse("a chunk of %d bytes is larger than a worker keeps for a job", e.Bytes)
		return
	}
	j.list(v)
	isHere, known := v.chunks[e.Index]
	switch {
	case v.chunks == nil: // another leader sent it whole
	case v.total != e.Of:
		j.refuse("a chunk says that its value has %d chunks, but the value has %d", e.Of, v.total)
	case isHere || !e.Sent && (known || !e.Found):
	default:
		v.chunks[e.Index] = true
		v.here++
		v.bytes += e.Bytes
		j.machine.do(Action{Kind: KeepChunk, Version: v, Index: e.Index, Local: e.Local})
	}
}

// refuse drops a message.
func (j *Job) refuse(format string, args ...any) {
	err := fmt.Errorf("%w: %w", protocol.ErrMessage, fmt.Errorf(format, args...))
	j.machine.do(Action{Kind: RefuseMessage, Err: err})
}
