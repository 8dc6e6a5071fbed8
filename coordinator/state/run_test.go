package state

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

func TestDatasets(t *testing.T) {
	m := newMachine(t)
	m.start()
	put := func(c byte) *protocol.DatasetPutEntry {
		return &protocol.DatasetPutEntry{Name: "yeast", Manifest: manifest(c), Time: 50}
	}
	if d := m.do(protocol.EntryDatasetPut, put('d')).(*protocol.Dataset); d.Time != 1 {
		t.Errorf("the same content again makes another dataset: %+v", d)
	}
	err := m.refused(protocol.EntryDatasetPut, put('e'))
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), manifest('d').Digest()) {
		t.Errorf("other content under the name: %v", err)
	}
	renamed := put('d')
	renamed.Manifest.FeatureNames = []string{"a", "b"}
	err = m.refused(protocol.EntryDatasetPut, renamed)
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(),
		`feature 0 (counted from 0) is called "", but in the new dataset "a"`) {
		t.Errorf("the same content with other names: %v", err)
	}
	other := put('d')
	other.Manifest.LeftOut = dataset.LeftOut{1}
	err = m.refused(protocol.EntryDatasetPut, other)
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "already exists from another file") {
		t.Errorf("the same content of other rows: %v", err)
	}
	typed := put('d')
	typed.Manifest.LabelType.Classes = true
	err = m.refused(protocol.EntryDatasetPut, typed)
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(),
		"its labels are distributions, the labels of the new dataset are classes") {
		t.Errorf("the same content with labels of another type: %v", err)
	}
	shaped := put('d')
	shaped.Manifest.Shape = dataset.Shape{Channels: 1, Height: 1, Width: 2}
	err = m.refused(protocol.EntryDatasetPut, shaped)
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(),
		"the shape of its samples is none, the shape in the new dataset is 1x1x2") {
		t.Errorf("the same content with another shape: %v", err)
	}
	grouped := put('d')
	grouped.Manifest.Groups = &dataset.Groups{Digest: digest('9'), Names: []string{"ann", "bob"}}
	err = m.refused(protocol.EntryDatasetPut, grouped)
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(),
		"its samples have no groups, the samples of the new dataset have 2 groups") {
		t.Errorf("the same content with groups: %v", err)
	}
	grouped.Name = "persons"
	m.do(protocol.EntryDatasetPut, grouped)
	if !m.s.References().Has(digest('9')) {
		t.Error("the list of groups may be deleted")
	}
	m.do(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "persons"})
	if m.s.References().Has(digest('9')) {
		t.Error("the list of groups is kept without its dataset")
	}
	err = m.refused(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "yeast"})
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), m.s.Jobs()[0].Name) {
		t.Errorf("deletion of a dataset in use: %v", err)
	}
	if err := m.refused(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "none"}); !errors.Is(err,
		ErrNotFound) {
		t.Errorf("deletion of no dataset: %v", err)
	}
	if d := m.s.Dataset("yeast"); d == nil || d.Digest != manifest('d').Digest() || m.s.Dataset("x") != nil {
		t.Errorf("the dataset is %v", d)
	}
}

// TestManifestBounds: a manifest at a bound is accepted, as an entry and in a snapshot, and
// one beyond it is refused.
func TestManifestBounds(t *testing.T) {
	shards := func(change func(*dataset.ShardRef)) func(*dataset.Manifest) {
		return func(m *dataset.Manifest) { change(&m.Shards[0]) }
	}
	for what, c := range map[string]struct {
		change func(*dataset.Manifest)
		want   string // in the error; empty: it is accepted
	}{
		"one row": {func(m *dataset.Manifest) { m.Rows = 1 }, ""},
		"no row": {func(m *dataset.Manifest) {
			m.Rows = 0
		}, "a dataset needs samples, features, labels and shards, got 0 samples, 3 features, 2 labels and 1"},
		"one feature": {func(m *dataset.Manifest) { m.Features = 1 }, ""},
		"no feature": {func(m *dataset.Manifest) {
			m.Features = 0
		}, "a dataset needs samples, features, labels and shards, got 20 samples, 0 features, 2 labels and 1"},
		"one label": {func(m *dataset.Manifest) { m.Labels = 1 }, ""},
		"no label":  {func(m *dataset.Manifest) { m.Labels = 0 }, "3 features, 0 labels"},
		"no shard": {func(m *dataset.Manifest) {
			m.Shards = nil
		}, "a dataset needs samples, features, labels and shards, got 20 samples, 3 features, 2 labels and 0"},
		"an older format":      {func(m *dataset.Manifest) { m.Format-- }, "the manifest has format"},
		"a newer format":       {func(m *dataset.Manifest) { m.Format++ }, "the manifest has format"},
		"a shard without rows": {shards(func(r *dataset.ShardRef) { r.Rows = 0 }), ""},
		"a shard of -1 rows": {shards(func(r *dataset.ShardRef) {
			r.Rows = -1
		}), "shard 0 in the manifest is not valid: -1 samples, 400 bytes"},
		"a shard without bytes": {shards(func(r *dataset.ShardRef) { r.Bytes = 0 }), ""},
		"a shard of -1 bytes": {shards(func(r *dataset.ShardRef) {
			r.Bytes = -1
		}), "shard 0 in the manifest is not valid: 20 samples, -1 bytes"},
		"a shard without a digest": {shards(func(r *dataset.ShardRef) { r.Digest = "" }), "digest \"\""},
		"a digest in upper case": {shards(func(r *dataset.ShardRef) {
			r.Digest = digest('A')
		}), "shard 0 in the manifest is not valid"},
		"a second shard is checked": {func(m *dataset.Manifest) {
			m.Shards = append(m.Shards, dataset.ShardRef{})
		}, "shard 1 in the manifest is not valid: 0 samples, 0 bytes, digest \"\""},
		"groups": {func(m *dataset.Manifest) { m.Groups = &dataset.Groups{Digest: digest('9')} }, ""},
		"groups with an unknown digest": {func(m *dataset.Manifest) {
			m.Groups = &dataset.Groups{Digest: "9"}
		}, "the digest of the groups in the manifest is not valid: \"9\""},
	} {
		put := &protocol.DatasetPutEntry{Name: "other", Manifest: manifest('e')}
		c.change(put.Manifest)
		m := newMachine(t)
		m.start()
		snapshot := *m.s // as somebody might write it who does not check
		snapshot.datasets = []*protocol.Dataset{{Name: "other", Manifest: put.Manifest}, m.s.Dataset("yeast")}
		_, read := Decode(bytes.NewReader(encode(t, &snapshot)))
		if c.want == "" {
			if m.do(protocol.EntryDatasetPut, put); read != nil {
				t.Errorf("%s: a snapshot of it is refused: %v", what, read)
			}
			continue
		}
		if err := m.refused(protocol.EntryDatasetPut, put); !errors.Is(err, ErrInvalid) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", what, err, c.want)
		}
		if !errors.Is(read, ErrSnapshot) || !strings.Contains(fmt.Sprint(read), c.want) {
			t.Errorf("%s in a snapshot: %v, want %s", what, read, c.want)
		}
	}
}

func TestSubmit(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	if want := fmt.Sprintf("ldlf-%d", j.ID); j.Name != want {
		t.Errorf("it is called %q, want %q", j.Name, want)
	}
	if again := m.submit("t1", "other", 5); again != j {
		t.Errorf("the same token makes %v", again)
	}
	named := m.submit("t2", "mine", 5)
	if again := m.submit("t3", "mine", 5); again != named {
		t.Errorf("the same name and job make %v", again)
	}
	err := m.refused(protocol.EntrySubmit, submitEntry("t4", "mine", 6))
	if !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), named.String()) {
		t.Errorf("the same name with another seed: %v", err)
	}
	missing := submitEntry("t5", "", 1)
	missing.Dataset = "none"
	if err := m.refused(protocol.EntrySubmit, missing); !errors.Is(err, ErrNotFound) {
		t.Errorf("a dataset that is not there: %v", err)
	}
	taken := fmt.Sprintf("ldlf-%d", m.index+4) // the ID of the job after the next
	m.submit("t6", taken, 7)
	if next := m.submit("t7", "", 8); next.Name != taken+"-2" || m.s.JobByName(taken+"-2") != next {
		t.Errorf("a default name that is taken becomes %q", next.Name)
	}
	taken = fmt.Sprintf("ldlf-%d", m.index+6)
	m.submit("t8", taken, 9)
	m.submit("t9", taken+"-2", 9)
	if next := m.submit("t10", "", 10); next.Name != taken+"-3" {
		t.Errorf("a default name that is taken with the number 2 as well becomes %q", next.Name)
	}
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "copy", Manifest: manifest('d')})
	elsewhere, audited := submitEntry("t11", "mine", 5), submitEntry("t12", "mine", 5)
	elsewhere.Dataset, audited.AuditPPM = "copy", 7
	for want, e := range map[string]*protocol.SubmitEntry{"its dataset is yeast, but the new job has copy": elsewhere,
		"its audit is 0 of a million tasks, but the new job has 7": audited} {
		if err := m.refused(protocol.EntrySubmit, e); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), want) {
			t.Errorf("the same name and job otherwise: %v, want %s", err, want)
		}
	}
	for i, j := range m.s.Jobs() {
		if m.s.Job(j.ID) != j || i > 0 && m.s.Jobs()[i-1].ID >= j.ID {
			t.Errorf("%v is out of order", j)
		}
	}
}

// commits returns the pieces of a trainer state.
func commits(epoch, job, round uint64, state []byte, size int) []*protocol.CommitEntry {
	var list []*protocol.CommitEntry
	for at := 0; at < len(state); at += size {
		list = append(list, &protocol.CommitEntry{
			Epoch: epoch, Job: job, Round: round, Offset: uint64(at), Total: uint64(len(state)),
			Data: state[at:min(at+size, len(state))], Progress: fmt.Appendf(nil, `{"step":%d}`, round),
		})
	}
	return list
}

// TestCommit: a trainer state takes effect with its last piece, and only in one go.
func TestCommit(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	want := []byte("the state of a trainer")
	pieces := commits(epoch, j.ID, 3, want, 5)
	for i, p := range pieces {
		if i == 2 { // a snapshot between the pieces keeps them
			m.s = decode(t, encode(t, m.s))
		}
		got := m.do(protocol.EntryCommit, p).(*Job)
		if last := i == len(pieces)-1; last != (got.Round == 3) || last != bytes.Equal(got.Trainer, want) ||
			last != (len(got.Progress) > 0) {
			t.Fatalf("after piece %d: round %d, %q, %s", i, got.Round, got.Trainer, got.Progress)
		}
	}
	for _, round := range []uint64{1, 3} {
		if err := m.refused(protocol.EntryCommit, commits(epoch, j.ID, round, want, 99)[0]); !errors.Is(err, ErrStaleRound) {
			t.Errorf("round %d after 3: %v", round, err)
		}
	}
	next := commits(epoch, j.ID, 4, want, 5)
	m.do(protocol.EntryCommit, next[0])
	other := *next[1]
	other.Round = 5
	longer := *next[1]
	longer.Total++
	for _, p := range []*protocol.CommitEntry{next[2], &other, &longer} {
		if err := m.refused(protocol.EntryCommit, p); !errors.Is(err, ErrGap) {
			t.Errorf("a piece of round %d at %d of %d after one of 5 bytes: %v", p.Round, p.Offset, p.Total, err)
		}
	}
	m.do(protocol.EntryCommit, next[0]) // begins anew
	m.do(protocol.EntryCommit, next[1])
	epoch = m.lead("b")
	if p := m.s.Job(j.ID).pending; p != nil {
		t.Errorf("it keeps %d bytes that nobody can complete", p.have)
	}
	next[2].Epoch = epoch
	if err := m.refused(protocol.EntryCommit, next[2]); !errors.Is(err, ErrGap) {
		t.Errorf("another leader goes on with the pieces of the last: %v", err)
	}
	m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 6, Blob: digest('b'), Total: 1 << 30})
	got := m.s.Job(j.ID)
	if got.Round != 6 || got.Trainer != nil || got.TrainerBlob != digest('b') || got.TrainerBytes != 1<<30 ||
		!m.s.References().Has(digest('b')) {
		t.Errorf("a state in a blob: %+v", got)
	}
}

// TestEntryIsCopied: the state shares no memory with an entry.
func TestEntryIsCopied(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	entry := commits(m.s.Epoch(), j.ID, 1, []byte("abc"), 9)[0].Append(nil)
	m.raw(entry)
	clear(entry)
	if got := m.s.Job(j.ID); string(got.Trainer) != "abc" || string(got.Progress) != `{"step":1}` {
		t.Errorf("%q, %q", got.Trainer, got.Progress)
	}
}

func TestGathered(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	collect := func(round uint64, unit uint32, c byte) *protocol.ResultEntry {
		return &protocol.ResultEntry{Epoch: m.s.Epoch(), Job: j.ID, Round: round, Task: unit, Of: 6,
			Digest: digest(c), Bytes: 7}
	}
	for _, e := range []*protocol.ResultEntry{
		collect(2, 5, 'a'), collect(2, 1, 'b'), collect(3, 0, 'c'),
		collect(2, 5, 'e'), // the first answer wins
	} {
		m.do(protocol.EntryResult, e)
	}
	want := []RecordedResult{{Round: 2, Task: 1, Of: 6, Digest: sumOf('b'), Bytes: 7, Compute: 0, Failed: false},
		{Round: 2, Task: 5, Of: 6, Digest: sumOf('a'), Bytes: 7, Compute: 0, Failed: false}}
	if diff := cmp.Diff(want, m.s.Job(j.ID).Recorded(2)); diff != "" {
		t.Error(diff)
	}
	if info := m.s.Job(j.ID).Info(); info.Gathered != 1 {
		t.Errorf("%d units of the latest round, want 1", info.Gathered)
	}
	refs := m.s.References()
	if !refs.Has(digest('a')) || !refs.Has(digest('b')) || !refs.Has(digest('c')) || refs.Has(digest('e')) {
		t.Errorf("references: %v", refs)
	}
	m.do(protocol.EntryCommit, commits(m.s.Epoch(), j.ID, 2, []byte("s"), 9)[0])
	if got := m.s.Job(j.ID); len(got.Recorded(2)) != 0 || len(got.Recorded(3)) != 1 {
		t.Errorf("after the commit of round 2: %v", got.gathered)
	}
	if err := m.refused(protocol.EntryResult, collect(2, 9, 'f')); !errors.Is(err, ErrStaleRound) {
		t.Errorf("a unit of a committed round: %v", err)
	}
}

// TestCondemn: only what nothing references is condemned, and a new reference saves it.
func TestCondemn(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	lost := []string{digest('0'), digest('1'), digest('2'), digest('3'), digest('4'), digest('5')}
	marked := m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: append([]string{digest('d')}, lost...)})
	if diff := cmp.Diff(lost, marked); diff != "" {
		t.Errorf("the dataset's shard is %s: %s", digest('d'), diff)
	}
	first := m.s.Condemned()[lost[0]]
	m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: lost[:1]})
	if got := m.s.Condemned()[lost[0]]; got != first {
		t.Errorf("condemned again: at %d, before at %d", got, first)
	}
	m.refused(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: m.s.Epoch(), Job: j.ID, Models: []protocol.ModelRef{{Digest: digest('9'), Blob: lost[3]}, {}},
	})
	m.refused(protocol.EntryFinish, &protocol.FinishEntry{
		Epoch: m.s.Epoch(), Job: j.ID, Models: []protocol.ModelRef{{Digest: digest('9'), Blob: lost[3]}},
		Predictions: &protocol.BlobRef{Blob: "x"},
	})
	split := submitEntry("t2", "", 2)
	split.Job.Split.Assigned = lost[4]
	tuned := submitEntry("t3", "", 2)
	tuned.Job.Weights = lost[5]
	epoch := m.s.Epoch()
	for i, save := range []func(){
		func() {
			m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "other", Manifest: manifest('0')})
		},
		func() {
			m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 9, Of: 4, Digest: lost[1]})
		},
		func() {
			m.do(protocol.EntryCommit, &protocol.CommitEntry{Epoch: epoch, Job: j.ID, Round: 1, Total: 9, Blob: lost[2]})
		},
		func() {
			m.do(protocol.EntryFinish, &protocol.FinishEntry{Epoch: epoch, Job: j.ID,
				Models: []protocol.ModelRef{{Digest: digest('9'), Blob: lost[3]}}})
		},
		func() { m.do(protocol.EntrySubmit, split) },
		func() { m.do(protocol.EntrySubmit, tuned) },
	} {
		save()
		if _, ok := m.s.Condemned()[lost[i]]; ok {
			t.Errorf("blob %d is referenced and condemned", i)
		}
	}
	if n := len(m.s.Condemned()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestCondemnedIsBounded(t *testing.T) {
	m := newMachine(t)
	var list []string
	for i := range MaxCondemned {
		list = append(list, fmt.Sprintf("%064x", i))
	}
	m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: list})
	m.do(protocol.EntryCondemn, &protocol.CondemnEntry{Digests: []string{digest('f')}})
	got := m.s.Condemned()
	if _, ok := got[digest('f')]; !ok || len(got) != MaxCondemned {
		t.Errorf("%d marks, the newest among them: %v", len(got), ok)
	}
	if _, ok := got[list[0]]; ok {
		t.Error("the oldest mark is kept")
	}
}

func TestMembers(t *testing.T) {
	m := newMachine(t)
	for _, id := range []string{"c", "a", "b", "a"} {
		m.do(protocol.EntryMember, &protocol.MemberEntry{ID: id, HTTP: fmt.Sprint(m.index)})
	}
	var ids string
	for _, e := range m.s.Members() {
		ids += e.ID
	}
	if a, ok := m.s.Member("a"); ids != "abc" || !ok || a.HTTP != "6" {
		t.Errorf("members %s, a at %s", ids, a.HTTP)
	}
	if _, ok := m.s.Member("d"); ok {
		t.Error("a member that is not there")
	}
}

// TestPause: a paused job keeps its last commit, accepts nothing from a driver that still
// runs, and goes on from the commit.
func TestPause(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	epoch := m.s.Epoch()
	m.do(protocol.EntryCommit, commits(epoch, j.ID, 4, []byte("state"), 9)[0])
	m.do(protocol.EntryResult, &protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 5, Of: 4, Digest: digest('c')})
	m.do(protocol.EntryCommit, commits(epoch, j.ID, 6, []byte("state"), 2)[0])
	paused := m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID}).(*Job)
	if paused.State != protocol.Paused || paused.Round != 4 || string(paused.Trainer) != "state" ||
		paused.gathered.n != 1 || paused.pending != nil || paused.Pauses != 1 {
		t.Errorf("paused: %+v", paused)
	}
	if again := m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID}); again != paused {
		t.Errorf("paused again: %+v", again)
	}
	fenced := fencedEntries(epoch, j.ID)
	fenced[protocol.EntryJobState] = &protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running}
	for kind, body := range fenced {
		if err := m.refused(kind, body); !errors.Is(err, ErrNotRunning) {
			t.Errorf("kind %d for a paused job: %v", kind, err)
		}
	}
	if err := m.refused(protocol.EntryJobState, fencedEntries(epoch, j.ID)[protocol.EntryJobState]); !errors.Is(err,
		ErrNotRunning) {
		t.Errorf("a paused job failed: %v", err)
	}
	if err := m.refused(protocol.EntryDatasetDelete, &protocol.DatasetDeleteEntry{Name: "yeast"}); !errors.Is(err,
		ErrInUse) {
		t.Errorf("the dataset of a paused job: %v", err)
	}
	queued := m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID}).(*Job)
	if again := m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID}); again != queued ||
		queued.State != protocol.Queued {
		t.Errorf("resumed again: %+v", again)
	}
	ran := m.do(protocol.EntryJobState, fenced[protocol.EntryJobState]).(*Job)
	if ran.State != protocol.Running || ran.Started != 3 || ran.Round != 4 || ran.Manifest == nil {
		t.Errorf("it goes on as %+v", ran)
	}
	if again := m.do(protocol.EntryResume, &protocol.JobEntry{Job: j.ID}); again != ran {
		t.Errorf("a running job resumed: %+v", again)
	}
	m.do(protocol.EntryPause, &protocol.JobEntry{Job: j.ID})
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID})
	for kind, body := range map[protocol.EntryKind]any{
		protocol.EntryPause: &protocol.JobEntry{Job: j.ID}, protocol.EntryResume: &protocol.JobEntry{Job: j.ID},
	} {
		if err := m.refused(kind, body); !errors.Is(err, ErrFinal) {
			t.Errorf("kind %d for a cancelled job: %v", kind, err)
		}
	}
}

// TestCancelRacesWithFinish: the first one of a cancellation and a result stands: the job
// is cancelled and has no models, or is done and has them, and both users get this answer.
func TestCancelRacesWithFinish(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t)
		j := m.start()
		model := protocol.ModelRef{Digest: digest('1'), Blob: digest('2'), Bytes: 5}
		first := protocol.JobState("")
		for range rapid.IntRange(2, 8).Draw(rt, "entries") {
			kind := rapid.SampledFrom([]protocol.EntryKind{protocol.EntryCancel, protocol.EntryFinish, protocol.EntryPause,
				protocol.EntryResume}).Draw(rt, "kind")
			body := map[protocol.EntryKind]any{
				protocol.EntryCancel: &protocol.JobEntry{Job: j.ID}, protocol.EntryPause: &protocol.JobEntry{Job: j.ID},
				protocol.EntryResume: &protocol.JobEntry{Job: j.ID},
				protocol.EntryFinish: &protocol.FinishEntry{Epoch: m.s.Epoch(), Job: j.ID, Models: []protocol.ModelRef{model}},
			}[kind]
			r := m.raw(encodeEntry(kind, body))
			got := m.s.Job(j.ID)
			if got.State.Final() && first == "" {
				first = got.State
			}
			if first != "" && got.State != first {
				rt.Fatalf("it was %s, then %s", first, got.State)
			}
			if kind == protocol.EntryCancel && (r.Err == nil) != (got.State == protocol.Cancelled) {
				rt.Fatalf("cancelled with %v, and it is %s", r.Err, got.State)
			}
			if kind == protocol.EntryFinish && (r.Err == nil) != (len(got.Models) > 0) && first != protocol.Done {
				rt.Fatalf("finished with %v, and it has the models %v", r.Err, got.Models)
			}
		}
		got := m.s.Job(j.ID)
		if published := len(got.Models) > 0; published != (got.State == protocol.Done) ||
			m.s.References().Has(model.Blob) != published {
			rt.Fatalf("a job that is %s has the models %v, kept: %v", got.State, got.Models, m.s.References().Has(model.Blob))
		}
	})
}

// TestNames: a name is free again once its job failed or was cancelled, and means the
// newest job; while a job has it, another spec is refused with both named.
func TestNames(t *testing.T) {
	m := newMachine(t)
	m.start()
	old := m.submit("t2", "mine", 5)
	other := submitEntry("t3", "mine", 6)
	other.AuditPPM = 7
	err := m.refused(protocol.EntrySubmit, other)
	want := old.String() + " already exists and is queued; its seed is 5, but the new job has 6: choose another name"
	if !errors.Is(err, ErrExists) || err.Error() != want {
		t.Errorf("another spec under the name: %v, want %s", err, want)
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: old.ID})
	if again := m.submit("t2", "mine", 5); again.ID != old.ID {
		t.Errorf("a submission that is sent again after its job was cancelled makes %v", again)
	}
	anew := m.submit("t4", "mine", 5)
	if anew.ID == old.ID || m.s.JobByName("mine") != anew || m.s.Job(old.ID).State != protocol.Cancelled {
		t.Errorf("the name means %v", m.s.JobByName("mine"))
	}
	m.do(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: m.s.Epoch(), Job: anew.ID, State: protocol.Failed})
	third := m.do(protocol.EntrySubmit, other).(*Job)
	if m.s.JobByName("mine") != third || third.AuditPPM != 7 {
		t.Errorf("after a failure the name means %v", m.s.JobByName("mine"))
	}
}

// TestQueueIsBounded: the queue's bound counts what has not ended, also while it is paused,
// and does not refuse what was submitted before.
func TestQueueIsBounded(t *testing.T) {
	m := newMachine(t)
	first := m.start()
	bounded := func(token, name string) *protocol.SubmitEntry {
		e := submitEntry(token, name, 5)
		e.MaxQueue = 2
		return e
	}
	second := m.do(protocol.EntrySubmit, bounded("t2", "two")).(*Job)
	m.do(protocol.EntryPause, &protocol.JobEntry{Job: second.ID})
	err := m.refused(protocol.EntrySubmit, bounded("t3", ""))
	if !errors.Is(err, ErrQueue) || !strings.Contains(err.Error(), "2 jobs") ||
		!strings.Contains(err.Error(), "at most 2") {
		t.Errorf("a third: %v", err)
	}
	for _, again := range []*protocol.SubmitEntry{bounded("t2", "two"), bounded("t9", "two")} {
		if j := m.do(protocol.EntrySubmit, again).(*Job); j.ID != second.ID {
			t.Errorf("%+v makes %v", again, j)
		}
	}
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: first.ID})
	m.do(protocol.EntrySubmit, bounded("t3", ""))
}

// TestSuspect: a worker with wrong results is in quarantine until a user trusts it, under
// every leader; the marks of its jobs stay, also of jobs that have ended.
func TestSuspect(t *testing.T) {
	m := newMachine(t)
	j := m.start()
	done := m.submit("t2", "", 2)
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: done.ID})
	e := &protocol.SuspectEntry{Epoch: m.s.Epoch(), Worker: "w1", Jobs: []uint64{j.ID, done.ID, 999},
		Reason: strings.Repeat("r", protocol.MaxReason+1), Time: 8}
	m.do(protocol.EntrySuspect, e)
	e.Reason, e.Jobs = "another", []uint64{j.ID}
	m.do(protocol.EntrySuspect, e)
	m.lead("b")
	if err := m.refused(protocol.EntrySuspect, e); !errors.Is(err, ErrStaleEpoch) {
		t.Errorf("a former leader suspects: %v", err)
	}
	if got := m.s.Quarantined(); len(got) != 1 || len(got["w1"]) != protocol.MaxReason {
		t.Errorf("distrusted: %v", got)
	}
	for _, id := range []uint64{j.ID, done.ID} {
		if got := m.s.Job(id).Info().Suspect; !strings.HasPrefix(got, "worker w1: rrr") {
			t.Errorf("job %d is suspect of %.40q", id, got)
		}
	}
	m.do(protocol.EntryTrust, &protocol.TrustEntry{Worker: "w1"})
	if err := m.refused(protocol.EntryTrust, &protocol.TrustEntry{Worker: "w1"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("trusted twice: %v", err)
	}
	if len(m.s.Quarantined()) != 0 || m.s.Job(j.ID).Suspect == "" {
		t.Errorf("trusted again: %v, the job %q", m.s.Quarantined(), m.s.Job(j.ID).Suspect)
	}
	for i := range MaxQuarantined + 1 {
		m.do(protocol.EntrySuspect, &protocol.SuspectEntry{Epoch: m.s.Epoch(),
			Worker: fmt.Sprintf("w%04d", MaxQuarantined-i)})
	}
	if got := m.s.Quarantined(); len(got) != MaxQuarantined || m.s.QuarantinedWorkers()[0].Worker != "w0000" {
		t.Errorf("%d are distrusted", len(got))
	} else if _, ok := got[fmt.Sprintf("w%04d", MaxQuarantined)]; ok {
		t.Error("the oldest distrust is kept")
	}
}

func TestMemberRemove(t *testing.T) {
	m := newMachine(t)
	for _, id := range []string{"a", "b"} {
		m.do(protocol.EntryMember, &protocol.MemberEntry{ID: id})
	}
	for range 2 {
		m.do(protocol.EntryMemberRemove, &protocol.MemberRemoveEntry{ID: "a"})
	}
	if got := m.s.Members(); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("members %v", got)
	}
}
