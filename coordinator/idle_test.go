package coordinator

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A blob is old once it was at every look for as long referred to by nothing and not
// written again, whatever time its file says.
func TestIdleBlobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const bound = 10 * time.Second
		now := time.Now()
		idle := make(idleBlobs)
		since := make(map[string]time.Time) // as it should be
		files := make(map[string]time.Time)
		for look := range rapid.IntRange(1, 40).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "seconds")) * time.Second)
			seen := make(map[string]time.Time)
			for _, digest := range []string{"a", "b", "c"} {
				switch rapid.SampledFrom([]string{"stays", "stays", "stays", "written", "referred to"}).Draw(t, digest) {
				case "stays":
				case "written": // by a wall clock that jumps
					files[digest] = now.Add(time.Duration(rapid.IntRange(-1e6, 1e6).Draw(t, "jump"))*time.Second + time.Duration(look))
					delete(since, digest)
				case "referred to":
					delete(since, digest)
					continue
				}
				seen[digest] = files[digest]
				if _, ok := since[digest]; !ok {
					since[digest] = now
				}
			}
			idle.look(now, seen)
			for _, digest := range []string{"a", "b", "c"} {
				at, ok := since[digest]
				if want, got := ok && now.Sub(at) >= bound, idle.longer(digest, now, bound); got != want {
					t.Fatalf("%s: old is %v, want %v", digest, got, want)
				}
			}
		}
	})
}
