package coordinator

import (
	"errors"
	"maps"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
)

// The house of a test is kept more often: tests wait for it.
func init() { houseEvery = 500 * time.Millisecond }

// What is lacking is what is referred to and not in the folder, also where the list of the folder is not whole.
func TestLacking(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		folder, err := blobs.Open(dir, blobs.NoSync())
		if err != nil {
			t.Fatal(err)
		}
		referred, listed, want := make(digests.Set), make(digests.Set), make(digests.Set)
		for i := range byte(6) {
			digest := blobs.Sum([]byte{i})
			if rapid.Bool().Draw(t, "referred to") {
				referred.Add(digest)
			}
			if !rapid.Bool().Draw(t, "here") {
				if referred.Has(digest) {
					want.Add(digest)
				}
				continue
			}
			if _, err := folder.Put([]byte{i}); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "listed") {
				listed.Add(digest)
			}
		}
		broken := errors.New("the disk fails")
		if !rapid.Bool().Draw(t, "the list fails") {
			broken = nil
		}
		err = keepLacking(referred, folder, func(do func(digests.Digest)) error {
			for d := range listed {
				do(d)
			}
			return broken
		})
		if !maps.Equal(referred, want) || !errors.Is(err, broken) {
			t.Fatalf("%v lacks, error %v; want %v", referred, err, want)
		}
	})
}

// What the last look found in the folder is what each calls with.
func TestEachOfTheLastLook(t *testing.T) {
	ages, got := newBlobAges(), make(digests.Set)
	for _, names := range [][]string{{"a", "b"}, {"b", "c"}} {
		list := func(do func(digests.Digest)) error {
			for _, name := range names {
				do(keyed(name))
			}
			return nil
		}
		written := func(digests.Digest) (time.Time, bool) { return time.Now(), true }
		if err := ages.look(time.Now(), list, seenBlobs{passing: func(func(digests.Digest) bool) {}}, written); err != nil {
			t.Fatal(err)
		}
	}
	if err := ages.each(func(d digests.Digest) { got[d] = struct{}{} }); err != nil || !maps.Equal(got, trueOnes(map[string]bool{"b": true, "c": true})) {
		t.Errorf("%v, %v", got, err)
	}
}
