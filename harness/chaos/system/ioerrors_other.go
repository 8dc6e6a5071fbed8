//go:build !linux

package system

import "errors"

// ShutDown is for Linux.
func ShutDown(string) error { return errors.ErrUnsupported }
