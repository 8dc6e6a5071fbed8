package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

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
		return fmt.Errorf("%w: the submission %s was sent twice and made two jobs, %d and %d", ErrFailed, name, j.ID, other.ID)
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
	_, err = c.caller.tell(ctx, 0, j.ID, "cancel")
	if err == nil {
		c.ledger.told(j.ID, func(a *acknowledged) { a.cancelled = true })
	} else if !conflict(err) {
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
	d, err := c.caller.delete(ctx, 2, j.ID)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	if len(d.Jobs) != 1 || d.Jobs[0].ID != j.ID {
		return fmt.Errorf("%w: the deletion of the job %s (%d) returned %+v", ErrFailed, name, j.ID, d.Jobs)
	}
	c.ledger.told(j.ID, func(a *acknowledged) { a.deleted = true })
	again, err := c.caller.submit(ctx, 0, name, t.named(name))
	switch {
	case err == nil:
		return fmt.Errorf("%w: the job %s (%d) was deleted, but its repeated submission made a new job, %d", ErrFailed, name, j.ID, again.ID)
	case !conflict(err) || !strings.Contains(err.Error(), "was deleted"):
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
	_, err = c.caller.tell(ctx, 2, j.ID, "pause")
	switch {
	case err == nil:
		if err := c.resume(ctx, j); err != nil {
			return err
		}
	case !conflict(err):
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
	if _, err := c.caller.tell(ctx, 1, j.ID, "resume"); err != nil && !conflict(err) {
		return fmt.Errorf("resuming %s: %w", j.Name, err)
	}
	return nil
}
