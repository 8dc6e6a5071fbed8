package bus

import (
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of what a pull of a blob has on its way, in bytes, and of the pieces that
// it asks for.
const (
	firstWindow = 16 << 10
	leastWindow = 4 << 10
	mostWindow  = 8 * protocol.BlobChunk
	leastChunk  = 4 << 10
	// piecesOut is in how many pieces a window is asked for, as far as the bounds of a
	// piece allow.
	chunksOut = 4
	// afresh is how often in a row a window shrinks, and no piece comes as fast as the fastest
	// did, before that counts no more: the way may be a longer one by now.
	afresh = 16
	// mostPatience bounds the wait for one piece.
	mostPatience = 20 * time.Second
	// spareDelay is by how much a pull may lengthen the way of what shares the link with it:
	// heartbeats, a third of the shortest election timeout by default.
	spareDelay = 50 * time.Millisecond
)

// window is how many bytes of a blob may be on their way: it grows while pieces come about
// as fast as the fastest one did, and shrinks when they come later, because a queue builds
// up on a thin link, or not at all. Where they come later for good, what is fast is told
// anew. The zero value is ready for use.
type window struct {
	bytes  float64
	base   time.Duration // what the fastest piece took; 0: the next tells
	last   time.Duration // what the last one took
	shrunk int           // how often since a piece came about as fast as the fastest
	steady bool          // it has shrunk once: from then on it grows by a piece for each window
	rests  int           // bytes to come before it changes again after it has shrunk
}

// size returns how many bytes may be on their way.
func (w *window) size() int {
	if w.bytes == 0 {
		w.bytes = firstWindow
	}
	return int(w.bytes)
}

// piece returns how many bytes to ask for at once.
func (w *window) chunk() int {
	return min(max(w.size()/chunksOut, leastChunk), protocol.BlobChunk)
}

// came takes note of n bytes that came d after they were asked for.
func (w *window) came(n int, d time.Duration) {
	size := float64(w.size())
	w.last = d
	if w.rests > 0 {
		w.rests -= n
		if d < w.base {
			w.base = d
		}
		return
	}
	if w.base == 0 || d < w.base {
		w.base = d
	}
	if d <= w.base+w.base/4 {
		w.shrunk = 0
	}
	switch late := d > w.base+w.base/4+spareDelay; {
	case late:
		w.shrink()
	case w.steady:
		w.bytes = min(size+float64(n)*float64(w.chunk())/size, mostWindow)
	default:
		w.bytes = min(size+float64(n), mostWindow) // twice as much for each window that came
	}
}

// silent takes note of a piece that did not come in time, and no other since it was asked
// for. Where others came it was lost alone, and not for a queue.
func (w *window) silent() { w.shrink() }

// shrink halves the window, and lets what is on its way come before it changes again. Once
// that was of no use for long, the window is as small as can be, so that what it has on its
// way waits behind nothing of its own, and the next piece tells anew how fast one comes.
func (w *window) shrink() {
	w.rests = w.size()
	w.bytes = max(w.bytes/2, leastWindow)
	w.steady = true
	if w.shrunk++; w.shrunk >= afresh {
		w.bytes, w.base, w.shrunk = leastWindow, 0, 0
	}
}

// patience is how long a piece is waited for that is asked for the tries-th time, from 1.
func (w *window) patience(tries int) time.Duration {
	first := max(chunkTimeout, min(patiencePaces*w.last, mostPatience))
	return min(first<<min(tries-1, 3), mostPatience)
}

// patiencePaces is how many times as long as the last piece took another may take.
const patiencePaces = 4

const (
	// mostAtFirst bounds the window that a pull begins with: what is on its way before the
	// first piece tells how the link is.
	mostAtFirst = 128 << 10
	// mostSubjects bounds the subjects whose windows are remembered.
	mostSubjects = 1024
)

// windows remembers how wide the window of the last pull from each subject became, so that
// the next one need not find out from the beginning: a tree takes one request in place of
// eight.
type windows struct {
	mu    sync.Mutex
	bytes map[string]float64 // by subject
}

// begin returns the window that a pull from a subject begins with.
func (w *windows) begin(subject string) window {
	w.mu.Lock()
	defer w.mu.Unlock()
	return window{bytes: w.bytes[subject]}
}

// ended takes note of the window at the end of a pull of total bytes that went well. A small
// blob does not show that the link carries more than twice as much.
func (w *windows) ended(subject string, last *window, total uint64) {
	shown := max(2*float64(total), firstWindow)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bytes == nil || len(w.bytes) >= mostSubjects {
		w.bytes = make(map[string]float64)
	}
	w.bytes[subject] = min(float64(last.size()), shown, mostAtFirst)
}

// failed forgets a subject from which a pull failed.
func (w *windows) failed(subject string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.bytes, subject)
}

// first returns how many bytes a pull asks for at first: all of a blob that is known to fit
// into the window, since they would be on their way together anyway.
func (w *window) first(size int64) int {
	if 0 < size && size <= int64(min(w.size(), protocol.BlobChunk)) {
		return int(size)
	}
	return w.chunk()
}
