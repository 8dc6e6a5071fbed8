package client

import (
	"context"
	"errors"
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
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // coordinators do not redirect
	}
	return c, nil
}

var errClear = errors.New("a token is never sent in the clear; connect to coordinators with TLS, and name the authorities of the cluster")

// bearer sends a token with each request.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, errClear
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is for http.Client.
func (b *bearer) CloseIdleConnections() {
	if c, ok := b.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Tokens lists the tokens of users, also those that have expired or were revoked.
func (c *Client) Tokens(ctx context.Context) (list []protocol.Token, err error) {
	return list, c.json(ctx, http.MethodGet, at("tokens"), nil, &list)
}

// CreateToken makes a token valid.
func (c *Client) CreateToken(ctx context.Context, r protocol.TokenRequest) (*protocol.Token, error) {
	var t protocol.Token
	return &t, c.json(ctx, http.MethodPost, at("tokens"), r, &t)
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) (*protocol.Token, error) {
	var t protocol.Token
	return &t, c.json(ctx, http.MethodDelete, at("tokens", id), nil, &t)
}
