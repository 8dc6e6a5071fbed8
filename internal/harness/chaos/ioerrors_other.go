//go:build !linux

package chaos

import "errors"

// shutDown is for Linux.
func shutDown(string) error { return errors.ErrUnsupported }
