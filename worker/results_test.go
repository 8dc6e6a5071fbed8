package worker

import (
	"bytes"
	"io"
	"testing"

	"github.com/coppice-ldl/coppice/internal/blobs"
)

// TestResults: what there is room for in memory makes no file, the rest does; both are
// served until their last user is gone, and then there is room again.
func TestResults(t *testing.T) {
	r := must[*results](t)(openResults(t.TempDir()))
	read := func(digest string) []byte {
		t.Helper()
		b, err := r.open(digest)
		if err != nil {
			return nil
		}
		defer b.Close()
		return must[[]byte](t)(io.ReadAll(io.NewSectionReader(b, 0, b.Size())))
	}
	small, large := bytes.Repeat([]byte{1}, 1<<20), bytes.Repeat([]byte{2}, maxInMemory-1<<20+1)
	for _, c := range []struct {
		b    []byte
		file bool
	}{{small, false}, {small, false}, {large, true}} {
		digest := must[string](t)(r.put(c.b))
		if digest != blobs.Sum(c.b) || !bytes.Equal(read(digest), c.b) || r.folder.Has(digest) != c.file {
			t.Errorf("%d bytes: digest %.12s, in a file: %v", len(c.b), digest, r.folder.Has(digest))
		}
	}
	one, two := blobs.Sum(small), blobs.Sum(large)
	r.release(one)
	if !bytes.Equal(read(one), small) {
		t.Error("a result with a user left is gone")
	}
	r.release(one)
	r.release(two)
	if read(one) != nil || read(two) != nil || r.held != 0 {
		t.Errorf("results without users are there, %d bytes", r.held)
	}
	if must[string](t)(r.put(large)); r.folder.Has(two) {
		t.Error("a file though there is room")
	}
}
