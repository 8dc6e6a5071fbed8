package boost

import "github.com/coppice-ldl/coppice/algorithms"

// VectorForm is the form of one tree a round, whose leaves have a number for each label.
func VectorForm(features, labels, leaves int) Form {
	return Form{features: features, labels: labels, trees: 1, width: labels, leaves: leaves}
}

// NewVectorModel returns the model of a form of one tree a round, of the first rounds of a history.
func (h *History) NewVectorModel(f *Form, rounds int, s Scores) (algorithms.Model, error) {
	trees, err := h.decoded(f, rounds)
	if err != nil {
		return nil, err
	}
	return newModel(trees, f.features, s.Start, s.Factor), nil
}

// DecodeVectorModel makes a model of one tree a round of its tensors, whose memory it shares.
func DecodeVectorModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	return decodeModel(new(Variant), tensors)
}
