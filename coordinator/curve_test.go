package coordinator_test

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// alike gives rows that all have the same labels: a fit is perfect soon, up to rounding.
type alike struct{ dataset.Source }

func (a alike) Scan(f func(*dataset.Row) error) error {
	return a.Source.Scan(func(r *dataset.Row) error {
		copy(r.Labels, []float64{0.1, 0.2, 0.7})
		return f(r)
	})
}

// TestPerfectFit: a job whose losses are 0 up to rounding ends, with a curve that has all of
// them; one of folds has curves of its folds alone.
func TestPerfectFit(t *testing.T) {
	ctx := deadline(t)
	c := start(t, 1, 1)
	if _, err := c.client.Import(ctx, "art", alike{dataset.Artificial(400, 1)}, dataset.ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, folds := range map[string]int{"whole": 0, "folds": 2} {
		s := testSpec(map[string]string{"steps": "300", "trees": "2", "depth": "4", "leaf_batches": "10"})
		s.Name, s.TestFraction, s.Folds = name, 0, folds
		end := c.train(ctx, s, nil)
		if end.State != protocol.Done || !(end.Progress.Loss >= 0) {
			t.Fatalf("%s: %s %s, %+v", name, end.State, end.Error, end.Progress)
		}
		if end.Ran < end.Seconds/2 {
			t.Errorf("%s: it ran %v seconds, and took %v", name, end.Ran, end.Seconds)
		}
		line, err := c.client.Curve(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		curves := line.Folds
		if folds == 0 {
			curves = append(curves, line.Points)
		} else if line.Points == nil || len(line.Points) > 0 {
			t.Errorf("a job of folds has points of its own: %v", line.Points)
		}
		if len(curves) != max(1, folds) {
			t.Errorf("%s: %d curves", name, len(curves))
		}
		for _, points := range curves {
			if len(points) < 10 {
				t.Errorf("%s: %d points", name, len(points))
			}
			for _, p := range points {
				if math.IsNaN(p.Training) {
					t.Errorf("%s: the loss of step %d is not known", name, p.Step)
				}
			}
		}
	}
}
