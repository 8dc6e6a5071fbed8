package blobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// usage is what a folder holds: a sum that changes with each file that comes or goes. It is in memory alone.
type usage struct {
	mu       sync.Mutex // held while a blob's file comes or goes
	measured time.Time  // when all files were looked at last; zero: the sum is not known
	count    int
	bytes    int64
}

// measureAgain is how old a look at all files may be: others than this process may have changed files by hand.
const measureAgain = time.Hour

// Usage returns the number of blobs and their bytes. All files are looked at the first time, and each hour: it is asked
// every second, and there may be very many.
func (f *Folder) Usage() (count int, bytes int64, err error) {
	u := &f.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.measured.IsZero() || time.Since(u.measured) > measureAgain {
		count, bytes, err := f.measure()
		if err != nil {
			return 0, 0, err
		}
		u.measured, u.count, u.bytes = time.Now(), count, bytes
	}
	return u.count, u.bytes, nil
}

// measure looks at all files.
func (f *Folder) measure() (count int, bytes int64, err error) {
	var failed error
	err = f.Each(func(d digests.Digest) {
		n, size, err := fileUsage(filepath.Join(f.dir, d.String()))
		count, bytes, failed = count+n, bytes+size, errors.Join(failed, err)
	})
	return count, bytes, errors.Join(err, failed)
}

// change calls do, which may make, replace or remove the file of a blob at path, and adds what it changed to the sum.
// Its error is that of do.
func (f *Folder) change(path string, do func() error) error {
	u := &f.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.measured.IsZero() {
		return do()
	}
	count, bytes, before := fileUsage(path)
	done := do()
	nowCount, nowBytes, after := fileUsage(path)
	if before != nil || after != nil {
		u.measured = time.Time{}
	}
	u.count, u.bytes = u.count+nowCount-count, u.bytes+nowBytes-bytes
	return done
}

// fileUsage returns what a file counts for: nothing where there is none.
func fileUsage(path string) (count int, bytes int64, err error) {
	switch st, err := os.Lstat(path); {
	case err == nil && st.Mode().IsRegular():
		return 1, st.Size(), nil
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return 0, 0, nil
	default:
		return 0, 0, err
	}
}
