package jobs

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestDecide: jobs start in the order of submission while there is room; those
// that ran under an earlier leader start whatever the room; drivers of ended jobs
// stop.
func TestDecide(t *testing.T) {
	q, p, r, d, f, c := protocol.Queued, protocol.Paused, protocol.Running, protocol.Done, protocol.Failed, protocol.Cancelled
	for _, test := range []struct {
		what    string
		jobs    []protocol.JobState // job i+1
		running []uint64
		limit   int
		start   []uint64
		stop    []uint64
	}{
		{"nothing", nil, nil, 2, nil, nil},
		{"a queue", []protocol.JobState{q, q, q}, nil, 2, []uint64{1, 2}, nil},
		{"no room", []protocol.JobState{r, r, q}, []uint64{1, 2}, 2, nil, nil},
		{"room again", []protocol.JobState{d, r, q, q}, []uint64{2}, 2, []uint64{3}, nil},
		{"ended drivers still count", []protocol.JobState{d, r, q}, []uint64{1, 2}, 2, nil, []uint64{1}},
		{"a new leader", []protocol.JobState{r, r, r, q}, nil, 2, []uint64{1, 2, 3}, nil},
		{"a new leader, and a job that was paused", []protocol.JobState{q, r}, nil, 1, []uint64{2}, nil},
		{"all that ends", []protocol.JobState{d, f, c, r}, []uint64{1, 2, 3, 4}, 9, nil, []uint64{1, 2, 3}},
		{"a pause", []protocol.JobState{p, q}, []uint64{1}, 1, nil, []uint64{1}},
		{"a pause leaves room", []protocol.JobState{p, q}, nil, 1, []uint64{2}, nil},
		{"a driver that has not marked its job yet", []protocol.JobState{q}, []uint64{1}, 2, nil, nil},
	} {
		var jobs []*state.Job
		want := make(map[protocol.JobState]int)
		for i, s := range test.jobs {
			jobs = append(jobs, &state.Job{ID: uint64(i + 1), State: s})
			want[s]++
		}
		drivers := make(map[uint64]running)
		for _, id := range test.running {
			drivers[id] = running{}
		}
		counts := make(map[protocol.JobState]int)
		start, stop := decide(jobs, drivers, test.limit, counts)
		var ids []uint64
		for _, j := range start {
			ids = append(ids, j.ID)
		}
		if !slices.Equal(ids, test.start) || !slices.Equal(stop, test.stop) {
			t.Errorf("%s: start %v, stop %v; want %v, %v", test.what, ids, stop, test.start, test.stop)
		}
		if fmt.Sprint(counts) != fmt.Sprint(want) || len(drivers) != len(test.running) {
			t.Errorf("%s: counted %v, want %v", test.what, counts, want)
		}
	}
}

// TestDecideAfterAPause: a driver that began before its job was paused and resumed
// stops, whatever the job's state is now; the next one begins once it has.
func TestDecideAfterAPause(t *testing.T) {
	for _, s := range []protocol.JobState{protocol.Queued, protocol.Running} {
		jobs := []*state.Job{{ID: 1, State: s, Pauses: 2}}
		for pauses, want := range map[uint64]int{1: 1, 2: 0} {
			start, stop := decide(jobs, map[uint64]running{1: {pauses: pauses}}, 4, make(map[protocol.JobState]int))
			if len(start) != 0 || len(stop) != want {
				t.Errorf("%s, a driver of pause %d: start %v, stop %v", s, pauses, start, stop)
			}
		}
	}
}

// TestDecideAfterADeletion: a driver stops whose job is not there any more.
func TestDecideAfterADeletion(t *testing.T) {
	jobs := []*state.Job{{ID: 2, State: protocol.Running}, {ID: 5, State: protocol.Done}}
	drivers := map[uint64]running{7: {}, 1: {}, 2: {}, 5: {}}
	if start, stop := decide(jobs, drivers, 9, make(map[protocol.JobState]int)); len(start) != 0 || !slices.Equal(stop, []uint64{5, 1, 7}) {
		t.Errorf("start %v, stop %v", start, stop)
	}
}

// TestPassing: what says nothing of the job does not fail it.
func TestPassing(t *testing.T) {
	for _, err := range []error{
		store.ErrNotLeader, &store.NotLeaderError{Leader: "b"}, store.ErrAmbiguous, store.ErrClosed, replica.ErrNoMajority,
		state.ErrStaleEpoch, state.ErrStaleRound, state.ErrGap, state.ErrFinal, state.ErrDeleted, state.ErrNotRunning, bus.ErrOffline, bus.ErrNoBlob, bus.ErrNoAnswer,
		pipeline.ErrNumerics, &os.PathError{Op: "write", Path: "blobs", Err: syscall.ENOSPC},
		&os.PathError{Op: "open", Path: "blobs", Err: syscall.EMFILE}, syscall.ENFILE, syscall.ENOMEM, syscall.EIO,
		syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENODEV, syscall.ENXIO, syscall.ETIMEDOUT,
		files.ErrGone,
	} {
		if !passing(fmt.Errorf("somewhere: %w", err)) {
			t.Errorf("%v fails a job", err)
		}
	}
	for _, err := range []error{errors.New("Θ is not finite"), state.ErrInvalid, bus.ErrBlob} {
		if passing(err) {
			t.Errorf("%v does not fail a job", err)
		}
	}
}

// TestProgressIsJSON whatever the loss is.
func TestProgressIsJSON(t *testing.T) {
	for loss, want := range map[float64]string{0.25: "0.25", math.Inf(1): "-1", math.NaN(): "-1"} {
		if got := string(progressJSON(round.Progress{Step: 3, Loss: loss})); !strings.Contains(got, `"loss":`+want+`,`) {
			t.Errorf("a loss of %v: %s", loss, got)
		}
	}
}

// TestManager takes jobs off the queue as far as there is room, stops what is
// cancelled, fails what cannot run, and leaves the rest to the next leader.
func TestManager(t *testing.T) {
	o := newOffice(t)
	o.dispatcher()
	one, bad := o.submit("one", nil), o.submit("bad", func(j *round.Job) { j.Params = []byte(`{"trees":-1}`) })
	stop := o.manage()
	o.become(`{"bad":"failed","one":"running"}`)
	if got := o.job(bad.ID); got.Error == "" || got.Ended == 0 {
		t.Errorf("the failed job says %q", got.Error)
	}
	two := o.submit("two", nil)
	o.submit("three", nil)
	o.become(`{"bad":"failed","one":"running","three":"queued","two":"running"}`)
	o.propose(protocol.EntryCancel, protocol.CancelEntry{Job: one.ID})
	o.become(`{"bad":"failed","one":"cancelled","three":"running","two":"running"}`)
	stop()
	if got := o.states(); got != `{"bad":"failed","one":"cancelled","three":"running","two":"running"}` {
		t.Errorf("the end of a leadership changed jobs: %s", got)
	}
	o.propose(protocol.EntryCancel, protocol.CancelEntry{Job: two.ID})
	stop = o.manage() // the next leader
	o.submit("four", nil)
	o.become(`{"bad":"failed","four":"running","one":"cancelled","three":"running","two":"cancelled"}`)
	stop()
}

// TestOldEpoch: when another leads, a job stops here and stays as it is.
func TestOldEpoch(t *testing.T) {
	o := newOffice(t)
	o.dispatcher()
	j := o.submit("one", nil)
	if _, err := o.store.Lead(testkit.Context(t), "b"); err != nil {
		t.Fatal(err)
	}
	d := &driver{m: New(o.cfg), job: j, log: o.cfg.Log}
	if err := d.run(testkit.Context(t)); !errors.Is(err, state.ErrStaleEpoch) || !passing(err) {
		t.Errorf("error %v", err)
	}
	if got := o.job(j.ID); got.State != protocol.Queued {
		t.Errorf("a leader whose epoch is over moved a job to %s", got.State)
	}
}

// TestLostStateIsNotTheJobsFault: a trainer state that is a blob which nobody can
// give just now stops the job here, and does not fail it.
func TestLostStateIsNotTheJobsFault(t *testing.T) {
	o := newOffice(t)
	o.dispatcher()
	o.blobs.Peers = []string{"b"} // who is away
	j := o.running("one")
	e := protocol.CommitEntry{Epoch: o.cfg.Epoch, Job: j.ID, Round: 1, Total: 9, Blob: strings.Repeat("0", 64)}
	if _, _, err := o.cfg.Store.Propose(testkit.Context(t), e.Append(nil)); err != nil {
		t.Fatal(err)
	}
	d := &driver{m: New(o.cfg), job: o.job(j.ID), log: o.cfg.Log}
	if err := d.run(testkit.Context(t)); err == nil || !passing(err) {
		t.Errorf("error %v", err)
	}
}

// TestWantedStops: a job that somebody paused, cancelled or deleted again and again has no
// trouble; one that the disk stops has.
func TestWantedStops(t *testing.T) {
	o := newOffice(t)
	o.dispatcher()
	m := New(o.cfg)
	for job, why := range []error{state.ErrNotRunning, state.ErrFinal, state.ErrDeleted, syscall.ENOSPC} {
		for range 3 {
			m.stopped(uint64(job), fmt.Errorf("somewhere: %w", why))
		}
		if told, want := o.cfg.Dispatch.Availability(uint64(job)).Stops != "", why == syscall.ENOSPC; told != want {
			t.Errorf("%v: trouble %v, want %v", why, told, want)
		}
	}
}

// TestPartsAreKeptByRound: a part is recorded for the round that it completes and
// found again by the one that runs it.
func TestPartsAreKeptByRound(t *testing.T) {
	o := newOffice(t)
	j := o.running("one")
	p := &Parts{Epoch: o.cfg.Epoch, Store: o.cfg.Store, Blobs: o.cfg.Blobs}
	digest, err := o.blobs.Folder.Put([]byte("a tree"))
	if err != nil {
		t.Fatal(err)
	}
	m := protocol.Collected{Stamp: protocol.Stamp{Epoch: o.cfg.Epoch, Job: j.ID, Round: 0}, Unit: 3, Digest: digest, Bytes: 6}
	if err := p.Record(testkit.Context(t), &m, 10); err != nil {
		t.Fatal(err)
	}
	if known := p.Known(j.ID, 0); len(known) != 1 || known[3].String() != digest {
		t.Errorf("known %v", known)
	}
	if known := p.Known(j.ID, 1); len(known) != 0 {
		t.Errorf("known of the next round %v", known)
	}
	if known := p.Known(99, 0); len(known) != 0 {
		t.Errorf("known of no job %v", known)
	}
	if b, err := p.Load(testkit.Context(t), digest); err != nil || string(b) != "a tree" {
		t.Errorf("part %q, error %v", b, err)
	}
	if info := o.job(j.ID).Info(); info.Collected != 1 || info.Units != 10 {
		t.Errorf("%d of %d units are collected", info.Collected, info.Units)
	}
}

// TestRefusedPartsEndTheRound: what the state machine refuses for good, such as a
// part of a round that is committed already, is not to be tried again.
func TestRefusedPartsEndTheRound(t *testing.T) {
	o := newOffice(t)
	j := o.running("one")
	e := protocol.CommitEntry{Epoch: o.cfg.Epoch, Job: j.ID, Round: 3, Total: 5, Data: []byte("state")}
	if _, _, err := o.store.Propose(testkit.Context(t), e.Append(nil)); err != nil {
		t.Fatal(err)
	}
	p := &Parts{Epoch: o.cfg.Epoch, Store: o.cfg.Store, Blobs: o.cfg.Blobs}
	digest, err := p.Keep([]byte("a tree"))
	if err != nil {
		t.Fatal(err)
	}
	m := &protocol.Collected{Stamp: protocol.Stamp{Epoch: o.cfg.Epoch, Job: j.ID, Round: 2}, Digest: digest, Bytes: 6}
	if err := p.Record(testkit.Context(t), m, 5); !errors.Is(err, dispatch.ErrOver) || !passing(err) {
		t.Errorf("a part of a committed round: %v", err)
	}
	m.Round = 3
	if err := p.Record(testkit.Context(t), m, 5); err != nil {
		t.Error(err)
	}
}

// TestPanicFailsTheJob and no more than the job.
func TestPanicFailsTheJob(t *testing.T) {
	d := &driver{m: New(Config{}), job: &state.Job{ID: 1}, log: slog.New(slog.DiscardHandler)} // without a store
	if err := d.guarded(t.Context()); err == nil || passing(err) || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("error %v", err)
	}
}

// TestPause stops a job's driver, gives its place to the next, and queues it again
// when it is resumed; one that is resumed at once gets a new driver.
func TestPause(t *testing.T) {
	o := newOffice(t)
	o.dispatcher()
	o.cfg.Concurrent = 1
	one, two := o.submit("one", nil), o.submit("two", nil)
	stop := o.manage()
	defer stop()
	o.become(`{"one":"running","two":"queued"}`)
	o.propose(protocol.EntryPause, protocol.PauseEntry{Job: one.ID})
	o.become(`{"one":"paused","two":"running"}`)
	o.propose(protocol.EntryResume, protocol.ResumeEntry{Job: one.ID})
	o.propose(protocol.EntryCancel, protocol.CancelEntry{Job: two.ID})
	o.become(`{"one":"running","two":"cancelled"}`)
	o.propose(protocol.EntryPause, protocol.PauseEntry{Job: one.ID})
	o.propose(protocol.EntryResume, protocol.ResumeEntry{Job: one.ID})
	o.become(`{"one":"running","two":"cancelled"}`)
	if got := o.job(one.ID); got.Pauses != 2 {
		t.Errorf("%d pauses", got.Pauses)
	}
}
