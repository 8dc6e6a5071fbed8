package jobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestStretch: the interval is 200 ms while commits are cheap. It grows to keep them at 3 % of the time, and is at most
// 2 s or four times the last commit.
func TestStretch(t *testing.T) {
	for cost, want := range map[time.Duration]time.Duration{
		0:                      200 * time.Millisecond,
		time.Millisecond:       200 * time.Millisecond,
		5 * time.Millisecond:   200 * time.Millisecond,
		20 * time.Millisecond:  680 * time.Millisecond,
		80 * time.Millisecond:  2 * time.Second,
		200 * time.Millisecond: 2 * time.Second,
		500 * time.Millisecond: 2 * time.Second,
		3 * time.Second:        12 * time.Second,
	} {
		if got := stretch(cost); got != want {
			t.Errorf("commits of %v: every %v, want %v", cost, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		cost := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "cost"))
		more := cost + time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "more"))
		got := stretch(cost)
		if got < baseInterval || got > max(2*time.Second, 4*cost) || got > stretch(more) {
			t.Fatalf("commits of %v: every %v; of %v: every %v", cost, got, more, stretch(more))
		}
		if got < 2*time.Second && got < maxShare*cost {
			t.Fatalf("commits of %v take more than one part in %d of %v", cost, maxShare, got)
		}
	})
}

// TestTypicalCost: one slow commit after a fast one does not change the interval. If most are slow, the interval
// follows.
func TestTypicalCost(t *testing.T) {
	c := newCommitter(nil).costs
	for i, step := range []struct{ cost, want time.Duration }{
		{900, 0}, {5, 5}, {6, 6}, {1000, 6}, {7, 7}, {8, 8}, {700, 8}, {800, 700}, {900, 800}, {4, 800}, {3, 4},
	} {
		if c = c.with(step.cost); c.typical() != step.want {
			t.Fatalf("after commit %d: %v, want %v of %v", i+1, c.typical(), step.want, c)
		}
	}
}

// stated is a Trainer that only has a state.
type stated struct {
	round.Trainer
	state []byte
	err   error
	calls int
}

func (s *stated) AppendState(dst []byte) ([]byte, error) {
	s.calls++
	return append(dst, s.state...), s.err
}

func (s *stated) Progress() round.Progress {
	return round.Progress{Step: uint64(s.calls), Loss: 0.5}
}

// TestOfferWaitsForTheInterval: a state is marshaled once the interval is over, and is committed with its round and
// progress.
func TestOfferWaitsForTheInterval(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	c, tr := l.committer(j), &stated{state: []byte("first")}
	c.began = time.Now().Add(time.Hour)
	if err := c.offer(testkit.Context(t), 3, tr); err != nil || tr.calls != 0 || c.flight != nil {
		t.Fatalf("a state was cut too early, error %v", err)
	}
	c.due()
	if err := c.offer(testkit.Context(t), 4, tr); err != nil || tr.calls != 1 {
		t.Fatalf("%d states cut, error %v", tr.calls, err)
	}
	tr.state = []byte("the trainer goes on while the commit is in flight")
	if err := c.settle(); err != nil {
		t.Fatal(err)
	}
	if got := l.job(j.ID); got.Round != 4 || string(got.Trainer) != "first" ||
		string(got.Progress) != `{"step":1,"steps":0,"samples":0,"loss":0.5,"phase":""}` {
		t.Errorf("committed: round %d, state %q, progress %s", got.Round, got.Trainer, got.Progress)
	}
	if err := c.settle(); err != nil { // nothing is in flight
		t.Error(err)
	}
}

// TestOneCommitInFlight: while a commit is in flight the driver begins no other, and goes on.
func TestOneCommitInFlight(t *testing.T) {
	l := newLab(t)
	c, tr := l.committer(l.running("one")), &stated{state: []byte("state")}
	flight := make(chan committed, 1)
	c.flight, c.costs = flight, costs{40 * time.Millisecond}
	if err := c.offer(testkit.Context(t), 1, tr); err != nil || tr.calls != 0 {
		t.Fatalf("a second commit was begun, error %v", err)
	}
	flight <- committed{nil, 40 * time.Millisecond}
	if err := c.offer(testkit.Context(t), 1, tr); err != nil || tr.calls != 1 ||
		c.interval != stretch(40*time.Millisecond) {
		t.Fatalf("%d states cut, interval %v, error %v", tr.calls, c.interval, err)
	}
	if err := c.settle(); err != nil {
		t.Fatal(err)
	}

	if c.flight != nil {
		t.Error("a commit that has landed is still in flight")
	}
}

// TestDriverWaits: a driver waits for the commit in flight if more than two intervals are uncommitted, and returns its
// error.
func TestDriverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Config{Metrics: metrics.NewCoordinator(prometheus.NewRegistry())})
		c, tr := newCommitter(&driver{m: m}), &stated{}
		flight := make(chan committed, 1)
		c.flight = flight
		c.began = time.Now().Add(-2*c.interval - 1)
		offered := make(chan error, 1)
		go func() { offered <- c.offer(t.Context(), 2, tr) }()
		synctest.Wait()
		select {
		case err := <-offered:
			t.Fatalf("the driver did not wait, error %v", err)
		default:
		}
		bad := errors.New("no disk")
		flight <- committed{bad, 0}
		if err := <-offered; !errors.Is(err, bad) || tr.calls != 0 {
			t.Errorf("error %v after %d states", err, tr.calls)
		}
	})
}

// TestLargeStatesInChunks: a large state is committed in chunks, and takes effect with the last. A very large state is
// a blob.
func TestLargeStatesInChunks(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	c, tr := l.committer(j), &stated{}
	for round, size := range []int{1, protocol.CommitChunk, protocol.CommitChunk + 1, 5*protocol.CommitChunk + 7,
		protocol.MaxRaftState + 1} {
		tr.state = bytes.Repeat([]byte{byte(round + 1)}, size)
		before := l.cfg.Store.State().Index()
		c.began = time.Now().Add(-time.Hour) // long enough for the largest
		if err := c.offer(testkit.Context(t), uint64(round+1), tr); err != nil {
			t.Fatal(err)
		}
		if err := c.settle(); err != nil {
			t.Fatal(err)
		}
		got, pieces := l.job(j.ID), l.cfg.Store.State().Index()-before
		if got.Round != uint64(round+1) || got.TrainerBytes != uint64(size) {
			t.Fatalf("round %d, %d bytes; want round %d, %d bytes", got.Round, got.TrainerBytes, round+1, size)
		}
		if size > protocol.MaxRaftState {
			if b, err := l.cfg.Blobs.Get(testkit.Context(t), got.TrainerBlob); err != nil || !bytes.Equal(b, tr.state) ||
				got.Trainer != nil || pieces != 1 {
				t.Errorf("a blob of %d bytes in %d entries, error %v", len(b), pieces, err)
			}
			continue
		}
		if want := (size + protocol.CommitChunk - 1) / protocol.CommitChunk; !bytes.Equal(got.Trainer, tr.state) ||
			got.TrainerBlob != "" || pieces != uint64(want) {
			t.Errorf("%d bytes committed in %d entries, want %d", len(got.Trainer), pieces, want)
		}
	}
}

// writer is a trainer that writes its state.
type writer struct {
	stated
	wrote error // of WriteState
}

func (w *writer) WriteState(to io.Writer) error {
	for rest := w.state; len(rest) > 0; {
		n := min(len(rest), 1000_000)
		if _, err := to.Write(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return w.wrote
}

// TestStatesAreWritten: if the job's state may be large, a state above blobFrom is written to a blob, without a copy in
// memory. A smaller one goes to the log. Nothing is left of a state that cannot be written.
func TestStatesAreWritten(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	c, tr := l.committer(j), &writer{}
	c.d.large = true
	for i, size := range []int{blobFrom, blobFrom + 1, 100} {
		tr.state = bytes.Repeat([]byte{byte(i + 1)}, size)
		calls := tr.calls
		c.began = time.Now().Add(-time.Hour)
		if err := c.offer(testkit.Context(t), uint64(i+1), tr); err != nil {
			t.Fatal(err)
		}
		if err := c.settle(); err != nil {
			t.Fatal(err)
		}
		got := l.job(j.ID)
		if got.Round != uint64(i+1) || got.TrainerBytes != uint64(size) {
			t.Fatalf("round %d, %d bytes; want round %d, %d bytes", got.Round, got.TrainerBytes, i+1, size)
		}
		if size <= blobFrom {
			if !bytes.Equal(got.Trainer, tr.state) || got.TrainerBlob != "" || tr.calls != calls+1 {
				t.Errorf("%d bytes in the log, blob %q, %d calls of AppendState", len(got.Trainer), got.TrainerBlob, tr.calls-calls)
			}
			continue
		}
		b, err := l.cfg.Blobs.Get(testkit.Context(t), got.TrainerBlob)
		if err != nil || !bytes.Equal(b, tr.state) || got.Trainer != nil || tr.calls != calls || c.buf != nil {
			t.Errorf("a blob of %d bytes, %d calls of AppendState, a buffer of %d, error %v", len(b), tr.calls-calls,
				len(c.buf), err)
		}
	}
	tr.state, tr.wrote = make([]byte, blobFrom+1), errors.New("no room")
	c.began = time.Now().Add(-time.Hour)
	if err := c.offer(testkit.Context(t), 9, tr); !errors.Is(err, tr.wrote) || c.flight != nil {
		t.Errorf("error %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(l.blobs.Folder.Dir(), "tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("it left %v, error %v", left, err)
	}
}

// TestCommitErrors: the next offer, or settle, returns the error of a trainer that cannot marshal, of a round that does
// not grow, or of a leader epoch that is over.
func TestCommitErrors(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	c, tr := l.committer(j), &stated{state: []byte("state"), err: errors.New("bad state")}
	if err := c.offer(testkit.Context(t), 1, tr); !errors.Is(err, tr.err) || c.flight != nil {
		t.Errorf("a trainer that cannot marshal: error %v", err)
	}
	tr.err = nil
	offer := func(round uint64) error {
		t.Helper()
		c.due()
		if err := c.offer(testkit.Context(t), round, tr); err != nil {
			t.Fatal(err)
		}
		return c.settle()
	}
	if err := offer(5); err != nil {
		t.Error(err)
	}
	if err := offer(5); !errors.Is(err, state.ErrStaleRound) || !passing(err) {
		t.Errorf("a round that does not grow: error %v", err)
	}
	if _, err := l.store.Lead(testkit.Context(t), "b"); err != nil {
		t.Fatal(err)
	}
	if err := offer(6); !errors.Is(err, state.ErrStaleEpoch) || !passing(err) {
		t.Errorf("an epoch that is over: error %v", err)
	}
	if got := l.job(j.ID); got.Round != 5 {
		t.Errorf("round %d is committed", got.Round)
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	cancel()
	c.due()
	if err := c.offer(ctx, 7, tr); err != nil {
		t.Error(err)
	}
	_ = c.settle() // it waits, and does not look at the error
	if c.flight != nil {
		t.Error("a commit is still in flight after stop")
	}
}

// TestALargeStateWaits: a state that would take long to commit is marshaled less often. Until then the interval says
// so.
func TestALargeStateWaits(t *testing.T) {
	l := newLab(t)
	j := l.running("one")
	c, tr := l.committer(j), &stated{state: bytes.Repeat([]byte{1}, 10<<20)}
	c.began = time.Now().Add(-baseInterval - time.Millisecond)
	if err := c.offer(testkit.Context(t), 1, tr); err != nil || c.flight != nil {
		t.Fatalf("a state of 10 MiB was committed after %v, error %v", baseInterval, err)
	}
	if c.interval <= time.Second {
		t.Errorf("the interval is %v for a commit of 10 MiB", c.interval)
	}
	c.began = time.Now().Add(-time.Hour)
	if err := c.offer(testkit.Context(t), 2, tr); err != nil {
		t.Fatal(err)
	}
	if err := c.settle(); err != nil || l.job(j.ID).Round != 2 {
		t.Errorf("round %d is committed, error %v", l.job(j.ID).Round, err)
	}
}
