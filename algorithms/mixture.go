package algorithms

// Mixture says how a model adds up other models, its members.
type Mixture struct {
	Members []Share `json:"members"`
	// OutOfFoldKL is the mean K-L divergence, in nats, of the weighted sum on the rows that
	// the weights were fitted to, each predicted by models that did not see the row; nil: no
	// weights were fitted.
	OutOfFoldKL *float64 `json:"out_of_fold_kl,omitempty"`
	Rows        int      `json:"rows,omitempty"` // of these
}

// Share is a member and its weight.
type Share struct {
	Member string  `json:"member"`
	Weight float64 `json:"weight"`
	// OutOfFoldKL is Mixture.OutOfFoldKL of the member alone.
	OutOfFoldKL *float64 `json:"out_of_fold_kl,omitempty"`
}

// Mixer is implemented by Trainers whose model is a Mixture.
type Mixer interface {
	// Mixture returns the weights once Next said Done.
	Mixture() *Mixture
}
