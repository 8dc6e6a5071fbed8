package dispatch

import (
	"bytes"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// joinBundles is join for a worker that takes several messages in one.
func (l *lab) joinBundles(id string) *fake {
	l.t.Helper()
	return l.joinAble(id, func(b *protocol.Beat) *bool { return &b.Bundles })
}

// bundle returns the kinds of the messages in the next order, a bundle, and its Run.
func (f *fake) bundle() (kinds []protocol.Kind, run *task) {
	f.l.t.Helper()
	o := f.next(protocol.KindBundle)
	for _, b := range o.bundle.Messages {
		k, _ := protocol.KindOf(b)
		kinds = append(kinds, k)
	}
	run = &task{f, new(protocol.Run), o.reply}
	if err := run.run.Decode(o.bundle.Messages[len(kinds)-1]); err != nil {
		f.l.t.Fatal(err)
	}
	return kinds, run
}

// TestBundles: small values of a round and its Run are one message, in order; what is alone, or large,
// goes by itself.
func TestBundles(t *testing.T) {
	l := newLab(t, never)
	w := l.joinBundles("w")
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(2, variable(1, 10), variable(2, 20)))
	w.next(protocol.KindSetup)
	kinds, run := w.bundle()
	if want := []protocol.Kind{protocol.KindValue, protocol.KindValue, protocol.KindRun}; !slices.Equal(kinds, want) {
		t.Errorf("messages of kinds %v", kinds)
	}
	run.parts()
	d.sums()

	d = l.do(x, 2, summed(2, variable(1, 10), variable(2, 20)))
	w.run().parts()
	d.sums()

	large := round.Var{ID: 2, Version: 21, Data: bytes.Repeat([]byte("value"), maxParcel/4)}
	d = l.do(x, 3, summed(2, variable(1, 11), large, variable(3, 30)))
	if kinds := w.next(protocol.KindBundle).bundle.Messages; len(kinds) != 2 {
		t.Errorf("%d messages in one that is large", len(kinds))
	}
	kinds, run = w.bundle()
	if len(kinds) != 2 || run.run.Round != 3 {
		t.Errorf("messages of kinds %v behind it, of round %d", kinds, run.run.Round)
	}
	run.parts()
	d.sums()
}
