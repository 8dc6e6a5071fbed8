package blobs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FreeShare returns the share of a disk that is free to this process, from 0 to
// 1: of the disk that dir is on.
func FreeShare(dir string) (float64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("blobs: free space of %s: %w", dir, err)
	}
	if st.Blocks == 0 {
		return 1, nil // a file system that does not count
	}
	return float64(st.Bavail) / float64(st.Blocks), nil
}
