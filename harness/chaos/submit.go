package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

// clients keep a cluster busy: two feed it long jobs, each of one algorithm, one after
// the other; one feeds it jobs of all other algorithms and of networks, one experiments; and one
// submits, pauses, resumes, cancels and deletes small ones.
type clients struct {
	work    *workload
	ledger  *ledger
	client  *client.Client
	caller  *caller
	watched *track // of the long jobs whose commits are timed
	fail    func(error)

	stopping chan struct{} // closed: no new jobs
	running  sync.WaitGroup
}

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
	j, err := c.caller.submit(ctx, first, name, t.named(name)) // names are unique here: tokens as well
	if err != nil {
		return nil, fmt.Errorf("submitting %s: %w", name, err)
	}
	c.ledger.submitted(j, t)
	return j, nil
}

// follow watches a job to its end and checks what it gave: with progress that
// never goes back.
func (c *clients) follow(ctx context.Context, j *protocol.JobInfo, t *task, see func(*protocol.JobInfo)) (*protocol.JobInfo, error) {
	var last uint64
	var back error
	end, err := c.client.Jobs().Watch(ctx, strconv.FormatUint(j.ID, 10), func(j *protocol.JobInfo) {
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
