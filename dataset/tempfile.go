package dataset

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/coppice-ldl/coppice/internal/tempdir"
)

// tempFile makes a temporary file for up to size bytes in the folder that TMPDIR names, and
// removes its name: the system deletes the file when it is closed or the program ends.
func tempFile(size int64) (*os.File, error) {
	if err := checkDiskSpace(os.TempDir(), size); err != nil {
		return nil, err
	}
	return tempdir.File("columns")
}

// spool copies in, which must have size bytes, to memory or, if it is large, to a temporary
// file.
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
		err = fmt.Errorf("the array is damaged: it has %d bytes, want %d: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// diskSpaceError says that a disk has too little free space for temporary files.
type diskSpaceError struct {
	dir        string
	free, want int64
}

func (e *diskSpaceError) Error() string {
	return fmt.Sprintf("%s: temporary files need %[3]d MiB, but only %[2]d MiB are free; give another folder in TMPDIR", e.dir, e.free>>20, (e.want+1<<20-1)>>20)
}

// checkDiskSpace returns a diskSpaceError if the disk of dir has less than size bytes free.
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
