package blobs

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// usages returns what the folder says that it holds, and what a look at all files finds.
func usages(t interface{ Fatal(...any) }, f *Folder) (said, found [2]int64) {
	count, bytes, err := f.Usage()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil {
			t.Fatal(err)
		} else if Valid(e.Name()) {
			found[0], found[1] = found[0]+1, found[1]+info.Size()
		}
	}
	return [2]int64{int64(count), bytes}, found
}

// The sum is what a look at all files finds, whatever is put, put again, deleted and found corrupt, and wherever a
// process starts again.
func TestUsage(t *testing.T) {
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
		content := func(t *rapid.T) []byte { return make([]byte, rapid.IntRange(0, 5).Draw(t, "bytes")) }
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if said, found := usages(t, f); said != found {
					t.Fatalf("%d blobs, bytes; all files are %d", said, found)
				}
			},
			"put": func(t *rapid.T) {
				if _, err := f.Put(content(t)); err != nil {
					t.Fatal(err)
				}
			},
			"put what is not right": func(t *rapid.T) {
				w, err := f.Writer()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(content(t)); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Commit(Sum([]byte("other"))); err == nil {
					t.Fatal("stored")
				}
			},
			"delete": func(t *rapid.T) {
				if err := f.Delete(Sum(content(t))); err != nil {
					t.Fatal(err)
				}
			},
			"find corrupt": func(t *rapid.T) {
				b := content(t)
				path := filepath.Join(f.Dir(), Sum(b))
				if len(b) == 0 || !f.Has(Sum(b)) {
					return
				}
				b[0]++
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				if rapid.Bool().Draw(t, "put in its place") {
					return
				}
				b[0]--
				if _, err := f.Get(Sum(b)); err == nil {
					t.Fatal("a corrupt blob was read")
				}
			},
			"start again": func(t *rapid.T) {
				if f, err = Open(dir, NoSync()); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// The sum is right where many change the folder at a time, and someone asks meanwhile.
func TestUsageOfManyAtATime(t *testing.T) {
	f := open(t, NoSync())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 100 {
				b := make([]byte, (n*7+i)%20)
				if d, err := f.Put(b); err != nil {
					t.Error(err)
				} else if n%3 == 0 {
					if err := f.Delete(d); err != nil {
						t.Error(err)
					}
				}
				if _, _, err := f.Usage(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if said, found := usages(t, f); said != found || said[0] == 0 {
		t.Errorf("%d blobs, bytes; all files are %d", said, found)
	}
}

// What others than this process changed is known after an hour.
func TestUsageIsMeasuredAgain(t *testing.T) {
	f := open(t)
	path := filepath.Join(f.Dir(), put(t, f, []byte("four")))
	put(t, f, []byte("three"))
	if said, found := usages(t, f); said != found {
		t.Errorf("%d blobs, bytes; all files are %d", said, found)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if said, _ := usages(t, f); said != [2]int64{2, 9} {
		t.Errorf("within the hour all files were looked at: %d blobs, bytes", said)
	}
	f.usage.measured = f.usage.measured.Add(-measureEvery - time.Second)
	if said, found := usages(t, f); said != found || found != [2]int64{1, 5} {
		t.Errorf("%d blobs, bytes; all files are %d", said, found)
	}
}
