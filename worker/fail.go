package worker

import (
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
)

// failure says why a unit was not computed.
type failure struct {
	// permanent: it would fail anywhere.
	permanent bool
	err       error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func permanent(err error) error { return &failure{true, err} }
func passing(err error) error   { return &failure{false, err} }

// failureOf returns err as a failure: what nobody judged is a kernel's error,
// which is permanent because kernels are pure.
func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return &failure{f.permanent, err}
	}
	return &failure{true, err}
}

// checkFinite returns a passing failure that names the first number of p that
// is NaN or infinite: bad memory on this machine, or numbers that diverge. The
// leader tells which by asking another worker.
func checkFinite(p *algorithms.Partial) error {
	if i := firstNonFinite(p.F64); i >= 0 {
		return nonFinite("float64 value", i, p.F64[i])
	}
	if i := firstNonFinite(p.F32); i >= 0 {
		return nonFinite("float32 value", i, float64(p.F32[i]))
	}
	if i := firstNonFinite(p.Values); i >= 0 {
		return nonFinite("value of its rows", i, float64(p.Values[i]))
	}
	return nil
}

func nonFinite(what string, i int, v float64) error {
	name := "infinite"
	if math.IsNaN(v) {
		name = "NaN"
	}
	return passing(fmt.Errorf("non-finite partial: %s %d is %s", what, i, name))
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
