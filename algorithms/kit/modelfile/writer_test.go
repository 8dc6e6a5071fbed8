package modelfile

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
)

// TestPieces: a tensor in pieces is written as the whole one.
func TestPieces(t *testing.T) {
	tensors := append([]algorithms.Tensor{}, goldenTensors...)
	tensors[0] = algorithms.Tensor{Name: "settings", Dims: []int{3}, Pieces: []algorithms.Tensor{{U32: []uint32{1}},
		{U32: []uint32{}}, {U32: []uint32{5, 0xfffffffe}}}}
	tensors[2] = algorithms.Tensor{Name: "theta", Dims: []int{2, 2},
		Pieces: []algorithms.Tensor{{F32: goldenTensors[2].F32[:3]}, {F32: goldenTensors[2].F32[3:]}}}
	file, digest := Encode("ldlf", tensors, goldenProvenance)
	if got := hex.EncodeToString(file); got != goldenFile || digest != goldenDigest {
		t.Errorf("file\n got %s\nwant %s", got, goldenFile)
	}
	if cap(file) > len(file)+8 {
		t.Errorf("%d bytes of memory for a file of %d", cap(file), len(file))
	}
}

// TestSetProvenance: a provenance added afterwards makes the same file, whether there is room for it or not.
func TestSetProvenance(t *testing.T) {
	for _, room := range []int{0, len(goldenProvenance) - 1, len(goldenProvenance), 1 << 10} {
		file := EncodeWithRoom("ldlf", goldenTensors, room)
		if bare, _ := Encode("ldlf", goldenTensors, nil); !bytes.Equal(file, bare) || cap(file) < len(file)+room {
			t.Fatalf("room for %d: %d bytes in memory of %d", room, len(file), cap(file))
		}
		before := &file[0]
		whole, digest := SetProvenance(file, goldenProvenance)
		if got := hex.EncodeToString(whole); got != goldenFile || digest != goldenDigest {
			t.Errorf("room for %d: file\n got %s\nwant %s", room, got, goldenFile)
		}
		if inPlace := &whole[0] == before; inPlace != (room >= len(goldenProvenance)) {
			t.Errorf("room for %d: in place %v", room, inPlace)
		}
	}
}

// TestWrite: what is written piece by piece is the file, and an error of the writer
// comes back wherever it happens.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	digest, err := Write(&b, "ldlf", goldenTensors, goldenProvenance)
	if err != nil || digest != goldenDigest || hex.EncodeToString(b.Bytes()) != goldenFile {
		t.Errorf("digest %s, error %v", digest, err)
	}
	for n := range b.Len() {
		if _, err := Write(&short{left: n}, "ldlf", goldenTensors, goldenProvenance); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("a writer that is full after %d bytes: error %v", n, err)
		}
	}
}

// short is a writer that is full at some point.
type short struct{ left int }

func (s *short) Write(b []byte) (int, error) {
	if s.left -= len(b); s.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestWrongTensorsPanic: they are a programmer's mistake.
func TestWrongTensorsPanic(t *testing.T) {
	for name, tensor := range map[string]algorithms.Tensor{
		"too few":  {Name: "a", Dims: []int{3}, F32: []float32{1, 2}},
		"too many": {Name: "a", Dims: []int{1}, Pieces: []algorithms.Tensor{{F32: []float32{1}}, {F32: []float32{2}}}},
		"types":    {Name: "a", Dims: []int{2}, Pieces: []algorithms.Tensor{{F32: []float32{1}}, {U32: []uint32{2}}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			Digest("ldlf", []algorithms.Tensor{tensor})
		}()
	}
}
