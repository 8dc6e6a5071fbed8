package modelfile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// writer writes fields; after the first error it does nothing.
type writer struct {
	to  io.Writer
	err error
}

func (w *writer) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
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

// counter is an io.Writer that counts the bytes.
type counter int

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// size returns the bytes of a model file without a provenance.
func size(algorithm string, tensors []algorithms.Tensor) int {
	var n counter
	w := writer{to: &n}
	w.tensors(algorithm, tensors)
	return int(n) + sha256.Size + noProvenance
}

// must panics on an error of a writer that cannot fail.
func must(digest string, err error) string {
	if err != nil {
		panic("modelfile: " + err.Error())
	}
	return digest
}
