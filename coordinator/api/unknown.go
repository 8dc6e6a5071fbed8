package api

import (
	"errors"
	"net"

	"github.com/coppice-ldl/coppice/coordinator/store"
)

// perhaps marks the error of a request that may have changed something all the same.
type perhaps struct{ error }

func (p perhaps) Unwrap() error { return p.error }

// unknown reports whether a request that ended with an error may have taken effect, all of
// it or a part, now or later.
func unknown(err error) bool {
	var p perhaps
	return errors.As(err, &p) || errors.Is(err, store.ErrAmbiguous)
}

// unheard reports whether the error of a forwarded request says that the other coordinator
// was not reached at all.
func unheard(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
