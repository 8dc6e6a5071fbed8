package system

import "golang.org/x/sys/unix"

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
