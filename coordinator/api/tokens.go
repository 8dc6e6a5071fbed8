package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// tokenHandlers answer requests about the tokens of users.
type tokenHandlers struct {
	store  *store.Store
	secure bool // true if connections use TLS
}

// list lists all tokens, also expired and revoked ones.
func (h *tokenHandlers) list(*http.Request) (any, error) {
	list := []protocol.Token{}
	for _, t := range h.store.State().Tokens() {
		list = append(list, t.Token)
	}
	return list, nil
}

// create makes a token valid. The client has drawn it, and sends it again if no answer comes.
func (h *tokenHandlers) create(r *http.Request) (any, error) {
	var req protocol.TokenRequest
	if err := body(r, &req); err != nil {
		return nil, err
	}
	if !h.secure {
		return nil, fmt.Errorf("%w: this cluster is in the clear, so everybody may do everything and tokens are of no use; start its coordinators with coppice coordinator --tls-dir", errBad)
	}
	if req.Owner == protocol.NoCaller {
		return nil, fmt.Errorf("%w: owner: no user has the name %q, which stands for an unknown caller", errBad, req.Owner)
	}
	now := time.Now().Unix()
	if req.Expires != 0 && req.Expires <= now {
		return nil, fmt.Errorf("%w: expires: token %.80q would end at once, at %d in Unix seconds", errBad, req.ID, req.Expires)
	}
	_, made, err := commit(r, h.store, protocol.EntryTokenPut, protocol.TokenPutEntry{TokenRequest: req, Time: now})
	if err != nil {
		return nil, err
	}
	return made.(*state.Token).Token, nil
}

// revoke ends a token.
func (h *tokenHandlers) revoke(r *http.Request) (any, error) {
	_, ended, err := commit(r, h.store, protocol.EntryTokenRevoke, protocol.TokenRevokeEntry{ID: r.PathValue("id"), Time: time.Now().Unix()})
	if err != nil {
		return nil, err
	}
	return ended.(*state.Token).Token, nil
}

// quotaOf returns the most jobs of the caller that may not have ended if the caller submits another
// one; 0: any number.
func quotaOf(r *http.Request, st *state.State) uint32 {
	c := access.Of(r.Context())
	if t := st.Token(c.Token); t != nil {
		return t.Quota
	}
	return c.Quota
}
