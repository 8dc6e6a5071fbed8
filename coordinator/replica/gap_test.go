package replica

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/digests"
)

func numbered(i int) (d digests.Digest) {
	d[0], d[1] = byte(i), byte(i>>8)
	return d
}

// Each missing blob is tried at once and again with pauses, is tried once at a time, and is forgotten when it is here. One
// that comes at another try has all others tried at once.
func TestGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const blobs = 6
		var g gap
		now := time.Unix(1e9, 0)
		missing := make(map[int]bool)
		fails := make(map[int]int)
		failed := make(map[int]time.Time)
		fetching := make(map[digests.Digest]int)
		back := false // one came at another try: pauses are over
		list := func() (all []digests.Digest) {
			for i := range blobs {
				if missing[i] {
					all = append(all, numbered(i))
				}
			}
			return all
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if len(g.of) != len(missing) {
					t.Fatalf("%d are missing, want %d", len(g.of), len(missing))
				}
			},
			"look": func(t *rapid.T) {
				i := rapid.IntRange(0, blobs-1).Draw(t, "blob")
				if _, busy := fetching[numbered(i)]; !busy {
					if missing[i] = !missing[i]; !missing[i] {
						delete(missing, i)
					}
					delete(fails, i)
					delete(failed, i)
				}
				g.update(list(), now)
			},
			"time passes": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.Int64Range(1, int64(lastRetry)).Draw(t, "for")))
			},
			"fetch": func(t *rapid.T) {
				d, wait, ok := g.next(now)
				if !ok {
					untried := 0
					for i := range missing {
						if _, busy := fetching[numbered(i)]; !busy && fails[i] == 0 {
							untried++
						}
					}
					if untried > 0 || wait < 0 || wait > lastRetry || wait == 0 && len(missing) > len(fetching) {
						t.Fatalf("nothing to fetch for %v, %d untried, %d missing, %d being fetched", wait, untried, len(missing), len(fetching))
					}
					return
				}
				i := int(d[0])
				if _, busy := fetching[d]; busy || !missing[i] {
					t.Fatalf("%d is fetched; missing: %v, being fetched: %v", i, missing[i], busy)
				}
				if n := fails[i]; n > 0 && !back && now.Sub(failed[i]) < min(lastRetry, firstRetry<<(n-1)) {
					t.Fatalf("%d is tried again %v after try %d", i, now.Sub(failed[i]), n)
				}
				fetching[d] = i
			},
			"fail": func(t *rapid.T) {
				for d, i := range fetching {
					lost := rapid.Bool().Draw(t, "lost")
					g.failed(d, lost, now)
					delete(fetching, d)
					fails[i], failed[i] = fails[i]+1, now
					if g.of[d].lost != lost {
						t.Fatal("that it is lost is forgotten")
					}
					return
				}
			},
			"come": func(t *rapid.T) {
				for d, i := range fetching {
					back = back || fails[i] > 0
					g.came(d)
					delete(fetching, d)
					delete(missing, i)
					delete(fails, i)
					delete(failed, i)
					return
				}
			},
		})
	})
}

// Of very many blobs that nobody has each is tried once at once, and then one each retryPace.
func TestGapWithVeryManyBlobs(t *testing.T) {
	const blobs = 20_000
	var g gap
	var all []digests.Digest
	for i := range blobs {
		all = append(all, numbered(i))
	}
	now := time.Unix(1e9, 0)
	g.update(all, now)
	for range blobs {
		d, _, ok := g.next(now)
		if !ok {
			t.Fatal("one is not tried at once")
		}
		g.failed(d, true, now)
	}
	tries := 0
	for end := now.Add(10 * time.Second); now.Before(end); {
		d, wait, ok := g.next(now)
		if ok {
			tries++
			g.failed(d, true, now)
			continue
		}
		now = now.Add(max(wait, time.Millisecond))
	}
	if most := int(10*time.Second/retryPace) + 1; tries > most || tries < most/2 {
		t.Errorf("%d tries in 10 s, want about %d", tries, most)
	}
	d, _, ok := g.next(now.Add(time.Minute))
	if !ok {
		t.Fatal("none is tried again")
	}
	g.came(d)
	for range blobs - 1 {
		if _, _, ok := g.next(now); !ok {
			t.Fatal("somebody is back, and not all are tried at once")
		}
	}
}
