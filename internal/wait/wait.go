// Package wait waits.
package wait

import (
	"context"
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
