package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden snapshot")

// golden is a state with something of everything.
func golden(t testing.TB) *State {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	m.do(protocol.EntryMember, &protocol.MemberEntry{ID: "a", HTTP: "h:1", Raft: "h:2", NATS: "nats://h:3",
		Version: "0.1.0"})
	done := m.submit("t2", "done", 2)
	for _, kind := range []protocol.EntryKind{protocol.EntryJobState, protocol.EntryFinish} {
		m.do(kind, map[protocol.EntryKind]any{
			protocol.EntryJobState: &protocol.JobStateEntry{Epoch: epoch, Job: done.ID, State: protocol.Running, Time: 4},
			protocol.EntryFinish: &protocol.FinishEntry{
				Epoch: epoch, Job: done.ID, Outcome: []byte(`{"steps":7}`), Seconds: 1.5, Time: 5, Millis: 500,
				Models:      []protocol.ModelRef{{Digest: digest('1'), Blob: digest('2'), Bytes: 3}},
				Predictions: &protocol.BlobRef{Blob: digest('3'), Bytes: 4},
				Curve:       points(7, 0.25), FoldCurves: [][]byte{points(5, 0.5), points(6, 0.75)},
			},
		}[kind])
	}
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 4, Total: 3, Data: []byte{1, 2, 3},
		Progress: []byte(`{"step":4}`), Curve: points(4, 0.5), Events: []protocol.NumberedEvent{lost(2, 4.5)}})
	m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 5, Task: 2, Of: 4,
		Digest: digest('c'), Bytes: 8, Compute: 9})
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 5, Total: 3, Data: []byte{1}})
	m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: []string{digest('e'), digest('a')}})
	audited := submitEntry("t3", "audited", 3)
	audited.AuditPPM, audited.Owner = 50000, "ana"
	paused := m.do(protocol.EntrySubmit, audited).(*Job)
	m.do(protocol.EntryPause, &protocol.JobEntry{Job: paused.ID, Time: 6})
	gone := m.submit("t4", "gone", 4)
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: gone.ID, Time: 6})
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{gone.ID}, Time: 7})
	bare := m.submit("t5", "bare", 5)
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: bare.ID, State: protocol.Running, Time: 7})
	m.do(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: epoch, Job: bare.ID, Outcome: []byte(outcomeOf("test samples", 0.25)),
		Models: []protocol.ModelRef{{Digest: digest('4'), Blob: digest('5')}}, Time: 8,
	})
	m.do(protocol.EntryModelDelete, &protocol.JobEntry{Job: bare.ID, Time: 9})
	m.do(protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Worker: "w1", Jobs: []uint64{done.ID},
		Reason: "unit 3 differs", Time: 7})
	m.do(protocol.EntryTokenPut, tokenEntry(2, 'a'))
	m.do(protocol.EntryTokenPut, tokenEntry(1, 'b'))
	m.do(protocol.EntryTokenRevoke, &protocol.TokenRevokeEntry{ID: tokenEntry(2, 'a').ID, Time: 12})
	e := experimentEntry("t6", "e", 2)
	e.Outline = digest('7')
	cells := m.do(protocol.EntryExperiment, e).([]*Job)[1]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: cells.ID, State: protocol.Running, Time: 10})
	m.do(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: epoch, Job: cells.ID, Outcome: []byte(`{"steps":4}`), Time: 11,
		Cells:   []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: digest('6'), Bytes: 7}, Count: 4}},
		Methods: []protocol.RunTimes{{Runs: 3, Nanoseconds: 12}},
	})
	m.do(protocol.EntryRevoke, &protocol.RevokeEntry{Revocation: protocol.Revocation{Serial: "1f",
		Identity: "coppice://c/worker/w1", Until: 900, Time: 12}})
	asks := protocol.AuditRecord{Time: 13, Caller: "ana", Role: "admin", Serial: "2e", From: "10.0.0.1:1",
		Request: "POST /v1/jobs/e/cancel"}
	m.raw((&protocol.RequestEntry{Record: asks, Inner: protocol.EncodeEntry(protocol.EntryCancel,
		protocol.JobEntry{Job: done.ID})}).Append(nil))
	m.do(protocol.EntryRecord, &protocol.RecordEntry{Records: []protocol.AuditRecord{{Time: 14, Role: "anonymous",
		From: "10.0.0.2", Request: "GET /v1/jobs", Refused: "no identity", Count: 7}}})
	return m.s
}

// TestGoldenSnapshot: the bytes of a snapshot only change with SnapshotVersion.
func TestGoldenSnapshot(t *testing.T) {
	s := golden(t)
	path := filepath.Join("testdata", "snapshot.golden")
	if *update {
		if err := os.WriteFile(path, encode(t, s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encode(t, s), want) {
		t.Error("the format of a snapshot has changed: raise SnapshotVersion")
	}
	opts := cmp.Options{cmp.AllowUnexported(State{}, leadership{}, memberTable{}, quarantine{}, datasetTable{}, jobTable{},
		blobMarks{}, tokenTable{}, revocations{}, auditLog{}, ring{}, Job{}, Results{}, pending{}, eventList{},
		quarantinedWorker{}),
		cmpopts.IgnoreFields(State{}, "replaced"), cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}
	if diff := cmp.Diff(s, decode(t, want), opts); diff != "" {
		t.Error(diff)
	}
}

// TestDamagedSnapshot: a snapshot is refused if a part is missing or bytes follow it.
func TestDamagedSnapshot(t *testing.T) {
	b := encode(t, golden(t))
	for n := range b {
		if _, err := Decode(bytes.NewReader(b[:n])); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("%d of %d bytes: %v", n, len(b), err)
		}
	}
	newer := bytes.Clone(b)
	newer[len(magic)]++
	_, err := Decode(bytes.NewReader(newer))
	if !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), "reads version 10") {
		t.Errorf("a newer version: %v", err)
	}
	if _, err := Decode(bytes.NewReader(append(b, 0))); !errors.Is(err, ErrSnapshot) {
		t.Errorf("with a byte behind it: %v", err)
	}
	if _, err := Decode(failing{}); err == nil || errors.Is(err, ErrSnapshot) {
		t.Errorf("a disk that fails: %v", err)
	}
	if err := golden(t).Encode(failing{}); !errors.Is(err, os.ErrPermission) {
		t.Errorf("writing to a disk that fails: %v", err)
	}
}

// withJob returns a change of one job of a state.
func withJob(i int, change func(*Job)) func(*State) {
	return func(s *State) {
		j := *s.jobs[i]
		change(&j)
		s.jobs = replaced(s.jobs, i, &j)
	}
}

// TestSnapshotBounds: a snapshot that breaks a bound or an order is refused with the
// reason, and one at the bound is read.
func TestSnapshotBounds(t *testing.T) {
	const running = 0 // the job of golden that runs, with a task of 4 and one of 3 bytes of a state
	parts := func(list ...RecordedResult) func(*State) {
		return withJob(running, func(j *Job) {
			j.gathered = recordedList{}
			for _, p := range list {
				j.gathered.push(p)
			}
		})
	}
	pieces := func(have, total uint64) func(*State) {
		return withJob(running, func(j *Job) {
			j.pending = &pending{round: 5, total: total, have: have, chunks: [][]byte{make([]byte, have)}}
		})
	}
	for what, c := range map[string]struct {
		change func(*State)
		want   string // in the error; empty: it is read
	}{
		"as it was":        {func(*State) {}, ""},
		"members in order": {func(s *State) { s.members = []protocol.MemberEntry{{ID: "a"}, {ID: "b"}} }, ""},
		"a member twice": {func(s *State) {
			s.members = []protocol.MemberEntry{{ID: "a"}, {ID: "a"}}
		}, `members are not sorted: "a" comes too late`},
		"members out of order": {func(s *State) {
			s.members = []protocol.MemberEntry{{ID: "b"}, {ID: "a"}}
		}, `members are not sorted: "a" comes too late`},
		"a worker twice": {func(s *State) {
			s.workers = slices.Repeat(s.workers, 2)
		}, `quarantined workers are not sorted: "w1"`},
		"workers in order": {func(s *State) {
			s.workers = append(slices.Clip(s.workers), quarantinedWorker{protocol.Quarantined{Worker: "w2"}, 0})
		}, ""},
		"workers out of order": {func(s *State) {
			s.workers = append(slices.Clip(s.workers), quarantinedWorker{protocol.Quarantined{Worker: "w0"}, 0})
		}, `quarantined workers are not sorted: "w0"`},
		"a distrust of now": {func(s *State) {
			s.workers = []quarantinedWorker{{protocol.Quarantined{Worker: "w"}, s.index}}
		}, ""},
		"a distrust of later": {func(s *State) {
			s.workers = []quarantinedWorker{{protocol.Quarantined{Worker: "w"}, s.index + 1}}
		}, `quarantined worker "w" comes from a later log entry`},
		"a dataset twice": {func(s *State) {
			s.datasets = slices.Repeat(s.datasets, 2)
		}, `datasets are not sorted: "yeast" comes too late`},
		"datasets in order": {func(s *State) {
			s.datasets = append(slices.Clip(s.datasets), &protocol.Dataset{Name: "z", Manifest: manifest('e')})
		}, ""},
		"a job twice": {func(s *State) {
			s.jobs = slices.Insert(slices.Clone(s.jobs), 0, s.jobs[0])
		}, `jobs are not sorted: "6"`},
		"jobs out of order": {func(s *State) { s.jobs = []*Job{s.jobs[1], s.jobs[0]} }, `jobs are not sorted: "6"`},
		"a deleted job twice": {func(s *State) {
			s.deleted = slices.Repeat(s.deleted, 2)
		}, "deleted jobs are not sorted: "},
		"a deleted job that is there": {func(s *State) { s.deleted = []*DeletedJob{{ID: s.jobs[0].ID}} }, "still exists"},
		"a mark of now":               {func(s *State) { s.condemned = map[string]uint64{digest('e'): s.index} }, ""},
		"a mark of later": {func(s *State) {
			s.condemned = map[string]uint64{digest('e'): s.index + 1}
		}, "the mark of"},
		"a mark of no digest": {func(s *State) {
			s.condemned = map[string]uint64{"e": 1}
		}, `the mark of a blob to delete is not valid: "e" at log index 1`},
		"every unit twice": {withJob(running, func(j *Job) { j.AuditPPM = million }), ""},
		"more than every unit twice": {withJob(running, func(j *Job) {
			j.AuditPPM = million + 1
		}), "(job): audited tasks of a million: want at most 1000000, got 1000001"},
		"the last unit there can be": {parts(RecordedResult{Round: 5, Task: protocol.MaxTasks - 1, Of: protocol.MaxTasks}),
			""},
		"a unit beyond it": {parts(RecordedResult{Round: 5, Task: protocol.MaxTasks, Of: protocol.MaxTasks}),
			"(job): recorded task: want at most"},
		"too many units": {parts(RecordedResult{Round: 5, Of: protocol.MaxTasks + 1}),
			"(job): tasks of a round: want at most"},
		"units in order": {parts(RecordedResult{Round: 5, Task: 7}, RecordedResult{Round: 5, Task: 8},
			RecordedResult{Round: 6}), ""},
		"a unit twice": {parts(RecordedResult{Round: 5, Task: 7}, RecordedResult{Round: 5, Task: 7}),
			"record 5 (job): the recorded results are not sorted by task"},
		"units out of order": {parts(RecordedResult{Round: 5, Task: 7}, RecordedResult{Round: 5, Task: 6}),
			"record 5 (job): the recorded results are not sorted by task"},
		"all but a byte of a state": {pieces(7, 8), ""},
		"all of a state":            {pieces(8, 8), "an unfinished training state has 8 of 8 bytes"},
		"more than all of a state":  {pieces(9, 8), "an unfinished training state has 9 of 8 bytes"},
		"nothing of a state":        {pieces(0, 8), "an unfinished training state has 0 of 8 bytes"},
		"the greatest state":        {pieces(1, protocol.MaxRaftState), ""},
		"a greater state": {pieces(1, protocol.MaxRaftState+1),
			"an unfinished training state has 1 of 67108865 bytes"},
		"the longest fold list": {withJob(running, func(j *Job) { j.FoldCurves = make([][]byte, dataset.MaxFolds) }), ""},
		"a longer fold list": {withJob(running, func(j *Job) {
			j.FoldCurves = make([][]byte, dataset.MaxFolds+1)
		}), "(job): learning curves of folds: want at most"},
		"no curve":             {withJob(running, func(j *Job) { j.Curve = nil }), ""},
		"a curve that is none": {withJob(running, func(j *Job) { j.Curve = []byte{9} }), "curve"},
		"a curve that is too long": {withJob(running, func(j *Job) {
			j.Curve = make([]byte, protocol.MaxCurve+1)
		}), "(job): learning curve: want at most"},
		"a dataset that is missing": {withJob(running, func(j *Job) {
			j.Dataset = "none"
		}), `job 6 (ldlf-6): the job's dataset "none" is missing`},
		"a dataset that is another": {func(s *State) {
			s.datasets = []*protocol.Dataset{{Name: "yeast", Manifest: manifest('f')}}
		}, `job 6 (ldlf-6): the job's dataset "yeast" is missing`},
	} {
		s := *golden(t)
		c.change(&s)
		b := encode(t, &s)
		read, err := Decode(bytes.NewReader(b))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if !bytes.Equal(encode(t, read), b) {
				t.Errorf("%s: it is not read as it was written", what)
			}
		} else if !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestSnapshotBoundsOfAudit: revoked certificates and audit records are in order, and not too many.
func TestSnapshotBoundsOfAudit(t *testing.T) {
	for what, c := range map[string]struct {
		change func(s *State)
		want   string // in the error; empty: it is read
	}{
		"a certificate twice": {func(s *State) {
			s.revoked = slices.Repeat(s.revoked, 2)
		}, `revoked certificates are not sorted: "1f"`},
		"a serial number of zeros": {func(s *State) {
			s.revoked = []*protocol.Revocation{{Serial: "01"}}
		}, `the serial number of a revoked certificate is not valid: "01"`},
		"a record twice": {func(s *State) {
			s.refusals.last = slices.Repeat(s.refusals.last[:1], 2)
		}, "audit records are not sorted by number: 1 comes too late"},
		"a record without a number": {func(s *State) {
			s.changes.last = []*protocol.AuditRecord{{}}
		}, "audit records are not sorted by number: 0 comes too late"},
		"the most refusals": {func(s *State) { s.refusals = refusals(maxRefusals) }, ""},
		"more refusals": {func(s *State) {
			s.refusals = refusals(maxRefusals + 1)
		}, "want at most 8000 audit records of changes and 2000 of refusals"},
	} {
		s := *golden(t)
		c.change(&s)
		b := encode(t, &s)
		read, err := Decode(bytes.NewReader(b))
		if c.want == "" && (err != nil || !bytes.Equal(encode(t, read), b)) {
			t.Errorf("%s: other contents are read: %v", what, err)
		}
		if c.want != "" && (!errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
}

// TestSnapshotFrame: the text and the version before a snapshot's parts, and the text
// behind them, are checked.
func TestSnapshotFrame(t *testing.T) {
	good := encode(t, golden(t))
	for what, c := range map[string]struct {
		at   int
		want string
	}{
		"the first byte of the text before": {0, "the bytes do not begin with the header of a snapshot"},
		"the last byte of the text before":  {len(magic) - 1, "the bytes do not begin with the header of a snapshot"},
		"the kind of the first record":      {len(magic) + 1, "record 1 has the kind 129, which does not exist"},
		"the kind of the last record":       {len(good) - recordHead, "has the kind 139, which does not exist"},
		"the last byte":                     {len(good) - 1, "(end): want at most 0 bytes"},
	} {
		bad := bytes.Clone(good)
		bad[c.at] ^= 0x80
		if _, err := Decode(bytes.NewReader(bad)); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
	}
	for _, version := range []uint8{0, SnapshotVersion - 1, SnapshotVersion + 1, 255} {
		bad := bytes.Clone(good)
		bad[len(magic)] = version
		if _, err := Decode(bytes.NewReader(bad)); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(),
			fmt.Sprintf("the snapshot has version %d, but this process reads version 10", version)) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

// failing is a disk that fails.
type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, os.ErrPermission }
func (failing) Write([]byte) (int, error) { return 0, os.ErrPermission }

// TestLyingLength: the length of a record that is not there costs no memory, and one above
// the bound is refused with the name of the record.
func TestLyingLength(t *testing.T) {
	empty := encode(t, New())
	for kind := byte(recordState); kind <= recordEnd; kind++ {
		for above := range uint64(2) {
			b := bytes.Clone(empty[:len(empty)-recordHead]) // without its end
			want := "the snapshot ends too early"
			if kind == recordState {
				b = b[:len(magic)+1]
			}
			if above > 0 {
				want = fmt.Sprintf("(%s): want at most %d bytes", records[kind].name, records[kind].max)
			} else if kind == recordEnd {
				continue
			}
			b = binary.LittleEndian.AppendUint64(append(b, kind), records[kind].max+above)
			allocs.AtMost(t, 4<<20, "a snapshot", func() {
				if _, err := Decode(bytes.NewReader(b)); !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want %s", records[kind].name, err, want)
				}
			})
		}
	}
}

// TestRecordOrder: a record that is missing, comes twice or comes too early is refused.
func TestRecordOrder(t *testing.T) {
	head := append([]byte(magic), SnapshotVersion)
	record := func(kind byte, body string) []byte {
		return append(binary.LittleEndian.AppendUint64([]byte{kind}, uint64(len(body))), body...)
	}
	first := record(recordState, strings.Repeat("\x00", 32))
	member := record(recordMember, "\x0a\x00\x00\x00\x00\x00\x00\x00"+`{"id":"a"}`)
	deleted := record(recordDeleted, strings.Repeat("\x00", 32))
	mark := record(recordMark, "\x40\x00\x00\x00\x00\x00\x00\x00"+digest('a')+strings.Repeat("\x00", 8))
	end := record(recordEnd, "")
	for what, c := range map[string]struct {
		records [][]byte
		want    string // in the error; empty: it is read
	}{
		"in order": {[][]byte{first, member, deleted, end}, ""},
		"a mark":   {[][]byte{first, mark, end}, ""},
		"a mark twice": {[][]byte{first, mark, mark, end},
			"record 3 (marked blob): the mark of a blob to delete is not valid"},
		"no record":      {nil, "ends too early"},
		"no head":        {[][]byte{member, end}, "record 1 (member) is not in its place"},
		"the head twice": {[][]byte{first, first, end}, "record 2 (head) is not in its place"},
		"another order":  {[][]byte{first, deleted, member, end}, "record 3 (member) is not in its place"},
		"no end":         {[][]byte{first, member}, "ends too early"},
		"the end twice":  {[][]byte{first, end, end}, "more bytes follow the end"},
		"bytes in a record": {[][]byte{first, record(recordMark, strings.Repeat("\x00", 17)), end},
			"record 2 (marked blob): "},
		"more in a record": {[][]byte{first, record(recordDeleted, strings.Repeat("\x00", 33)), end},
			"record 2 (deleted job): 1 bytes follow the end"},
		"less in a record": {[][]byte{first, record(recordDeleted, strings.Repeat("\x00", 31)), end},
			"record 2 (deleted job): token: 8 bytes are needed, but only 7 are left"},
		"an unknown kind": {[][]byte{first, record(recordEnd+1, "")}, fmt.Sprintf("record 2 has the kind %d",
			recordEnd+1)},
		"the kind 0": {[][]byte{first, record(0, "")}, "record 2 has the kind 0"},
		"a quarantine ahead": {[][]byte{record(recordQuarantine, ""), first, end},
			"record 1 (quarantined worker) is not in its place"},
	} {
		_, err := Decode(bytes.NewReader(slices.Concat(append([][]byte{head}, c.records...)...)))
		if c.want == "" && err != nil || c.want != "" &&
			(!errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// FuzzDecode reads arbitrary bytes as a snapshot; what it accepts it writes in a form that
// stays.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, New()))
	f.Add(encode(f, golden(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s *State
		var err error
		allocs.AtMost(t, 128*len(b)+1<<20, "a snapshot", func() { s, err = Decode(bytes.NewReader(b)) })
		if err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatalf("error %v", err)
			}
			return
		}
		s.References()
		for _, j := range s.Jobs() {
			j.Info()
		}
		once := encode(t, s)
		if again := encode(t, decode(t, once)); !bytes.Equal(once, again) {
			t.Error("it does not stay")
		}
		if s.Index() < math.MaxUint64 {
			s.Apply(s.Index()+1, encodeEntry(protocol.EntryLead, &protocol.LeadEntry{Node: "a"}))
		}
	})
}

// TestClaimsAreNotBelieved: every length and count of a snapshot, made as great as it can
// be, costs no memory.
func TestClaimsAreNotBelieved(t *testing.T) {
	good := encode(t, golden(t))
	for at := len(magic) + 1; at+8 <= len(good); at++ {
		for i, claim := range []uint64{1 << 24, 1 << 32, 1<<63 - 1} {
			if i > 0 && at%5 != 0 { // 1<<24 is believed wherever a greater one is
				continue
			}
			bad := bytes.Clone(good)
			binary.LittleEndian.PutUint64(bad[at:], claim)
			allocs.AtMost(t, 128*len(bad)+1<<20, "a snapshot", func() {
				if _, err := Decode(bytes.NewReader(bad)); err != nil && !errors.Is(err, ErrSnapshot) {
					t.Errorf("%d at byte %d: %v", claim, at, err)
				}
			})
		}
	}
}
