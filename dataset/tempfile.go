package dataset

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// scratchFile makes a temporary file of up to size bytes (in the folder that TMPDIR
// names) which has no name any more: it goes when the program ends, however that ends,
// or when nothing refers to it.
func tempFile(size int64) (*os.File, error) {
	if err := checkDiskSpace(os.TempDir(), size); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "coppice-columns-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// spool copies at most size bytes of in, all of it, to a scratch file; what is small
// stays in memory.
func spool(in io.Reader, size int64) (io.ReaderAt, error) {
	if size <= smallSpool {
		return spoolMemory(in, size)
	}
	f, err := tempFile(size)
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, io.LimitReader(in, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("%d bytes where %d are expected: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// roomError says that a disk has no room for temporary files.
type diskSpaceError struct {
	dir        string
	free, want int64
}

func (e *diskSpaceError) Error() string {
	return fmt.Sprintf("%s: %d MiB are free, temporary files need %d MiB; TMPDIR names another folder", e.dir, e.free>>20, (e.want+1<<20-1)>>20)
}

// checkRoom reports a disk on which size bytes have no room.
func checkDiskSpace(dir string, size int64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil || st.Blocks == 0 { // it does not count
		return nil
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < size {
		return &diskSpaceError{dir, free, size}
	}
	return nil
}
