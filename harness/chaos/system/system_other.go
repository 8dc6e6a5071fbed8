//go:build !linux

package system

import (
	"errors"
)

// NoLimits says why a process cannot be given other limits; empty: it can.
func NoLimits() string { return "only Linux can change the limits of a running process" }

// LimitDescriptors is for Linux.
func LimitDescriptors(int, uint64) (uint64, error) { return 0, errors.ErrUnsupported }

// ShutDown is for Linux.
func ShutDown(string) error { return errors.ErrUnsupported }
