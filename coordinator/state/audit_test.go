package state

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

// refusals returns a ring of n refusals.
func refusals(n int) (r ring) {
	for i := range n {
		r.add(&protocol.AuditRecord{Number: uint64(i + 1), Count: 1}, n)
	}
	return r
}

// auditOf returns the records of a state, the newest first.
func auditOf(s *State) (list []protocol.AuditRecord) {
	for r := range s.Audit {
		list = append(list, *r)
	}
	return list
}

func request(inner []byte) []byte {
	e := protocol.RequestEntry{Record: protocol.AuditRecord{Time: 9, Caller: "ana", Role: "admin", From: "h:1",
		Request: "POST /x", About: "job 3", Refused: "forged", Count: 5}, Inner: inner}
	return e.Append(nil)
}

// TestVia: a record keeps the name of a proxy, also in a snapshot.
func TestVia(t *testing.T) {
	m := newMachine(t)
	e := protocol.RequestEntry{Record: protocol.AuditRecord{Caller: "ana", Role: "submit", Via: "edge",
		Request: "POST /x"}, Inner: protocol.EncodeEntry(protocol.EntryTrust, protocol.TrustEntry{Worker: "w"})}
	m.raw(e.Append(nil))
	m.do(protocol.EntryRecord, &protocol.RecordEntry{Records: []protocol.AuditRecord{{Caller: "ana", Via: "edge",
		Count: 2}, {Caller: "ana"}}})
	s := decode(t, encode(t, m.s))
	if got := auditOf(s); len(got) != 3 || got[0].Via != "" || got[1].Via != "edge" || got[2].Via != "edge" {
		t.Errorf("%+v", got)
	}
}

// TestRequests: the state applies the inner entry, returns its result and records what became
// of it. The caller can neither say that it was refused nor count as refusals.
func TestRequests(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	pause := protocol.EncodeEntry(protocol.EntryPause, protocol.JobEntry{Job: j.ID, Time: 5})
	r := m.raw(request(pause))
	if paused, ok := r.Value.(*Job); !ok || paused.State != protocol.Paused || m.s.Job(j.ID) != paused {
		t.Errorf("%+v", r)
	}
	if r := m.raw(request(protocol.EncodeEntry(protocol.EntryTrust, protocol.TrustEntry{Worker: "w"}))); !errors.Is(r.Err,
		ErrNotFound) {
		t.Errorf("%+v", r)
	}
	want := []protocol.AuditRecord{
		{Number: 2, Time: 9, Caller: "ana", Role: "admin", From: "h:1", Request: "POST /x", About: "job 3",
			Refused: `quarantined worker "w": not found`, Count: 1},
		{Number: 1, Time: 9, Caller: "ana", Role: "admin", From: "h:1", Request: "POST /x", About: j.String()},
	}
	if got := auditOf(m.s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v", got)
	}
	before := m.s
	for what, entry := range map[string][]byte{
		"a request in a request": request(request(pause)), "no entry": request(nil), "half a request": request(pause)[:20],
		"another version": request([]byte{protocol.Version + 1, byte(protocol.EntryPause)}),
	} {
		if r := m.raw(entry); !errors.Is(r.Err, ErrInvalid) || len(auditOf(m.s)) != 2 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	last := m.s
	if r := m.raw(request([]byte{protocol.Version, 99})); !errors.Is(r.Err, ErrUnknownEntry) || m.s != last {
		t.Errorf("an unknown entry: %+v", r)
	}
	if len(auditOf(before)) != 2 {
		t.Error("a state that was handed out has changed")
	}
}

// TestAuditRing: the last records stay, refusals displace no change, and records are small
// whatever callers say.
func TestAuditRing(t *testing.T) {
	m := newMachine(t)
	long := protocol.AuditRecord{Time: 1, Caller: strings.Repeat("c", 500), Role: "admin", From: strings.Repeat("f", 500),
		Request: strings.Repeat("\xff", 500), About: strings.Repeat("ü", 500), Refused: strings.Repeat("r", 500),
		Token: strings.Repeat("t", 99), Serial: strings.Repeat("9", 99)}
	refusal := long
	refusal.Count = 3
	batch := func(r protocol.AuditRecord) *protocol.RecordEntry {
		e := new(protocol.RecordEntry)
		for range protocol.MaxRecords {
			e.Records = append(e.Records, r)
		}
		return e
	}
	m.do(protocol.EntryRecord, batch(long))
	for range maxRefusals/protocol.MaxRecords + 2 {
		m.do(protocol.EntryRecord, batch(refusal))
	}
	if n := len(auditOf(m.s)) - protocol.MaxRecords; n > maxRefusals || n < maxRefusals-maxRefusals/16 {
		t.Errorf("%d refusals and %d changes, want at most %d refusals", n, protocol.MaxRecords, maxRefusals)
	}
	for range maxChanges/protocol.MaxRecords + 2 {
		m.do(protocol.EntryRecord, batch(long))
	}
	list := auditOf(m.s)
	if len(list) > MaxAudit || len(list) < MaxAudit-MaxAudit/16 || list[0].Number != m.s.recorded {
		t.Fatalf("%d records, the first is %d of %d", len(list), list[0].Number, m.s.recorded)
	}
	for i := 1; i < len(list); i++ {
		if list[i].Number >= list[i-1].Number {
			t.Fatalf("record %d follows record %d", list[i].Number, list[i-1].Number)
		}
	}
	b := encode(t, m.s)
	if len(b) > MaxAudit*800 {
		t.Errorf("the snapshot has %d bytes", len(b))
	}
	if !bytes.Equal(encode(t, decode(t, b)), b) {
		t.Error("the records do not survive a snapshot")
	}
	if r := m.raw(encodeEntry(protocol.EntryRecord, &protocol.RecordEntry{Records: make([]protocol.AuditRecord,
		protocol.MaxRecords+1)})); !errors.Is(r.Err, ErrInvalid) {
		t.Errorf("too many records: %+v", r)
	}
	entry, s := request(protocol.EncodeEntry(protocol.EntryTrust, protocol.TrustEntry{Worker: "w"})), m.s
	allocs.AtMost(t, 16<<10, "a record", func() { s.Apply(s.Index()+1, entry) })
}

// TestAuditShares: a caller with many changes or refusals displaces only its own records. Records of other users and of
// other addresses stay, in order.
func TestAuditShares(t *testing.T) {
	m := newMachine(t)
	of := func(caller, from string, count uint64, n int) {
		for n > 0 {
			e := new(protocol.RecordEntry)
			for range min(n, protocol.MaxRecords) {
				e.Records = append(e.Records, protocol.AuditRecord{Caller: caller, From: from, Count: count})
			}
			n -= len(e.Records)
			m.do(protocol.EntryRecord, e)
		}
	}
	for count, most := range map[uint64]int{0: maxChanges, 1: maxRefusals} {
		of("ana", "h:1", count, 10)
		of("", "10.0.0.1:1", count, 20)
		of("bob", "h:1", count, most/4)
		for i := range 3 {
			of("eve", fmt.Sprintf("h:%d", i), count, most)
			of("", fmt.Sprintf("10.0.0.2:%d", i), count, most)
		}
	}
	counts, last := make(map[string]int), m.s.recorded+1
	for _, r := range auditOf(m.s) {
		host, _, _ := strings.Cut(r.From, ":")
		if r.Caller != protocol.NoCaller {
			host = ""
		}
		counts[fmt.Sprintf("%s%s %d", r.Caller, host, r.Count)]++
		if r.Number >= last {
			t.Fatalf("record %d follows record %d", r.Number, last)
		}
		last = r.Number
	}
	for count, most := range map[int]int{0: maxChanges, 1: maxRefusals} {
		got := func(who string) int { return counts[fmt.Sprintf("%s %d", who, count)] }
		if got("ana") != 10 || got("-10.0.0.1") != 20 || got("bob") != most/4 || got("eve") < most/4 ||
			got("-10.0.0.2") < most/4 {
			t.Errorf("of %d: %v", most, counts)
		}
	}
	if b := encode(t, m.s); !bytes.Equal(encode(t, decode(t, b)), b) {
		t.Error("the records do not survive a snapshot")
	}
}

// TestShareOf: callers with few records keep them, and the others have equal shares.
func TestShareOf(t *testing.T) {
	for _, c := range []struct {
		counts  []int
		n, want int
	}{{[]int{1, 2, 100}, 50, 47}, {[]int{10, 10}, 10, 5}, {[]int{3, 50, 60, 70}, 63, 20}, {[]int{5, 5}, 10, math.MaxInt},
		{[]int{1, 1, 1}, 2, 1}, {nil, 5, math.MaxInt}} {
		if got := shareOf(c.counts, c.n); got != c.want {
			t.Errorf("%v, at most %d: %d, want %d", c.counts, c.n, got, c.want)
		}
	}
}

// TestManyCallers: if there are more callers than records, the newest records stay.
func TestManyCallers(t *testing.T) {
	var r ring
	for i := range maxChanges + 1 {
		r.add(&protocol.AuditRecord{Number: uint64(i + 1), Caller: fmt.Sprint(i)}, maxChanges)
	}
	if n := r.len(); n != maxChanges-maxChanges/16+1 || r.at(n-1).Number != maxChanges+1 ||
		r.at(0).Number != maxChanges/16+1 {
		t.Errorf("%d records from %d", n, r.at(0).Number)
	}
}

// TestRevoke: a certificate is revoked until a day after its end, and at most MaxRevoked are.
func TestRevoke(t *testing.T) {
	m := newMachine(t)
	of := func(serial string, until, now int64) *protocol.RevokeEntry {
		return &protocol.RevokeEntry{Revocation: protocol.Revocation{Serial: serial, Until: until, Time: now}}
	}
	for _, serial := range []string{"", "0", "01", "AB", "x", "a b", strings.Repeat("1", protocol.MaxSerial+1)} {
		if err := m.refused(protocol.EntryRevoke, of(serial, 0, 1)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", serial, err)
		}
	}
	first := m.do(protocol.EntryRevoke, of("b1", 1000, 10))
	if again := m.do(protocol.EntryRevoke, of("b1", 7, 11)); again != first {
		t.Errorf("again: %+v", again)
	}
	m.do(protocol.EntryRevoke, of("a1", 0, 20))
	if !m.s.Revoked("b1") || !m.s.Revoked("a1") || m.s.Revoked("c1") || m.s.Revoked("") {
		t.Errorf("%+v", m.s.Revocations())
	}
	m.do(protocol.EntryRevoke, of("c1", 0, 1000+forgetAfter))
	if !m.s.Revoked("b1") {
		t.Error("a certificate is forgotten less than a day after its end")
	}
	before := m.s
	m.do(protocol.EntryRevoke, of("d1", 0, 1001+forgetAfter))
	if m.s.Revoked("b1") || !m.s.Revoked("a1") || !before.Revoked("b1") {
		t.Errorf("%+v", m.s.Revocations())
	}
	for i := range MaxRevoked - len(m.s.Revocations()) {
		m.s.revoked = append(m.s.revoked, &of(fmt.Sprintf("f%05x", i), 1_000_000, 1001+forgetAfter).Revocation)
	}
	if err := m.refused(protocol.EntryRevoke, of("e1", 0, 1002+forgetAfter)); !strings.Contains(err.Error(),
		"replace the authority") {
		t.Error(err)
	}
	m.do(protocol.EntryRevoke, of("e1", 0, 1_000_001+forgetAfter))
	if n := len(m.s.Revocations()); n != 4 {
		t.Errorf("%d are left", n)
	}
	if r := m.s.Reborn(m.s.Index() + 9); !r.Revoked("a1") {
		t.Error("a restored cluster has forgotten a certificate")
	}
}

// TestConflictsOfACaller: conflicts of a caller within a minute are counted in one record for each request, so they
// displace neither changes nor the refusals of others. A snapshot in between changes nothing.
func TestConflictsOfACaller(t *testing.T) {
	m := newMachine(t)
	conflict := func(caller string, at int64) []byte {
		return (&protocol.RequestEntry{
			Record: protocol.AuditRecord{Time: at, Caller: caller, Role: "submit", From: "h:1",
				Request: "POST /v1/workers/w/trust"},
			Inner: protocol.EncodeEntry(protocol.EntryTrust, protocol.TrustEntry{Worker: "w"}),
		}).Append(nil)
	}
	m.raw(conflict("ana", 5))
	for i := range 3000 {
		m.raw(conflict("eve", 10+int64(i)/100))
	}
	m.raw(conflict("eve", 10+conflictsWithin))
	var got []string
	for _, r := range auditOf(m.s) {
		got = append(got, fmt.Sprint(r.Caller, " ", r.Time, " ", r.Count))
	}
	if want := []string{"eve 70 1", "eve 10 3000", "ana 5 1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	again := decode(t, encode(t, m.s))
	next, _ := again.Apply(m.s.Index()+1, conflict("ana", 6))
	m.raw(conflict("ana", 6))
	if fmt.Sprint(auditOf(next)) != fmt.Sprint(auditOf(m.s)) {
		t.Error("a state that was read from a snapshot counts conflicts in another way")
	}
}
