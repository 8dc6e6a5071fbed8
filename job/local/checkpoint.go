package local

import (
	"cmp"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// checkpointEvery is the time between two checkpoints where Options.CheckpointEvery is not set.
const checkpointEvery = 2 * time.Second

// checkpointer hands on the state of a job now and then, where somebody asked for it.
type checkpointer struct {
	o    *Options
	line *line
	buf  []byte
	last time.Time
}

// observer hands on the state after rounds, after another observer.
func (c *checkpointer) observer(other engine.Observer) engine.Observer {
	if c.o.Checkpoint == nil {
		return other
	}
	return func(rounds uint64, t round.Trainer) error {
		if err := other(rounds, t); err != nil {
			return err
		}
		if time.Since(c.last) < cmp.Or(c.o.CheckpointEvery, checkpointEvery) {
			return nil
		}
		return c.hand(rounds, t)
	}
}

// taker has a trainer take the results of sub-jobs as they come, and hands its state on: a
// job that goes on elsewhere then does not run these again. It is nil where nobody asked for
// states, or the trainer takes nothing.
func (c *checkpointer) taker(t round.Trainer, tells *teller) func(unit int, part []byte) error {
	k, ok := t.(round.ResultTaker)
	if c.o.Checkpoint == nil || !ok {
		return nil
	}
	return func(unit int, part []byte) error {
		if err := k.TakeResult(unit, part); err != nil {
			return err
		}
		return c.hand(tells.rounds, t)
	}
}

func (c *checkpointer) hand(rounds uint64, t round.Trainer) (err error) {
	if c.buf, err = t.AppendState(c.buf[:0]); err != nil {
		return err
	}
	c.o.Checkpoint(Checkpoint{rounds, c.buf, c.line.encoded()})
	c.last = time.Now()
	return nil
}
