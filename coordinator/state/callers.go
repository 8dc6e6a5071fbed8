package state

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// MaxTokens bounds the tokens that a cluster knows. Beyond it, the token that ended first is
// forgotten. If none has ended, another token is refused.
const MaxTokens = 10_000

// ErrTokens says that the cluster has as many valid tokens as it may have.
var ErrTokens = errors.New("too many tokens")

// tokenTable has the tokens of users, by ID.
type tokenTable struct{ tokens []*Token }

// Token is a token of a user. It is immutable.
type Token struct {
	protocol.Token
	Hash string // SHA-256 of the secret
}

// ended returns when a token ended, if it has ended at a time.
func (t *Token) ended(now int64) (at int64, ok bool) {
	switch {
	case t.Revoked != 0 && (t.Expires == 0 || t.Revoked < t.Expires):
		return t.Revoked, true
	case t.Expires != 0 && t.Expires <= now:
		return t.Expires, true
	}
	return 0, false
}

// Tokens lists the tokens by ID, also expired and revoked ones.
func (t *tokenTable) Tokens() []*Token { return t.tokens }

// ValidTokens counts the tokens that are valid at a time, in Unix seconds.
func (t *tokenTable) ValidTokens(now int64) (n int) {
	for _, one := range t.tokens {
		if _, ended := one.ended(now); !ended {
			n++
		}
	}
	return n
}

// Token returns the token with an ID, or nil.
func (t *tokenTable) Token(id string) *Token {
	return find(t.tokens, id, tokenID)
}

func tokenID(t *Token) string { return t.ID }

// WithoutTokens returns the state without tokens.
func (s *State) WithoutTokens() *State {
	next := *s
	next.tokens = nil
	return &next
}

// putToken adds a token. The same token again changes nothing, even if it was revoked meanwhile.
func putToken(s *State, e *protocol.TokenPutEntry) (any, error) {
	t := &Token{protocol.Token{ID: e.ID, Role: e.Role, Owner: e.Owner, Quota: e.Quota, Created: e.Time,
		Expires: e.Expires}, e.SHA256}
	if err := t.check(); err != nil {
		return nil, err
	}
	i, ok := search(s.tokens, t.ID, tokenID)
	if ok {
		same := *t
		old := s.tokens[i]
		same.Created, same.Revoked = old.Created, old.Revoked
		if same != *old {
			return nil,
				fmt.Errorf("a token with the id %s %w and is another one; create the token again, which draws another id",
					t.ID, ErrExists)
		}
		return old, nil
	}
	if len(s.tokens) >= MaxTokens {
		first, when := -1, int64(0)
		for k, one := range s.tokens {
			if at, ok := one.ended(e.Time); ok && (first < 0 || at < when) {
				first, when = k, at
			}
		}
		if first < 0 {
			return nil, fmt.Errorf("%w: %d tokens are valid, and at most %d are possible; revoke some with coppice token revoke",
				ErrTokens, len(s.tokens), MaxTokens)
		}
		s.tokens = removed(s.tokens, first)
		i, _ = search(s.tokens, t.ID, tokenID)
	}
	s.tokens = inserted(s.tokens, i, t)
	return t, nil
}

// revokeToken ends a token. A token that was revoked before stays as it is.
func revokeToken(s *State, e *protocol.TokenRevokeEntry) (any, error) {
	i, ok := search(s.tokens, e.ID, tokenID)
	if !ok {
		return nil, fmt.Errorf("token %.80q: %w", e.ID, ErrNotFound)
	}
	if s.tokens[i].Revoked == 0 {
		next := *s.tokens[i]
		next.Revoked = max(1, e.Time)
		s.tokens = replaced(s.tokens, i, &next)
	}
	return s.tokens[i], nil
}

// check returns an error if a token is not valid.
func (t *Token) check() error {
	switch {
	case protocol.CheckTokenID(t.ID) != nil:
		return invalid("%v", protocol.CheckTokenID(t.ID))
	case !isDigest(t.Hash):
		return invalid("the SHA-256 of token %s is not valid: want 64 hexadecimal digits", t.ID)
	case !slices.Contains(rights.Users, rights.Role(t.Role)):
		return invalid("the role %.80q of token %s: want read, submit or admin", t.Role, t.ID)
	case protocol.CheckID(t.Owner) != nil:
		return invalid("the owner %.80q of token %s: want 1 to 64 letters, digits, - or _", t.Owner, t.ID)
	case t.Expires < 0 || t.Revoked < 0:
		return invalid("token %s ends before 1970", t.ID)
	}
	return nil
}

func (t *Token) fields(c *wire.Coder) {
	c.Text("id", &t.ID)
	c.Text("SHA-256", &t.Hash)
	c.Text("role", &t.Role)
	c.Text("owner", &t.Owner)
	wire.Number(c, "quota", &t.Quota, 1<<32-1)
	wire.Numbers(c, "created", &t.Created, &t.Expires, &t.Revoked)
}

const (
	// MaxRevoked bounds the revoked certificates.
	MaxRevoked = 10_000
	// forgetAfter is how many seconds after its end a certificate is forgotten: clocks differ.
	forgetAfter = 24 * 60 * 60
)

// revocations has the certificates that are refused, by serial number.
type revocations struct{ revoked []*protocol.Revocation }

// Revocations lists the revoked certificates, by serial number.
func (t *revocations) Revocations() []*protocol.Revocation { return t.revoked }

// Revoked reports whether the certificate with a serial number is revoked.
func (t *revocations) Revoked(serial string) bool {
	_, ok := search(t.revoked, serial, revokedSerial)
	return ok
}

func revokedSerial(r *protocol.Revocation) string { return r.Serial }

func revoke(s *State, e *protocol.RevokeEntry) (any, error) {
	if !protocol.CheckSerial(e.Serial) {
		return nil, invalid("serial number %.80q: want at most %d hexadecimal digits in lower case", e.Serial,
			protocol.MaxSerial)
	}
	if len(e.Identity) > protocol.MaxIdentity {
		return nil, invalid("the identity of certificate %s has %d bytes, want at most %d", e.Serial, len(e.Identity),
			protocol.MaxIdentity)
	}
	s.revoked = slices.DeleteFunc(slices.Clone(s.revoked), func(r *protocol.Revocation) bool {
		return r.Until != 0 && r.Until < e.Time-forgetAfter
	})
	at, ok := search(s.revoked, e.Serial, revokedSerial)
	if ok {
		return s.revoked[at], nil
	}
	if len(s.revoked) >= MaxRevoked {
		return nil, invalid("%d certificates are revoked already; to refuse more, replace the authority", MaxRevoked)
	}
	r := e.Revocation
	s.revoked = slices.Insert(s.revoked, at, &r)
	return &r, nil
}

func revocationFields(c *wire.Coder, r *protocol.Revocation) {
	c.Text("serial number", &r.Serial)
	c.Text("identity", &r.Identity)
	wire.Numbers(c, "end", &r.Until)
	wire.Numbers(c, "time", &r.Time)
}

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
		same := before.Caller == r.Caller && before.Role == r.Role && before.Token == r.Token && before.Serial == r.Serial &&
			before.Via == r.Via
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

// add adds a record. If the ring has most records already, a sixteenth of them is forgotten first. These are old
// records of the callers with the most records, so a caller with few records keeps them, whatever others do.
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

// shareOf returns the greatest number of records, at least 1, that each caller may keep so that all keep at most n
// together. The numbers of records that they have are sorted. If there are more than n callers, it is 1.
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

// memberTable has the addresses of the coordinators, by ID.
type memberTable struct{ members []protocol.MemberEntry }

// Members lists the coordinators that made themselves known, by ID.
func (t *memberTable) Members() []protocol.MemberEntry { return t.members }

// Member returns the addresses of a coordinator.
func (t *memberTable) Member(id string) (protocol.MemberEntry, bool) {
	_, ok := search(t.members, id, memberID)
	return find(t.members, id, memberID), ok
}

func memberID(m protocol.MemberEntry) string { return m.ID }

func putMember(s *State, e *protocol.MemberEntry) (any, error) {
	if e.ID == "" {
		return nil, invalid("the member has no ID")
	}
	if i, ok := search(s.members, e.ID, memberID); ok {
		s.members = replaced(s.members, i, *e)
	} else {
		s.members = inserted(s.members, i, *e)
	}
	return nil, nil
}

func removeMember(s *State, e *protocol.MemberRemoveEntry) (any, error) {
	if i, ok := search(s.members, e.ID, memberID); ok {
		s.members = removed(s.members, i)
	}
	return nil, nil
}

// MaxQuarantined bounds the workers in quarantine. Beyond it, the worker that has been there
// longest is released.
const MaxQuarantined = 1024

// quarantine lists the workers that are not used, by worker.
type quarantine struct{ workers []quarantinedWorker }

// quarantinedWorker is a worker in quarantine.
type quarantinedWorker struct {
	protocol.Quarantined
	index uint64 // of the entry
}

// Quarantined returns the workers that must not be used, each with the reason. The map is
// the caller's.
func (q *quarantine) Quarantined() map[string]string {
	list := make(map[string]string, len(q.workers))
	for _, d := range q.workers {
		list[d.Worker] = d.Reason
	}
	return list
}

// QuarantinedWorkers lists the workers that must not be used, by worker, for display.
func (q *quarantine) QuarantinedWorkers() []protocol.Quarantined {
	var list []protocol.Quarantined
	for _, d := range q.workers {
		list = append(list, d.Quarantined)
	}
	return list
}

func quarantinedName(d quarantinedWorker) string { return d.Worker }

// suspect puts a worker in quarantine and marks the jobs that it served, running or ended:
// their results may be wrong. The first mark of a job and the first reason of a worker
// stay.
func suspect(s *State, e *protocol.SuspectEntry) (any, error) {
	if err := s.fence(e.Epoch, fmt.Sprintf("worker %.80q", e.Worker)); err != nil {
		return nil, err
	}
	if e.Worker == "" || len(e.Worker) > protocol.MaxText || len(e.Jobs) > protocol.MaxSuspects {
		return nil, invalid("the report of a wrong result is not valid: worker %.80q, %d jobs", e.Worker, len(e.Jobs))
	}
	reason := e.Reason[:min(len(e.Reason), protocol.MaxReason)]
	s.jobs = slices.Clone(s.jobs)
	for _, id := range e.Jobs {
		if i, ok := search(s.jobs, id, jobID); ok {
			next := *s.jobs[i]
			next.Suspect = cmp.Or(next.Suspect, fmt.Sprintf("worker %s: %s", e.Worker, reason))
			next.events = next.quarantined(e)
			s.jobs[i] = &next
		}
	}
	if i, ok := search(s.workers, e.Worker, quarantinedName); !ok {
		d := quarantinedWorker{protocol.Quarantined{Worker: e.Worker, Reason: reason, Time: e.Time}, s.index}
		s.workers = inserted(s.workers, i, d)
	}
	if len(s.workers) > MaxQuarantined {
		oldest := 0
		for i := range s.workers {
			if s.workers[i].index < s.workers[oldest].index {
				oldest = i
			}
		}
		s.workers = removed(s.workers, oldest)
	}
	return nil, nil
}

func trust(s *State, e *protocol.TrustEntry) (any, error) {
	i, ok := search(s.workers, e.Worker, quarantinedName)
	if !ok {
		return nil, fmt.Errorf("quarantined worker %.80q: %w", e.Worker, ErrNotFound)
	}
	s.workers = removed(s.workers, i)
	return nil, nil
}

func (d *quarantinedWorker) fields(c *wire.Coder) {
	c.Text("worker", &d.Worker)
	c.Text("reason", &d.Reason)
	wire.Numbers(c, "time", &d.Time)
	wire.Numbers(c, "log index", &d.index)
}
