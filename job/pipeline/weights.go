package pipeline

import (
	"fmt"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// FitsWeights returns an error, a *param.Error where a setting is at fault, if the weights that a job
// begins from (Job.WeightsFile) are not of its network.
func FitsWeights(j *round.Job, m *dataset.Manifest) error {
	a, err := registry.Find(j.Algorithm)
	if err != nil {
		return err
	}
	b, ok := a.(algorithms.Beginner)
	if !ok {
		return fmt.Errorf("%s cannot start from given weights", j.Algorithm)
	}
	return b.FitsWeights(j, m)
}
