package engine

import (
	"context"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/round"
)

// Executor computes the tasks of a round and combines their results.
type Executor interface {
	// Do runs round number n of the job and fills res, which stays valid until
	// the next call. It blocks until every task has a result. An error means that the
	// job cannot go on, or that ctx is done.
	Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error
}

// Observer is called after every Fold; rounds is the number of rounds folded since
// the job began. It may encode the trainer's state. An error stops the job.
type Observer func(rounds uint64, t round.Trainer) error

// Drive runs rounds from number start until the trainer says Done or ctx ends.
func Drive(ctx context.Context, t round.Trainer, start uint64, x Executor, observe Observer) error {
	var res round.Result
	for n := start; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := t.Next()
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if r.Done {
			return nil
		}
		if err := x.Do(ctx, n, r, &res); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if err := t.Fold(&res); err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		if err := observe(n+1, t); err != nil {
			return err
		}
	}
}
