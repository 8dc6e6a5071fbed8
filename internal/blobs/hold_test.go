package blobs

import (
	"errors"
	"testing"
)

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
	one, two := f.Hold(map[string]bool{d: true, absent: true}), f.Hold(map[string]bool{d: true})
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
