package replica

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/digests"
)

func numbered(i int) (d digests.Digest) {
	d[0], d[1] = byte(i), byte(i>>8)
	return d
}

const modelBlobs = 6

// gapModel is a gap and what it should do.
type gapModel struct {
	g        gap
	now      time.Time
	missing  map[int]bool
	fails    map[int]int
	failed   map[int]time.Time
	fetching map[digests.Digest]int
	back     bool // one came at another try: pauses are over
}

// look has a blob come by itself, or be missing.
func (m *gapModel) look(t *rapid.T) {
	i := rapid.IntRange(0, modelBlobs-1).Draw(t, "blob")
	if _, busy := m.fetching[numbered(i)]; !busy {
		if m.missing[i] = !m.missing[i]; !m.missing[i] {
			delete(m.missing, i)
		}
		delete(m.fails, i)
		delete(m.failed, i)
	}
	var all []digests.Digest
	for i := range modelBlobs {
		if m.missing[i] {
			all = append(all, numbered(i))
		}
	}
	m.g.update(all, m.now)
}

// fetch begins a fetch.
func (m *gapModel) fetch(t *rapid.T) {
	d, wait, ok := m.g.next(m.now)
	if !ok {
		untried := 0
		for i := range m.missing {
			if _, busy := m.fetching[numbered(i)]; !busy && m.fails[i] == 0 {
				untried++
			}
		}
		if untried > 0 || wait < 0 || wait > lastRetry || wait == 0 && len(m.missing) > len(m.fetching) {
			t.Fatalf("nothing to fetch for %v, %d untried, %d missing, %d being fetched", wait, untried, len(m.missing), len(m.fetching))
		}
		return
	}
	i := int(d[0])
	if _, busy := m.fetching[d]; busy || !m.missing[i] {
		t.Fatalf("%d is fetched; missing: %v, being fetched: %v", i, m.missing[i], busy)
	}
	if n := m.fails[i]; n > 0 && !m.back && m.now.Sub(m.failed[i]) < min(lastRetry, firstRetry<<(n-1)) {
		t.Fatalf("%d is tried again %v after try %d", i, m.now.Sub(m.failed[i]), n)
	}
	m.fetching[d] = i
}

// end ends the first fetch, if there is one.
func (m *gapModel) end(t *rapid.T) {
	if len(m.fetching) == 0 {
		return
	}
	i := slices.Min(slices.Collect(maps.Values(m.fetching)))
	d := numbered(i)
	delete(m.fetching, d)
	if rapid.Bool().Draw(t, "it comes") {
		m.back = m.back || m.fails[i] > 0
		m.g.came(d)
		delete(m.missing, i)
		delete(m.fails, i)
		delete(m.failed, i)
		return
	}
	lost := rapid.Bool().Draw(t, "lost")
	m.g.failed(d, lost, m.now)
	m.fails[i], m.failed[i] = m.fails[i]+1, m.now
	if m.g.of[d].lost != lost {
		t.Fatal("that it is lost is forgotten")
	}
}

// Each missing blob is tried at once and again with pauses, is tried once at a time, and is forgotten when it is here. One
// that comes at another try has all others tried at once.
func TestGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &gapModel{
			now: time.Unix(1e9, 0), missing: make(map[int]bool), fails: make(map[int]int), failed: make(map[int]time.Time),
			fetching: make(map[digests.Digest]int),
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if len(m.g.of) != len(m.missing) {
					t.Fatalf("%d are missing, want %d", len(m.g.of), len(m.missing))
				}
			},
			"look": m.look, "fetch": m.fetch, "end": m.end,
			"time passes": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.Int64Range(1, int64(lastRetry)).Draw(t, "for")))
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
