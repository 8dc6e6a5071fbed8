package modelfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Head is a model file without its tensors.
type Head struct {
	Algorithm  string
	Numerics   int
	Digest     string // of the model, as the file states it
	Provenance json.RawMessage
}

// MaxProvenance bounds the provenance that ReadHead reads, in bytes.
const MaxProvenance = 64 << 20

// IsModel reports whether a file begins as model files do.
func IsModel(r io.ReaderAt) bool {
	b := make([]byte, len(magic))
	_, err := r.ReadAt(b, 0)
	return (err == nil || err == io.EOF) && string(b) == magic
}

// ReadHead reads the head of a model file of size bytes. The tensors are neither read nor compared with the digest.
// Errors wrap ErrCorrupt, or are of r.
func ReadHead(r io.ReaderAt, size int64) (*Head, error) {
	w := &window{from: r, size: size, at: int64(len(magic))}
	if !IsModel(r) {
		return nil, fmt.Errorf("%w: it does not begin with the header of a model file", ErrCorrupt)
	}
	if format := w.number(4); w.err == nil && format != Format {
		return nil, fmt.Errorf("%w: it has format %d, but this version reads format %d", ErrCorrupt, format, Format)
	}
	h := &Head{Numerics: int(w.number(4)), Algorithm: w.name()}
	n := w.number(4)
	if n > maxTensors {
		w.fail("it has %d tensors, at most %d are allowed", n, maxTensors)
	}
	for i := uint64(0); i < n && w.err == nil; i++ {
		w.skipTensor()
	}
	h.Digest = hex.EncodeToString(w.next(sha256.Size))
	length := w.number(8)
	if length > MaxProvenance {
		w.fail("its provenance has %d bytes, at most %d are allowed", length, MaxProvenance)
		length = 0
	}
	h.Provenance = bytes.Clone(w.next(int64(length)))
	tail := bytes.Clone(w.next(sha256.Size))
	if sum := sha256.Sum256(h.Provenance); w.err == nil && !bytes.Equal(sum[:], tail) {
		w.fail("its provenance does not match its digest")
	}
	if w.err == nil && w.at != size {
		w.fail("more bytes follow after its end")
	}
	return h, w.err
}

// windowBytes is how many bytes a window reads at a time.
const windowBytes = 4 << 10

// window reads fields of a file. After the first error it returns zeros.
type window struct {
	from     io.ReaderAt
	size, at int64
	err      error

	first int64 // of the bytes in buf
	buf   []byte
}

func (w *window) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: it is damaged: %s", ErrCorrupt, fmt.Sprintf(format, args...))
	}
}

// next returns the next n bytes, which the next call may overwrite.
func (w *window) next(n int64) []byte {
	if w.err == nil && (n < 0 || n > w.size-w.at) {
		w.fail("it ends after %d bytes, in the middle of a field", w.size)
	}
	if w.err != nil {
		return nil
	}
	if w.at < w.first || w.at+n > w.first+int64(len(w.buf)) {
		w.first, w.buf = w.at, slices.Grow(w.buf[:0], int(max(n, windowBytes)))[:min(max(n, windowBytes), w.size-w.at)]
		if got, err := w.from.ReadAt(w.buf, w.at); got < len(w.buf) {
			if w.err = err; err == nil || errors.Is(err, io.EOF) {
				w.err = nil
				w.fail("it became shorter while it was read")
			}
			return nil
		}
	}
	b := w.buf[w.at-w.first:][:n]
	w.at += n
	return b
}

// number reads a little-endian number of so many bytes.
func (w *window) number(size int64) uint64 {
	var b [8]byte
	copy(b[:], w.next(size))
	return binary.LittleEndian.Uint64(b[:])
}

func (w *window) name() string { return string(w.next(int64(w.number(1)))) }

// skipTensor reads the dimensions of a tensor, and skips its elements.
func (w *window) skipTensor() {
	name := w.name()
	dtype, count := byte(w.number(1)), int(w.number(1))
	if w.err == nil && (dtype < dtypeF32 || dtype > dtypeU32 || count > maxDims) {
		w.fail("tensor %q has data type %d and %d dimensions, which is not possible", name, dtype, count)
	}
	var dims []int
	for i := 0; i < count && w.err == nil; i++ {
		dims = append(dims, int(w.number(8)))
	}
	left := w.size - w.at
	n, ok := elements(dims, int(left))
	if bytes := int64(n) * int64(elementSize(dtype)); !ok || bytes > left {
		w.fail("tensor %q is larger than the file: its dimensions are %v", name, dims)
	} else if w.err == nil {
		w.at += bytes
	}
}
