package local

import (
	"testing"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestKeptMemoryIsShared: folds side by side share the memory for derived values, however
// little there is, to the same models; all of it is given back.
func TestKeptMemoryIsShared(t *testing.T) {
	d := artificial(t, 300)
	j := resolve(t, d, protocol.Spec{Folds: 3})
	want := run(t, d, j, Options{Lanes: 1})
	for _, limit := range []int{0, 20000, 1 << 20} {
		m := engine.NewDerivedMemory(limit)
		got := run(t, d, j, Options{Lanes: 3, Kept: m})
		if got.ModelDigest != want.ModelDigest || m.Used() != 0 {
			t.Errorf("%d bytes to keep: model %.12s, want %.12s; %d bytes are taken at the end", limit, got.ModelDigest,
				want.ModelDigest, m.Used())
		}
	}
}

// TestSpent: the time of a job is measured where it is asked for, and nowhere else.
func TestSpent(t *testing.T) {
	d := artificial(t, 300)
	for _, folds := range []int{0, 3} {
		j := resolve(t, d, protocol.Spec{Folds: folds})
		o := run(t, d, j, Options{Lanes: 2, Spend: true})
		for _, kind := range []string{"step", "leaf update", "validation", "evaluation", pipeline.Waiting} {
			if s, ok := o.Spent[kind]; !ok || s < 0 {
				t.Errorf("%d folds: %q is %v of %v", folds, kind, s, o.Spent)
			}
		}
		for i, f := range o.Folds {
			if f.Spent != nil {
				t.Errorf("fold %d has times of its own", i)
			}
		}
		if o := run(t, d, j, Options{}); o.Spent != nil {
			t.Errorf("%d folds: times without being asked", folds)
		}
	}
}
