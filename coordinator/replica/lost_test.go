package replica

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// A blob is lost where all say that they lack it; a coordinator that is away may
// have it. Either is said at once.
func TestALostBlobIsToldFromAnAbsentHolder(t *testing.T) {
	members := cluster(t, 3)
	digest := blobs.Sum([]byte("nowhere"))
	if _, err := members[0].Get(testkit.Context(t), digest); !errors.Is(err, blobs.ErrMissing) || errors.Is(err, bus.ErrNoBlob) {
		t.Errorf("a blob that nobody has: %v", err)
	}
	members[2].stop()
	soon(t, "the answer", func() {
		if _, err := members[0].Get(testkit.Context(t), digest); !errors.Is(err, bus.ErrNoBlob) || errors.Is(err, blobs.ErrMissing) {
			t.Errorf("a blob that one who is away may have: %v", err)
		}
	})
}

// unreadable makes reading a blob's file here an error of the disk.
func unreadable(t *testing.T, m *member, digest string) {
	t.Helper()
	const memory = "/proc/self/mem" // its first page is nobody's
	if _, err := os.ReadFile(memory); !errors.Is(err, syscall.EIO) {
		t.Skip("no file here has an error of the disk")
	}
	path, err := m.Folder.Path(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Symlink(memory, path)); err != nil {
		t.Fatal(err)
	}
}

// A blob that a coordinator has and cannot read just now is not lost: it comes from
// another, and where no other has it, the error of the disk is told.
func TestAnUnreadableBlobIsNotLost(t *testing.T) {
	members := cluster(t, 3)
	data := bytesOf(1000, 7)
	digest, err := members[0].Folder.Put(data)
	if err != nil {
		t.Fatal(err)
	}
	unreadable(t, members[0], digest)
	if _, err := members[0].Get(testkit.Context(t), digest); !errors.Is(err, syscall.EIO) || errors.Is(err, blobs.ErrMissing) {
		t.Errorf("only here, and unreadable: %v", err)
	}
	path, _ := members[0].Folder.Path(digest)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // a file with a size that cannot be read
		t.Fatal(err)
	}
	if _, err := members[1].Get(testkit.Context(t), digest); errors.Is(err, blobs.ErrMissing) || !errors.Is(err, bus.ErrUnreadable) {
		t.Errorf("asked by another, which has none: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	unreadable(t, members[0], digest)
	if _, err := members[2].Folder.Put(data); err != nil {
		t.Fatal(err)
	}
	if got, err := members[0].Get(testkit.Context(t), digest); err != nil || string(got) != string(data) {
		t.Errorf("another has it: %d bytes, %v", len(got), err)
	}
	if got, err := members[0].Folder.Get(digest); err != nil || len(got) != len(data) {
		t.Errorf("the copy here is whole again: %d bytes, %v", len(got), err)
	}
}
