package coordinator

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// catchUp is how long a follower waits before it refuses a token. The leader may have just accepted
// the token.
const catchUp = 300 * time.Millisecond

// registry is what the replicated state knows of the callers of HTTP.
type registry struct {
	store   *store.Store
	leading func() bool
}

var _ access.Registry = (*registry)(nil)

// Token implements access.Registry.
func (r *registry) Token(id string) (access.Token, bool) {
	t := r.store.State().Token(id)
	if t == nil || t.Revoked != 0 {
		return access.Token{}, false
	}
	token := access.Token{Owner: t.Owner, Role: rights.Role(t.Role)}
	if t.Expires != 0 {
		token.Ends = time.Unix(t.Expires, 0)
	}
	n, err := hex.Decode(token.Hash[:], []byte(t.Hash)) // the state has checked its form
	return token, err == nil && n == len(token.Hash)
}

// CatchUp implements access.Registry.
func (r *registry) CatchUp(ctx context.Context, done func() bool) {
	if r.leading() {
		return
	}
	end := time.NewTimer(catchUp)
	defer end.Stop()
	for {
		_, changed := r.store.Watch()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Member implements access.Registry.
func (r *registry) Member(name string) bool {
	_, ok := r.store.State().Member(name)
	return ok
}

// Revoked implements access.Registry.
func (r *registry) Revoked(serial string) bool { return r.store.State().Revoked(serial) }
