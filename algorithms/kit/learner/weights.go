package learner

import (
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// weights returns the digest of the weights that training begins from, or "".
func (a *algorithm[C]) weights(c *C) string {
	if a.d.Weights == nil {
		return ""
	}
	return a.d.Weights(c)
}

// checkWeights returns an error where a job does not come with the weights that its settings
// name.
func (a *algorithm[C]) checkWeights(j *round.Job, c *C) error {
	want := a.weights(c)
	switch {
	case j.Weights != want:
		return a.errorf("init_from names the weights %q, but the job has the weights %q", want, j.Weights)
	case want != "" && j.WeightsFile == nil:
		return a.errorf("the initial weights %s are missing", want)
	}
	return nil
}

// FitsWeights implements algorithms.Beginner.
func (a *algorithm[C]) FitsWeights(j *round.Job, m *dataset.Manifest) error {
	c, err := a.config(j)
	if err == nil {
		err = a.checkWeights(j, c)
	}
	if err != nil || j.Weights == "" {
		return err
	}
	return a.d.FitsWeights(c, m, j.WeightsFile)
}
