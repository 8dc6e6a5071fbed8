package algorithms

import "github.com/coppice-ldl/coppice/dataset"

// Footprint is the memory, in bytes, that the trainer of a job needs, estimated
// from the job's settings and the shape of its data.
type Footprint struct {
	State int64 // the trainer: parameters, moments, gradient, best state, collected results
	Model int64 // the model
	Node  int64 // one node of the reduction tree, at most
	Nodes int64 // nodes that may be in memory at a time
}

// Measured is implemented by Algorithms that can estimate the Footprint of their jobs.
// An error says that the settings are not of this algorithm.
type Measured interface {
	Footprint(j *Job, m *dataset.Manifest) (Footprint, error)
}
