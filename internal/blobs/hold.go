package blobs

import (
	"errors"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// ErrHeld says that a blob is not deleted because somebody holds it.
var ErrHeld = errors.New("blobs: the blob is in use")

// Hold keeps blobs, whether they are there yet or not, from being deleted until
// release is called: Delete returns ErrHeld. Holds of the same blob add up.
func (f *Folder) Hold(blobs digests.Set) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = make(map[digests.Digest]int)
	}
	var mine []digests.Digest
	for d := range blobs {
		f.held[d]++
		mine = append(mine, d)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, d := range mine {
			if f.held[d]--; f.held[d] <= 0 {
				delete(f.held, d)
			}
		}
		mine = nil
	}
}

// isHeld reports whether a blob must not be deleted now.
func (f *Folder) isHeld(text string) bool {
	d, _ := digests.Parse(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[d] > 0
}
