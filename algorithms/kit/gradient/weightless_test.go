package gradient

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestStepWithoutWeight: a step whose rows all have the weight 0 counts. It moves neither Θ nor the moments, although
// both would move along a gradient of 0: by momentum and decay.
func TestStepWithoutWeight(t *testing.T) {
	for _, adam := range []bool{false, true} {
		f := &Linear{Features: 3, Outputs: 2, Bias: true}
		m := &dataset.Manifest{Features: 3, Labels: 2, HasWeights: true, Shards: make([]dataset.ShardRef, 1)}
		set := Settings{Rule: Rule{Adam: adam, Rate: 0.1, Momentum: 0.9, Decay: 0.1}, Scaling: "none", BatchSize: 1,
			Steps: 4, Interval: 2, Terms: 1}
		d := NewDescent(set, f, num.NewKey(1, "weightless"), m)
		d.Start()
		shape := f.GradientShape()
		shape.F64 += GradientAt
		step := func(weight float64) {
			t.Helper()
			sum := new(round.Partial)
			sum.Reset(shape)
			for i := range sum.F32 {
				sum.F32[i] = float32(weight * float64(i+1))
			}
			sum.F64[0], sum.F64[1] = weight, weight
			if err := d.Fold(&round.Result{Sum: sum}); err != nil {
				t.Fatal(err)
			}
		}
		first := slices.Clone(d.Theta())
		if step(0); d.Step != 1 || d.Progress().Loss != -1 || d.Samples != 0 || !slices.Equal(first, d.Theta()) {
			t.Fatalf("adam %v: after a step without weights: step %d, %d samples, %+v", adam, d.Step, d.Samples, d.Progress())
		}
		if step(2); slices.Equal(first, d.Theta()) || d.Progress().Loss != 1 {
			t.Fatalf("adam %v: a step with weights has no effect: %+v", adam, d.Progress())
		}
		theta, moments, version := slices.Clone(d.Theta()), slices.Clone(d.Optimizer.First), d.Vectors[0].Version
		if step(0); !slices.Equal(theta, d.Theta()) || !slices.Equal(moments, d.Optimizer.First) ||
			d.Vectors[0].Version != version || d.Optimizer.Updates != 1 {
			t.Errorf("adam %v: a step without weights moved Θ from %v to %v", adam, theta, d.Theta())
		}
		step(0)
		if v, err := d.Trained(); err != nil || d.Phase != PhaseDone || !slices.Equal(v[0].Data, theta) {
			t.Errorf("adam %v: %v in phase %d, want Θ of the only step with weights", adam, err, d.Phase)
		}
		d = NewDescent(set, f, num.NewKey(1, "weightless"), m)
		d.Start()
		for range 4 {
			step(0)
		}
		if _, err := d.Trained(); !errors.Is(err, algorithms.ErrNoWeights) {
			t.Errorf("adam %v: without any weight, the error is %v", adam, err)
		}
	}
}

// TestLastIntervalWithoutWeight: moments that begin anew in each interval do not lose the best validation if the last
// interval has only steps without weights.
func TestLastIntervalWithoutWeight(t *testing.T) {
	f := &Linear{Features: 3, Outputs: 2}
	m := &dataset.Manifest{Features: 3, Labels: 2, HasWeights: true, Shards: make([]dataset.ShardRef, 1)}
	d := NewDescent(Settings{Rule: Rule{Rate: 0.1, Momentum: 0.9}, StopRule: StopRule{Validates: true, Patience: 5},
		Scaling: "none", BatchSize: 1, Steps: 4, Interval: 2, Terms: 1, Refit: true, FreshMoments: true}, f,
		num.NewKey(1, "weightless"), m)
	d.Start()
	shape := f.GradientShape()
	shape.F64 += GradientAt
	for _, weight := range []float64{1, 1, 0, 0} {
		sum := new(round.Partial)
		sum.Reset(shape)
		for i := range sum.F32 {
			sum.F32[i] = float32(weight)
		}
		sum.F64[0], sum.F64[1] = weight, weight
		if err := d.Fold(&round.Result{Sum: sum}); err != nil {
			t.Fatal(err)
		}
		if d.Phase == PhaseValidation {
			if err := d.Fold(&round.Result{Sum: &round.Partial{F64: []float64{1, 0.5}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !d.Refitting || d.Step != 0 || d.limit() != 2 {
		t.Errorf("refitting is %v, at step %d of %d, want the beginning of a refit by 2 steps", d.Refitting, d.Step, d.limit())
	}
}
