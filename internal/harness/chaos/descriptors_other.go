//go:build !linux

package chaos

import (
	"context"
	"errors"
)

// noLimits says why a process cannot be given other limits; empty: it can.
func noLimits(*Config) string { return "only Linux changes the limits of a process that runs" }

func fewDescriptors(context.Context, *strike) (func(context.Context) error, error) {
	return nil, errors.ErrUnsupported
}
