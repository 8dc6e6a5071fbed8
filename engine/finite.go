package engine

import (
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/engine/round"
)

// ErrNonFinite is what errors of CheckFinite are.
var ErrNonFinite = errors.New("a partial result is not finite")

// CheckFinite returns an error, which is ErrNonFinite, that names the first number of p that is NaN or
// infinite, or nil. The cause is bad memory on the machine, or training that diverges;
// a second machine's result tells which.
func CheckFinite(p *round.Partial) error {
	if i := firstNonFinite(p.F64); i >= 0 {
		return nonFinite("float64 value", i, p.F64[i])
	}
	if i := firstNonFinite(p.F32); i >= 0 {
		return nonFinite("float32 value", i, float64(p.F32[i]))
	}
	if i := firstNonFinite(p.Values); i >= 0 {
		return nonFinite("value of a sparse row", i, float64(p.Values[i]))
	}
	return nil
}

func nonFinite(what string, i int, v float64) error {
	name := "infinite"
	if math.IsNaN(v) {
		name = "NaN"
	}
	return fmt.Errorf("%w: %s %d is %s", ErrNonFinite, what, i, name)
}

// firstNonFinite returns the position of the first value that is NaN or infinite,
// or -1.
func firstNonFinite[T float32 | float64](v []T) int {
	for i, x := range v {
		if x-x != 0 {
			return i
		}
	}
	return -1
}
