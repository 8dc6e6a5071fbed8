package blobs

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a folder holds is known after each change, also right after one, and also where
// nothing has changed for long.
func TestUsage(t *testing.T) {
	f, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	check := func(count int, bytes int64) {
		t.Helper()
		for range 2 {
			if n, b, err := f.Usage(); n != count || b != bytes || err != nil {
				t.Errorf("%d blobs of %d bytes, error %v; want %d of %d", n, b, err, count, bytes)
			}
		}
	}
	begun := time.Now()
	changed := func(at time.Duration) { // as if the last change were then
		t.Helper()
		if err := os.Chtimes(f.Dir(), begun.Add(at), begun.Add(at)); err != nil {
			t.Fatal(err)
		}
	}
	aged := func() { t.Helper(); changed(-time.Hour) }
	check(0, 0)
	first, err := f.Put([]byte("four"))
	if err != nil {
		t.Fatal(err)
	}
	check(1, 4)
	aged()
	check(1, 4)
	path := filepath.Join(f.Dir(), first)
	if err := os.WriteFile(path, []byte("longer"), 0o644); err != nil { // no such thing happens: a blob never changes
		t.Fatal(err)
	}
	check(1, 4)
	if _, err := f.Put([]byte("three")); err != nil {
		t.Fatal(err)
	}
	check(2, 6+5)
	aged()
	check(2, 6+5)
	if err := f.Delete(first); err != nil {
		t.Fatal(err)
	}
	check(1, 5)
	changed(time.Hour) // two changes that have the same time, as within a tick of a coarse clock
	check(1, 5)
	if _, err := f.Put([]byte("sixsix")); err != nil {
		t.Fatal(err)
	}
	changed(time.Hour)
	check(2, 5+6)
}
