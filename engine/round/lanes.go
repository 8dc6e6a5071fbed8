package round

// Lanes lends a task the lanes of its process that have no task of their own.
type Lanes interface {
	// Idle returns how many lanes have nothing to do: a moment later it may be another number.
	Idle() int
	// Do calls p.Part(i) for every i in [0, n), each once, in this lane and in idle ones, and
	// returns when all have returned. A part that panics has Do panic.
	Do(n int, p Parts)
}

// Parts are pieces of a task that may be computed side by side.
type Parts interface {
	// Part computes piece i; scratch is the working memory of the lane that does.
	Part(i int, scratch any)
}
