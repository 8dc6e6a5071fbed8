package blobs

import (
	"errors"
	"fmt"
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

// measureEvery is how old a look at all files may be: others than this process may have changed files by hand.
const measureEvery = time.Hour

// Usage returns the number of blobs and their bytes. All files are looked at the first time, and each hour: it is asked
// every second, and there may be very many.
func (f *Folder) Usage() (count int, bytes int64, err error) {
	u := &f.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.measured.IsZero():
		count, bytes, err = f.measure()
	case time.Since(u.measured) > measureEvery:
		count, bytes, err = u.measureAgain(f.measure)
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

// measureAgain looks at all files while they may come and go. If some did, the sum stays as it is. The lock of the
// usage is held before and after.
func (u *usage) measureAgain(measure func() (count int, bytes int64, err error)) (count int, bytes int64, err error) {
	before := u.changes
	u.mu.Unlock()
	count, bytes, err = measure()
	u.mu.Lock()
	switch {
	case u.measured.IsZero(): // a change failed meanwhile
		return measure()
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

// change calls do, which may make, replace or remove the file of a blob at path, and adds what it changed to the sum
// and to the names. Its error is the error of do.
func (f *Folder) change(path string, do func() error) error {
	u, n := &f.usage, &f.names
	u.mu.Lock()
	defer u.mu.Unlock()
	u.changes++
	count, bytes, before := fileUsage(path)
	failed := do()
	nowCount, nowBytes, after := fileUsage(path)
	if before != nil || after != nil {
		u.measured = time.Time{}
	}
	u.count, u.bytes = u.count+nowCount-count, u.bytes+nowBytes-bytes
	d, ok := digests.Parse(filepath.Base(path))
	if !ok {
		return failed
	}
	here := nowCount > 0 // another error than that there is no file counts as missing
	n.mu.Lock()
	defer n.mu.Unlock()
	if !here {
		n.losses++
	}
	switch {
	case n.have == nil:
	case here:
		n.have[d] = struct{}{}
	default:
		delete(n.have, d)
	}
	if n.during != nil {
		n.during[d] = here
	}
	return failed
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

// names is which blobs a folder has. Changes by this process count at once. Others change files as well (an operator, a
// file system that is repaired): the folder is listed again if its modification time says so.
type names struct {
	listing sync.Mutex // one list at a time

	mu     sync.Mutex
	have   digests.Set             // nil: the folder is to be listed
	during map[digests.Digest]bool // while the folder is listed: what changed since, true if the blob is there; else nil
	stamp  time.Time               // modification time of the folder, before the list
	listed time.Time               // when the last list began
	took   time.Duration
	losses uint64 // how often blobs may have been lost: a file was removed, or the folder listed
}

const (
	// listAgain bounds how often a folder is listed: after that time at the earliest, and after listRest times what the
	// last list took.
	listAgain = time.Second
	listRest  = 50
	// stampSettles is the age of a modification time from which on another change gives the folder another one.
	stampSettles = 2 * time.Second
)

// Lacking returns those of the wanted blobs that the folder does not have; all of them if it cannot be listed, with the
// error. A file that somebody else removed is found missing within seconds. No file is looked at.
func (f *Folder) Lacking(wanted digests.Set) (lacking []digests.Digest, err error) {
	n := &f.names
	err = n.list(f, time.Now())
	n.mu.Lock()
	defer n.mu.Unlock()
	for d := range wanted {
		if err != nil || !n.have.Contains(d) {
			lacking = append(lacking, d)
		}
	}
	return lacking, err
}

// Losses returns a number that is another one once the folder may have lost blobs: what Lacking does not return for the
// same number it does not return later.
func (f *Folder) Losses() uint64 {
	n := &f.names
	n.list(f, time.Now()) // an error is a loss
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.losses
}

// list lists the folder if that is due.
func (n *names) list(f *Folder, now time.Time) error {
	n.listing.Lock()
	defer n.listing.Unlock()
	info, err := os.Stat(f.dir)
	if err != nil {
		return n.ended(nil, fmt.Errorf("blobs: %w", err))
	}
	stamp := info.ModTime()
	if !n.begin(stamp, now) {
		return nil
	}
	have := make(digests.Set)
	err = f.Each(func(d digests.Digest) { have[d] = struct{}{} })
	return n.ended(have, err)
}

// begin reports whether the folder is to be listed.
func (n *names) begin(stamp, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	rested := now.Sub(n.listed) >= max(listAgain, listRest*n.took)
	settled := stamp.Equal(n.stamp) && n.listed.Sub(stamp) >= stampSettles
	if n.have != nil && (settled || !rested) {
		return false
	}
	n.stamp, n.listed, n.during = stamp, now, make(map[digests.Digest]bool)
	return true
}

// ended takes a list in, or that there is none, and returns its error.
func (n *names) ended(have digests.Set, err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	during := n.during
	n.have, n.during = nil, nil
	n.losses++
	if err != nil {
		return err
	}
	for d, here := range during {
		if here {
			have[d] = struct{}{}
		} else {
			delete(have, d)
		}
	}
	n.have, n.took = have, time.Since(n.listed)
	return nil
}
