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

	"github.com/coppice-ldl/coppice/algorithms"
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

// ErrCorrupt is wrapped by every error about the bytes of a model file.
var ErrCorrupt = errors.New("not a valid model file")

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

// Encode writes a model file and returns it with the model's digest in hex.
func Encode(algorithm string, tensors []algorithms.Tensor, provenance json.RawMessage) (file []byte, digest string) {
	b := appendTensors([]byte(magic), algorithm, tensors)
	sum := sha256.Sum256(b)
	b = append(b, sum[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(provenance)))
	b = append(b, provenance...)
	tail := sha256.Sum256(provenance)
	return append(b, tail[:]...), hex.EncodeToString(sum[:])
}

// Digest returns the digest of a model without keeping its file.
func Digest(algorithm string, tensors []algorithms.Tensor) string {
	_, digest := Encode(algorithm, tensors, nil)
	return digest
}

func appendTensors(b []byte, algorithm string, tensors []algorithms.Tensor) []byte {
	b = binary.LittleEndian.AppendUint32(b, Format)
	b = binary.LittleEndian.AppendUint32(b, algorithms.Numerics)
	b = appendName(b, algorithm)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(tensors)))
	for _, t := range tensors {
		b = appendTensor(b, t)
	}
	return b
}

func appendName(b []byte, name string) []byte {
	if len(name) > maxName {
		panic("modelfile: name too long: " + name)
	}
	b = append(b, byte(len(name)))
	return append(b, name...)
}

func appendTensor(b []byte, t algorithms.Tensor) []byte {
	dtype, data := tensorBytes(t)
	b = appendName(b, t.Name)
	b = append(b, dtype, byte(len(t.Dims)))
	n := 1
	for _, d := range t.Dims {
		b = binary.LittleEndian.AppendUint64(b, uint64(d))
		n *= d
	}
	if size := elementSize(dtype); n*size != len(data) {
		panic(fmt.Sprintf("modelfile: tensor %s has %d bytes, its dimensions say %d", t.Name, len(data), n*size))
	}
	return append(b, data...)
}

func tensorBytes(t algorithms.Tensor) (dtype byte, data []byte) {
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
		return nil, fmt.Errorf("%w: it does not begin with the mark of one", ErrCorrupt)
	}
	r := &reader{b: b, at: len(magic)}
	f := &File{}
	if format := r.u32(); r.err == nil && format != Format {
		return nil, fmt.Errorf("%w: format %d; this version reads format %d", ErrCorrupt, format, Format)
	}
	f.Numerics = int(r.u32())
	f.Algorithm = r.name()
	r.tensors(f)
	end := r.at
	stated := r.take(sha256.Size)
	provenance := r.take(int(min(r.u64(), uint64(len(b)))))
	tail := r.take(sha256.Size)
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
		return fmt.Errorf("%w: its tensors do not match its digest", ErrCorrupt)
	case !bytes.Equal(tailSum[:], tail):
		return fmt.Errorf("%w: its provenance does not match its digest", ErrCorrupt)
	case !ended:
		return fmt.Errorf("%w: bytes follow its end", ErrCorrupt)
	}
	f.Digest = hex.EncodeToString(sum[:])
	f.Provenance = bytes.Clone(provenance)
	return nil
}
