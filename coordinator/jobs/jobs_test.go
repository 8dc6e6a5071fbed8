package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestDecide: jobs start in the order of submission while there is room. Jobs that ran under an earlier leader always
// start. Drivers of jobs that have ended stop.
func TestDecide(t *testing.T) {
	q, p, r, d, f, c := protocol.Queued, protocol.Paused, protocol.Running, protocol.Done, protocol.Failed,
		protocol.Cancelled
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
		{"ended drivers still count", []protocol.JobState{d, r, q}, []uint64{1, 2}, 2, nil, nil},
		{"a new leader", []protocol.JobState{r, r, r, q}, nil, 2, []uint64{1, 2, 3}, nil},
		{"a new leader, and a job that was paused", []protocol.JobState{q, r}, nil, 1, []uint64{2}, nil},
		{"all that ends", []protocol.JobState{d, f, c, r}, []uint64{1, 2, 3, 4}, 9, nil, []uint64{2, 3}},
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

// TestDecideAfterAPause: a driver that began before its job was paused and resumed stops, whatever the job's state is
// now. The next one begins after that.
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

// TestDecideAfterADeletion: the driver of a job that is deleted stops.
func TestDecideAfterADeletion(t *testing.T) {
	jobs := []*state.Job{{ID: 2, State: protocol.Running}, {ID: 5, State: protocol.Done}}
	drivers := map[uint64]running{7: {}, 1: {}, 2: {}, 5: {}}
	if start, stop := decide(jobs, drivers, 9, make(map[protocol.JobState]int)); len(start) != 0 ||
		!slices.Equal(stop, []uint64{1, 7}) {
		t.Errorf("start %v, stop %v", start, stop)
	}
}

// TestPassing: an error that says nothing about the job does not fail it.
func TestPassing(t *testing.T) {
	for _, err := range []error{
		store.ErrNotLeader, &store.NotLeaderError{Leader: "b"}, store.ErrAmbiguous, store.ErrClosed, replica.ErrNoMajority,
		state.ErrStaleEpoch, state.ErrStaleRound, state.ErrGap, state.ErrFinal, state.ErrDeleted, state.ErrNotRunning,
		bus.ErrOffline, bus.ErrNoBlob, bus.ErrNoAnswer,
		pipeline.ErrNumerics, &os.PathError{Op: "write", Path: "blobs", Err: syscall.ENOSPC},
		&os.PathError{Op: "open", Path: "blobs", Err: syscall.EMFILE}, syscall.ENFILE, syscall.ENOMEM, syscall.EIO,
		syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.ENODEV,
		syscall.ENXIO, syscall.ETIMEDOUT,
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

// TestProgressIsJSON with any loss.
func TestProgressIsJSON(t *testing.T) {
	for loss, want := range map[float64]string{0.25: "0.25", math.Inf(1): "-1", math.NaN(): "-1"} {
		if got := string(progressJSON(round.Progress{Step: 3, Loss: loss})); !strings.Contains(got, `"loss":`+want+`,`) {
			t.Errorf("a loss of %v: %s", loss, got)
		}
	}
}

// TestManager: a manager takes jobs from the queue while there is room. It stops jobs that are canceled, fails jobs
// that cannot run, and leaves the others to the next leader.
func TestManager(t *testing.T) {
	l := newLab(t)
	l.dispatcher()
	one, bad := l.submit("one", nil), l.submit("bad", func(j *round.Job) { j.Params = []byte(`{"trees":-1}`) })
	stop := l.manage()
	l.become(`{"bad":"failed","one":"running"}`)
	if got := l.job(bad.ID); got.Error == "" || got.Ended == 0 {
		t.Errorf("the failed job says %q", got.Error)
	}
	two := l.submit("two", nil)
	l.submit("three", nil)
	l.become(`{"bad":"failed","one":"running","three":"queued","two":"running"}`)
	l.propose(protocol.EntryCancel, protocol.JobEntry{Job: one.ID})
	l.become(`{"bad":"failed","one":"cancelled","three":"running","two":"running"}`)
	stop()
	if got := l.states(); got != `{"bad":"failed","one":"cancelled","three":"running","two":"running"}` {
		t.Errorf("the end of a leadership changed jobs: %s", got)
	}
	l.propose(protocol.EntryCancel, protocol.JobEntry{Job: two.ID})
	stop = l.manage() // the next leader
	l.submit("four", nil)
	l.become(`{"bad":"failed","four":"running","one":"cancelled","three":"running","two":"cancelled"}`)
	stop()
}

// TestOldEpoch: once another leads, a job stops here and stays as it is.
func TestOldEpoch(t *testing.T) {
	l := newLab(t)
	l.dispatcher()
	j := l.submit("one", nil)
	if _, err := l.store.Lead(testkit.Context(t), "b"); err != nil {
		t.Fatal(err)
	}
	d := &driver{m: New(l.cfg), job: j, log: l.cfg.Log}
	if err := d.run(testkit.Context(t)); !errors.Is(err, state.ErrStaleEpoch) || !passing(err) {
		t.Errorf("error %v", err)
	}
	if got := l.job(j.ID); got.State != protocol.Queued {
		t.Errorf("a leader whose epoch is over moved a job to %s", got.State)
	}
}

// TestLostStateIsNotTheJobsFault: a job whose trainer state is a blob that nobody has now stops here, and does not
// fail.
func TestLostStateIsNotTheJobsFault(t *testing.T) {
	l := newLab(t)
	l.dispatcher()
	l.blobs.Peers = []string{"b"} // it does not answer
	j := l.running("one")
	e := protocol.CommitEntry{Epoch: l.cfg.Epoch, Job: j.ID, Round: 1, Total: 9, Blob: strings.Repeat("0", 64)}
	if _, _, err := l.cfg.Store.Propose(testkit.Context(t), e.Append(nil)); err != nil {
		t.Fatal(err)
	}
	d := &driver{m: New(l.cfg), job: l.job(j.ID), log: l.cfg.Log}
	if err := d.run(testkit.Context(t)); err == nil || !passing(err) {
		t.Errorf("error %v", err)
	}
}

// TestWantedStops: a job that somebody paused, canceled or deleted again and again is not told to be in trouble. A job
// that the disk stops is.
func TestWantedStops(t *testing.T) {
	l := newLab(t)
	l.dispatcher()
	m := New(l.cfg)
	for job, why := range []error{state.ErrNotRunning, state.ErrFinal, state.ErrDeleted, syscall.ENOSPC} {
		for range 3 {
			m.stopped(&driver{m: m, job: &state.Job{ID: uint64(job)}}, fmt.Errorf("somewhere: %w", why))
		}
		if told, want := l.cfg.Dispatch.Availability(uint64(job)).Stops != "", why == syscall.ENOSPC; told != want {
			t.Errorf("%v: trouble %v, want %v", why, told, want)
		}
	}
}

// TestPanicFailsTheJob, and nothing else.
func TestPanicFailsTheJob(t *testing.T) {
	d := &driver{m: New(Config{}), job: &state.Job{ID: 1}, log: slog.New(slog.DiscardHandler)} // without a store
	if err := d.guarded(t.Context()); err == nil || passing(err) || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("error %v", err)
	}
}

// TestPause: a pause stops a job's driver and gives its place to the next job. A job that is resumed is queued again,
// or gets a new driver at once.
func TestPause(t *testing.T) {
	l := newLab(t)
	l.dispatcher()
	l.cfg.Concurrent = 1
	one, two := l.submit("one", nil), l.submit("two", nil)
	stop := l.manage()
	defer stop()
	l.become(`{"one":"running","two":"queued"}`)
	l.propose(protocol.EntryPause, protocol.JobEntry{Job: one.ID})
	l.become(`{"one":"paused","two":"running"}`)
	l.propose(protocol.EntryResume, protocol.JobEntry{Job: one.ID})
	l.propose(protocol.EntryCancel, protocol.JobEntry{Job: two.ID})
	l.become(`{"one":"running","two":"cancelled"}`)
	l.propose(protocol.EntryPause, protocol.JobEntry{Job: one.ID})
	l.propose(protocol.EntryResume, protocol.JobEntry{Job: one.ID})
	l.become(`{"one":"running","two":"cancelled"}`)
	if got := l.job(one.ID); got.Pauses != 2 {
		t.Errorf("%d pauses", got.Pauses)
	}
}

// gathered reads the gauges of jobs by their name.
func gathered(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.Metric {
			if len(m.Label) == 1 && m.Label[0].GetName() == "name" {
				found[f.GetName()] = m.Gauge.GetValue()
			}
		}
	}
	return found
}

// TestGauges: an unknown value has no series, and no value is above its end.
func TestGauges(t *testing.T) {
	reg := prometheus.NewRegistry()
	g := newGauges(metrics.NewCoordinator(reg), "job")
	now := time.UnixMilli(1_700_000_000_250)
	for _, loss := range []float64{-1, math.NaN(), math.Inf(1)} {
		g.set(round.Progress{Step: 3, Loss: loss}, now)
	}
	got := gathered(t, reg)
	if len(got) != 2 || got["coppice_job_steps"] != 3 ||
		got["coppice_job_last_progress_timestamp_seconds"] != 1_700_000_000.25 {
		t.Errorf("at first there are %v", got)
	}
	g.set(round.Progress{Step: 30, Steps: 20, Loss: 0.5}, now)
	if got = gathered(t, reg); got["coppice_job_progress_ratio"] != 1 || got["coppice_job_loss"] != 0.5 {
		t.Errorf("then there are %v", got)
	}
}

// TestPresentable: progress for display can be written as JSON.
func TestPresentable(t *testing.T) {
	for _, loss := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		p := presentable(round.Progress{Step: 7, Loss: loss})
		if b, err := json.Marshal(p); err != nil || p.Loss != -1 || p.Step != 7 {
			t.Errorf("%v is shown as %s, %v", loss, b, err)
		}
	}
}
