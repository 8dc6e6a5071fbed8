package main

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/units"
)

// leastAddressSpace is what a coordinator or worker reserves at most at its start, with room
// for its threads. It is no memory: most of it is never used.
const leastAddressSpace = 3 << 30

// checkAddressSpace refuses a limit of the address space in which the process would be
// aborted when it makes a thread.
func checkAddressSpace() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &limit); err != nil || limit.Cur >= leastAddressSpace {
		return nil
	}
	return fmt.Errorf("the limit of the address space (ulimit -v) is %s, but a coordinator or worker reserves up to %s. Most of that space is never used. Raise the limit, and bound the memory by a control group, such as MemoryMax= of systemd",
		units.Bytes(limit.Cur), units.Bytes(leastAddressSpace))
}
