package system

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

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
