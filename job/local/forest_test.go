package local

import (
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestCurveOfAForest has a point for each tree, also where the job goes on after its trees
// were collected.
func TestCurveOfAForest(t *testing.T) {
	d := artificial(t, 100)
	j := resolve(t, d, protocol.Spec{Algorithm: "structrf", TestFraction: 0.1, Set: map[string]string{"trees": "9"}})
	var at []Checkpoint
	o := run(t, d, j, Options{Lanes: 2, Points: curve.JobPoints, CheckpointEvery: 1, Checkpoint: func(c Checkpoint) {
		at = append(at, Checkpoint{c.Rounds, append([]byte{}, c.State...), append([]byte{}, c.Curve...)})
	}})
	points := o.Curve.Points()
	if len(points) != 9 || points[8].Training != o.Loss || points[0].Step != 1 ||
		points[3].Training == points[4].Training {
		t.Errorf("the loss is %v, the points are %v", o.Loss, points)
	}
	for _, c := range at {
		again := run(t, d, j, Options{Points: curve.JobPoints, Resume: c})
		if !again.Curve.Equal(o.Curve) {
			t.Errorf("from round %d: %v", c.Rounds, again.Curve.Points())
		}
	}
	folds := run(t, d, resolve(t, d, protocol.Spec{Algorithm: "structrf", Folds: 2,
		Set: map[string]string{"trees": "200"}}), Options{})
	for i, f := range folds.Folds {
		if n := len(f.Curve.Points()); n < 20 || n > curve.FoldPoints {
			t.Errorf("fold %d has %d points", i, n)
		}
	}
}

// TestTreesAreTold: a forest tells how many trees it has while it grows.
func TestTreesAreTold(t *testing.T) {
	d := artificial(t, 100)
	var told []uint64
	run(t, d, resolve(t, d, protocol.Spec{Algorithm: "structrf", Set: map[string]string{"trees": "20"}}),
		Options{Lanes: 2, Progress: func(p round.Progress) {
			told = append(told, p.Step)
		}})
	if len(told) < 2 || told[0] == 0 || told[0] == 20 || told[len(told)-1] != 20 {
		t.Errorf("of 20 trees were told %v", told)
	}
}
