// Package edllrl is EDL-LRL of Jia et al. 2019: a maximum-entropy model whose predictions for similar samples are to
// have a low rank. The paper calls this local low-rank label correlations.
//
// The samples have groups, by k-means of their label distributions d. With the predictions P_g of the samples of group
// g as rows, the objective is
//
//	½ Σ ‖p - d‖² + ½ N l2 ‖W‖² + λ Σ_g ‖P_g‖_tr
//
// over N samples, where ‖·‖_tr is the sum of singular values. ADMM minimises it in steps. A step runs L-BFGS on W, with
// the loss ½‖p - d‖² + Λ(p - z) + ½ρ‖p - z‖² of a sample. Then Z_g is the singular value threshold of P_g + Λ_g/ρ at
// λ/ρ, and the multipliers gain ρ(P - Z). Z and the multipliers are 0 at first.
//
// z and Λ of a sample follow from its predictions under the weights at the end of each step, and from a matrix T_g of
// each group: Z_g = (P_g + Λ_g/ρ) T_g. So no worker owns a state of samples. The trainer sends the weights and the
// matrices of all steps, and a task computes z and Λ of its samples from them. It does so once in a step, as long as
// there is memory for the result. T_g follows from a sum of products of labels.
//
// The paper's text was not at hand; the authors' program gives the terms. It has a gradient of the softmax that is
// diagonal, takes wrong samples for the groups, and has λ = 1e-7, so that the rank plays no part. This package has the
// gradient of the objective. There are no validation samples.
package edllrl

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/clusters"
	"github.com/coppice-ldl/coppice/algorithms/kit/fullbatch"
	"github.com/coppice-ldl/coppice/algorithms/kit/lbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "EDLLRL",
			Summary: "maximum-entropy model with predictions of low rank in groups of samples",
			When:    "Use it to compare with its paper; sa-bfgs has a lower K-L divergence and takes less time.",
			Paper: `Jia et al. 2019, "Facial Emotion Distribution Learning by Exploiting Low-Rank Label ` +
				`Correlations Locally"`,
		},
		Doc: "EDL-LRL of Jia et al. 2019: a maximum-entropy model by least squares, whose predictions in groups of " +
			"similar samples have a low rank",
		Unweighted: "the rank of the predictions of many samples is in its loss, which is no sum over samples",
		Predicts:   algorithms.Distribution,
		Settings:   settings,
		Fill:       (*Config).fill,
		Fits:       (*Config).fits,
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return newTrainer(j.Config, j.Manifest), nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return newKernel(j.Config, j.Manifest), nil
		},
		Model:  maxent.Decode,
		Memory: (*Config).memory,
	})
}

// memory estimates the memory of a job's trainer.
func (c *Config) memory(m *dataset.Manifest) algorithms.Footprint {
	n := maxent.Evaluation(m.Features, m.Labels)
	sums := max(int64(fullbatch.SumsAt+n+1), products(c.Clusters, m.Labels), int64(clusters.MostSums(c.Clusters, m)),
		int64(scaling.MostSums(c.Scaling, m)))
	return algorithms.Footprint{
		Model: 8*int64(n) + 12, Node: 8 * sums, Nodes: int64(len(m.Shards)),
		State: lbfgs.Bytes(n) + 8*int64(c.Steps)*c.stepValues(m) + 16*int64(m.Features) +
			8*int64(c.Clusters*m.Labels) + 512,
	}
}
