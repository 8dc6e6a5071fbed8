// Package modelfile encodes models: the tensors that the digest covers, then a
// provenance block outside it. FORMAT.md draws the bytes.
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

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Format is the version of the file format.
const Format = 1

const magic = "coppice-model\x00"

// The bounds of a model file: a decoder refuses what exceeds them.
const (
	maxName    = 255
	maxDims    = 8
	maxTensors = 1 << 20
)

// dtype numbers of the file format.
const (
	dtypeF32 = 1
	dtypeF64 = 2
	dtypeU32 = 3
)

// ErrCorrupt is wrapped by every error about the bytes of a model file.
var ErrCorrupt = errors.New("the model file cannot be read")

// File is a decoded model file.
type File struct {
	Algorithm  string
	Numerics   int
	Tensors    []algorithms.Tensor
	Digest     string // SHA-256 in hex: the model's identity
	Provenance json.RawMessage
}

// Write writes a model file to w and returns the model's digest in hex. The tensors
// are not copied. Errors are w's.
func Write(w io.Writer, algorithm string, tensors []algorithms.Tensor, provenance json.RawMessage) (digest string,
	err error) {
	h := sha256.New()
	both := &writer{to: io.MultiWriter(h, w)}
	both.tensors(algorithm, tensors)
	sum := h.Sum(nil)
	rest := &writer{to: w, err: both.err}
	rest.bytes(sum)
	rest.bytes(appendProvenance(nil, provenance))
	return hex.EncodeToString(sum), rest.err
}

// Encode returns a model file with the model's digest in hex.
func Encode(algorithm string, tensors []algorithms.Tensor, provenance json.RawMessage) (file []byte, digest string) {
	return SetProvenance(EncodeWithRoom(algorithm, tensors, len(provenance)), provenance)
}

// EncodeWithRoom returns a model file without a provenance, and with memory for one of so many
// bytes.
func EncodeWithRoom(algorithm string, tensors []algorithms.Tensor, room int) (file []byte) {
	count := &writer{to: io.Discard}
	count.tensors(algorithm, tensors)
	b := bytes.NewBuffer(make([]byte, 0, count.n+sha256.Size+noProvenance+room))
	must(Write(b, algorithm, tensors, nil))
	return b.Bytes()
}

// must panics on an error of a writer that cannot fail.
func must(digest string, err error) string {
	if err != nil {
		panic("modelfile: " + err.Error())
	}
	return digest
}

// Digest returns the digest of a model without keeping its file.
func Digest(algorithm string, tensors []algorithms.Tensor) string {
	return must(Write(io.Discard, algorithm, tensors, nil))
}

// noProvenance is the size of what follows the model's digest where there is no provenance.
const noProvenance = 8 + sha256.Size

// appendProvenance appends what follows the model's digest.
func appendProvenance(b []byte, provenance json.RawMessage) []byte {
	tail := sha256.Sum256(provenance)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(provenance)))
	b = append(b, provenance...)
	return append(b, tail[:]...)
}

// SetProvenance adds the provenance to a model file that has none, in the memory of the file where
// it fits: the file is then no longer to be read. It returns the model's digest as well.
func SetProvenance(file []byte, provenance json.RawMessage) (whole []byte, digest string) {
	end := len(file) - noProvenance
	digest = hex.EncodeToString(file[end-sha256.Size : end])
	if need := end + noProvenance + len(provenance); need > cap(file) {
		file = append(make([]byte, 0, need), file[:end]...)
	}
	return appendProvenance(file[:end], provenance), digest
}

// writer writes fields; after the first error it does nothing.
type writer struct {
	to  io.Writer
	n   int // bytes written
	err error
}

func (w *writer) bytes(b []byte) {
	if w.err == nil {
		var n int
		n, w.err = w.to.Write(b)
		w.n += n
	}
}

// tensors writes what the digest covers.
func (w *writer) tensors(algorithm string, tensors []algorithms.Tensor) {
	b := binary.LittleEndian.AppendUint32([]byte(magic), Format)
	b = binary.LittleEndian.AppendUint32(b, round.Numerics)
	b = appendName(b, algorithm)
	w.bytes(binary.LittleEndian.AppendUint32(b, uint32(len(tensors))))
	for i := range tensors {
		w.tensor(&tensors[i])
	}
}

func (w *writer) tensor(t *algorithms.Tensor) {
	pieces := t.Pieces
	if len(pieces) == 0 {
		pieces = []algorithms.Tensor{*t}
	}
	dtype, _ := tensorBytes(&pieces[0])
	b := append(appendName(nil, t.Name), dtype, byte(len(t.Dims)))
	want := elementSize(dtype)
	for _, d := range t.Dims {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
		want *= d
	}
	w.bytes(b)
	for i := range pieces {
		kind, data := tensorBytes(&pieces[i])
		if kind != dtype {
			panic("modelfile: tensor " + t.Name + " has pieces of several types")
		}
		w.bytes(data)
		want -= len(data)
	}
	if want != 0 {
		panic(fmt.Sprintf("modelfile: the data of tensor %s is %d bytes short of its dimensions", t.Name, want))
	}
}

func appendName(b []byte, name string) []byte {
	if len(name) > maxName {
		panic("modelfile: name too long: " + name)
	}
	b = append(b, byte(len(name)))
	return append(b, name...)
}

func tensorBytes(t *algorithms.Tensor) (dtype byte, data []byte) {
	switch {
	case t.F64 != nil:
		return dtypeF64, num.Bytes64(t.F64)
	case t.U32 != nil:
		return dtypeU32, num.BytesU32(t.U32)
	}
	return dtypeF32, num.Bytes32(t.F32)
}

func elementSize(dtype byte) int {
	if dtype == dtypeF64 {
		return 8
	}
	return 4
}

// Decode reads a model file and checks both of its digests. Errors wrap
// ErrCorrupt; the tensors share no memory with b.
func Decode(b []byte) (*File, error) {
	if !bytes.HasPrefix(b, []byte(magic)) {
		return nil, fmt.Errorf("%w: it does not begin with the header of a model file", ErrCorrupt)
	}
	r := &reader{b: b, at: len(magic)}
	f := &File{}
	if format := r.number(4); r.err == nil && format != Format {
		return nil, fmt.Errorf("%w: it has format %d, but this version reads format %d; use the version of coppice that "+
			"made the model, or a later version", ErrCorrupt, format, Format)
	}
	f.Numerics = int(r.number(4))
	f.Algorithm = r.name()
	n := r.number(4)
	if r.err == nil && n > maxTensors {
		r.err = fmt.Errorf("it is damaged: it has %d tensors, at most %d are allowed", n, maxTensors)
	}
	for i := uint64(0); i < n && r.err == nil; i++ {
		f.Tensors = append(f.Tensors, r.tensor())
	}
	end := r.at
	stated := r.next(sha256.Size)
	provenance := r.next(int(min(r.number(8), uint64(len(b)))))
	tail := r.next(sha256.Size)
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, r.err)
	}
	sum, tailSum := sha256.Sum256(b[:end]), sha256.Sum256(provenance)
	switch {
	case !bytes.Equal(sum[:], stated):
		return nil, fmt.Errorf("%w: it is damaged: its tensors do not match its digest", ErrCorrupt)
	case !bytes.Equal(tailSum[:], tail):
		return nil, fmt.Errorf("%w: it is damaged: its provenance does not match its digest", ErrCorrupt)
	case r.at < len(b):
		return nil, fmt.Errorf("%w: it is damaged: more bytes follow after its end", ErrCorrupt)
	}
	f.Digest = hex.EncodeToString(sum[:])
	f.Provenance = bytes.Clone(provenance)
	return f, nil
}

// reader reads fields of a byte slice; after the first error it returns zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) next(n int) []byte {
	if missing := n - (len(r.b) - r.at); r.err == nil && n < 0 {
		r.err = fmt.Errorf("it is damaged: the length at byte %d is not possible: %w", r.at, io.ErrUnexpectedEOF)
	} else if r.err == nil && missing > 0 {
		r.err = fmt.Errorf("it is truncated or damaged: %s missing at its end: %w", counted(missing), io.ErrUnexpectedEOF)
	}
	if r.err != nil {
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

// counted counts bytes, with the verb.
func counted(n int) string {
	if n == 1 {
		return "1 byte is"
	}
	return fmt.Sprintf("%d bytes are", n)
}

// number reads a little-endian number of so many bytes.
func (r *reader) number(bytes int) (n uint64) {
	for i, b := range r.next(bytes) {
		n |= uint64(b) << (8 * i)
	}
	return n
}

func (r *reader) name() string { return string(r.next(int(r.number(1)))) }

func (r *reader) tensor() algorithms.Tensor {
	t := algorithms.Tensor{Name: r.name()}
	dtype, dims := byte(r.number(1)), byte(r.number(1))
	if r.err == nil && (dtype < dtypeF32 || dtype > dtypeU32 || dims > maxDims) {
		r.err = fmt.Errorf("it is damaged: tensor %q has data type %d and %d dimensions, which is not possible", t.Name,
			dtype, dims)
	}
	for i := byte(0); i < dims && r.err == nil; i++ {
		t.Dims = append(t.Dims, int(r.number(8)))
	}
	n, ok := elements(t.Dims, len(r.b))
	if r.err == nil && !ok {
		r.err = fmt.Errorf("it is damaged: tensor %q is larger than the file: its dimensions are %v", t.Name, t.Dims)
	}
	data := r.next(n * elementSize(dtype))
	if r.err != nil {
		return t
	}
	switch dtype {
	case dtypeF32:
		t.F32 = make([]float32, n)
		copy(num.Bytes32(t.F32), data)
	case dtypeF64:
		t.F64 = make([]float64, n)
		copy(num.Bytes64(t.F64), data)
	case dtypeU32:
		t.U32 = make([]uint32, n)
		copy(num.BytesU32(t.U32), data)
	}
	return t
}

// elements returns the product of dims, and whether it is at most limit. A size of 0
// makes it 0, whatever the others are.
func elements(dims []int, limit int) (n int, ok bool) {
	n = 1
	for _, d := range dims {
		if d < 0 {
			return 0, false
		}
		n = min(n, d)
	}
	if n == 0 {
		return 0, true
	}
	for _, d := range dims {
		if d > limit/n {
			return 0, false
		}
		n *= d
	}
	return n, true
}
