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
	changes  uint64     // calls of change
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
	switch {
	case u.measured.IsZero():
		count, bytes, err = f.measure()
	case time.Since(u.measured) > measureAgain:
		count, bytes, err = f.measureBeside()
	default:
		return u.count, u.bytes, nil
	}
	if err != nil {
		u.measured = time.Time{}
		return 0, 0, err
	}
	u.measured, u.count, u.bytes = time.Now(), count, bytes
	return count, bytes, nil
}

// measureBeside looks at all files while they may come and go. Where some did, the sum stays as it is. The lock of the
// usage is held before and after.
func (f *Folder) measureBeside() (count int, bytes int64, err error) {
	u := &f.usage
	before := u.changes
	u.mu.Unlock()
	count, bytes, err = f.measure()
	u.mu.Lock()
	switch {
	case u.measured.IsZero(): // a change failed meanwhile
		return f.measure()
	case u.changes != before && err == nil:
		return u.count, u.bytes, nil
	}
	return count, bytes, err
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
	defer f.names.changed(path)
	u.changes++
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
