package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/round"
)

// maxJobs bounds the jobs that a worker keeps, for when Forget messages get
// lost: beyond it the job that was idle for longest goes. It can be had again.
const maxJobs = 64

// maxBusyJobs bounds the jobs that a worker keeps where all are in use: beyond it a
// new one is not set up. A Run of it asks for it again.
const maxBusyJobs = 16 * maxJobs

// maxRows bounds the rows of a dataset that a worker serves: it keeps some bytes for
// each, of its shards or not.
const maxRows = 1 << 28

// checkSetup makes sure that a Setup message can be worked with at all.
func checkSetup(m *protocol.Setup) error {
	if m.Job == nil || m.Manifest == nil || len(m.Manifest.Shards) == 0 || m.Manifest.Rows <= 0 {
		return fmt.Errorf("%w: the setup of job %d lacks the job or its dataset", protocol.ErrMessage, m.ID)
	}
	return nil
}

// setUp begins to prepare a job, unless that has been done.
func (w *worker) setUp(m *protocol.Setup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.obey(m.Epoch) {
		return
	}
	if old := w.jobs[m.ID]; old != nil {
		if !old.lost() && sameJob(old.spec, m.Job) && !old.anew(m) {
			return
		}
		w.forget(old) // of a log that is no more, where it is another job
	}
	if len(w.jobs) >= maxJobs {
		w.forgetIdle()
	}
	if len(w.jobs) >= maxBusyJobs {
		w.log.Warn("a job is not set up: too many are in use", "job", m.ID, "jobs", len(w.jobs))
		return
	}
	j := newJob(w.ctx, m, laneKinds*w.cfg.Slots, w.kept)
	w.orders++
	j.touched = w.orders
	w.jobs[j.id] = j
	j.users++
	w.tasks.Go(func() { w.prepareJob(j) })
}

// sameJob compares specs, which name their dataset by its digest.
func sameJob(a, b *round.Job) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (w *worker) prepareJob(j *job) {
	if err := w.makeJob(j); err != nil {
		j.failure = failureOf(err)
		if j.ctx.Err() == nil {
			w.log.Warn("a job was not set up", "job", j.id, "reason", err)
		}
	}
	close(j.ready)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(j)
}

// makeJob makes the job's kernel and data; its shards come when units need them.
func (w *worker) makeJob(j *job) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("worker: setting up the job panicked: %v", r)
		}
	}()
	if digest := j.manifest.Digest(); digest != j.spec.Dataset {
		return fmt.Errorf("worker: job %d is for dataset %.12s and came with %.12s", j.id, j.spec.Dataset, digest)
	}
	if j.spec.Numerics != round.Numerics {
		return fmt.Errorf("worker: job %d wants numerics %d, this worker computes numerics %d", j.id, j.spec.Numerics, round.Numerics)
	}
	if err := checkManifest(j.manifest); err != nil {
		return err
	}
	if j.assigned, err = w.fetchAssigned(j.ctx, j.spec.Split, j.manifest.Rows); err != nil {
		return err
	}
	roles, err := j.spec.Split.Assign(j.manifest.Rows, j.assigned)
	if err != nil {
		return err
	}
	j.data = dataset.NewData(j.manifest, roles)
	j.kernel, err = pipeline.NewKernel(j.spec, j.manifest)
	return err
}

// checkManifest refuses a dataset that no import makes, or of too many rows.
func checkManifest(m *dataset.Manifest) error {
	if m.Rows > maxRows {
		return fmt.Errorf("worker: a dataset of %d rows; a worker serves at most %d", m.Rows, maxRows)
	}
	return m.Check()
}

// fetchAssigned fetches the fold of each row where the split lists them.
func (w *worker) fetchAssigned(ctx context.Context, s dataset.Split, rows int) ([]uint16, error) {
	if s.Assigned == "" {
		return nil, nil
	}
	if s.Overlap && (s.Folds < 1 || s.Folds > dataset.MaxSplits) {
		return nil, fmt.Errorf("worker: a list of %d splits", s.Folds)
	}
	var b bytes.Buffer
	for {
		err := w.fetch(ctx, s.Assigned, 2*int64(s.AssignedLength(rows)), &b)
		if err == nil {
			break
		}
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return nil, passing(err)
		}
		b.Reset()
	}
	return s.Decode(b.Bytes(), rows)
}

// forget stops a job and drops what is kept of it; the last user closes it. mu
// is held.
func (w *worker) forget(j *job) {
	j.users++
	j.forgotten = true
	j.cancel()
	delete(w.jobs, j.id)
	for i := len(j.live) - 1; i >= 0; i-- {
		w.dropBatch(j.live[i])
	}
	for key, c := range j.units {
		w.dropCollected(j, key, c)
	}
	if len(w.jobs) == 0 {
		w.cache.unwant()
	}
	w.leave(j)
}

// leave ends one use of a job. mu is held.
func (w *worker) leave(j *job) {
	j.users--
	if j.users > 0 || !j.forgotten {
		return
	}
	for _, s := range j.opened {
		w.cache.release(s)
	}
	j.opened = nil
	j.kept.Load().Close()
}

// forgetIdle forgets the job without work that was used longest ago. mu is held.
func (w *worker) forgetIdle() {
	var oldest *job
	for _, j := range w.jobs {
		if j.users == 0 && (oldest == nil || j.touched < oldest.touched) {
			oldest = j
		}
	}
	if oldest != nil {
		w.forget(oldest)
	}
}
