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

// dtype numbers of the file format.
const (
	dtypeF32 = 1
	dtypeF64 = 2
	dtypeU32 = 3
)

// Write writes a model file to w and returns the model's digest in hex. The tensors
// are not copied. Errors are w's.
func Write(w io.Writer, algorithm string, tensors []algorithms.Tensor, provenance json.RawMessage) (digest string, err error) {
	h := sha256.New()
	both := &writer{to: io.MultiWriter(h, w)}
	both.tensors(algorithm, tensors)
	sum := h.Sum(nil)
	rest := &writer{to: w, err: both.err}
	rest.bytes(sum)
	rest.bytes(appendProvenance(nil, provenance))
	return hex.EncodeToString(sum), rest.err
}

// appendProvenance appends what follows the model's digest.
func appendProvenance(b []byte, provenance json.RawMessage) []byte {
	tail := sha256.Sum256(provenance)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(provenance)))
	b = append(b, provenance...)
	return append(b, tail[:]...)
}

// noProvenance is the size of what follows the model's digest where there is no provenance.
const noProvenance = 8 + sha256.Size

// Encode returns a model file with the model's digest in hex.
func Encode(algorithm string, tensors []algorithms.Tensor, provenance json.RawMessage) (file []byte, digest string) {
	b := bytes.NewBuffer(make([]byte, 0, size(algorithm, tensors)+len(provenance)))
	digest = must(Write(b, algorithm, tensors, provenance))
	return b.Bytes(), digest
}

// EncodeWithRoom returns a model file without a provenance, and with memory for one of so many
// bytes.
func EncodeWithRoom(algorithm string, tensors []algorithms.Tensor, room int) (file []byte) {
	b := bytes.NewBuffer(make([]byte, 0, size(algorithm, tensors)+room))
	must(Write(b, algorithm, tensors, nil))
	return b.Bytes()
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

// Digest returns the digest of a model without keeping its file.
func Digest(algorithm string, tensors []algorithms.Tensor) string {
	return must(Write(io.Discard, algorithm, tensors, nil))
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
	if format := r.u32(); r.err == nil && format != Format {
		return nil, fmt.Errorf("%w: it has format %d, but this version reads format %d", ErrCorrupt, format, Format)
	}
	f.Numerics = int(r.u32())
	f.Algorithm = r.name()
	r.tensors(f)
	end := r.at
	stated := r.next(sha256.Size)
	provenance := r.next(int(min(r.u64(), uint64(len(b)))))
	tail := r.next(sha256.Size)
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, r.err)
	}
	if err := f.verify(b[:end], stated, provenance, tail, r.at == len(b)); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *File) verify(tensors, stated, provenance, tail []byte, ended bool) error {
	sum, tailSum := sha256.Sum256(tensors), sha256.Sum256(provenance)
	switch {
	case !bytes.Equal(sum[:], stated):
		return fmt.Errorf("%w: it is damaged: its tensors do not match its digest", ErrCorrupt)
	case !bytes.Equal(tailSum[:], tail):
		return fmt.Errorf("%w: it is damaged: its provenance does not match its digest", ErrCorrupt)
	case !ended:
		return fmt.Errorf("%w: it is damaged: more bytes follow after its end", ErrCorrupt)
	}
	f.Digest = hex.EncodeToString(sum[:])
	f.Provenance = bytes.Clone(provenance)
	return nil
}
