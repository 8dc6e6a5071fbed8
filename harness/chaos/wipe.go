package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// wipeFolder empties the folder of a follower while the other follower lags behind: what was
// acknowledged meanwhile is on the leader's disk only, which is down. The two must not go on
// without it.
func wipeFolder(ctx context.Context, s *strike) (func(context.Context) error, error) {
	followers := s.followers(s.leader)
	i := s.rng.IntN(len(followers))
	wiped, late := followers[i], followers[1-i]
	name := fmt.Sprintf("kept-%08x", s.rng.Uint32())
	if err := late.Kill(); err != nil {
		return nil, err
	}
	if err := s.keep(ctx, name); err != nil {
		return nil, fmt.Errorf("while a follower is down: %w", err)
	}
	err := errors.Join(
		s.leader.Kill(), wiped.Kill(), os.RemoveAll(wiped.Dir), wiped.Restart(), late.Restart(),
		wait.For(ctx, s.between(leastAlone, mostAlone)),
	)
	s.on(wiped)
	if err = errors.Join(err, s.leader.Restart()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.kept(ctx, name) }, nil
}

// keep imports a dataset that must be there later.
func (s *strike) keep(ctx context.Context, name string) error {
	if _, err := s.client.Import(ctx, name, generate.Artificial(64, 1), importer.Options{}); err != nil {
		return fmt.Errorf("importing %s: %w", name, err)
	}
	return nil
}

// kept waits until every coordinator has all blobs again, and checks that a dataset
// that was acknowledged is there.
func (s *strike) kept(ctx context.Context, name string) error {
	if _, err := s.client.Dataset(ctx, name); err != nil {
		return fmt.Errorf("%w: dataset %s was acknowledged, but cannot be read: %w", ErrFailed, name, err)
	}
	for {
		whole := 0
		m, err := s.client.Members(ctx)
		if err == nil {
			for _, one := range m.Members {
				if one.Alive && one.Missing == 0 && one.Problem == "" {
					whole++
				}
			}
		}
		if whole == coordinators {
			return nil
		}
		if wait.For(ctx, lookPause) != nil {
			return fmt.Errorf("only %d of %d coordinators have all blobs: %w", whole, coordinators, errors.Join(context.Cause(ctx), err))
		}
	}
}

// readable reads each shard of a dataset that was acknowledged.
func (s *strike) readable(ctx context.Context, name string) error {
	d, err := s.client.Dataset(ctx, name)
	if err == nil {
		_, err = s.client.Shards(ctx, d.Manifest)
	}
	if err != nil {
		return fmt.Errorf("%w: dataset %s was acknowledged, but cannot be read: %w", ErrFailed, name, err)
	}
	return nil
}

// outage is a kill of coordinators, which are started again.
type outage struct {
	which []int // of the coordinators
	wiped bool  // the folder of the first is deleted meanwhile
	away  time.Duration
	early []time.Duration // the first is killed again, each so long after its start
	pause time.Duration   // until the next
}

// The outages of one random-wipes.
const (
	kills     = 4
	wipes     = 2
	mostAgain = 2 // early kills of an outage
	earlyKill = time.Second
)

// newOutages draws kills and wipes, in a random order that begins with a kill.
func newOutages(rng *rand.Rand, nodes int) (list []outage) {
	below := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most))) }
	for i := range kills + wipes {
		o := outage{which: rng.Perm(nodes)[:1+rng.IntN(nodes)], wiped: i >= kills, away: below(mostAway), pause: below(earlyKill)}
		for range rng.IntN(mostAgain + 1) {
			o.early = append(o.early, below(earlyKill))
		}
		list = append(list, o)
	}
	rng.Shuffle(len(list)-1, func(i, j int) { list[i+1], list[j+1] = list[j+1], list[i+1] })
	return list
}

// randomWipes kills coordinators at random, and deletes the folder of one at a time:
// another only once all are ready, so that a majority of the folders is whole.
func randomWipes(ctx context.Context, s *strike) (func(context.Context) error, error) {
	name := fmt.Sprintf("wiped-%08x", s.rng.Uint32())
	list := newOutages(s.rng, len(s.cluster.Coordinators))
	if err := s.keep(ctx, name); err != nil {
		return nil, err
	}
	for i, o := range list {
		if o.wiped {
			if err := s.allReady(ctx, s.servers); err != nil {
				return nil, fmt.Errorf("after %d outages: %w", i, err)
			}
		}
		if err := s.outage(ctx, &o); err != nil {
			return nil, err
		}
	}
	s.on(s.cluster.Coordinators...)
	return func(ctx context.Context) error { return errors.Join(s.kept(ctx, name), s.readable(ctx, name)) }, nil
}

// outage has one outage happen.
func (s *strike) outage(ctx context.Context, o *outage) error {
	var errs []error
	first := s.cluster.Coordinators[o.which[0]]
	for _, i := range o.which {
		errs = append(errs, s.cluster.Coordinators[i].Kill())
	}
	if o.wiped {
		errs = append(errs, os.RemoveAll(first.Dir))
	}
	errs = append(errs, wait.For(ctx, o.away))
	for _, i := range o.which {
		errs = append(errs, s.cluster.Coordinators[i].Restart())
	}
	for _, after := range o.early {
		errs = append(errs, wait.For(ctx, after), first.Kill(), first.Restart())
	}
	return errors.Join(append(errs, wait.For(ctx, o.pause))...)
}
