//go:build linux || darwin

package dataset

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file of at least so many bytes into memory.
func mapFile(path string, least int64) ([]byte, func() error, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := info.Size()
	if size < least || size != int64(int(size)) {
		return nil, nil, fmt.Errorf("%s: the shard is damaged: it has only %d bytes: %w", path, size, ErrFormat)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", path, err)
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
