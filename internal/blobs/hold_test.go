package blobs

import (
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/internal/digests"
)

func set(texts ...string) digests.Set {
	s := make(digests.Set)
	for _, d := range texts {
		s.Add(d)
	}
	return s
}

// A blob that is held by anybody is not deleted.
func TestHold(t *testing.T) {
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Put([]byte("a shard"))
	if err != nil {
		t.Fatal(err)
	}
	absent := Sum([]byte("not here yet"))
	one, two := f.Hold(set(d, absent)), f.Hold(set(d))
	for i, release := range []func(){one, two} {
		if err := f.Delete(d); !errors.Is(err, ErrHeld) || !f.Has(d) {
			t.Errorf("%d releases: %v", i, err)
		}
		release()
		release() // counts once
	}
	if err := f.Delete(d); err != nil || f.Has(d) {
		t.Errorf("after all releases: %v", err)
	}
	if len(f.held) > 0 {
		t.Errorf("held: %v", f.held)
	}
}
