package jobs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestResultsAreKeptByRound: a result is recorded for the number of rounds that it completes, and found again by the
// round that computes it.
func TestResultsAreKeptByRound(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	p := &Results{Epoch: l.cfg.Epoch, Store: l.cfg.Store, Blobs: l.cfg.Blobs}
	digest, err := l.blobs.Folder.Put([]byte("a tree"))
	if err != nil {
		t.Fatal(err)
	}
	m := protocol.Result{Stamp: protocol.Stamp{Epoch: l.cfg.Epoch, Job: j.ID, Round: 0}, Task: 3, Digest: digest, Bytes: 6,
		Compute: 5e9}
	if err := p.Record(testkit.Context(t), &m, 10, false); err != nil {
		t.Fatal(err)
	}
	if known := p.Known(j.ID, 0); len(known) != 1 || known[0].Task != 3 || known[0].Digest.String() != digest ||
		known[0].Took != 5*time.Second {
		t.Errorf("known %v", known)
	}
	if known := p.Known(j.ID, 1); len(known) != 0 {
		t.Errorf("known of the next round %v", known)
	}
	if known := p.Known(99, 0); len(known) != 0 {
		t.Errorf("known of no job %v", known)
	}
	if b, err := p.Load(testkit.Context(t), digest); err != nil || string(b) != "a tree" {
		t.Errorf("result %q, error %v", b, err)
	}
	if info := l.job(j.ID).Info(); info.Gathered != 1 || info.Tasks != 10 {
		t.Errorf("%d of %d tasks have results", info.Gathered, info.Tasks)
	}
}

// TestRefusedResultsEndTheRound: a result that the state machine would refuse again, such as one of a committed round,
// is not tried again.
func TestRefusedResultsEndTheRound(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	e := protocol.CommitEntry{Epoch: l.cfg.Epoch, Job: j.ID, Round: 3, Total: 5, Data: []byte("state")}
	if _, _, err := l.store.Propose(testkit.Context(t), e.Append(nil)); err != nil {
		t.Fatal(err)
	}
	p := &Results{Epoch: l.cfg.Epoch, Store: l.cfg.Store, Blobs: l.cfg.Blobs}
	digest, err := p.Keep([]byte("a tree"))
	if err != nil {
		t.Fatal(err)
	}
	m := &protocol.Result{Stamp: protocol.Stamp{Epoch: l.cfg.Epoch, Job: j.ID, Round: 2}, Digest: digest, Bytes: 6}
	if err := p.Record(testkit.Context(t), m, 5, false); !errors.Is(err, dispatch.ErrOver) || !passing(err) {
		t.Errorf("a result of a committed round: %v", err)
	}
	m.Round = 3
	if err := p.Record(testkit.Context(t), m, 5, false); err != nil {
		t.Error(err)
	}
}

// oneBlob is a store of blobs that has lost one.
type oneBlob struct {
	lost string
	err  error
}

func (b *oneBlob) Put(_ context.Context, data []byte) (string, error) {
	d := blobs.Sum(data)
	if d == b.lost {
		b.lost = ""
	}
	return d, nil
}

func (b *oneBlob) Keep(data []byte) (string, error) { return b.Put(context.Background(), data) }

func (b *oneBlob) Writer() (*blobs.Writer, error) { return nil, b.err }

func (b *oneBlob) Spread(context.Context, string, uint64) error { return nil }

func (b *oneBlob) Take(_ context.Context, _, digest string, _ uint64) ([]byte, error) {
	if digest == b.lost {
		b.lost = ""
	}
	return nil, nil
}

func (b *oneBlob) Get(_ context.Context, digest string) ([]byte, error) {
	if digest == b.lost {
		return nil, b.err
	}
	return nil, nil
}

// recorded is a log with a state that does not change.
type recorded struct{ s *state.State }

func (l *recorded) State() *state.State                                  { return l.s }
func (l *recorded) Watch() (*state.State, <-chan struct{})               { return l.s, nil }
func (l *recorded) Propose(context.Context, []byte) (uint64, any, error) { return 1, nil, nil }

// TestALostResultIsComputedAgain: a recorded result that no coordinator has any longer is not known, so that its task
// is computed again. It is known once it is recorded again. A result stays known while the coordinator that has it does
// not answer.
func TestALostResultIsComputedAgain(t *testing.T) {
	a, b := blobs.Sum([]byte("a")), blobs.Sum([]byte("b"))
	l := &recorded{withResults(t, a, b)}
	store := &oneBlob{lost: b, err: fmt.Errorf("blob: %w", blobs.ErrMissing)}
	p := &Results{Epoch: l.s.Epoch(), Store: l, Blobs: store}
	job := l.s.Jobs()[0].ID
	known := func(want map[uint32]string) {
		t.Helper()
		got := make(map[uint32]string)
		for _, k := range p.Known(job, 0) {
			got[k.Task] = k.Digest.String()
		}
		if !maps.Equal(got, want) {
			t.Errorf("known %v, want %v", got, want)
		}
	}
	both := map[uint32]string{0: a, 1: b}
	known(both)
	if _, err := p.Load(t.Context(), b); !passing(err) || !errors.Is(err, errResultLost) {
		t.Errorf("a lost result: %v", err)
	}
	known(map[uint32]string{0: a})
	again := &protocol.Result{Stamp: protocol.Stamp{Job: job}, Task: 1, Digest: b}
	_, fetched := p.Fetch(t.Context(), again)
	if err := errors.Join(fetched, p.Record(t.Context(), again, 2, false)); err != nil {
		t.Fatal(err)
	}
	known(both)
	store.lost, store.err = a, errors.New("silence")
	if _, err := p.Load(t.Context(), a); err == nil {
		t.Error("no error")
	}
	known(both)
}

// withResults returns a state whose only job has recorded results of the first round.
func withResults(t *testing.T, results ...string) *state.State {
	t.Helper()
	s, index := state.New(), uint64(0)
	apply := func(kind protocol.EntryKind, body any) state.Result {
		index++
		next, r := s.Apply(index, protocol.EncodeEntry(kind, body))
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		s = next
		return r
	}
	m := &dataset.Manifest{Format: dataset.ManifestFormat, Rows: 4, Features: 2, Labels: 2}
	m.Shards = []dataset.ShardRef{{Digest: blobs.Sum([]byte("shard")), Rows: 4, Bytes: 100}}
	apply(protocol.EntryDatasetPut, &protocol.DatasetPutEntry{Name: "d", Manifest: m})
	apply(protocol.EntryLead, &protocol.LeadEntry{Node: "a", Nonce: "n"})
	job := &round.Job{Algorithm: "structrf", Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Params: []byte("{}")}
	apply(protocol.EntrySubmit, &protocol.SubmitEntry{Token: "t", Name: "j", Dataset: "d", Spec: []byte("{}"), Job: job})
	id := s.JobByName("j").ID
	apply(protocol.EntryJobState, &protocol.JobStateEntry{Epoch: s.Epoch(), Job: id, State: protocol.Running})
	for task, d := range results {
		apply(protocol.EntryResult, &protocol.ResultEntry{Epoch: s.Epoch(), Job: id, Round: 1, Task: uint32(task),
			Of: uint32(len(results)), Digest: d, Bytes: 1})
	}
	return s
}
