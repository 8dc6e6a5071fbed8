// Package quadratic is the quadratic model of Eq. 19 of Yan et al. 2007, after Lanitis et al.
// 2004: the number of a row is a = c + w1ᵀx + w2ᵀ(x.²), by least squares.
//
// One collected unit on all training rows is the fit. Features are standardised by the training
// rows, which changes no prediction: the functions that can be fitted are the same. The system
// is solved by Householder QR of the centred columns. A column that is constant is left out.
// Weights of rows are weights of their squared errors and of their part in means and deviations.
// Rows of weight 0 are no rows.
//
// Where columns depend on one another, a tiny ridge takes the solution of nearly the least norm,
// and counters and model say so.
package quadratic

import (
	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// New returns the algorithm.
func New() algorithms.Algorithm {
	return learner.Define(learner.Definition[Config]{
		Name: Name,
		About: algorithms.About{
			Class:   "Quadratic",
			Summary: "quadratic function that predicts a number",
			When:    "Use it for ages and other numbers, as the fastest baseline.",
			Paper:   `Yan et al. 2007, "Ranking with Uncertain Labels", Eq. 19`,
		},
		Doc: "quadratic model of numeric labels (Eq. 19 of Yan et al. 2007)", Predicts: algorithms.Number,
		Settings: settings,
		Fill:     func(c *Config, given param.Values, m *dataset.Manifest) { c.Scale.Fill(given, m) },
		Fits:     func(c *Config, m *dataset.Manifest) error { return c.Scale.Fits(m, Name) },
		Trainer: func(j *learner.Job[Config]) (learner.Trainer, error) {
			return &trainer{cfg: j.Config, manifest: j.Manifest, features: j.Manifest.Features,
				labels: j.Manifest.Labels}, nil
		},
		StateVersion: 1,
		Kernel: func(j *learner.Job[Config]) (round.Kernel, error) {
			return &kernel{cfg: *j.Config, features: j.Manifest.Features}, nil
		},
		Model: func(tensors []algorithms.Tensor) (algorithms.Model, error) {
			m := new(model)
			return m, learner.ReadTensors(tensors, m.tensors)
		},
		Memory: func(_ *Config, m *dataset.Manifest) algorithms.Footprint {
			n := 8 * int64(fitValues(m.Features))
			return algorithms.Footprint{State: n + 5, Model: n + 32}
		},
	})
}
