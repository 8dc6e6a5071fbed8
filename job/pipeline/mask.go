package pipeline

import (
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// incomplete reports whether degrees may be missing in the labels that a job learns from: of the dataset, or hidden by
// the mask of the split. A mask hides them from the algorithm and from the mean baseline. Measures are of whole labels.
func incomplete(j *round.Job, m *dataset.Manifest) bool {
	return m.LabelType.Incomplete || j.Split.Mask.Any()
}

// observedMean returns the mean of each label over the degrees that are not missing, divided by the sum of the means.
// sums are what sumLabels made. An error says that a label has no degree.
func observedMean(sums []float64, m *dataset.Manifest) ([]float64, error) {
	mean, total := make([]float64, m.Labels), 0.0
	for c := range mean {
		n := sums[3+m.Labels+c]
		if n == 0 {
			return nil, errtext.Errorf(errtext.WrongData, "the label %s is missing in every training sample, so nothing can be "+
				"learned of it; remove the label, or hide fewer degrees", m.LabelName(c))
		}
		mean[c] = sums[3+c] / n
		total += mean[c]
	}
	for c := range mean {
		if total > 0 {
			mean[c] /= total
		} else {
			mean[c] = 1 / float64(m.Labels)
		}
	}
	return mean, nil
}

// CheckLearns returns an error if an algorithm cannot learn from the labels of a dataset, or from what a mask leaves of
// them, since degrees are missing, or if it cannot use the weights of the samples.
func CheckLearns(algorithm string, m *dataset.Manifest, mask dataset.Mask) error {
	t := m.LabelType
	switch {
	case mask.Any() && t.Incomplete:
		return errtext.Errorf(errtext.WrongData, "a mask hides degrees of complete labels, but degrees of the dataset are "+
			"already missing")
	case mask.Any() && (t != dataset.LabelType{} || m.Labels < 2):
		return errtext.Errorf(errtext.WrongData, "a mask hides degrees of distributions of at least two labels, but the "+
			"labels are %s", t.String(m.Labels))
	case (mask.Any() || t.Incomplete) && !registry.LearnsFromIncomplete(algorithm):
		return errtext.Errorf(errtext.WrongData, "%s needs complete labels, but degrees of the labels are missing; %s learn "+
			"from such labels", algorithm, listed(registry.Incomplete()))
	case m.HasWeights:
		return registry.CheckWeights(algorithm)
	}
	return nil
}

// listed joins names: "a, b and c".
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
