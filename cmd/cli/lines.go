package cli

import (
	"encoding/json"
	"io"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/printable"
)

// lines is a writer that passes on whole lines, or pieces of maxPiece bytes.
type lines struct {
	pass func(text string)

	mu   sync.Mutex
	rest []byte
}

// Write implements io.Writer.
func (w *lines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	end := strings.LastIndexByte(string(w.rest), '\n') + 1
	if end == 0 && len(w.rest) >= maxPiece {
		end = len(w.rest)
	}
	if end > 0 {
		w.pass(string(w.rest[:end]))
		w.rest = append(w.rest[:0], w.rest[end:]...)
	}
	return len(b), nil
}

func (w *lines) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.pass(string(w.rest))
		w.rest = nil
	}
}

// maxPiece is the number of bytes that lines keeps of a line.
const maxPiece = 1 << 20

// ToLibrary writes a text with its places as a line of JSON, if w passes on what a command writes to a library.
func ToLibrary(w io.Writer, key string, text errtext.Text) bool {
	l, ok := printable.Unwrap(w).(*lines)
	if !ok {
		return false
	}
	e := json.NewEncoder(printable.NewJSONWriter(l))
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string][]errtext.Part{key: text.Parts()})
	return true
}
