package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// settleWithin bounds the wait until a job is fit to be disturbed.
	settleWithin = 2 * time.Minute
	// The pause before a fault, which lets it hit any phase.
	mostCalm = 400 * time.Millisecond
)

// suite is one run.
type suite struct {
	cfg    Config
	work   *workload
	report *Report

	rig     *rig // of the leg that runs
	clients *clients
}

func (s *suite) say(format string, args ...any) {
	fmt.Fprintf(s.cfg.Progress, format+"\n", args...)
}

// watched is the algorithm whose commits are timed.
func (s *suite) watched() string {
	if s.cfg.Algorithm != "" {
		return s.cfg.Algorithm
	}
	return ldlf
}

// afterwards waits until the cluster is whole again, and audits it.
func (s *suite) afterwards(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, s.cfg.Bound)
	defer cancel()
	if err := s.rig.healthy(bound); err != nil {
		return late(bound, s.cfg.Bound, err)
	}
	s.clients.watched.forget()
	return s.audit(bound)
}

// settle waits, after a pause, until a long job has committed a few times and is
// not about to end, and makes a mark.
func (s *suite) settle(ctx context.Context, calm time.Duration) (*mark, *proc.Node, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleWithin, fmt.Errorf("%w: the jobs made no progress within %v", ErrFailed, settleWithin))
	defer cancel()
	if _, _, err := s.fit(ctx); err != nil {
		return nil, nil, err
	}
	if err := wait.For(ctx, calm); err != nil {
		return nil, nil, err
	}
	leader, err := s.rig.leader(ctx)
	if err != nil {
		return nil, nil, err
	}
	job, commits, err := s.fit(ctx)
	if err != nil {
		return nil, nil, err
	}
	m, err := s.rig.take(ctx, job, commits, leader)
	return m, leader, err
}

// fit waits until the watched job may be disturbed.
func (s *suite) fit(ctx context.Context) (*protocol.JobInfo, []commit, error) {
	for {
		if job, commits := s.clients.watched.state(); job != nil && fit(job, commits) {
			return job, commits, nil
		}
		if err := wait.For(ctx, lookPause); err != nil {
			return nil, nil, err
		}
	}
}

// leastCommits is how many commits of a job must have been seen since the last
// fault: they tell the interval between them.
const leastCommits = 4

// fit reports whether a job may be disturbed.
func fit(j *protocol.JobInfo, commits []commit) bool {
	steps := stepsOf(j)
	return j.State == protocol.Running && len(commits) >= leastCommits && steps > 0 && stepOf(j) < steps-steps/6
}

// audit holds the cluster's jobs against the ledger.
func (s *suite) audit(ctx context.Context) error {
	known := s.clients.ledger.snapshot()
	jobs, err := client.AllJobs(ctx, s.rig.client)
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	now := s.clients.ledger.snapshot()
	for id, a := range known { // one that was resumed meanwhile may be in any state, and one be deleted meanwhile
		a.paused, a.deleting = a.paused && now[id].paused, now[id].deleting
		known[id] = a
	}
	return audit(known, jobs)
}

// atEnd checks the cluster once no client is left.
func (s *suite) atEnd(ctx context.Context) error {
	jobs, err := client.AllJobs(ctx, s.rig.client)
	if err != nil {
		return fmt.Errorf("listing jobs: %w", err)
	}
	known := s.clients.ledger.snapshot()
	s.report.Jobs += len(known)
	for _, a := range known {
		if a.final == protocol.Done {
			s.report.Digests++
		}
		if a.deleted {
			s.report.Deleted++
		}
	}
	return complete(known, jobs)
}

// firstOf returns the error that came first: that of a client ends the strikes.
func firstOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// late makes an error that the bound on a recovery caused one of the suite.
func late(bound context.Context, within time.Duration, err error) error {
	if errors.Is(context.Cause(bound), context.DeadlineExceeded) {
		return fmt.Errorf("%w: the cluster did not recover within %v: %w", ErrFailed, within, err)
	}
	return firstOf(bound, err)
}
