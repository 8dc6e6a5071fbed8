package bus

import (
	"bytes"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
)

// A pull begins with the window that the last one from there came to, within bounds: not
// more than a small blob showed, nor than may be on its way unseen, and nothing after a
// failure.
func TestWindowsAreRemembered(t *testing.T) {
	var w windows
	for _, c := range []struct {
		last  float64
		total uint64
		want  int
	}{
		{1 << 20, 40 << 10, 80 << 10},
		{60 << 10, 40 << 10, 60 << 10},
		{1 << 20, 10, firstWindow},
		{1 << 20, 64 << 30, mostAtFirst},
		{leastWindow, 1 << 20, leastWindow}, // a thin link
	} {
		w.ended("a", &window{bytes: c.last, base: 1, last: 1, shrunk: 3, steady: true, rests: 7}, c.total)
		if got := w.begin("a"); got != (window{bytes: got.bytes}) || got.size() != c.want {
			t.Errorf("%v after %d bytes: %+v, want %d", c.last, c.total, got, c.want)
		}
	}
	if got := w.begin("b"); got.size() != firstWindow {
		t.Errorf("of another subject: %d", got.size())
	}
	w.failed("a")
	if got := w.begin("a"); got.size() != firstWindow {
		t.Errorf("after a failure: %d", got.size())
	}
	for i := range 2 * mostSubjects {
		w.ended(string(rune(i)), &window{}, 1)
	}
	if n := len(w.bytes); n > mostSubjects {
		t.Errorf("%d subjects are remembered", n)
	}
}

// Blobs of a tree's size need ever fewer requests, whether their size is known or not: in
// the end one where it is.
func TestPullsAskForMoreEachTime(t *testing.T) {
	s := startServer(t, ServerOptions{Name: "a"})
	h := holds{}
	var digests []string
	for seed := range byte(11) {
		digests = append(digests, h.put(message(43<<10, seed)))
	}
	var asked atomic.Int64
	serveBlobs(t, connect(t, Options{Server: s}), "blobs.a", "", func(digest string) (Blob, error) {
		asked.Add(1)
		return h.open(digest)
	})
	c := connect(t, Options{URLs: []string{s.ClientURL()}})
	pull := func(i int, size int64) int64 {
		before := asked.Load()
		var got bytes.Buffer
		if err := c.FetchBlob(within(t), "blobs.a", digests[i], size, &got); err != nil ||
			!bytes.Equal(got.Bytes(), h[digests[i]]) {
			t.Fatalf("%d bytes, error %v", got.Len(), err)
		}
		return asked.Load() - before
	}
	first := pull(0, 43<<10)
	for i := 1; i < 9; i++ {
		pull(i, 43<<10)
	}
	known, unknown := pull(9, 43<<10), pull(10, 0)
	if first < 4 || known > first/2 || unknown > first/2 {
		t.Errorf("%d requests for the first blob, %d in the end, %d where the size is not known", first, known, unknown)
	}
}

// What is asked for at once is no more than a piece may be.
func TestWindowFirst(t *testing.T) {
	w := window{bytes: mostWindow}
	for size, want := range map[int64]int{0: protocol.BlobChunk, 1: 1, protocol.BlobChunk: protocol.BlobChunk,
		protocol.BlobChunk + 1: protocol.BlobChunk, 64 << 30: protocol.BlobChunk} {
		if got := w.first(size); got != want {
			t.Errorf("%d bytes: %d at first, want %d", size, got, want)
		}
	}
	if got := new(window).first(firstWindow + 1); got != leastChunk {
		t.Errorf("more than the window: %d at first", got)
	}
}
