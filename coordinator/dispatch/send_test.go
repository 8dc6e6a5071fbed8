package dispatch

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// labPiece is a round.Piece whose bytes name its digest.
type labPiece string

func (p labPiece) Digest() string         { return string(p) }
func (p labPiece) Bytes() ([]byte, error) { return []byte("part " + p), nil }

// inPieces is a value of the first n units' results, and of one that nobody computed.
func inPieces(n uint32) round.Var {
	v := round.Var{ID: 9, Version: 1, Whole: func() []byte { return []byte("whole") }}
	for u := range n {
		v.Pieces = append(v.Pieces, labPiece(digestOf(u)))
	}
	v.Pieces = append(v.Pieces, labPiece(fmt.Sprintf("%064d", 0)))
	return v
}

// joinPieces is join for a worker that takes values piece by piece.
func (l *lab) joinPieces(id string) *fake {
	l.t.Helper()
	return l.joinAble(id, func(b *protocol.Beat) *bool { return &b.Pieces })
}

// takes reads the pieces of a value and checks which come with their bytes.
func (f *fake) takes(v *round.Var, here ...bool) {
	f.l.t.Helper()
	for i, p := range v.Pieces {
		m := f.next(protocol.KindPiece).piece
		var want []byte
		if here[i] {
			want, _ = p.Bytes()
		}
		if m.Epoch != epoch || m.Job != jobID || m.ID != v.ID || m.Version != v.Version || m.Index != uint32(i) || int(m.Of) != len(v.Pieces) ||
			m.Digest != p.Digest() || m.Here != here[i] || !bytes.Equal(m.Data, want) {
			f.l.t.Errorf("worker %s: piece %+v, want number %d of %d, here %v", f.id, m, i, len(v.Pieces), here[i])
		}
	}
}

// TestPieces: a worker is only told of the pieces that it computed; it is sent the others, all of
// them once it says that it lacks some or where it began anew, and the whole value in one where it
// knows nothing of pieces.
func TestPieces(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.joinPieces("w1"), l.joinPieces("w2")
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 3, collecting(2))
	a, b := w1.first(0), w2.first(0)
	a.collected(a.unit())
	b.collected(b.unit())
	d.collects()

	v := inPieces(2)
	old := l.join("w3", 1)
	d = l.do(x, 4, summed(8, v))
	w1.takes(&v, a.unit() != 0, a.unit() != 1, true)
	w2.takes(&v, b.unit() != 0, b.unit() != 1, true)
	old.next(protocol.KindSetup)
	if m := old.next(protocol.KindValue).value; m.ID != v.ID || string(m.Data) != "whole" {
		t.Errorf("value %+v", m)
	}
	w1.run().need(protocol.Need{Refs: []protocol.Ref{{ID: v.ID, Version: v.Version}}})
	w1.takes(&v, true, true, true)
	w1.run().parts()
	w2.run().need(protocol.Need{Setup: true})
	w2.next(protocol.KindSetup)
	w2.takes(&v, true, true, true)
	w2.run().parts()
	old.run().parts()
	d.sums()

	d = l.do(x, 5, summed(8, v)) // all have it
	for _, w := range []*fake{w1, w2, old} {
		w.run().parts()
	}
	d.sums()
}

// TestResultDigests: the trainer learns the digests of the results.
func TestResultDigests(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 3, collecting(1))
	w.first(0).collected(0)
	d.collects()
	if got := d.res.Digests; len(got) != 1 || got[0] != digestOf(0) {
		t.Errorf("digests %q", got)
	}
	d = l.do(x, 4, summed(1))
	w.run().parts()
	d.sums()
	if d.res.Digests != nil {
		t.Errorf("digests %q of a sum", d.res.Digests)
	}
}
