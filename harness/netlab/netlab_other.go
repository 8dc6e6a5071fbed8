//go:build !linux

package netlab

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Missing says why there can be no network here; empty: there can.
func Missing() string { return "only Linux has network namespaces" }

// Enter gives this process a network namespace of its own, where there are any.
func Enter() error { return fmt.Errorf("%w: %s", ErrUnavailable, Missing()) }

func entered() bool { return false }

// namespace stands for what other systems do not have.
type namespace struct{}

func newNamespace() (*namespace, error)  { return nil, errors.ErrUnsupported }
func thisNamespace() (*namespace, error) { return nil, errors.ErrUnsupported }

func (*namespace) close() error          { return nil }
func (*namespace) do(func() error) error { return errors.ErrUnsupported }
func (*namespace) openTUN([]netip.Addr) (io.ReadWriteCloser, error) {
	return nil, errors.ErrUnsupported
}
