package experiment

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the lock of a folder, which ends with the process that has it. The error says
// whether another process has it.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.New("another process runs this experiment")
		}
		return nil, fmt.Errorf("it cannot be locked: %w", err)
	}
	return f, nil
}
