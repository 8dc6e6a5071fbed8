package pipeline

import (
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
)

// oneLane computes all parts in one lane, whose scratch it is.
type oneLane struct{ scratch *scratch }

func (oneLane) Idle() int { return 1 }

func (x oneLane) Do(n int, p round.Parts) {
	for i := range n {
		p.Part(i, x.scratch)
	}
}

// noted notes what its parts are given.
type noted []any

func (x noted) Part(i int, scratch any) { x[i] = scratch }

// TestPartsHaveTheKernelsScratch: lanes that a task is lent hold the pipeline's scratch, an
// algorithm's parts get its own.
func TestPartsHaveTheKernelsScratch(t *testing.T) {
	own := &scratch{}
	u := round.Task{Lanes: oneLane{&scratch{inner: "theirs"}}}
	own.lend(&u)
	got := make(noted, 2)
	u.Lanes.Do(2, got)
	if u.Helpers() != 1 || got[0] != "theirs" || got[1] != "theirs" {
		t.Errorf("%d helpers, parts with %v", u.Helpers(), got)
	}
	alone := round.Task{}
	own.lend(&alone)
	if alone.Helpers() != 0 {
		t.Error("a unit without lanes has helpers")
	}
}
