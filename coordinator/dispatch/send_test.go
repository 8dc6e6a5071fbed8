package dispatch

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// labChunk is a round.Piece, a chunk, whose bytes name its digest.
type labChunk string

func (p labChunk) Digest() string         { return string(p) }
func (p labChunk) Bytes() ([]byte, error) { return []byte("result " + p), nil }

// inChunks returns a value of the results of the first n tasks, and of another result that nobody computed.
func inChunks(n uint32) round.Var {
	v := round.Var{ID: 9, Version: 1}
	for u := range n {
		v.Chunks = append(v.Chunks, labChunk(digestOf(u)))
	}
	v.Chunks = append(v.Chunks, labChunk(fmt.Sprintf("%064d", 0)))
	return v
}

// takes reads the chunks of a value and checks which come with their bytes.
func (f *fake) takes(v *round.Var, here ...bool) {
	f.l.t.Helper()
	for i, p := range v.Chunks {
		m := f.next(protocol.KindChunk).chunk
		var want []byte
		if here[i] {
			want, _ = p.Bytes()
		}
		if m.Epoch != epoch || m.Job != jobID || m.ID != v.ID || m.Version != v.Version || m.Index != uint32(i) ||
			int(m.Of) != len(v.Chunks) ||
			m.Digest != p.Digest() || m.Here != here[i] || !bytes.Equal(m.Data, want) {
			f.l.t.Errorf("worker %s: chunk %+v, want number %d of %d, here %v", f.id, m, i, len(v.Chunks), here[i])
		}
	}
}

// TestChunks: a worker is only told the names of chunks that it computed, and is sent the others. It is sent all of
// them once it says that it lacks some, or has begun again.
func TestChunks(t *testing.T) {
	l, w1, w2, x := withTwo(t)
	d := l.do(x, 3, gatherRound(2))
	a, b := w1.first(0), w2.first(0)
	a.announce(a.task())
	b.announce(b.task())
	d.gathers()

	v := inChunks(2)
	d = l.do(x, 4, reduceRound(8, v))
	w1.takes(&v, a.task() != 0, a.task() != 1, true)
	w2.takes(&v, b.task() != 0, b.task() != 1, true)
	w1.run().need(protocol.Need{Refs: []protocol.Ref{{ID: v.ID, Version: v.Version}}})
	w1.takes(&v, true, true, true)
	w1.run().partials()
	w2.run().need(protocol.Need{Setup: true})
	w2.next(protocol.KindSetup)
	w2.takes(&v, true, true, true)
	w2.run().partials()
	d.sums()

	d = l.do(x, 5, reduceRound(8, v)) // all have it
	for _, w := range []*fake{w1, w2} {
		w.run().partials()
	}
	d.sums()
}

// TestResultDigests: the trainer learns the digests of the results.
func TestResultDigests(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 3, gatherRound(1))
	w.first(0).announce(0)
	d.gathers()
	if got := d.res.Digests; len(got) != 1 || got[0] != digestOf(0) {
		t.Errorf("digests %q", got)
	}
	d = l.do(x, 4, reduceRound(1))
	w.run().partials()
	d.sums()
	if d.res.Digests != nil {
		t.Errorf("digests %q of a sum", d.res.Digests)
	}
}

// TestBundles: small values of a round and its Run are one message, in order. A message that is alone, or large,
// travels by itself.
func TestBundles(t *testing.T) {
	l, w, x := withOne(t, 1)
	d := l.do(x, 1, reduceRound(2, variable(1, 10), variable(2, 20)))
	w.next(protocol.KindSetup)
	if kinds, want := w.next(protocol.KindValue).bundle, []protocol.Kind{protocol.KindValue, protocol.KindValue,
		protocol.KindRun}; !slices.Equal(kinds, want) {
		t.Errorf("messages of kinds %v in one, want %v", kinds, want)
	}
	w.next(protocol.KindValue)
	w.run().partials()
	d.sums()

	d = l.do(x, 2, reduceRound(2, variable(1, 10), variable(2, 20)))
	alone := w.next(protocol.KindRun)
	if alone.bundle != nil {
		t.Errorf("a Run came in a bundle of kinds %v, want it alone", alone.bundle)
	}
	(&assignment{w, alone.run, alone.reply}).partials()
	d.sums()

	large := round.Var{ID: 2, Version: 21, Data: bytes.Repeat([]byte("value"), maxBundle/4)}
	d = l.do(x, 3, reduceRound(2, variable(1, 11), large, variable(3, 30)))
	if kinds := w.next(protocol.KindValue).bundle; len(kinds) != 2 {
		t.Errorf("a large bundle has messages of kinds %v", kinds)
	}
	w.next(protocol.KindValue)
	if kinds, want := w.next(protocol.KindValue).bundle, []protocol.Kind{protocol.KindValue,
		protocol.KindRun}; !slices.Equal(kinds, want) {
		t.Errorf("messages of kinds %v behind it, want %v", kinds, want)
	}
	run := w.run()
	if run.run.Round != 3 {
		t.Errorf("a Run of round %d behind it", run.run.Round)
	}
	run.partials()
	d.sums()
}
