package files

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CheckSpace returns an error if the disk of dir has less than size bytes free.
func CheckSpace(dir string, size int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Blocks == 0 { // it does not count
		return nil
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < size {
		return fmt.Errorf("%s: temporary files need %d MiB, but only %d MiB are free; give another folder in TMPDIR", dir, (size+1<<20-1)>>20, free>>20)
	}
	return nil
}
