package state

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestShare: a dataset or jobs of one owner are shared together or not at all.
func TestShare(t *testing.T) {
	m := newMachine(t)
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "art", Manifest: manifest('a'), Owner: "ana",
		Private: true})
	sent := submitEntry("t", "j", 1)
	sent.Dataset, sent.Job, sent.Owner, sent.Private = "art", jobOn(manifest('a'), 1), "ana", true
	j := m.do(protocol.EntrySubmit, sent).(*Job)
	if d := m.s.Dataset("art"); !d.Private || !j.Private {
		t.Fatalf("%+v, %+v", d, j)
	}
	for what, e := range map[string]protocol.ShareEntry{
		"nothing": {}, "another's": {Dataset: "art", Owner: "eve"}, "an unknown dataset": {Dataset: "none"},
		"a job and an unknown job": {Jobs: []uint64{j.ID, 1 << 40}}, "too many": {Jobs: make([]uint64, protocol.MaxDelete+1)},
	} {
		if m.refused(protocol.EntryShare, &e); !m.s.Dataset("art").Private || !m.s.Job(j.ID).Private {
			t.Errorf("%s: shared", what)
		}
	}
	m.do(protocol.EntryShare, &protocol.ShareEntry{Dataset: "art", Jobs: []uint64{j.ID}, Owner: "ana"})
	if m.s.Dataset("art").Private || m.s.Job(j.ID).Private {
		t.Error("still private")
	}
	if again := m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "art", Manifest: manifest('a'),
		Owner: "ana", Private: true}).(*protocol.Dataset); again.Private {
		t.Error("a repeated import makes the dataset private")
	}
}

// TestUnread: a blob may be read if one thing that may be read refers to it.
func TestUnread(t *testing.T) {
	m := newMachine(t)
	own, other := manifest('a'), manifest('b')
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "own", Manifest: own, Owner: "ana", Private: true})
	m.do(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "other", Manifest: other, Owner: "eve", Private: true})
	sent := submitEntry("t", "j", 1)
	sent.Dataset, sent.Job, sent.Owner, sent.Private = "own", jobOn(own, 1), "ana", true
	sent.Job.Split.Assigned, sent.Job.Split.Groups = digest('5'), digest('8')
	j := m.do(protocol.EntrySubmit, sent).(*Job)
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: j.ID})
	of := func(owner string) func(protocol.Ownership) bool {
		return func(o protocol.Ownership) bool { return o.Owner == owner }
	}
	for owner, want := range map[string][]string{
		"ana": {other.Shards[0].Digest, digest('9')},
		"eve": {own.Shards[0].Digest, digest('5'), digest('8'), digest('9')},
		"":    {own.Shards[0].Digest, other.Shards[0].Digest, digest('5'), digest('8'), digest('9')},
	} {
		set := make(digests.Set)
		for _, d := range []string{own.Shards[0].Digest, other.Shards[0].Digest, digest('5'), digest('8'), digest('9')} {
			set.Add(d)
		}
		m.s.RemoveReadable(set, true, of(owner))
		if len(set) != len(want) || slices.ContainsFunc(want, func(d string) bool { return !set.Has(d) }) {
			t.Errorf("%q: %v, want %v", owner, set, want)
		}
	}
}
