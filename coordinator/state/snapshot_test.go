package state

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/internal/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden snapshot")

// golden is a state with something of everything.
func golden(t testing.TB) *State {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	m.do(protocol.EntryMember, &protocol.MemberEntry{ID: "a", HTTP: "h:1", Raft: "h:2", NATS: "nats://h:3", Version: "0.1.0"})
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
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 4, Total: 3, Data: []byte{1, 2, 3}, Progress: []byte(`{"step":4}`), Curve: points(4, 0.5)})
	m.do(protocol.EntryCollected, &protocol.CollectedEntry{Epoch: epoch, Job: j.ID, Round: 5, Unit: 2, Of: 4, Digest: digest('c'), Bytes: 8, Compute: 9})
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 5, Total: 3, Data: []byte{1}})
	m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: []string{digest('e'), digest('a')}})
	audited := submitEntry("t3", "audited", 3)
	audited.AuditPPM = 50000
	paused := m.do(protocol.EntrySubmit, audited).(*Job)
	m.do(protocol.EntryPause, &protocol.PauseEntry{Job: paused.ID, Time: 6})
	gone := m.submit("t4", "gone", 4)
	m.do(protocol.EntryCancel, &protocol.CancelEntry{Job: gone.ID, Time: 6})
	m.do(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{gone.ID}, Time: 7})
	bare := m.submit("t5", "bare", 5)
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: bare.ID, State: protocol.Running, Time: 7})
	m.do(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: epoch, Job: bare.ID, Outcome: []byte(outcomeOf("test rows", 0.25)), Models: []protocol.ModelRef{{Digest: digest('4'), Blob: digest('5')}}, Time: 8,
	})
	m.do(protocol.EntryModelDelete, &protocol.ModelDeleteEntry{Job: bare.ID, Time: 9})
	m.do(protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: epoch, Worker: "w1", Jobs: []uint64{done.ID}, Reason: "unit 3 differs", Time: 7})
	e := experimentEntry("t6", "e", 2)
	e.Outline = digest('7')
	cells := m.do(protocol.EntryExperiment, e).([]*Job)[1]
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: epoch, Job: cells.ID, State: protocol.Running, Time: 10})
	m.do(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: epoch, Job: cells.ID, Outcome: []byte(`{"steps":4}`), Time: 11,
		Cells: []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: digest('6'), Bytes: 7}, Count: 4}},
	})
	return m.s
}

// The bytes of a snapshot only change with SnapshotVersion.
func TestGoldenSnapshot(t *testing.T) {
	s := golden(t)
	path := filepath.Join("testdata", "snapshot-v6.golden")
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
	opts := cmp.Options{cmp.AllowUnexported(State{}, Job{}, pending{}, distrust{}, measured{}), cmpopts.IgnoreFields(State{}, "replaced"), cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}
	if diff := cmp.Diff(s, decode(t, want), opts); diff != "" {
		t.Error(diff)
	}
}

// TestOlderSnapshot: snapshots of versions before are read, and written in this version.
func TestOlderSnapshot(t *testing.T) {
	for file, want := range map[string]struct{ experiment, outline string }{
		"snapshot-v2.golden": {}, "snapshot-v3.golden": {"e", ""}, "snapshot-v4.golden": {"e", digest('7')}, "snapshot-v5.golden": {"e", digest('7')},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		s := decode(t, b)
		jobs := s.Jobs()
		if jobs[1].Name != "done" || jobs[1].Predictions == nil || jobs[len(jobs)-1].Experiment != want.experiment || jobs[len(jobs)-1].Outline != want.outline {
			t.Errorf("%s: %d jobs", file, len(jobs))
		}
		if parts := jobs[0].Parts(5); len(parts) != 1 || parts[0].Digest.String() != digest('c') || parts[0].Bytes != 8 {
			t.Errorf("%s: parts %+v", file, parts)
		}
		if again := decode(t, encode(t, s)); !bytes.Equal(encode(t, s), encode(t, again)) {
			t.Errorf("%s: it is not the same in this version", file)
		}
	}
}

// A snapshot of which any part is missing or that goes on is refused.
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
	if !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), "versions 2 to 6") {
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

// failing is a disk that fails.
type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, os.ErrPermission }
func (failing) Write([]byte) (int, error) { return 0, os.ErrPermission }

// A length that is not there costs no memory.
func TestLyingLength(t *testing.T) {
	b := append([]byte(magic), SnapshotVersion)
	b = append(b, make([]byte, 16)...)
	b = le.AppendUint64(b, maxField) // the leader's name
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(bytes.NewReader(b))
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrSnapshot) || used > 4<<20 {
		t.Errorf("it takes %d bytes to find that %v", used, err)
	}
}

// FuzzDecode reads arbitrary bytes as a snapshot; what it accepts it writes in a
// form that stays.
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

// Every length and count of a snapshot, made as great as it can be, costs no memory.
func TestClaimsAreNotBelieved(t *testing.T) {
	good := encode(t, golden(t))
	for at := len(magic) + 1; at+8 <= len(good); at++ {
		for _, claim := range []uint64{1<<63 - 1, maxCount} {
			bad := bytes.Clone(good)
			le.PutUint64(bad[at:], claim)
			allocs.AtMost(t, 128*len(bad)+1<<20, "a snapshot", func() {
				if _, err := Decode(bytes.NewReader(bad)); err != nil && !errors.Is(err, ErrSnapshot) {
					t.Errorf("%d at byte %d: %v", claim, at, err)
				}
			})
		}
	}
}
