package local

import (
	"bytes"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestCurve: the curve of a job has the losses that its result has, its best validation,
// and, where it is timed, seconds.
func TestCurve(t *testing.T) {
	d := artificial(t, 400)
	j := resolve(t, d, protocol.Spec{TestFraction: 0.1, Set: map[string]string{"steps": "1500", "trees": "2", "depth": "3",
		"leaf_batches": "10", "patience": "1000"}})
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
func TestSubJobGoesOn(t *testing.T) {
	d := artificial(t, 200)
	of := resolve(t, d, protocol.Spec{Folds: 2, Set: map[string]string{"steps": "300", "trees": "2", "depth": "3",
		"leaf_batches": "10"}})
	j := pipeline.SubJob(of, 1)
	parent, err := Open(of, d)
	if err != nil {
		t.Fatal(err)
	}
	want, err := SubJob(t.Context(), parent, j, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var at []Checkpoint
	run(t, d, j, Options{Lanes: 1, Points: curve.FoldPoints, CheckpointEvery: 1, Checkpoint: func(c Checkpoint) {
		at = append(at, Checkpoint{c.Rounds, bytes.Clone(c.State), bytes.Clone(c.Curve)})
	}})
	for i := 0; i < len(at); i += max(1, len(at)/9) {
		got, err := SubJob(t.Context(), parent, j, Options{Resume: at[i]})
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("from round %d: other bytes, error %v", at[i].Rounds, err)
		}
	}
	if _, err := SubJob(t.Context(), parent, j, Options{Resume: Checkpoint{1, at[0].State, []byte{9}}}); err == nil {
		t.Error("bytes that are no curve passed")
	}
}

// alike gives rows that all have the same labels: a fit is perfect soon, up to rounding.
type alike struct{ dataset.Source }

func (a alike) Scan(f func(*dataset.Row) error) error {
	return a.Source.Scan(func(r *dataset.Row) error {
		copy(r.Labels, []float64{0.1, 0.2, 0.7})
		return f(r)
	})
}

// TestPerfectFit: a job whose losses are 0 up to rounding ends, with folds and without, and
// its losses are known.
func TestPerfectFit(t *testing.T) {
	m, shards := datatest.Build(t, alike{generate.Artificial(400, 1)})
	d := &Data{Manifest: m, Shards: shards}
	for _, algorithm := range []string{"ldlf", "structrf", "rf"} {
		for _, folds := range []int{0, 2} {
			s := protocol.Spec{Algorithm: algorithm, Folds: folds, Set: map[string]string{"trees": "3"}}
			if algorithm == "ldlf" {
				s.Set = map[string]string{"steps": "300", "trees": "2", "depth": "4", "leaf_batches": "10"}
			}
			o := run(t, d, resolve(t, d, s), Options{Points: curve.JobPoints})
			for _, o := range append([]*pipeline.Outcome{o}, o.Folds...) {
				if !(o.Loss >= 0 && o.Loss < 1e-6) {
					t.Errorf("%s, %d folds: the loss is %v", algorithm, folds, o.Loss)
				}
				if o.Curve == nil {
					continue
				}
				c, err := curve.Decode(o.Curve.Append(nil))
				if err != nil || len(c.Points()) == 0 {
					t.Errorf("%s, %d folds: %d points, error %v", algorithm, folds, len(c.Points()), err)
				}
				for _, p := range o.Curve.Points() {
					if math.IsNaN(p.Training) {
						t.Errorf("%s, %d folds: the loss of step %d is not known", algorithm, folds, p.Step)
					}
				}
			}
		}
	}
}
