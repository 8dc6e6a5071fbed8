package coordinator

import (
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// registry is what the replicated state knows of the callers of HTTP.
type registry struct {
	store   *store.Store
	leading func() bool
}

var _ access.Registry = (*registry)(nil)

// Token implements access.Registry.
func (*registry) Token(string) (access.Token, bool) { return access.Token{}, false }

// Revoked implements access.Registry.
func (r *registry) Revoked(serial string) bool { return r.store.State().Revoked(serial) }
