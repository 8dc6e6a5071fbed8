package coordinator

import (
	"encoding/hex"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// catchUp is how long a follower waits for a token that it does not know. The leader may have just
// accepted the token.
const catchUp = 300 * time.Millisecond

// registry is what the replicated state knows of the callers of HTTP.
type registry struct {
	store   *store.Store
	leading func() bool
}

var _ access.Registry = (*registry)(nil)

// Token implements access.Registry.
func (r *registry) Token(id string) (access.Token, bool) {
	end := time.NewTimer(catchUp)
	defer end.Stop()
	for late := r.leading(); ; {
		st, changed := r.store.Watch()
		t := st.Token(id)
		if t == nil && !late {
			select {
			case <-changed:
			case <-end.C:
				late = true
			}
			continue
		}
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
}

// Revoked implements access.Registry.
func (r *registry) Revoked(serial string) bool { return r.store.State().Revoked(serial) }
