package algorithms

import "github.com/coppice-ldl/coppice/dataset"

// Footprint is the memory, in bytes, that the trainer of a job takes, estimated
// from its settings and the shape of its data before it begins.
type Footprint struct {
	State int64 // the trainer: parameters, moments, gradient, best state, parts
	Model int64 // the model
	Node  int64 // one node of the reduction tree, at most
	Nodes int64 // nodes that may be held at a time
}

// Measured is what an Algorithm implements that can tell the Footprint of a job of
// its own. An error says that the settings are not of this algorithm.
type Measured interface {
	Footprint(j *Job, m *dataset.Manifest) (Footprint, error)
}
