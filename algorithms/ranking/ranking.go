// Package ranking is the ranking model with uncertain labels of Yan et al. 2007: a row x has the
// number uᵀK_x v (Eq. 4), where K_x holds n Gaussian kernels of x and of each landmark, and a
// training row has the interval of the numbers that it may have.
//
// The parameters are those of least
//
//	λ(‖u‖² + ‖v‖²) + Σ_i (l_i - uᵀK_i v)²
//
// with l_i in its interval. An E-step takes the number nearest to the prediction (Eq. 12), at
// first the middle of the interval; the inner loops of an M-step solve for u (Eq. 18) and for v
// (Eq. 17) in turn.
//
// With A = Σ_o v_o K^o a step for u solves (AᵀA + λI) d = Aᵀ(l - A u) - λu and adds d to u, by
// Cholesky. The matrix has the square of A's condition number, so the step is refined: the right
// side is computed again from A and the new u, two or more times, and solved with the same
// factor. A step never solves from scratch: it begins with the u before it.
//
// Features are scaled by the training rows first (package scaling), unless the preset is paper:
// distances and the widths of the kernels are measured in scaled features.
//
// All training rows are landmarks by default. Then one collected unit is the whole fit, with all
// kernel matrices in memory. With the setting landmarks, that many rows drawn by counter are
// landmarks, and the products over rows are rounds of sums. Both run the same state machine,
// alternation.
package ranking

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/rows"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// stateVersion is the version of the fields of a trainer's state; since 2 it has the scaling.
const stateVersion = 2

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "Ranking",
			Summary: "kernel model that predicts a number",
			When:    "Compare it with mlp-regression for ages and other numbers, up to some thousand samples.",
			Paper:   `Yan et al. 2007, "Ranking with Uncertain Labels"`,
		},
		Doc:        "ranking with uncertain labels: a bilinear model of kernels for numeric labels (Yan et al. 2007)",
		Unweighted: "its penalty has a term for each training sample, so a sample of weight 2 would not count as two",
		Predicts:   algorithms.Number, Settings: settings,
		Fill:         (*Config).fill,
		Fits:         func(c *Config, m *dataset.Manifest) error { return c.Scale.Fits(m, Name) },
		Trainer:      func(j *learner.Job[Config]) (learner.Trainer, error) { return newTrainer(j), nil },
		StateVersion: stateVersion,
		Kernel:       func(j *learner.Job[Config]) (round.Kernel, error) { return newKernel(j), nil },
		Model: func(tensors []algorithms.Tensor) (algorithms.Model, error) {
			m := new(model)
			return m, learner.ReadTensors(tensors, m.tensors)
		},
		Memory: memory,
	})
}

// memory estimates the memory of a trainer.
func memory(c *Config, m *dataset.Manifest) algorithms.Footprint {
	encoded, tensors := rows.Bytes(m, &rows.Wanted{Most: c.Landmarks})
	marks, n := int64(m.Rows), int64(c.Kernels)
	if c.Landmarks > 0 {
		marks = min(marks, int64(c.Landmarks))
	}
	numbers := 3*(marks+n) + int64(mostTrace(c)) + int64(m.Features)
	f := algorithms.Footprint{State: encoded + 8*numbers + 128, Model: tensors + 8*(marks+2*n+int64(mostTrace(c))) + 128}
	if c.Landmarks > 0 {
		gram, weights := marks*(marks+1)/2, n*(n+1)/2 // a factor's numbers
		f.State += 8 * max(gram, weights)
		f.Node = 8 * max(1+marks+gram, 1+int64(m.Features), 1+n+weights)
		f.Nodes = int64(units(c, m))
	}
	if c.Scaling != scaling.None {
		f.State += 16*int64(m.Features) + 17
		f.Model += 16*int64(m.Features) + 4
		scales, nodes := int64(8*scaling.MostSums(c.Scaling, m)), int64(len(m.Shards))
		most := max(f.Node*f.Nodes, scales*nodes)
		f.Node = max(f.Node, scales)
		f.Nodes = (most + f.Node - 1) / f.Node
	}
	return f
}
