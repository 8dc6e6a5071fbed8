package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/protocol"
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
		return fmt.Errorf("%w: the message that sets up job %d has no job or no dataset", protocol.ErrMessage, m.ID)
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
		w.log.Warn("a job is not set up, because too many jobs are in use", "job", m.ID, "jobs", len(w.jobs))
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
	w.procs.begin()
	defer w.procs.end()
	if err := w.openJob(j); err != nil {
		j.failure = failureOf(err)
		if j.ctx.Err() == nil {
			w.log.Warn("a job could not be set up", "job", j.id, "reason", err)
		}
	}
	close(j.ready)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave(j)
}

// openJob opens the job.
func (w *worker) openJob(j *job) (err error) {
	if j.manifest.Rows > maxRows {
		return fmt.Errorf("worker: the dataset has %d samples, a worker supports at most %d", j.manifest.Rows, maxRows)
	}
	j.open, err = open.Open(j.spec, j.manifest, func(digest string, size int64) ([]byte, error) { return w.fetchBlob(j.ctx, digest, size) })
	return err
}

// fetchBlob fetches a blob that a job names: the list of folds of its split, or the weights that
// it begins from.
func (w *worker) fetchBlob(ctx context.Context, digest string, size int64) ([]byte, error) {
	var b bytes.Buffer
	for {
		err := w.fetch(ctx, digest, size, &b)
		if err == nil {
			return b.Bytes(), nil
		}
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return nil, passing(err)
		}
		b.Reset()
	}
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
		w.release()
	}
	w.leave(j)
}

// leave ends one use of a job. mu is held.
func (w *worker) leave(j *job) {
	j.users--
	if j.users > 0 || !j.forgotten {
		return
	}
	for _, s := range j.shards {
		w.cache.release(s)
	}
	j.shards = nil
	w.dropValues(j)
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
