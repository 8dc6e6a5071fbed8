package blobs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzFolder finds a file of any name and content in its folder when it opens:
// only bytes of the digest that a file is named by come out of it, whatever it is
// asked for, and what is asked for never leaves the folder.
func FuzzFolder(f *testing.F) {
	f.Add(Sum([]byte("blob")), []byte("blob"), "")
	f.Add(Sum([]byte("blob")), []byte("blot"), Sum([]byte("blob")))
	f.Add("tmp-1", []byte("left"), "tmp-1")
	f.Add("x", []byte{}, "../x")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name string, content []byte, ask string) {
		if name == "" || name != filepath.Base(name) || len(name) > 200 || name == "." || name == ".." {
			return
		}
		folder := filepath.Join(dir, "blobs")
		if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			return // no name of a file on this system
		}
		d, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, digest := range []string{name, ask} {
			allocs.AtMost(t, 64*(len(content)+len(digest))+256<<10, "a blob", func() { checkGet(t, d, digest, content) })
		}
	})
}

func checkGet(t *testing.T, d *Folder, digest string, content []byte) {
	t.Helper()
	verified := d.Verify(digest) == nil
	b, err := d.Get(digest)
	switch {
	case err == nil:
		if !bytes.Equal(b, content) || Sum(b) != digest || !verified {
			t.Fatalf("%q has %q", digest, b)
		}
	case verified:
		t.Fatalf("%q is right and yet: %v", digest, err)
	case !errors.Is(err, ErrDigest) && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrCorrupt):
		t.Fatalf("%q: error %v", digest, err)
	}
	blob, err := d.OpenBlob(digest)
	if (err == nil) != verified {
		t.Fatalf("%q opens with %v", digest, err)
	}
	if err == nil {
		blob.Close()
	}
}
