// Package wait waits.
package wait

import (
	"context"
	"iter"
	"time"
)

// For waits for d. If ctx is done first, it returns the cause.
func For(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Every yields the time at once, and then every d, until ctx is done.
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for now := time.Now(); yield(now); {
			select {
			case <-ctx.Done():
				return
			case now = <-tick.C:
			}
		}
	}
}
