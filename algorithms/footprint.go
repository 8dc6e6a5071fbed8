package algorithms

// Footprint is the memory, in bytes, that the trainer of a job needs, estimated
// from the job's settings and the shape of its data.
type Footprint struct {
	State int64 // the trainer: parameters, moments, gradient, best state, collected results
	Model int64 // the model
	Node  int64 // one node of the reduction tree, at most
	Nodes int64 // nodes that may be in memory at a time
	// Weights is what the weights to begin from take: their file, and what is read of it.
	Weights int64
}
