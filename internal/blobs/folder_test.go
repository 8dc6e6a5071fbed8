package blobs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, opts ...Option) *Folder {
	t.Helper()
	f, err := Open(filepath.Join(t.TempDir(), "blobs"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// put stores bytes and fails the test where that fails.
func put(t *testing.T, f *Folder, b []byte) string {
	t.Helper()
	d, err := f.Put(b)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

// fileNames returns the names of everything in a folder.
func fileNames(t *testing.T, f *Folder) []string {
	t.Helper()
	entries, err := os.ReadDir(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestPutGet(t *testing.T) {
	for _, opts := range [][]Option{nil, {NoSync()}} {
		f := open(t, opts...)
		for _, b := range [][]byte{nil, []byte("x"), random(3 << 20)} {
			d := put(t, f, b)
			if d != Sum(b) || !f.Has(d) {
				t.Fatalf("Put(%d bytes) = %s, has %v", len(b), d, f.Has(d))
			}
			got, err := f.Get(d)
			if err != nil || !bytes.Equal(got, b) {
				t.Fatalf("Get: %d bytes, %v", len(got), err)
			}
			if n, err := f.Size(d); err != nil || n != int64(len(b)) {
				t.Fatalf("Size = %d, %v", n, err)
			}
		}
		if n, size, err := f.Usage(); n != 3 || size != 3<<20+1 || err != nil {
			t.Errorf("Usage = %d, %d, %v", n, size, err)
		}
	}
}

// The digest of "abc" is the example of FIPS 180-2.
func TestSum(t *testing.T) {
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if got := Sum([]byte("abc")); got != want {
		t.Errorf("Sum = %s", got)
	}
}

func TestPutTwiceIsOneBlob(t *testing.T) {
	f := open(t)
	if a, b := put(t, f, []byte("x")), put(t, f, []byte("x")); a != b {
		t.Fatal(a, b)
	}
	if got := fileNames(t, f); len(got) != 1 {
		t.Errorf("files %v", got)
	}
}

func TestListAndDelete(t *testing.T) {
	f := open(t)
	var want []string
	for _, s := range []string{"a", "b", "c"} {
		want = append(want, put(t, f, []byte(s)))
	}
	slices.Sort(want)
	if got, err := f.List(); err != nil || !slices.Equal(got, want) {
		t.Fatalf("List = %v, %v", got, err)
	}
	if err := f.Delete(want[1]); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(want[1]); err != nil {
		t.Errorf("second Delete: %v", err)
	}
	if got, _ := f.List(); !slices.Equal(got, []string{want[0], want[2]}) || f.Has(want[1]) {
		t.Errorf("List after Delete = %v", got)
	}
	if _, err := f.OpenBlob(want[1]); !errors.Is(err, ErrMissing) {
		t.Errorf("OpenBlob of a deleted blob: %v", err)
	}
}

func TestMissing(t *testing.T) {
	f := open(t)
	d := Sum([]byte("nowhere"))
	_, get := f.Get(d)
	_, size := f.Size(d)
	_, blob := f.OpenBlob(d)
	for _, err := range []error{get, size, blob, f.Verify(d)} {
		if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), d) {
			t.Errorf("%v, want ErrMissing with the digest", err)
		}
	}
}

// A name that is not a digest must never reach the file system.
func TestBadDigests(t *testing.T) {
	f := open(t)
	outside := filepath.Join(filepath.Dir(f.Dir()), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := Sum(nil)
	for _, d := range []string{
		"", "../outside", "/etc/passwd", good[:63], good + "0", strings.ToUpper(good),
		"../" + good[3:], good[:63] + "g", good[:63] + "\x00", good[:60] + "/../",
	} {
		_, path := f.Path(d)
		_, get := f.Get(d)
		_, size := f.Size(d)
		_, blob := f.OpenBlob(d)
		for i, err := range []error{path, get, size, blob, f.Verify(d), f.Delete(d)} {
			if !errors.Is(err, ErrDigest) {
				t.Errorf("%q, call %d: %v", d, i, err)
			}
		}
		if f.Has(d) || Valid(d) {
			t.Errorf("%q passes for a digest", d)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// spoil changes the file of a blob as a bad disk or a crash would.
func spoil(t *testing.T, f *Folder, digest string, change func([]byte) []byte) {
	t.Helper()
	path, err := f.Path(digest)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCorruptFilesAreMovedAside(t *testing.T) {
	changes := map[string]func([]byte) []byte{
		"flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"truncated":   func(b []byte) []byte { return b[:len(b)-1] },
		"empty":       func([]byte) []byte { return nil },
		"longer":      func(b []byte) []byte { return append(b, 0) },
	}
	reads := map[string]func(*Folder, string) error{
		"Get":    func(f *Folder, d string) error { _, err := f.Get(d); return err },
		"Verify": (*Folder).Verify,
		"OpenBlob": func(f *Folder, d string) error {
			f, err := Open(f.Dir()) // as another process: this one has verified it
			if err != nil {
				return err
			}
			_, err = f.OpenBlob(d)
			return err
		},
	}
	for change, by := range changes {
		for name, read := range reads {
			t.Run(name+"/"+change, func(t *testing.T) {
				f := open(t)
				b := random(100_000)
				d := put(t, f, b)
				spoil(t, f, d, by)
				err := read(f, d)
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), d) {
					t.Fatalf("%v, want ErrCorrupt with the digest", err)
				}
				if got := fileNames(t, f); !slices.Equal(got, []string{d + corruptSuffix}) || f.Has(d) {
					t.Fatalf("left %v", got)
				}
				put(t, f, b) // fetched again
				if got, err := f.Get(d); err != nil || !bytes.Equal(got, b) {
					t.Errorf("after mending: %v", err)
				}
			})
		}
	}
}

func TestWriterRefusesAnotherDigest(t *testing.T) {
	f := open(t)
	w, err := f.Writer()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Write([]byte("not it")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(Sum([]byte("it"))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Commit: %v, want ErrCorrupt", err)
	}
	if got := fileNames(t, f); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

func TestWriterStreams(t *testing.T) {
	f := open(t)
	b := random(1 << 20)
	w, err := f.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for c := range slices.Chunk(b, 4097) {
		if _, err := w.Write(c); err != nil {
			t.Fatal(err)
		}
	}
	if f.Has(Sum(b)) {
		t.Error("there before Commit")
	}
	if d, err := w.Commit(Sum(b)); err != nil || d != Sum(b) || w.Size() != 1<<20 {
		t.Fatalf("Commit = %s, %v; size %d", d, err, w.Size())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got := fileNames(t, f); !slices.Equal(got, []string{Sum(b)}) {
		t.Errorf("left %v", got)
	}
}

func TestClosedWriterLeavesNothing(t *testing.T) {
	f := open(t)
	w, err := f.Writer()
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("half"))
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := fileNames(t, f); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

// A crash leaves the temporary file of a blob that was being written.
func TestOpenSweepsWhatACrashLeft(t *testing.T) {
	f := open(t)
	d := put(t, f, []byte("kept"))
	w, err := f.Writer()
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("half"))
	w.file.Close() // the process ends here
	if got := fileNames(t, f); len(got) != 2 {
		t.Fatalf("before: %v", got)
	}
	if f, err = Open(f.Dir()); err != nil {
		t.Fatal(err)
	}
	if got := fileNames(t, f); !slices.Equal(got, []string{d}) {
		t.Errorf("after: %v", got)
	}
}

func TestOpenBlobReadsAnyPart(t *testing.T) {
	f := open(t)
	b := random(10_000)
	blob, err := f.OpenBlob(put(t, f, b))
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	part := make([]byte, 100)
	if _, err := blob.ReadAt(part, 5000); err != nil || !bytes.Equal(part, b[5000:5100]) {
		t.Errorf("ReadAt: %v", err)
	}
	if blob.Size() != 10_000 {
		t.Errorf("size %d", blob.Size())
	}
}

func TestConcurrent(t *testing.T) {
	f := open(t, NoSync())
	b := random(50_000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				d, err := f.Put(b)
				if err != nil {
					t.Error(err)
					return
				}
				blob, err := f.OpenBlob(d)
				if err != nil {
					t.Error(err)
					return
				}
				blob.Close()
			}
		})
	}
	wg.Wait()
	if got := fileNames(t, f); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

func TestSpace(t *testing.T) {
	free, size, err := Space(t.TempDir())
	if err != nil || free == 0 || free > size {
		t.Errorf("%d of %d bytes are free, %v", free, size, err)
	}
	if _, _, err := Space(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that does not exist has free space")
	}
}

func TestFreeShare(t *testing.T) {
	s, err := FreeShare(t.TempDir())
	if err != nil || s < 0 || s > 1 {
		t.Errorf("FreeShare = %v, %v", s, err)
	}
	if _, err := FreeShare(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that does not exist has free space")
	}
}

func TestOpenNeedsAFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open of a file: %v", err)
	}
}

func TestRenew(t *testing.T) {
	f := open(t)
	d := put(t, f, []byte("x"))
	path, err := f.Path(d)
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if err := f.Renew(d); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || time.Since(st.ModTime()) > time.Hour {
		t.Errorf("the blob is of %v, %v", st.ModTime(), err)
	}
	if err := f.Renew(Sum(nil)); !errors.Is(err, ErrMissing) {
		t.Errorf("Renew of no blob: %v", err)
	}
}
