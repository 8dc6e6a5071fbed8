package state

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxAudit bounds the audit records that are kept: of changes, and of refusals and conflicts. So
// what was refused never displaces a change.
const (
	MaxAudit    = maxChanges + maxRefusals
	maxChanges  = 8_000
	maxRefusals = 2_000
)

// auditLog says who asked for which change. Requests that were refused are counted together
// (AuditRecord.Count): by a coordinator without a look at the state, or here because they are in conflict with it.
type auditLog struct {
	recorded uint64 // the number of the last record
	changes  ring
	refusals ring
}

// ringOf returns the ring for a record, and how many records it has at most.
func (l *auditLog) ringOf(r *protocol.AuditRecord) (of *ring, most int) {
	if r.Count > 0 {
		return &l.refusals, maxRefusals
	}
	return &l.changes, maxChanges
}

// conflictsWithin is the time in seconds in which conflicts of a caller are counted in one record. So a
// caller cannot displace the refusals of others.
const conflictsWithin = 60

// noteConflict adds a record of a request that the state has refused, or counts it in the caller's newest record.
func (l *auditLog) noteConflict(r protocol.AuditRecord) {
	r.Count = 1
	r.Clip()
	for i := l.refusals.len() - 1; i >= max(0, l.refusals.len()-ringChunk); i-- {
		before := l.refusals.at(i)
		same := before.Caller == r.Caller && before.Role == r.Role && before.Token == r.Token && before.Serial == r.Serial && before.Via == r.Via
		if same && before.Request == r.Request && r.Time-before.Time < conflictsWithin {
			sum := *before
			sum.Count++
			l.refusals.replace(i, &sum)
			return
		}
	}
	l.note(r)
}

// note adds a record with the next number. Its texts are shortened.
func (l *auditLog) note(r protocol.AuditRecord) {
	l.recorded++
	r.Number = l.recorded
	r.Clip()
	of, most := l.ringOf(&r)
	of.add(&r, most)
}

// Audit calls yield with the audit records, the newest first. It is an iterator.
func (l *auditLog) Audit(yield func(*protocol.AuditRecord) bool) {
	for i, j := l.changes.len()-1, l.refusals.len()-1; i >= 0 || j >= 0; {
		var r *protocol.AuditRecord
		if j < 0 || i >= 0 && l.changes.at(i).Number > l.refusals.at(j).Number {
			r = l.changes.at(i)
			i--
		} else {
			r = l.refusals.at(j)
			j--
		}
		if !yield(r) {
			return
		}
	}
}

// ringChunk is the number of records of a chunk.
const ringChunk = 64

// ring has records in the order in which they were added. Its slices are shared with earlier states, so adding
// a record copies at most one chunk of pointers, and now and then the list of chunks.
type ring struct {
	full [][]*protocol.AuditRecord // chunks of ringChunk records
	last []*protocol.AuditRecord   // the newest records, fewer than ringChunk
}

func (r *ring) len() int { return len(r.full)*ringChunk + len(r.last) }

// at returns record i; the oldest is record 0.
func (r *ring) at(i int) *protocol.AuditRecord {
	if chunk := i / ringChunk; chunk < len(r.full) {
		return r.full[chunk][i%ringChunk]
	}
	return r.last[i-len(r.full)*ringChunk]
}

// replace puts a record in the place of record i.
func (r *ring) replace(i int, record *protocol.AuditRecord) {
	if chunk := i / ringChunk; chunk < len(r.full) {
		r.full = replaced(r.full, chunk, replaced(r.full[chunk], i%ringChunk, record))
		return
	}
	r.last = replaced(r.last, i-len(r.full)*ringChunk, record)
}

// add adds a record. If the ring has most records already, a sixteenth of them is forgotten first. These are old records
// of the callers with the most records, so a caller with few records keeps them, whatever others do.
func (r *ring) add(record *protocol.AuditRecord, most int) {
	if r.len() >= most {
		*r = r.shared(most - most/16)
	}
	if r.last = inserted(r.last, len(r.last), record); len(r.last) == ringChunk {
		r.full, r.last = inserted(r.full, len(r.full), r.last), nil
	}
}

// shared returns a ring with at most n of the records. Each caller keeps all its records, or its newest ones up to a
// number that is the same for all.
func (r *ring) shared(n int) (kept ring) {
	counts := make(map[string]int)
	for i := range r.len() {
		counts[sharerOf(r.at(i))]++
	}
	share := shareOf(slices.Sorted(maps.Values(counts)), n)
	var list []*protocol.AuditRecord
	for i := range r.len() {
		record := r.at(i)
		if caller := sharerOf(record); counts[caller] > share {
			counts[caller]--
		} else {
			list = append(list, record)
		}
	}
	for chunk := range slices.Chunk(list[max(0, len(list)-n):], ringChunk) {
		if kept.last = slices.Clip(chunk); len(chunk) == ringChunk {
			kept.full, kept.last = append(kept.full, kept.last), nil
		}
	}
	return kept
}

// sharerOf returns who a record counts for: the caller, or the address without its port if the caller has no name.
func sharerOf(r *protocol.AuditRecord) string {
	if r.Caller != protocol.NoCaller {
		return r.Caller
	}
	host := r.From
	if at := strings.LastIndex(host, ":"); strings.HasPrefix(host, "[") || strings.Count(host, ":") == 1 {
		host = host[:max(0, at)] // h:1 or [::1]:1, but not ::1
	}
	return "from " + host
}

// shareOf returns the greatest number of records, at least 1, that each caller may keep so that all keep at most n together.
// The numbers of records that they have are sorted. If there are more than n callers, it is 1.
func shareOf(counts []int, n int) int {
	for i, c := range counts {
		share := n / (len(counts) - i)
		if c > share {
			return max(1, share)
		}
		n -= c
	}
	return math.MaxInt
}

func addRecords(s *State, e *protocol.RecordEntry) (any, error) {
	if n := len(e.Records); n > protocol.MaxRecords {
		return nil, invalid("want at most %d audit records in one entry, got %d", protocol.MaxRecords, n)
	}
	for _, r := range e.Records {
		s.note(r)
	}
	return nil, nil
}

// readRecord adds a record of a snapshot.
func (l *auditLog) readRecord(c *wire.Coder) {
	r := new(protocol.AuditRecord)
	auditFields(c, r)
	of, most := l.ringOf(r)
	switch n := of.len(); {
	case r.Number == 0 || n > 0 && of.at(n-1).Number >= r.Number:
		c.Failf("audit records are not sorted by number: %d comes too late", r.Number)
	case n == most:
		c.Failf("want at most %d audit records of changes and %d of refusals", maxChanges, maxRefusals)
	}
	of.add(r, most)
	l.recorded = max(l.recorded, r.Number)
}

func auditFields(c *wire.Coder, r *protocol.AuditRecord) {
	wire.Numbers(c, "number", &r.Number)
	wire.Numbers(c, "time", &r.Time)
	c.Text("caller", &r.Caller)
	c.Text("role", &r.Role)
	c.Text("token", &r.Token)
	c.Text("serial number", &r.Serial)
	c.Text("address", &r.From)
	c.Text("request", &r.Request)
	c.Text("what it is about", &r.About)
	c.Text("refusal", &r.Refused)
	wire.Numbers(c, "refused requests", &r.Count)
	c.Tail("proxy", &r.Via)
}
