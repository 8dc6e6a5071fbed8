// Package system has what the suite asks of the operating system and only Linux gives: the limits
// of a process that runs, and a file system without its disk. It imports nothing of
// Coppice, so that it is quickly built for another system.
package system

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NoLimits says why a process cannot be given other limits; empty: it can.
func NoLimits() string { return "" }

// LimitDescriptors sets how many files and connections a process may have, and returns
// how many it was before.
func LimitDescriptors(pid int, most uint64) (before uint64, err error) {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		return 0, err
	}
	limit := unix.Rlimit{Cur: most, Max: old.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		return 0, err
	}
	return old.Cur, nil
}

// The request by which ext4 is shut down, and its argument: what is not in the journal yet
// is lost, as in a power cut.
const (
	shutdownRequest = 0x8004587d // _IOR('X', 125, __u32)
	withoutFlush    = 2
)

// ShutDown makes every read, write and sync on the file system of a folder an
// input/output error.
func ShutDown(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(int(f.Fd()), shutdownRequest, withoutFlush); err != nil {
		return errors.Join(fmt.Errorf("shutting down the file system of %s: %w", dir, err), f.Close())
	}
	return f.Close()
}
