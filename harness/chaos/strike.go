package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// fault is something that the suite does to a cluster.
type fault struct {
	name     string
	doc      string
	leg      leg
	measured bool // its recovery is one of the published ones
	holds    bool // it lasts for Config.Hold, and training goes on meanwhile
	// hit does it, and says when the clock begins. What it returns ends the fault
	// after progress was seen; nil: it has ended by itself.
	hit func(ctx context.Context, s *strike) (heal func(context.Context) error, err error)
	// recoveries is how many it waits for, one after the other, each for mostRecovery; 0: one.
	// One with several is in fewer rounds.
	recoveries int
	// not, where set, says why this machine cannot have the fault; empty: it can.
	not func() string
}

// within is how long a fault may take until all is well again.
func (f *fault) within() time.Duration { return mostRecovery * time.Duration(max(1, f.recoveries)) }

type hit = func(context.Context, *strike) (func(context.Context) error, error)

// strike is one injection.
type strike struct {
	*rig
	rng    *rand.Rand
	leader *proc.Node // when it began
	target string     // what was hit, for the report
	from   time.Time  // when the clock began
}

// on names the targets and starts the clock.
func (s *strike) on(nodes ...*proc.Node) {
	s.target = ""
	for i, n := range nodes {
		if i > 0 {
			s.target += "+"
		}
		s.target += n.Name
	}
	s.from = time.Now()
}

func pick[T any](s *strike, list []T) T { return list[s.rng.IntN(len(list))] }

func (s *strike) worker() *proc.Node   { return pick(s, s.cluster.Workers) }
func (s *strike) follower() *proc.Node { return pick(s, s.followers(s.leader)) }

func (s *strike) head() *proc.Node { return s.leader }

// between draws a time.
func (s *strike) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)))
}

// How long a coordinator that forgot and one that lags behind are alone: several
// elections.
const (
	leastAlone = time.Second
	mostAlone  = 2 * time.Second
)

// How long a majority or everything is away.
const (
	leastAway = 300 * time.Millisecond
	mostAway  = 1500 * time.Millisecond
)

// killFor kills processes at once, waits, and starts them again.
func (s *strike) killFor(ctx context.Context, nodes []*proc.Node) error {
	ended := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { ended <- n.Kill() }()
	}
	var errs []error
	for range nodes {
		errs = append(errs, <-ended)
	}
	errs = append(errs, wait.For(ctx, s.between(leastAway, mostAway)))
	s.on(nodes...)
	for _, n := range nodes {
		errs = append(errs, n.Restart())
	}
	return errors.Join(errs...)
}
