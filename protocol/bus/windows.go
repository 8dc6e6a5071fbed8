package bus

import (
	"sync"

	"github.com/coppice-ldl/coppice/protocol"
)

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
