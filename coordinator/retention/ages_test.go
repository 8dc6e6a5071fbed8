package retention

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/digests"
)

// keyed is the digest that stands for a name.
func keyed(name string) digests.Digest { return sha256.Sum256([]byte(name)) }

// trueOnes is the set of the keys of true values.
func trueOnes(m map[string]bool) digests.Set {
	set := make(digests.Set)
	for key, v := range m {
		if v {
			set[keyed(key)] = struct{}{}
		}
	}
	return set
}

// TestBlobAges: a blob is old once this process has known it for long enough, whatever
// time its file has. If it was written again while something referred to it, its age
// begins when that is seen. A training state or a task's result is old a minute after
// the last reference to it.
func TestBlobAges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const bound = 10 * time.Second
		all := []string{"a", "b", "c"}
		now := time.Now()
		ages := newBlobAges()
		since := make(map[string]time.Time) // as it should be
		state := make(map[string]bool)      // it was passing since then
		files := make(map[string]time.Time)
		anew := make(map[string]bool) // written again since that was seen
		const longer = 2 * passingGrace
		for look := range rapid.IntRange(1, 40).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 2, 5, 8, 30}).Draw(t, "seconds")) * time.Second)
			// states: of what passes
			referenced, states, replaced := make(map[string]bool), make(map[string]bool), make(map[string]bool)
			var here []string
			for _, digest := range all {
				referenced[digest] = rapid.Bool().Draw(t, "referenced")
				states[digest] = referenced[digest] && rapid.Bool().Draw(t, "state")
				replaced[digest] = !referenced[digest] && rapid.Bool().Draw(t, "replaced")
				switch rapid.SampledFrom([]string{"stays", "stays", "stays", "written", "gone"}).Draw(t, digest) {
				case "written": // by a wall clock that jumps
					files[digest] = now.Add(time.Duration(rapid.IntRange(-1e6, 1e6).Draw(t, "jump"))*time.Second + time.Duration(look))
					anew[digest] = true
				case "gone":
					delete(files, digest)
					delete(since, digest)
				}
				if _, ok := files[digest]; !ok {
					continue
				}
				here = append(here, digest)
				switch _, known := since[digest]; {
				case !known || anew[digest] && !referenced[digest]:
					since[digest], anew[digest], state[digest] = now, false, !known && replaced[digest]
				default:
					state[digest] = state[digest] || replaced[digest]
				}
				if state[digest] = state[digest] || states[digest]; state[digest] && referenced[digest] {
					since[digest] = now
				}
			}
			broken := rapid.Bool().Draw(t, "the folder cannot be listed at first")
			list := func(do func(digests.Digest)) error {
				if broken {
					return errors.New("the disk fails")
				}
				for _, name := range here {
					do(keyed(name))
				}
				return nil
			}
			written := func(d digests.Digest) (time.Time, bool) {
				for name, at := range files {
					if keyed(name) == d {
						return at, true
					}
				}
				return time.Time{}, false
			}
			seen := seenBlobs{trueOnes(referenced), maps.Keys(trueOnes(states)), trueOnes(replaced)}
			for err := errors.New("not yet"); err != nil; broken = false {
				err = ages.look(now, list, seen, written)
			}
			for _, digest := range all {
				at, ok := since[digest]
				if want, got := ok && now.Sub(at) >= bound, ages.reached(keyed(digest), now, bound); got != want {
					t.Fatalf("%s: old is %v, want %v", digest, got, want)
				}
				least := longer
				if state[digest] {
					least = passingGrace
				}
				if want, got := ok && now.Sub(at) >= least, ages.reached(keyed(digest), now, longer); got != want {
					t.Fatalf("%s, a state: %v: old is %v, want %v", digest, state[digest], got, want)
				}
			}
		}
	})
}

// TestBlobAgesAreSmall: there may be hundreds of thousands of blobs.
func TestBlobAgesAreSmall(t *testing.T) {
	const n = 50_000
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	now, ages := time.Now(), newBlobAges()
	list := func(do func(digests.Digest)) error {
		for i := range n {
			do(keyed(fmt.Sprint(i)))
		}
		return nil
	}
	before := heap()
	for range 2 {
		if err := ages.look(now, list, seenBlobs{passing: maps.Keys(digests.Set{})}, func(digests.Digest) (time.Time, bool) {
			return now, true
		}); err != nil {
			t.Fatal(err)
		}
	}
	if each := (heap() - before) / n; each > 120 {
		t.Errorf("a blob takes %d bytes", each)
	}
	if len(ages.of) != n {
		t.Errorf("%d blobs", len(ages.of))
	}
}
