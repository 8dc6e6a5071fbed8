package ldlf

import (
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/round"
)

// featureFunction is f(x; Θ) of section 3.1, which maps a row to the output units
// that split nodes read. It is stateless and shared; what it works in is its
// workspace. A deep network implements it as the linear function does.
type featureFunction interface {
	// parameters is the length of Θ.
	parameters() int
	// initialise fills Θ with its first values, from streams of the key.
	initialise(theta []float32, key num.Key)
	// workspace makes the working memory of one lane.
	workspace() workspace
	// gradientShape is what backward fills in a partial, beside the first
	// gradientAt values of F64.
	gradientShape() round.Shape
	// forward writes f(x; Θ) of every sample to dst (len(samples)×outputs).
	forward(dst []float32, samples []sample, w *weights, ws workspace)
	// begin readies dst for the samples of unit u, all of which backward sees
	// afterwards, most at a time.
	begin(dst *round.Partial, u *round.Unit, samples []sample, most int, ws workspace)
	// backward adds Σ df·∂f/∂Θ over the samples to dst (the second factor of
	// Eq. 5), of which forward has just had these, with this workspace; df is
	// len(samples)×outputs.
	backward(dst *round.Partial, df []float32, samples []sample, w *weights, ws workspace)
	// gradientRows returns the rows of outputs values that make up the gradient of the
	// first n parameters, where no other one of these differs from 0; n 0: there are none.
	gradientRows(sum *round.Partial, x scaling) (values []float32, index []uint32, n int)
	// gradient sets g to factor times the gradient that sum holds, of the parameters
	// from the given one on: whole rows of Θ's, outputs each.
	gradient(g []float32, from int, sum *round.Partial, factor float32, x scaling)
}

// workspace is a feature function's working memory: its own type.
type workspace any

// weights are what a feature function reads: Θ of some version, and the scaling
// of its input. Equal versions are equal values.
type weights struct {
	theta   []float32
	version uint64
	input   scaling
}

// gradientAt is the number of F64 values of a step's partial that are not the
// feature function's: rows drawn, and K-L summed over rows and trees.
const gradientAt = 2
