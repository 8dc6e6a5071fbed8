package blobs

import (
	"os"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// usage is what a folder held when it was last measured.
type usage struct {
	mu      sync.Mutex
	changed time.Time // of the folder then; zero: measure again
	count   int
	bytes   int64
}

// settled is how old a folder's last change is where the next one surely has another
// time.
const settled = time.Second

// Usage returns the number of blobs and their bytes. It looks at each file only where
// the folder has changed: it is asked every second, and there may be very many.
func (f *Folder) Usage() (count int, bytes int64, err error) {
	u := &f.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	dir, err := os.Stat(f.dir)
	if err != nil {
		return 0, 0, err
	}
	if dir.ModTime().Equal(u.changed) {
		return u.count, u.bytes, nil
	}
	began := time.Now()
	count, bytes, err = f.measure()
	u.changed = time.Time{}
	if err == nil && began.Sub(dir.ModTime()) > settled {
		u.changed, u.count, u.bytes = dir.ModTime(), count, bytes
	}
	return count, bytes, err
}

func (f *Folder) measure() (count int, bytes int64, err error) {
	err = f.Each(func(d digests.Digest) {
		if n, err := f.Size(d.String()); err == nil {
			count, bytes = count+1, bytes+n
		}
	})
	return count, bytes, err
}
