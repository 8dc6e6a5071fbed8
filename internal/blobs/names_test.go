package blobs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// lacking returns what Lacking says of all blobs that a test has, by their content.
func lacking(t interface{ Fatal(...any) }, f *Folder, contents int) (list []int) {
	wanted := make(digests.Set)
	for i := range contents {
		wanted.Add(Sum(make([]byte, i)))
	}
	missing, err := f.Lacking(wanted)
	if err != nil {
		t.Fatal(err)
	}
	for i := range contents {
		if d, _ := digests.Parse(Sum(make([]byte, i))); slices.Contains(missing, d) {
			list = append(list, i)
		}
	}
	return list
}

// What is lacking is what has no file, whatever this process does, and, once the folder is listed again, whatever
// others do.
func TestLacking(t *testing.T) {
	const contents = 5
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		f, err := Open(dir, NoSync())
		if err != nil {
			t.Fatal(err)
		}
		draw := func(t *rapid.T) (i int, digest, path string) {
			i = rapid.IntRange(0, contents-1).Draw(t, "content")
			digest = Sum(make([]byte, i))
			return i, digest, filepath.Join(dir, digest)
		}
		losses, lacked := uint64(0), []int(nil)
		listAgain := func() { f.names.listed = time.Now().Add(-time.Hour) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				was := losses
				losses = f.Losses()
				var want []int
				for i := range contents {
					if !f.Has(Sum(make([]byte, i))) {
						want = append(want, i)
					}
				}
				if got := lacking(t, f, contents); !slices.Equal(got, want) {
					t.Fatalf("%v are lacking, want %v", got, want)
				}
				for _, i := range want {
					if was == losses && !slices.Contains(lacked, i) {
						t.Fatalf("%d was lost and the number of losses stays %d", i, losses)
					}
				}
				lacked = want
			},
			"put": func(t *rapid.T) {
				i, _, _ := draw(t)
				if _, err := f.Put(make([]byte, i)); err != nil {
					t.Fatal(err)
				}
			},
			"delete": func(t *rapid.T) {
				_, digest, _ := draw(t)
				if err := f.Delete(digest); err != nil {
					t.Fatal(err)
				}
			},
			"find damaged": func(t *rapid.T) {
				_, digest, path := draw(t)
				if os.WriteFile(path, []byte("damaged"), 0o600) != nil || !errors.Is(f.Verify(digest), ErrCorrupt) {
					t.Fatal("not found damaged")
				}
			},
			"removed by another": func(t *rapid.T) {
				_, _, path := draw(t)
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				listAgain()
			},
			"put by another": func(t *rapid.T) {
				i, _, path := draw(t)
				if err := os.WriteFile(path, make([]byte, i), 0o600); err != nil {
					t.Fatal(err)
				}
				listAgain()
			},
		})
	})
}

// A folder that does not change is listed once. A file that another process removes is found missing.
func TestLackingListsTheFolderAgain(t *testing.T) {
	f, err := Open(t.TempDir(), NoSync())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := f.Put(make([]byte, i)); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(f.Dir(), old, old); err != nil {
		t.Fatal(err)
	}
	lacking(t, f, 2)
	began := f.names.listed
	f.names.took = 0
	f.names.listed = began.Add(-30 * time.Second)
	lacking(t, f, 2)
	if f.names.listed != began.Add(-30*time.Second) {
		t.Error("the folder did not change, and was listed again")
	}
	if err := os.Remove(filepath.Join(f.Dir(), Sum(nil))); err != nil {
		t.Fatal(err)
	}
	if got := lacking(t, f, 2); !slices.Equal(got, []int{0}) {
		t.Errorf("%v are lacking after another removed 0", got)
	}
}

// Of a folder that was removed all blobs are lacking, until it is there again; the folder that it was in is not made.
func TestLackingWithoutTheFolder(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "parent")
	f, err := Open(filepath.Join(parent, "blobs"), NoSync())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Put(nil); err != nil {
		t.Fatal(err)
	}
	wanted := make(digests.Set)
	wanted.Add(Sum(nil))
	if missing, err := f.Lacking(wanted); err != nil || len(missing) != 0 {
		t.Fatal(missing, err)
	}
	if err := os.RemoveAll(parent); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if missing, err := f.Lacking(wanted); len(missing) != 1 || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without the folder %d blobs are lacking, %v", len(missing), err)
		}
	}
	if err := f.Remake(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made without its parent: %v", err)
	}
	if err := errors.Join(os.Mkdir(parent, 0o755), f.Remake(), f.Remake()); err != nil {
		t.Fatal(err)
	}
	if missing, err := f.Lacking(wanted); len(missing) != 1 || err != nil {
		t.Errorf("in an empty folder %d blobs are lacking, %v", len(missing), err)
	}
	if _, err := f.Put(nil); err != nil {
		t.Fatal(err)
	}
	if missing, err := f.Lacking(wanted); len(missing) != 0 || err != nil {
		t.Errorf("after it was put again %d blobs are lacking, %v", len(missing), err)
	}
}

// What comes and goes while the folder is listed counts.
func TestLackingWhileBlobsComeAndGo(t *testing.T) {
	f, err := Open(t.TempDir(), NoSync())
	if err != nil {
		t.Fatal(err)
	}
	const contents = 200
	var work sync.WaitGroup
	for from := range 2 {
		work.Go(func() {
			for i := from; i < contents; i += 2 {
				if _, err := f.Put(make([]byte, i)); err != nil {
					t.Error(err)
				}
				if i%3 == 0 {
					if err := f.Delete(Sum(make([]byte, i))); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	work.Go(func() {
		for range 50 {
			f.names.mu.Lock()
			f.names.listed, f.names.took = time.Now().Add(-time.Hour), 0
			f.names.mu.Unlock()
			lacking(t, f, contents)
		}
	})
	work.Wait()
	var want []int
	for i := 0; i < contents; i += 3 {
		want = append(want, i)
	}
	if got := lacking(t, f, contents); !slices.Equal(got, want) {
		t.Errorf("%v are lacking, want %v", got, want)
	}
}

// What changed while the folder was listed overrides the list.
func TestLackingAfterChangesDuringTheList(t *testing.T) {
	f, err := Open(t.TempDir(), NoSync())
	if err != nil {
		t.Fatal(err)
	}
	put := func(i int) {
		if _, err := f.Put(make([]byte, i)); err != nil {
			t.Fatal(err)
		}
	}
	put(0)
	if !f.names.begin(time.Now(), time.Now()) {
		t.Fatal("the folder is not listed")
	}
	list := make(digests.Set)
	list.Add(Sum(nil))
	put(1)
	if err := f.Delete(Sum(nil)); err != nil {
		t.Fatal(err)
	}
	if err := f.names.ended(list, nil); err != nil {
		t.Fatal(err)
	}
	if got := lacking(t, f, 3); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("%v are lacking, want 0 and 2", got)
	}
}

// BenchmarkLacking asks for 20,000 blobs of a folder that has them and does not change.
func BenchmarkLacking(b *testing.B) {
	f, err := Open(b.TempDir(), NoSync())
	if err != nil {
		b.Fatal(err)
	}
	wanted := make(digests.Set)
	for i := range 20_000 {
		digest, err := f.Put([]byte{byte(i), byte(i >> 8)})
		if err != nil {
			b.Fatal(err)
		}
		wanted.Add(digest)
	}
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(f.Dir(), old, old); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if missing, err := f.Lacking(wanted); len(missing) > 0 || err != nil {
			b.Fatal(missing, err)
		}
	}
}
