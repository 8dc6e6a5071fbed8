package client

import (
	"context"
	"net/http"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// NewWithToken is NewWith for a user with a token. The source verifies the coordinators, and may be
// one of certs.Trust. Without a source it returns an error: a token is never sent in the clear.
func NewWithToken(servers string, source *certs.Source, token string) (*Client, error) {
	if source == nil {
		return nil, errClear
	}
	c, err := NewWith(servers, source)
	if err != nil {
		return nil, err
	}
	for _, h := range []*http.Client{c.http, c.places.http} {
		h.Transport = &bearer{h.Transport, token}
	}
	return c, nil
}

// Tokens asks a cluster about the tokens of its users.
type Tokens struct{ Client *Client }

// List lists the tokens, also expired and revoked ones.
func (t Tokens) List(ctx context.Context) (list []protocol.Token, err error) {
	return list, t.Client.json(ctx, http.MethodGet, at("tokens"), nil, &list)
}

// Create makes a token valid.
func (t Tokens) Create(ctx context.Context, r protocol.TokenRequest) (*protocol.Token, error) {
	var v protocol.Token
	return &v, t.Client.json(ctx, http.MethodPost, at("tokens"), r, &v)
}

// Revoke ends a token.
func (t Tokens) Revoke(ctx context.Context, id string) (*protocol.Token, error) {
	var v protocol.Token
	return &v, t.Client.json(ctx, http.MethodDelete, at("tokens", id), nil, &v)
}
