package worker

import "errors"

// failure says why a unit was not computed.
type failure struct {
	// permanent: it would fail anywhere.
	permanent bool
	// nonFinite: the partial had a NaN or an infinity.
	nonFinite bool
	// unable: this worker never can, another might.
	unable bool
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func permanent(err error) error { return &failure{permanent: true, err: err} }
func passing(err error) error   { return &failure{err: err} }
func unable(err error) error    { return &failure{unable: true, err: err} }

// failureOf returns err as a failure: what nobody judged is a kernel's error,
// which is permanent because kernels are pure.
func failureOf(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		judged := *f
		judged.err = err
		return &judged
	}
	return &failure{permanent: true, err: err}
}
