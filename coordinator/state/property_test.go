package state

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/protocol"
)

// drawEntry draws an entry that is likely to matter in state s: names, jobs, epochs and
// rounds come from small sets around those of s.
func drawEntry(t *rapid.T, s *State) (protocol.EntryKind, any) {
	epoch := rapid.SampledFrom([]uint64{s.epoch, s.epoch, s.epoch, s.epoch - 1, s.epoch + 1, 0}).Draw(t, "epoch")
	job, round := drawJob(t, s)
	blob := digest(rapid.SampledFrom([]byte("0123def")).Draw(t, "blob"))
	name := rapid.SampledFrom([]string{"yeast", "movie"}).Draw(t, "dataset")
	kind := protocol.EntryKind(rapid.SampledFrom([]int{1, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 7, 7, 8, 8, 9, 10, 11, 12, 13, 13,
		14, 15, 16, 17, 17, 18, 19, 19, 20, 20, 21, 21, 22, 24, 25, 26}).Draw(t, "kind"))
	switch kind {
	case protocol.EntryLead:
		return kind, &protocol.LeadEntry{Node: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node"),
			Time: rapid.Int64Range(0, 9).Draw(t, "time")}
	case protocol.EntryMember:
		return kind, &protocol.MemberEntry{ID: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node"),
			HTTP: fmt.Sprint(s.index)}
	case protocol.EntryDatasetPut:
		return kind, &protocol.DatasetPutEntry{Name: name, Manifest: manifest(blob[0]), Owner: drawOwner(t),
			Private: rapid.Bool().Draw(t, "private"), Time: 1}
	case protocol.EntryDatasetDelete:
		return kind, &protocol.DatasetDeleteEntry{Name: name}
	case protocol.EntrySubmit:
		return kind, drawSubmit(t, s, name)
	case protocol.EntryJobState:
		to := rapid.SampledFrom([]protocol.JobState{protocol.Running, protocol.Running, protocol.Running, protocol.Failed,
			protocol.Done}).Draw(t, "to")
		return kind, &protocol.JobStateEntry{Epoch: epoch, Job: job, State: to, Time: 3, Events: drawEvents(t)}
	case protocol.EntryCommit:
		return kind, drawCommit(t, s, epoch, job, round, blob)
	case protocol.EntryResult:
		return kind, &protocol.ResultEntry{Epoch: epoch, Job: job, Round: round, Task: rapid.Uint32Range(0, 3).
			Draw(t, "unit"), Of: 4, Digest: blob, Events: drawEvents(t)}
	case protocol.EntryFinish:
		return kind, &protocol.FinishEntry{Epoch: epoch, Job: job, Outcome: []byte(`{ "a": "<" }`),
			Models: []protocol.ModelRef{{Digest: blob, Blob: blob}}, Seconds: 0.1, Events: drawEvents(t)}
	case protocol.EntryCancel:
		return kind, &protocol.JobEntry{Job: job, Events: drawEvents(t), EventsEpoch: epoch}
	case protocol.EntryPause:
		return kind, &protocol.JobEntry{Job: job, Events: drawEvents(t), EventsEpoch: epoch}
	case protocol.EntryResume:
		return kind, &protocol.JobEntry{Job: job, Events: drawEvents(t), EventsEpoch: epoch}
	case protocol.EntrySuspect:
		worker := rapid.SampledFrom([]string{"", "w1", "w2", "w0"}).Draw(t, "worker")
		return kind, &protocol.SuspectEntry{Epoch: epoch, Worker: worker, Jobs: []uint64{job, 1 << 50},
			Reason: fmt.Sprint(s.index)}
	case protocol.EntryTrust:
		return kind, &protocol.TrustEntry{Worker: rapid.SampledFrom([]string{"w1", "w2"}).Draw(t, "worker")}
	case protocol.EntryMemberRemove:
		return kind, &protocol.MemberRemoveEntry{ID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")}
	case protocol.EntryJobsDelete:
		other, _ := drawJob(t, s)
		return kind, &protocol.JobsDeleteEntry{Jobs: rapid.SampledFrom([][]uint64{{job}, {job, other}, {other, 1 << 50},
			nil}).Draw(t, "jobs"), Time: 4}
	case protocol.EntryExperiment:
		e := experimentEntry(name, name, rapid.IntRange(0, 3).Draw(t, "jobs"))
		e.Outline = rapid.SampledFrom([]string{"", blob, digest('8'), "no"}).Draw(t, "outline")
		e.After = rapid.SampledFrom([]uint64{0, 0, s.index, s.index / 2}).Draw(t, "read after")
		return kind, e
	case protocol.EntryModelDelete:
		return kind, &protocol.JobEntry{Job: job, Time: 5}
	case protocol.EntryWithhold:
		units := rapid.SliceOfN(rapid.Uint32Range(0, 4), 0, 3).Draw(t, "units")
		return kind, &protocol.WithholdEntry{Epoch: epoch, Job: job, Round: round, Tasks: units,
			Compute: rapid.Uint64Range(0, 9).Draw(t, "took")}
	case protocol.EntryTokenPut:
		return kind, drawToken(t, uint64(s.index))
	case protocol.EntryTokenRevoke:
		return kind, &protocol.TokenRevokeEntry{ID: drawToken(t, 0).ID, Time: rapid.Int64Range(0, 9).Draw(t, "time")}
	case protocol.EntryRecord:
		refusals := rapid.Uint64Range(0, 2).Draw(t, "refusals")
		return kind, &protocol.RecordEntry{Records: slices.Repeat([]protocol.AuditRecord{{Caller: name, Count: refusals}},
			rapid.SampledFrom([]int{0, 1, 40, 65}).Draw(t, "records"))}
	case protocol.EntryRevoke:
		serial := rapid.SampledFrom([]string{"a1", "b2", "c3", "0a", "X", ""}).Draw(t, "serial")
		ends := rapid.SampledFrom([]int64{0, 1, 200_000}).Draw(t, "end")
		return kind, &protocol.RevokeEntry{Revocation: protocol.Revocation{Serial: serial, Until: ends,
			Time: rapid.Int64Range(1, 400_000).Draw(t, "time")}}
	case protocol.EntryShare:
		return kind, &protocol.ShareEntry{
			Dataset: rapid.SampledFrom([]string{"", name}).Draw(t, "shared dataset"), Owner: drawOwner(t),
			Jobs: rapid.SampledFrom([][]uint64{nil, {job}, {job, job}, {1 << 50}}).Draw(t, "shared jobs"),
		}
	default:
		return kind, &protocol.CondemnEntry{Digests: []string{blob, digest('7')}}
	}
}

func drawOwner(t *rapid.T) string { return rapid.SampledFrom([]string{"", "ana"}).Draw(t, "owner") }

func drawJob(t *rapid.T, s *State) (id, round uint64) {
	if len(s.jobs) == 0 {
		return 1, 1
	}
	if len(s.deleted) > 0 && rapid.IntRange(0, 4).Draw(t, "of the deleted") == 0 {
		return rapid.SampledFrom(s.deleted).Draw(t, "deleted").ID, 1
	}
	j := rapid.SampledFrom(s.jobs).Draw(t, "job")
	return j.ID, j.Round + rapid.Uint64Range(0, 2).Draw(t, "round")
}

func drawSubmit(t *rapid.T, s *State, name string) *protocol.SubmitEntry {
	e := submitEntry(rapid.SampledFrom([]string{"", "t1", "t2"}).Draw(t, "token"),
		rapid.SampledFrom([]string{"", "", "x", "ldlf-9"}).Draw(t, "name"), rapid.Uint64Range(0, 1).Draw(t, "seed"))
	e.Dataset, e.Owner, e.Private = name, drawOwner(t), rapid.Bool().Draw(t, "private")
	if d := s.Dataset(name); d != nil {
		e.Job = jobOn(d.Manifest, e.Job.Seed)
	}
	e.Job.Split.Assigned = rapid.SampledFrom([]string{"", digest('3')}).Draw(t, "split")
	e.Job.Weights = rapid.SampledFrom([]string{"", digest('4')}).Draw(t, "weights")
	return e
}

// drawCommit draws a piece of a four-byte state: half of the time the one that is due.
func drawCommit(t *rapid.T, s *State, epoch, job, round uint64, blob string) *protocol.CommitEntry {
	e := &protocol.CommitEntry{Epoch: epoch, Job: job, Round: round, Total: 4, Progress: []byte(`{"phase": "<"}`)}
	switch how := rapid.IntRange(0, 5).Draw(t, "commit"); how {
	case 0:
		e.Blob = blob
	case 1:
		e.Data = []byte{1, 2, 3, byte(s.index)}
	case 2:
		e.Data = []byte{9}
	default:
		e.Offset = uint64(how - 2)
		if j := s.Job(job); j != nil && j.pending != nil {
			e.Round, e.Offset = j.pending.round, j.pending.have
		}
		e.Data = []byte{byte(s.index)}
	}
	if e.Blob != "" || e.Offset+uint64(len(e.Data)) == e.Total {
		e.Events = drawEvents(t)
	}
	return e
}

// drawEvents draws some events that only the leader knows.
func drawEvents(t *rapid.T) (events []protocol.NumberedEvent) {
	from := rapid.Uint64Range(0, 9).Draw(t, "number of an event")
	for i := range rapid.Uint64Range(0, 3).Draw(t, "events") {
		events = append(events, lost(from+i, rapid.Float64Range(-1, 9).Draw(t, "time of an event")))
	}
	return events
}

// TestAnySequence: with any sequence of entries: a snapshot in the middle changes nothing
// that follows; no state that was handed out changes; entries are fenced; rounds grow; what
// ended stays as it is; nothing that is referenced is condemned.
func TestAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, restored := New(), New()
		n := rapid.IntRange(1, 60).Draw(t, "entries")
		at := rapid.IntRange(0, n).Draw(t, "snapshot after")
		for i := range n {
			if i == at {
				restored = reread(t, live)
			}
			kind, body := drawEntry(t, live)
			entry := encodeEntry(kind, body)
			asked := rapid.Bool().Draw(t, "a caller asks")
			if asked {
				entry = (&protocol.RequestEntry{Record: protocol.AuditRecord{Caller: "ana", Time: int64(i)}, Inner: entry}).
					Append(nil)
			}
			before := live
			was := imageOf(t, before)
			var r, again Result
			live, r = before.Apply(uint64(i+1), entry)
			restored, again = restored.Apply(uint64(i+1), entry)
			if fmt.Sprint(r.Err) != fmt.Sprint(again.Err) {
				t.Fatalf("%+v: %v; after a snapshot: %v", body, r.Err, again.Err)
			}
			if !bytes.Equal(was, imageOf(t, before)) {
				t.Fatalf("%+v changed a state that was handed out", body)
			}
			checkRecord(t, before, live, asked, r.Err)
			checkStep(t, before, live, kind, body, r.Err)
			was = imageOf(t, live)
			otherKind, other := drawEntry(t, before)
			before.Apply(uint64(i+1), encodeEntry(otherKind, other))
			if !bytes.Equal(was, imageOf(t, live)) {
				t.Fatalf("%+v, applied to a state before it, changed a state that was handed out", other)
			}
		}
		if !bytes.Equal(imageOf(t, live), imageOf(t, restored)) {
			t.Fatalf("a snapshot after entry %d leads elsewhere", at)
		}
		if again := reread(t, live); !bytes.Equal(imageOf(t, live), imageOf(t, again)) {
			t.Fatal("a snapshot does not read as it was written")
		}
	})
}

func imageOf(t *rapid.T, s *State) []byte {
	var b bytes.Buffer
	if err := s.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reread(t *rapid.T, s *State) *State {
	again, err := Decode(bytes.NewReader(imageOf(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// checkStep checks what holds between a state and the next.
func checkStep(t *rapid.T, before, after *State, kind protocol.EntryKind, body any, err error) {
	if err != nil {
		same := before.at(after.index)
		same.auditLog = after.auditLog
		if !bytes.Equal(imageOf(t, same), imageOf(t, after)) {
			t.Fatalf("%+v left a trace though it was refused: %v", body, err)
		}
	}
	if epoch, fenced := epochOf(body); fenced && epoch != before.epoch && err == nil {
		t.Fatalf("%+v was accepted in epoch %d", body, before.epoch)
	}
	for _, j := range before.jobs {
		now := after.Job(j.ID)
		if now == nil {
			checkDeleted(t, after, j, body)
			continue
		}
		checkJob(t, j, now, kind)
		checkPause(t, j, now, kind, body)
	}
	checkStaysDeleted(t, before, after, body, err)
	checkBlobs(t, after)
	checkTokens(t, before, after, body)
}

// checkRecord: what a caller asks for has a record, which says whether it was refused. No
// other entry about a change has one.
func checkRecord(t *rapid.T, before, after *State, asked bool, err error) {
	if !asked {
		return
	}
	var last *protocol.AuditRecord
	for r := range after.Audit {
		last = r
		break
	}
	counted := func(s *State) (n uint64) {
		for r := range s.Audit {
			n += r.Count
		}
		return n
	}
	if err != nil && counted(after) == counted(before)+1 { // a conflict may be counted in an earlier record
		return
	}
	if last == nil || last.Number != after.recorded || after.recorded <= before.recorded || last.Caller != "ana" ||
		err != nil || last.Refused != "" || last.Count != 0 {
		t.Fatalf("the record is %+v, after %d; error %v", last, before.recorded, err)
	}
}

func epochOf(body any) (uint64, bool) {
	switch e := body.(type) {
	case *protocol.JobStateEntry:
		return e.Epoch, true
	case *protocol.CommitEntry:
		return e.Epoch, true
	case *protocol.ResultEntry:
		return e.Epoch, true
	case *protocol.FinishEntry:
		return e.Epoch, true
	case *protocol.SuspectEntry:
		return e.Epoch, true
	}
	return 0, false
}

// checkDeleted: only an entry that names a job deletes it, and only once it has ended; its
// name and token are remembered.
func checkDeleted(t *rapid.T, after *State, j *Job, body any) {
	e, ok := body.(*protocol.JobsDeleteEntry)
	if !ok || !slices.Contains(e.Jobs, j.ID) || !j.State.Final() {
		t.Fatalf("%+v deletes %v, which is %s", body, j, j.State)
	}
	if d := after.Deleted(j.ID); d == nil || d.Name != j.Name || d.Token != j.Token || j.Token != "" &&
		after.DeletedByToken(j.Token) != d {
		t.Fatalf("%v is remembered as %v", j, d)
	}
}

// checkStaysDeleted: what is deleted never comes back, by no number and no token, and an
// accepted deletion leaves none of its jobs.
func checkStaysDeleted(t *rapid.T, before, after *State, body any, err error) {
	for _, d := range before.deleted {
		if after.Deleted(d.ID) == nil || after.Job(d.ID) != nil {
			t.Fatalf("%v was deleted and is back after %+v", d, body)
		}
	}
	if e, ok := body.(*protocol.SubmitEntry); ok && before.DeletedByToken(e.Token) != nil && !errors.Is(err, ErrDeleted) {
		t.Fatalf("%+v has the token of a deleted job: %v", e, err)
	}
	e, ok := body.(*protocol.JobsDeleteEntry)
	for i := 0; ok && err == nil && i < len(e.Jobs); i++ {
		if j := after.Job(e.Jobs[i]); j != nil {
			t.Fatalf("%v is deleted and there", j)
		}
	}
}

func checkJob(t *rapid.T, before, after *Job, kind protocol.EntryKind) {
	if before.ID != after.ID || after.Round < before.Round {
		t.Fatalf("%v at round %d becomes %v at round %d", before, before.Round, after, after.Round)
	}
	if before.Suspect != "" && after.Suspect != before.Suspect {
		t.Fatalf("%v is suspect of %q, then %q", before, before.Suspect, after.Suspect)
	}
	if marked := *after; before.State.Final() && before != after {
		if kind == protocol.EntryModelDelete && after.ModelDeleted == 5 && len(after.Models) == 0 {
			marked.Models, marked.ModelDeleted = before.Models, before.ModelDeleted
		}
		if kind == protocol.EntryExperiment {
			marked.Outline, marked.Outlined = before.Outline, before.Outlined
		}
		if kind == protocol.EntryShare && !after.Private {
			marked.Private = before.Private
		}
		if marked.Suspect = before.Suspect; !reflect.DeepEqual(*before, marked) {
			t.Fatalf("%v changed after its end", before)
		}
	}
	if !after.State.Final() && after.Manifest == nil || after.State == protocol.Cancelled && len(after.Models) > 0 {
		t.Fatalf("%s %v: manifest %v, models %v", after.State, after, after.Manifest, after.Models)
	}
	for p := range after.gathered.all {
		if p.Round <= after.Round {
			t.Fatalf("%v at round %d keeps %+v", after, after.Round, p)
		}
	}
	if after.Round > 0 && !after.State.Final() && (after.Trainer == nil) == (after.TrainerBlob == "") {
		t.Fatalf("%v at round %d has the state %v and the blob %q", after, after.Round, after.Trainer, after.TrainerBlob)
	}
}

// checkPause: a paused job stays where it is until somebody resumes or cancels it, and
// neither a pause nor a resumption loses what was committed.
func checkPause(t *rapid.T, before, after *Job, kind protocol.EntryKind, body any) {
	if before.State == protocol.Paused && before != after && !slices.Contains([]protocol.EntryKind{protocol.EntrySuspect,
		protocol.EntryResume, protocol.EntryCancel, protocol.EntryExperiment, protocol.EntryShare}, kind) {
		t.Fatalf("%v is paused, and %+v makes it %+v", before, body, after)
	}
	if after.State == protocol.Paused && after.pending != nil {
		t.Fatalf("%v is paused and keeps %d bytes of a state", after, after.pending.have)
	}
	if (kind == protocol.EntryPause || kind == protocol.EntryResume) &&
		(before.Round != after.Round || !bytes.Equal(before.Trainer, after.Trainer) ||
			before.TrainerBlob != after.TrainerBlob || !before.gathered.Equal(after.gathered)) {
		t.Fatalf("%+v loses what %v had committed", body, before)
	}
}

func checkBlobs(t *rapid.T, s *State) {
	refs := s.References()
	for d := range s.Condemned() {
		if refs.Has(d) {
			t.Fatalf("%s is referenced and condemned", d)
		}
	}
	for _, j := range s.jobs {
		if s.JobByName(j.Name) != j && !j.givesNameUp() {
			t.Fatalf("two jobs are called %s", j.Name)
		}
		if j.Manifest != nil && !refs.Has(j.Manifest.Shards[0].Digest) {
			t.Fatalf("the dataset of %v is not referenced", j)
		}
	}
}

// FuzzApply applies arbitrary bytes to a state with a running job.
func FuzzApply(f *testing.F) {
	m := newMachine(f)
	j := m.start()
	for kind, body := range fencedEntries(m.s.Epoch(), j.ID) {
		f.Add(encodeEntry(kind, body))
	}
	f.Add(encodeEntry(protocol.EntrySubmit, submitEntry("t", "n", 3)))
	f.Add(encodeEntry(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "x", Manifest: manifest('e')}))
	f.Add(encodeEntry(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: []string{digest('1')}}))
	f.Add(encodeEntry(protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: m.s.Epoch(), Worker: "w",
		Jobs: []uint64{j.ID}}))
	f.Add(encodeEntry(protocol.EntryPause, &protocol.JobEntry{Job: j.ID}))
	f.Add(encodeEntry(protocol.EntryJobsDelete, &protocol.JobsDeleteEntry{Jobs: []uint64{j.ID, 7}}))
	f.Add(encodeEntry(protocol.EntryModelDelete, &protocol.JobEntry{Job: j.ID}))
	f.Add(encodeEntry(protocol.EntryExperiment, experimentEntry("t", "e", 2)))
	f.Add(encodeEntry(protocol.EntryWithhold, &protocol.WithholdEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: 1,
		Tasks: []uint32{0}}))
	f.Add(encodeEntry(protocol.EntryTokenPut, tokenEntry(7, 'a')))
	f.Add(encodeEntry(protocol.EntryTokenRevoke, &protocol.TokenRevokeEntry{ID: tokenEntry(7, 'a').ID, Time: 3}))
	f.Add([]byte{protocol.Version, 99})
	start := m.s
	f.Fuzz(func(t *testing.T, entry []byte) {
		next, r := start.Apply(1000, entry)
		if errors.Is(r.Err, ErrUnknownEntry) {
			if next != start {
				t.Error("an unknown entry changes the state")
			}
			return
		}
		b := encode(t, next)
		if again := encode(t, decode(t, b)); !bytes.Equal(b, again) {
			t.Error("the state does not survive a snapshot")
		}
	})
}
