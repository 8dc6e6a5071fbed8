package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// clients keep a cluster busy: two feed it long jobs, each of one algorithm, one after
// the other; one feeds it jobs of all other algorithms and of networks, one experiments; and one
// submits, pauses, resumes, cancels and deletes small ones.
type clients struct {
	work    *workload
	ledger  *ledger
	client  *client.Client
	callers []*client.Client // one for each coordinator, which it asks first
	watched *track           // of the long jobs whose commits are timed
	fail    func(error)

	stopping chan struct{} // closed: no new jobs
	running  sync.WaitGroup
}

// start begins to submit. watched names the algorithm whose commits are timed.
func (c *clients) start(ctx context.Context, seed uint64, watched string) {
	for _, a := range Algorithms {
		if tasks := c.work.long[a]; len(tasks) > 0 {
			c.running.Go(func() { c.must(ctx, c.feed(ctx, a, tasks, a == watched)) })
		}
	}
	if len(c.work.other) > 0 {
		c.running.Go(func() { c.must(ctx, c.feedOthers(ctx, rand.New(rand.NewPCG(seed, streamOf+2)))) })
	}
	if c.work.study != nil {
		c.running.Go(func() { c.must(ctx, c.feedStudies(ctx, rand.New(rand.NewPCG(seed, streamOf+3)))) })
	}
	c.running.Go(func() { c.must(ctx, c.disturb(ctx, rand.New(rand.NewPCG(seed, streamOf+1)))) })
}

// finish waits until the jobs that run have ended.
func (c *clients) finish() {
	close(c.stopping)
	c.running.Wait()
}

// feed submits one long job after the other and checks each model.
func (c *clients) feed(ctx context.Context, algorithm string, tasks []*task, timed bool) error {
	for i := 0; !c.stopped(); i++ {
		t, name := tasks[i%len(tasks)], fmt.Sprintf("%s-%d", algorithm, i+1)
		j, err := c.submit(ctx, i, t, name)
		if err != nil {
			return err
		}
		see := func(*protocol.JobInfo) {}
		if timed {
			see = c.watched.see
		}
		if _, err := c.follow(ctx, j, t, see); err != nil {
			return err
		}
	}
	return nil
}

// disturb submits small jobs twice, cancels, pauses and deletes some.
func (c *clients) disturb(ctx context.Context, rng *rand.Rand) error {
	for i := 1; !c.stopped(); i++ {
		var err error
		switch t := c.work.short[rng.IntN(len(c.work.short))]; rng.IntN(4) {
		case 0:
			err = c.twice(ctx, t, fmt.Sprintf("twice-%d", i))
		case 1:
			err = c.cancel(ctx, t, fmt.Sprintf("cancelled-%d", i))
		case 2:
			err = c.delete(ctx, t, fmt.Sprintf("deleted-%d", i))
		default:
			err = c.pause(ctx, t, fmt.Sprintf("paused-%d", i))
		}
		if err != nil {
			return err
		}
		if err := c.rest(ctx, leastPause+time.Duration(rng.Int64N(int64(mostPause-leastPause)))); err != nil {
			return err
		}
	}
	return nil
}

// twice sends a submission to two coordinators at once, as a client that lost an
// answer would: there must be one job.
func (c *clients) twice(ctx context.Context, t *task, name string) error {
	var other *protocol.JobInfo
	var failed error
	var second sync.WaitGroup
	second.Go(func() { other, failed = c.submit(ctx, 1, t, name) })
	j, err := c.submit(ctx, 0, t, name)
	second.Wait()
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if j.ID != other.ID {
		return fmt.Errorf("%w: the submission %s was sent twice and made two jobs, %d and %d", ErrFailed, name,
			j.ID, other.ID)
	}
	_, err = c.follow(ctx, j, t, func(*protocol.JobInfo) {})
	return err
}

// cancel submits a job and cancels it; one that was faster is done.
func (c *clients) cancel(ctx context.Context, t *task, name string) error {
	j, err := c.submit(ctx, 2, t, name)
	if err != nil {
		return err
	}
	_, err = c.via(0).Jobs().Cancel(ctx, idOf(j))
	if err == nil {
		c.ledger.told(j.ID, func(a *acknowledged) { a.cancelled = true })
	} else if !client.IsConflict(err) {
		return fmt.Errorf("cancelling %s: %w", name, err)
	}
	end, err := c.follow(ctx, j, t, func(*protocol.JobInfo) {})
	if err == nil && end.State == protocol.Cancelled {
		err = c.noModel(ctx, end)
	}
	return err
}

// delete deletes a job that is done; its submission, sent again, is refused.
func (c *clients) delete(ctx context.Context, t *task, name string) error {
	j, err := c.submit(ctx, 1, t, name)
	if err != nil {
		return err
	}
	if _, err := c.follow(ctx, j, t, func(*protocol.JobInfo) {}); err != nil {
		return err
	}
	c.ledger.told(j.ID, func(a *acknowledged) { a.deleting = true })
	d, err := c.via(2).Jobs().Delete(ctx, idOf(j))
	if err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	if len(d.Jobs) != 1 || d.Jobs[0].ID != j.ID {
		return fmt.Errorf("%w: the deletion of the job %s (%d) returned %+v", ErrFailed, name, j.ID, d.Jobs)
	}
	c.ledger.told(j.ID, func(a *acknowledged) { a.deleted = true })
	again, err := c.via(0).Jobs().SubmitRequest(ctx, protocol.SubmitRequest{Token: name, Spec: t.named(name)})
	switch {
	case err == nil:
		return fmt.Errorf("%w: the job %s (%d) was deleted, but its repeated submission made a new job, %d", ErrFailed, name,
			j.ID, again.ID)
	case !client.IsConflict(err) || !strings.Contains(err.Error(), "was deleted"):
		return fmt.Errorf("submitting %s again: %w", name, err)
	}
	return nil
}

// noModel checks that a cancelled job published none.
func (c *clients) noModel(ctx context.Context, j *protocol.JobInfo) error {
	models, err := c.client.Models().List(ctx)
	if err != nil {
		return fmt.Errorf("listing models: %w", err)
	}
	for _, m := range models {
		if m.Job == j.ID {
			return fmt.Errorf("%w: the cancelled job %s published a model", ErrFailed, j.Name)
		}
	}
	return nil
}

// pause submits a job, pauses it for a while and lets it go on; one that was
// faster is done.
func (c *clients) pause(ctx context.Context, t *task, name string) error {
	j, err := c.submit(ctx, 1, t, name)
	if err != nil {
		return err
	}
	_, err = c.via(2).Jobs().Pause(ctx, idOf(j))
	switch {
	case err == nil:
		if err := c.resume(ctx, j); err != nil {
			return err
		}
	case !client.IsConflict(err):
		return fmt.Errorf("pausing %s: %w", name, err)
	}
	_, err = c.follow(ctx, j, t, func(*protocol.JobInfo) {})
	return err
}

func (c *clients) resume(ctx context.Context, j *protocol.JobInfo) error {
	c.ledger.told(j.ID, func(a *acknowledged) { a.paused = true })
	if err := wait.For(ctx, leastPause); err != nil {
		return err
	}
	c.ledger.told(j.ID, func(a *acknowledged) { a.paused = false })
	// A conflict: the answer to a first try was lost, and the job has ended since.
	if _, err := c.via(1).Jobs().Resume(ctx, idOf(j)); err != nil && !client.IsConflict(err) {
		return fmt.Errorf("resuming %s: %w", j.Name, err)
	}
	return nil
}

// via returns the client that asks a coordinator first.
func (c *clients) via(first int) *client.Client { return c.callers[first%len(c.callers)] }

func idOf(j *protocol.JobInfo) string { return strconv.FormatUint(j.ID, 10) }

// must reports an error that is no consequence of ctx.
func (c *clients) must(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		c.fail(err)
	}
}

func (c *clients) stopped() bool {
	select {
	case <-c.stopping:
		return true
	default:
		return false
	}
}

// The pause between two things that the disturbing client does.
const (
	leastPause = 500 * time.Millisecond
	mostPause  = 2500 * time.Millisecond
)

func (c *clients) submit(ctx context.Context, first int, t *task, name string) (*protocol.JobInfo, error) {
	// Names are unique here, so tokens are as well.
	j, err := c.via(first).Jobs().SubmitRequest(ctx, protocol.SubmitRequest{Token: name, Spec: t.named(name)})
	if err != nil {
		return nil, fmt.Errorf("submitting %s: %w", name, err)
	}
	c.ledger.submitted(j, t)
	return j, nil
}

// follow watches a job to its end and checks what it gave: with progress that
// never goes back.
func (c *clients) follow(ctx context.Context, j *protocol.JobInfo, t *task,
	see func(*protocol.JobInfo)) (*protocol.JobInfo, error) {
	var last uint64
	var back error
	end, err := c.client.Jobs().Watch(ctx, idOf(j), func(j *protocol.JobInfo) {
		// A job that is cancelled tells what was committed, and before that what was under way.
		if p := j.Progress; p != nil && j.State != protocol.Cancelled {
			if p.Step < last && back == nil {
				back = fmt.Errorf("%w: the progress of job %s went back from step %d to step %d", ErrFailed, j.Name, last, p.Step)
			}
			last = p.Step
		}
		see(j)
	})
	if err == nil {
		err = back
	}
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", j.Name, err)
	}
	c.ledger.told(j.ID, func(a *acknowledged) { a.final = end.State })
	if end.State == protocol.Cancelled {
		return end, nil
	}
	if err := t.check(end); err != nil {
		return nil, err
	}
	return end, c.download(ctx, end)
}

// download fetches a job's model and checks its bytes.
func (c *clients) download(ctx context.Context, j *protocol.JobInfo) error {
	b, err := c.client.Models().Get(ctx, j.Name)
	if err != nil {
		return fmt.Errorf("the model of %s: %w", j.Name, err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != j.Models[0].Blob {
		return fmt.Errorf("%w: the model of job %s has changed", ErrFailed, j.Name)
	}
	return nil
}

// rest waits, or until no new jobs are wanted.
func (c *clients) rest(ctx context.Context, d time.Duration) error {
	select {
	case <-c.stopping:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
	}
	return nil
}

// feedOthers submits jobs of the algorithms without long jobs and of networks, in an order drawn by rng, and
// checks each model.
func (c *clients) feedOthers(ctx context.Context, rng *rand.Rand) error {
	order := slices.Clone(c.work.other)
	for i := 0; !c.stopped(); i++ {
		k := i % len(order)
		if k == 0 {
			rng.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
		}
		j, err := c.submit(ctx, i, order[k], fmt.Sprintf("other-%s-%d", order[k].name, i+1))
		if err != nil {
			return err
		}
		if _, err := c.follow(ctx, j, order[k], func(*protocol.JobInfo) {}); err != nil {
			return err
		}
		if err := c.rest(ctx, leastPause+time.Duration(rng.Int64N(int64(mostPause-leastPause)))); err != nil {
			return err
		}
	}
	return nil
}

// feedStudies submits one experiment after the other, and checks the report of each.
func (c *clients) feedStudies(ctx context.Context, rng *rand.Rand) error {
	for i := 1; !c.stopped(); i++ {
		if err := c.study(ctx, c.work.study, fmt.Sprintf("study-%d", i)); err != nil {
			return err
		}
		if err := c.rest(ctx, leastPause+time.Duration(rng.Int64N(int64(mostPause-leastPause)))); err != nil {
			return err
		}
	}
	return nil
}

// study submits an experiment twice, as a client that lost an answer would, and waits for its report.
func (c *clients) study(ctx context.Context, y *study, name string) error {
	var id uint64
	for first := range 2 {
		r := protocol.ExperimentRequest{Token: name, File: "study", Spec: fmt.Sprintf(y.spec, name)}
		made, err := c.via(first).Experiments().Submit(ctx, r)
		if err != nil {
			return fmt.Errorf("submitting the experiment %s: %w", name, err)
		}
		if len(made.Jobs) != 1 {
			return fmt.Errorf("%w: want one job in the experiment %s, got %d", ErrFailed, name, len(made.Jobs))
		}
		j := &made.Jobs[0]
		if id != 0 && j.ID != id {
			return fmt.Errorf("%w: the experiment %s was sent twice and made two jobs, %d and %d", ErrFailed, name, id, j.ID)
		}
		id = j.ID
		c.ledger.submitted(j, &y.task)
	}
	end, err := c.client.Jobs().Watch(ctx, strconv.FormatUint(id, 10), func(*protocol.JobInfo) {})
	if err != nil {
		return fmt.Errorf("watching the experiment %s: %w", name, err)
	}
	c.ledger.told(id, func(a *acknowledged) { a.final = end.State })
	if err := y.task.check(end); err != nil {
		return err
	}
	return c.reportOf(ctx, y, end)
}

// reportOf holds the report of an experiment that is done against the undisturbed one.
func (c *clients) reportOf(ctx context.Context, y *study, j *protocol.JobInfo) error {
	records := make(map[string]*experiment.Record)
	err := c.client.Experiments().Outcomes(ctx, j.ID, false, func(o protocol.CellOutcome) error {
		if o.Task < 0 || o.Task >= len(y.cells) {
			return fmt.Errorf("%w: there is no run %d, counted from 0, among the %d runs of %s", ErrFailed, o.Task,
				len(y.cells), j.Name)
		}
		r := &experiment.Record{Key: y.cells[o.Task].Key, Outcome: new(pipeline.Outcome)}
		records[r.Key] = r
		return json.Unmarshal(o.Outcome, r.Outcome)
	})
	if err != nil {
		return fmt.Errorf("the runs of %s: %w", j.Name, err)
	}
	got, err := y.reportOf(records)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, y.report) {
		return fmt.Errorf("%w: the report of the experiment %s differs from the report without faults:\n%s\nwithout "+
			"faults:\n%s", ErrFailed, j.Name, got, y.report)
	}
	return nil
}
