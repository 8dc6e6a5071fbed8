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

// changed takes note of a blob whose file this process made, replaced or removed, or failed to.
func (n *names) changed(path string) {
	d, ok := digests.Parse(filepath.Base(path))
	if !ok {
		return
	}
	info, err := os.Lstat(path)
	here := err == nil && info.Mode().IsRegular() // another error than that there is none: it counts as missing
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
}

// Remake makes the folder where somebody removed it; its parent must be there.
func (f *Folder) Remake() error {
	if err := os.Mkdir(f.dir, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("blobs: %w", err)
	}
	return nil
}
