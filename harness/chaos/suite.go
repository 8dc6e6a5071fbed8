package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// Run runs the suite. The report is of what was injected, also where the error
// says what was found (ErrFailed). Errors of the configuration wrap ErrUsage.
func Run(ctx context.Context, c Config) (*Report, error) {
	c, err := c.prepared()
	if err != nil {
		return nil, err
	}
	faults, left, err := choose(&c)
	if err != nil {
		return nil, err
	}
	s := &suite{cfg: c, report: newReport(&c, faults, left)}
	for _, l := range left {
		s.say("fault left out: %s: %s", l.Fault, l.Reason)
	}
	s.say("computing the result of every job without faults")
	if s.work, err = newWorkload(ctx, &c); err != nil {
		return s.report, err
	}
	schedule := plan(c.Seed, c.Rounds, faults, len(c.Faults) > 0)
	for l := range legs {
		if part := of(schedule, l); len(part) > 0 {
			if err := s.leg(ctx, l, part); err != nil {
				return s.report.summed(), err
			}
		}
	}
	return s.report.summed(), s.report.missing()
}

// Check returns an error that wraps ErrUsage if Run would refuse the Config.
func (c Config) Check() error {
	_, err := c.prepared()
	return err
}

// prepared checks a Config and fills in what it leaves open.
func (c Config) prepared() (Config, error) {
	if c.Rounds < 1 || c.Rounds > MaxRounds {
		return c, fmt.Errorf("%w: want 1 to %[3]d rounds, got %[2]d", ErrUsage, c.Rounds, MaxRounds)
	}
	if c.Workers < 2 || c.Workers > MaxWorkers {
		return c, fmt.Errorf("%w: want 2 to %[3]d workers, so that one can be lost, got %[2]d", ErrUsage, c.Workers,
			MaxWorkers)
	}
	if c.Algorithm != "" && !slices.Contains(Algorithms, c.Algorithm) {
		return c, fmt.Errorf("%w: unknown algorithm %q of the long jobs: want %s", ErrUsage, c.Algorithm,
			strings.Join(Algorithms, " or "))
	}
	for i, name := range c.Faults {
		if find(name) == nil {
			return c, fmt.Errorf("%w: unknown fault %q; the faults are %s", ErrUsage, name, strings.Join(Names(), ", "))
		}
		if slices.Contains(c.Faults[:i], name) {
			return c, fmt.Errorf("%w: %s is listed twice", ErrUsage, name)
		}
	}
	if c.Hold < 0 || c.Stall < 0 {
		return c, fmt.Errorf("%w: the times of a partition and of a stall cannot be negative, got %v and %v", ErrUsage,
			c.Hold, c.Stall)
	}
	c.Hold, c.Stall = cmp.Or(c.Hold, DefaultHold), cmp.Or(c.Stall, DefaultStall)
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c, nil
}

// choose returns the faults to inject, and those that this machine cannot have. A
// fault that was asked for and cannot be is an error.
func choose(c *Config) (faults []*fault, left []Left, err error) {
	for _, f := range catalog {
		if len(c.Faults) > 0 && !slices.Contains(c.Faults, f.name) {
			continue
		}
		reason := ""
		if f.not != nil {
			reason = f.not()
		}
		switch {
		case reason == "":
			faults = append(faults, f)
		case len(c.Faults) > 0:
			return nil, nil, fmt.Errorf("%w: %s cannot be injected here: %s", ErrUsage, f.name, reason)
		default:
			left = append(left, Left{f.name, reason})
		}
	}
	return faults, left, nil
}

// leg runs one cluster through its part of the schedule.
func (s *suite) leg(ctx context.Context, l leg, part []planned) (err error) {
	s.say("%s: starting %d coordinators and %d workers, %d faults to inject", l, coordinators, s.cfg.Workers, len(part))
	s.rig, err = newRig(ctx, &s.cfg, l)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.rig.close()) }()
	for name, source := range s.work.sources {
		if _, err := s.rig.client.Datasets().Import(ctx, protocol.DatasetPut{Name: name}, source(),
			importer.Options{}); err != nil {
			return fmt.Errorf("importing the data: %w", err)
		}
	}
	callers, err := s.rig.callers()
	defer func() {
		for _, c := range callers {
			c.Close()
		}
	}()
	if err != nil {
		return err
	}
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s.clients = &clients{
		work: s.work, ledger: newLedger(), client: s.rig.client, callers: callers, watched: new(track), fail: fail,
		stopping: make(chan struct{}),
	}
	s.clients.start(running, s.cfg.Seed+uint64(l), cmp.Or(s.cfg.Algorithm, ldlf))
	if err := s.strikes(running, part); err != nil {
		fail(err)
		s.clients.finish()
		return firstOf(running, err)
	}
	s.say("%s: waiting for the jobs that still run", l)
	s.clients.finish()
	if err := context.Cause(running); err != nil {
		return err
	}
	return s.atEnd(ctx)
}

// strikes injects the faults one after the other.
func (s *suite) strikes(ctx context.Context, part []planned) error {
	for i, p := range part {
		done, err := s.strike(ctx, p)
		if done != nil {
			s.report.Strikes = append(s.report.Strikes, *done)
			s.say("%3d of %d  round %-3d %-18s %-8s %s", i+1, len(part), p.round, p.fault.name, done.Target, done.text())
		}
		if err != nil {
			return fmt.Errorf("round %d, %s: %w", p.round, p.fault.name, err)
		}
	}
	return nil
}

// of returns what a leg has of a schedule, in order.
func of(list []planned, l leg) (part []planned) {
	for _, p := range list {
		if p.fault.leg == l {
			part = append(part, p)
		}
	}
	return part
}

// strike injects one fault and waits until all is well again.
func (s *suite) strike(ctx context.Context, p planned) (*Strike, error) {
	rng := rand.New(rand.NewPCG(p.seed, streamOf))
	m, leader, err := s.settle(ctx, time.Duration(rng.Int64N(int64(mostCalm))))
	if err != nil {
		return nil, err
	}
	k := &strike{rig: s.rig, rng: rng, leader: leader}
	done := &Strike{Round: p.round, Fault: p.fault.name, Interval: m.interval.Seconds()}
	within := p.fault.within()
	bound, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	heal, err := p.fault.hit(bound, k)
	done.Target = k.target
	if err != nil {
		return done, late(bound, within, err)
	}
	got, err := s.rig.await(bound, m, k.from)
	if p.fault.holds && err == nil {
		done.took(got)
		if err := s.partition(ctx, k, got, done, heal); err != nil {
			return done, err
		}
		return done, s.afterwards(ctx)
	}
	if heal != nil {
		err = errors.Join(err, heal(bound))
	}
	if err != nil {
		return done, late(bound, within, err)
	}
	done.took(got)
	return done, s.afterwards(ctx)
}

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

// afterwards waits until the cluster is whole again, and audits it.
func (s *suite) afterwards(ctx context.Context) error {
	bound, cancel := context.WithTimeout(ctx, mostRecovery)
	defer cancel()
	if err := s.rig.healthy(bound); err != nil {
		return late(bound, mostRecovery, err)
	}
	s.clients.watched.forget()
	return s.audit(bound)
}

// settle waits, after a pause, until a long job has committed a few times and is
// not about to end, and makes a mark.
func (s *suite) settle(ctx context.Context, calm time.Duration) (*mark, *proc.Node, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, settleWithin, fmt.Errorf("%w: the jobs made no progress within %v",
		ErrFailed, settleWithin))
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
	jobs, err := s.rig.client.Jobs().All(ctx)
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
	jobs, err := s.rig.client.Jobs().All(ctx)
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

// planned is one fault of the schedule.
type planned struct {
	round int // from 1
	fault *fault
	seed  uint64 // of its own choices: which process, how long
}

// streamOf separates the schedule's random numbers from those of anything else
// that may be seeded alike.
const streamOf = 0x636861_6f73

// plan returns the schedule, round by round. With every set, each fault is in each
// round; else measured ones are in two of five, those that last or wait for several
// recoveries in one of twenty, and the others in one of ten, at least in one.
func plan(seed uint64, rounds int, faults []*fault, every bool) []planned {
	rng := rand.New(rand.NewPCG(seed, streamOf))
	in := make([][]*fault, rounds)
	for _, f := range faults {
		n := rounds
		if !every {
			n = f.share(rounds)
		}
		for _, r := range rng.Perm(rounds)[:n] {
			in[r] = append(in[r], f)
		}
	}
	var list []planned
	for r, faults := range in {
		rng.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		for _, f := range faults {
			list = append(list, planned{r + 1, f, rng.Uint64()})
		}
	}
	return list
}

// share returns in how many of so many rounds a fault is.
func (f *fault) share(rounds int) int {
	if f.measured {
		return (2*rounds + 4) / 5
	}
	if f.holds || f.recoveries > 1 { // it takes several seconds
		return (rounds + 19) / 20
	}
	return (rounds + 9) / 10
}

// stall measures the longest time without committed progress of jobs that follow each
// other: the time from the last commit of one to the first of the next does not count.
type stall struct {
	job          uint64
	rounds, step uint64
	last         time.Time // of progress; zero: none was seen of this job
	longest      time.Duration
}

// see takes a sighting of a job.
func (t *stall) see(s sighting) {
	if s.job.ID != t.job {
		t.job, t.rounds, t.step, t.last = s.job.ID, s.job.Rounds, stepOf(s.job), time.Time{}
		return
	}
	if s.job.Rounds <= t.rounds && stepOf(s.job) <= t.step {
		return
	}
	t.until(s.at)
	t.rounds, t.step, t.last = max(t.rounds, s.job.Rounds), max(t.step, stepOf(s.job)), s.at
}

// until counts the time since the last progress.
func (t *stall) until(now time.Time) {
	if !t.last.IsZero() {
		t.longest = max(t.longest, now.Sub(t.last))
	}
}

// endure watches the long jobs until a time.
func (s *suite) endure(ctx context.Context, t *stall, end time.Time) error {
	for time.Now().Before(end) {
		job, _ := s.clients.watched.state()
		if job == nil || job.State.Final() {
			if err := wait.For(ctx, lookPause); err != nil {
				return err
			}
			continue
		}
		s.watchOne(ctx, t, job.ID, end)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// watchOne watches one job until a time or until it ends.
func (s *suite) watchOne(ctx context.Context, t *stall, id uint64, end time.Time) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	seen, ended := s.rig.poll(ctx, id), false
	for now := range seen {
		if ended {
			continue
		}
		if t.see(now); now.job.State.Final() {
			ended = true
			cancel()
		}
	}
	if !ended && t.job == id {
		t.until(time.Now())
	}
}

// partition is the rest of a strike that holds, once progress was seen again: the
// partition lasts, is mended, and all the time training goes on.
func (s *suite) partition(ctx context.Context, k *strike, got recovery, done *Strike,
	heal func(context.Context) error) error {
	t := stall{longest: got.after}
	err := s.endure(ctx, &t, k.from.Add(s.cfg.Hold))
	err = errors.Join(err, heal(ctx))
	if err == nil {
		err = s.endure(ctx, &t, time.Now().Add(healed))
	}
	done.Longest = t.longest.Seconds()
	if limit := s.cfg.mostStall(done.Interval); err == nil && t.longest > limit {
		err = fmt.Errorf("%w: %w for %v, want at most %v", ErrFailed, ErrStall, t.longest.Round(time.Millisecond),
			limit.Round(time.Millisecond))
	}
	return err
}
