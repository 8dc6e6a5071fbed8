package spec

import (
	"errors"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// noMask is the word for no mask.
const noMask = "none"

// checkMask returns an error if a text is neither a mask nor none.
func checkMask(text string) error {
	if text == noMask {
		return nil
	}
	mask, err := dataset.ParseMask(text)
	if err == nil && !mask.Any() {
		err = errors.New("it is empty")
	}
	return err
}

// maskOf reads the mask of a spec. An error says that it is none, or that the algorithm cannot learn from what it
// leaves.
func maskOf(text, algorithm string, m *dataset.Manifest) (dataset.Mask, error) {
	mask, err := dataset.ParseMask(text)
	if err == nil && mask.Any() {
		err = pipeline.CheckLearns(algorithm, m, mask)
	}
	if err != nil {
		return mask, param.Errorf("mask", "%v", err)
	}
	return mask, nil
}
