package childjob_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// FuzzList: bytes are a list that is encoded to the same bytes, or refused.
func FuzzList(f *testing.F) {
	f.Add(childjob.AppendList(nil, [][]byte{nil, []byte("ab")}))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0x80, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var parts [][]byte
		var err error
		allocs.AtMost(t, 16*len(b)+64<<10, "a list", func() { parts, err = childjob.List(b) })
		if err != nil {
			if !errors.Is(err, childjob.ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !bytes.Equal(childjob.AppendList(nil, parts), b) {
			t.Fatalf("%d bytes are encoded otherwise", len(b))
		}
	})
}

// FuzzCells: bytes are outcomes with their times, or without, that are encoded to the same bytes, or
// refused.
func FuzzCells(f *testing.F) {
	parts := [][]byte{nil, []byte("ab")}
	f.Add(childjob.AppendCells(nil, parts, []uint64{7, 1 << 60}), 2)
	f.Add(childjob.AppendList(nil, parts), 2)
	f.Add(childjob.AppendList(nil, parts), 1)
	f.Fuzz(func(t *testing.T, b []byte, count int) {
		parts, took, err := childjob.Cells(b, count)
		if err != nil {
			if !errors.Is(err, childjob.ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again := childjob.AppendList(nil, parts)
		if took != nil || count == 0 && len(b) > 0 {
			again = childjob.AppendCells(nil, parts, took)
		}
		if len(parts) != count || !bytes.Equal(again, b) || took != nil && len(took) != count {
			t.Fatalf("%d bytes of %d outcomes are encoded otherwise", len(b), count)
		}
	})
}

// FuzzDecode: bytes are an outcome that is encoded to the same bytes, or refused.
func FuzzDecode(f *testing.F) {
	o := childjob.Outcome{Head: []byte(`{"steps":1}`), Model: []byte("model"), Curve: []byte("curve"),
		Predictions: []byte("rows")}
	f.Add(o.Encode())
	f.Add(new(childjob.Outcome).Encode())
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(o.Encode()[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		var o *childjob.Outcome
		var err error
		allocs.AtMost(t, 64<<10, "an outcome", func() { o, err = childjob.Decode(b) })
		if err != nil {
			if !errors.Is(err, childjob.ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if !bytes.Equal(o.Encode(), b) {
			t.Fatalf("%d bytes are encoded as %d", len(b), len(o.Encode()))
		}
	})
}
