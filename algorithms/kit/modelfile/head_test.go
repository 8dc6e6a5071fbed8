package modelfile

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// TestReadHead: the head of the golden file is what Decode finds in the file, and a file that is cut or longer has
// none.
func TestReadHead(t *testing.T) {
	file, digest := Encode("ldlf", goldenTensors, goldenProvenance)
	h, err := ReadHead(bytes.NewReader(file), int64(len(file)))
	if err != nil || h.Algorithm != "ldlf" || h.Digest != digest || !bytes.Equal(h.Provenance, goldenProvenance) {
		t.Errorf("%+v, %v", h, err)
	}
	if !IsModel(bytes.NewReader(file)) || IsModel(bytes.NewReader(file[1:])) || IsModel(bytes.NewReader(nil)) {
		t.Error("IsModel")
	}
	for cut := range file {
		if _, err := ReadHead(bytes.NewReader(file[:cut]), int64(cut)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", cut, err)
		}
		if _, err := ReadHead(bytes.NewReader(file[:cut]), int64(len(file))); !errors.Is(err, ErrCorrupt) {
			t.Errorf("became shorter, %d bytes: %v", cut, err)
		}
	}
	longer := append(file, 0)
	if _, err := ReadHead(bytes.NewReader(longer), int64(len(longer))); !errors.Is(err, ErrCorrupt) {
		t.Error(err)
	}
}

// FuzzReadHead: a file that can be decoded has the head that Decode finds. Other files have a head or ErrCorrupt.
func FuzzReadHead(f *testing.F) {
	file, _ := Encode("ldlf", goldenTensors, goldenProvenance)
	f.Add(file)
	f.Add(seal(append(head(2), tensor(9, []uint64{1 << 40}, 8)...)))
	f.Add(seal(append(head(1), tensor(dtypeF64, []uint64{1 << 62, 8}, 8)...)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, seal(bytes.Clone(b)), seal(append(head(3), b...))} {
			var h *Head
			var err error
			allocs.AtMost(t, 64*len(file)+64<<10, "head", func() { h, err = ReadHead(bytes.NewReader(file), int64(len(file))) })
			whole, failed := Decode(file)
			switch {
			case err != nil && !errors.Is(err, ErrCorrupt), err != nil && failed == nil:
				t.Fatalf("error %v, decoded %v", err, failed)
			case failed == nil && (h.Digest != whole.Digest || h.Algorithm != whole.Algorithm || h.Numerics != whole.Numerics ||
				!bytes.Equal(h.Provenance, whole.Provenance)):
				t.Fatalf("%+v, decoded %+v", h, whole)
			}
		}
	})
}
