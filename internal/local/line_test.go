package local

import (
	"bytes"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/curve"
	"github.com/coppice-ldl/coppice/algorithms/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestCurve: the curve of a job has the losses that its result has, its best validation,
// and, where it is timed, seconds.
func TestCurve(t *testing.T) {
	d := artificial(t, 400)
	j := resolve(t, d, protocol.Spec{TestFraction: 0.1, Set: map[string]string{"steps": "1500", "trees": "2", "depth": "3", "leaf_batches": "10", "patience": "1000"}})
	o := run(t, d, j, Options{Points: curve.JobPoints, Timed: true})
	points := o.Curve.Points()
	if n := len(points); n < curve.JobPoints/4 || n > curve.JobPoints {
		t.Errorf("%d points", n)
	}
	last := points[len(points)-1]
	if last.Step != o.Steps || last.Training != o.Loss {
		t.Errorf("the last point is %+v, the job ended at step %d with %v", last, o.Steps, o.Loss)
	}
	if best, _ := o.Curve.Best(); best.Step != o.BestStep {
		t.Errorf("the best point is %+v, the best step %d", best, o.BestStep)
	}
	validated := 0
	for i, p := range points {
		if p.Validation >= 0 {
			validated++
		}
		if p.Millis < 0 || i > 0 && (p.Step <= points[i-1].Step || p.Millis < points[i-1].Millis) {
			t.Errorf("point %d is %+v", i, p)
		}
	}
	if validated < 100 {
		t.Errorf("%d points have a validation loss", validated)
	}
	if got := run(t, d, j, Options{Lanes: 3, Points: curve.JobPoints}); got.Curve.Points()[3].Millis != curve.Unknown {
		t.Error("a curve that is not timed has seconds")
	}
	if run(t, d, j, Options{}).Curve != nil {
		t.Error("a curve that nobody wants was recorded")
	}
}

// TestChildGoesOn: a fold that goes on elsewhere, from any checkpoint, reports the same
// bytes.
func TestChildGoesOn(t *testing.T) {
	d := artificial(t, 200)
	j := pipeline.Child(resolve(t, d, protocol.Spec{Folds: 2, Set: map[string]string{"steps": "300", "trees": "2", "depth": "3", "leaf_batches": "10"}}), 1)
	want, err := Child(t.Context(), j, d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var at []Checkpoint
	run(t, d, j, Options{Lanes: 1, Points: curve.FoldPoints, every: 1, Checkpoint: func(c Checkpoint) {
		at = append(at, Checkpoint{c.Rounds, bytes.Clone(c.State), bytes.Clone(c.Curve)})
	}})
	for i := 0; i < len(at); i += max(1, len(at)/9) {
		got, err := Child(t.Context(), j, d, Options{Resume: at[i]})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("from round %d: other bytes, error %v", at[i].Rounds, err)
		}
	}
	if _, err := Child(t.Context(), j, d, Options{Resume: Checkpoint{1, at[0].State, []byte{9}}}); err == nil {
		t.Error("bytes that are no curve passed")
	}
}
