package blobs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Space returns how many bytes of the disk that dir is on this process can still
// write, and its size in bytes; zeros where the file system does not count.
func Space(dir string) (free, size uint64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, 0, fmt.Errorf("blobs: the free space of %s cannot be read: %w", dir, err)
	}
	block := uint64(st.Bsize)
	return uint64(st.Bavail) * block, uint64(st.Blocks) * block, nil
}

// FreeShare returns the share of a disk that is free to this process, from 0 to
// 1: of the disk that dir is on.
func FreeShare(dir string) (float64, error) {
	free, size, err := Space(dir)
	if err != nil {
		return 0, err
	}
	if size == 0 { // a file system that does not count
		return 1, nil
	}
	return float64(free) / float64(size), nil
}
