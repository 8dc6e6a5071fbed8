package gradient

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
)

// Memory estimates the memory of a Descent without rounds of the algorithm's own, whose
// vectors beside Θ have own values. Model has Θ and the scaling.
func Memory(set *Settings, f Function, m *dataset.Manifest, own int) algorithms.Footprint {
	n := Parameters(f)
	theta, vectors := 4*int64(n), 4*int64(n+own)
	a := algorithms.Footprint{State: vectors + theta + min(theta, 4*PartValues) + 256, Model: theta, Nodes: int64(len(m.Shards))}
	if set.Adam {
		a.State += theta
	}
	if set.Validates {
		a.State += vectors
		if set.Margin > 0 {
			a.State += vectors
		}
	}
	if set.Scaling != scaling.None {
		a.State += 16 * int64(m.Features)
		a.Model += 16 * int64(m.Features)
	}
	a.Node = max(StepBytes(f), 8*int64(scaling.MostSums(set.Scaling, m)), 8*4)
	return a
}

// StepBytes returns the bytes of the largest partial of a step.
func StepBytes(f Function) int64 {
	shape := f.GradientShape()
	return 8*int64(GradientAt+shape.F64) + 4*int64(shape.F32) + 4*int64(shape.Rows)*int64(1+shape.Width)
}
