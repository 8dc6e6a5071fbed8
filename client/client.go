// Package client speaks the HTTP API of the coordinators. Package protocol has its types.
// A client knows several addresses and tries each. It goes on trying while the cluster
// elects a leader, so that a change of leader is not noticed. Every request may be sent
// again without harm: submissions carry a token, and the content of a blob is its name.
//
// Each resource has a type with its requests, such as Jobs, which a method of Client returns. transport sends the
// requests; places chooses the address.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/protocol"
)

// Client sends requests to the coordinators of one cluster. It is safe for concurrent
// use.
//
// It learns the coordinators of the cluster from those at its addresses, and goes on with
// another one if all of these fail.
type Client struct {
	Options
	transport
	watchSilence time.Duration
	maxBytes     int64 // of a blob or a model
}

// New returns a client of the coordinators at servers, which are addresses host:port or
// URLs, separated by commas. A URL may have a path, below which a proxy has the API, and no port.
func New(servers string) (*Client, error) { return NewWith(servers, nil) }

// NewWith is New for coordinators with TLS. The source has the certificates of this process;
// nil means New.
func NewWith(servers string, source *certs.Source) (*Client, error) {
	var given []string
	for _, s := range strings.Split(servers, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		isURL := strings.Contains(s, "://")
		if !isURL {
			s = source.URLScheme() + "://" + s
		}
		scheme, address, _ := strings.Cut(s, "://")
		scheme = strings.ToLower(scheme)
		address, path, _ := strings.Cut(strings.TrimSuffix(address, "/"), "/")
		address = strings.ReplaceAll(address, "%25", "%") // a URL writes the % before a zone as %25
		if path != "" {
			path = "/" + path
		}
		if _, _, err := net.SplitHostPort(address); err != nil && isURL {
			address = net.JoinHostPort(strings.Trim(address, "[]"), map[string]string{"http": "80", "https": "443"}[scheme])
		}
		err := protocol.CheckAddress(address)
		if err == nil && path != "" {
			err = protocol.CheckPrefix(path)
		}
		switch {
		case scheme != "http" && scheme != "https":
			err = fmt.Errorf("%q is neither http nor https", scheme)
		case scheme == "http" && source != nil:
			err = errtext.Errorf(errtext.NoAccess, "http uses no TLS, but {tls-dir} and {ca-file} ask for TLS; leave out "+
				"http://")
		}
		if err != nil {
			return nil, fmt.Errorf("coordinator address %q: %w", strings.TrimPrefix(s, "http://"), err)
		}
		given = append(given, (&url.URL{Scheme: scheme, Host: address, Path: path}).String())
	}
	if len(given) == 0 {
		return nil, errors.New("the address of a coordinator is missing")
	}
	c := &Client{Options: Options{Patience: DefaultPatience}, watchSilence: watchSilence, maxBytes: maxBytes}
	c.transport = transport{
		Options: &c.Options, places: newPlaces(given), silent: protocol.ClientSilence, maxJSON: maxJSON,
		http: &http.Client{Transport: source.Transport(&http.Transport{MaxIdleConnsPerHost: 16,
			IdleConnTimeout: 30 * time.Second, DisableCompression: true}, certs.Proxy)},
	}
	c.places.prober = newProber(source)
	for _, h := range []*http.Client{c.http, c.places.http} { // coordinators do not redirect; a POST would become a GET
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return c, nil
}

// UsesTLS reports whether a client has certificates of the cluster, so that its connections to coordinators use TLS.
func UsesTLS(c *Client) bool { return c.places.source != nil }

// Servers lists the given addresses.
func (c *Client) Servers() []string { return c.places.given }

// Close closes idle connections. No request may follow.
func (c *Client) Close() {
	c.places.close()
	c.http.CloseIdleConnections()
}

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

// send sends a request in JSON and decodes its response.
func send[T any](ctx context.Context, c *Client, method, path string, in any) (*T, error) {
	v := new(T)
	return v, c.json(ctx, method, path, in, v)
}

// listed is send of a request without a body for a list.
func listed[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	list, err := send[[]T](ctx, c, http.MethodGet, path, nil)
	return *list, err
}

// Cluster describes the cluster.
func (c *Client) Cluster(ctx context.Context) (*protocol.Cluster, error) {
	return send[protocol.Cluster](ctx, c, http.MethodGet, at("cluster"), nil)
}

// Trust ends the quarantine of a worker. It is an error if the worker is not quarantined.
func (c *Client) Trust(ctx context.Context, worker string) error {
	quarantined := func() (bool, error) {
		cluster, err := c.Cluster(ctx)
		return err == nil && slices.ContainsFunc(cluster.Quarantined, func(d protocol.Quarantined) bool {
			return d.Worker == worker
		}), err
	}
	before, err := quarantined()
	if err != nil {
		return err
	}
	if !before {
		return &Error{Status: http.StatusNotFound, Message: fmt.Sprintf("the worker %q is not quarantined", worker)}
	}
	err = c.json(ctx, http.MethodPost, at("workers", worker, "trust"), nil, nil)
	if IsNotFound(err) { // it was quarantined, so the answer to an earlier try may be lost
		if still, asked := quarantined(); asked == nil && !still {
			return nil
		}
	}
	return err
}

// Audit lists the newest audit records that a query asks for, the newest first.
func (c *Client) Audit(ctx context.Context, q protocol.AuditQuery) ([]protocol.AuditRecord, error) {
	return listed[protocol.AuditRecord](ctx, c, at("audit")+"?"+protocol.WriteQuery(q.Params()))
}

// Members asks a cluster about its coordinators.
type Members struct{ c *Client }

// Members returns the requests about coordinators.
func (c *Client) Members() Members { return Members{c} }

// List lists the coordinators.
func (m Members) List(ctx context.Context) (*protocol.Members, error) {
	return send[protocol.Members](ctx, m.c, http.MethodGet, at("members"), nil)
}

// Add makes a coordinator a member that runs and waits to be added. It does not
// vote yet when Add returns: List says when it has caught up.
func (m Members) Add(ctx context.Context, r protocol.AddRequest) (*protocol.Members, error) {
	return send[protocol.Members](ctx, m.c, http.MethodPost, at("members"), r)
}

// Remove removes a coordinator from the cluster and returns the members that are
// left, and the certificates that were revoked. If the coordinator leads, it first hands the leadership over.
// It is an error if the coordinator was no member when Remove was called.
func (m Members) Remove(ctx context.Context, id string) (*protocol.Members, error) {
	before, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	known, err := m.c.Certificates().List(ctx)
	if err != nil {
		return nil, err
	}
	after := new(protocol.Members)
	if err = m.c.json(ctx, http.MethodDelete, at("members", id), nil, after); IsNotFound(err) && has(before, id) {
		// It was a member, so the answer to an earlier try may be lost.
		refused := err
		if after, err = m.List(ctx); err == nil && has(after, id) {
			return nil, refused
		}
		if err == nil {
			after.Revoked, err = m.c.Certificates().List(ctx)
			after.Revoked = slices.DeleteFunc(after.Revoked, func(r protocol.Revocation) bool {
				return slices.Contains(known, r) || !strings.HasSuffix(r.Identity, "/coordinator/"+id)
			})
		}
	}
	if err == nil && has(after, id) {
		err = fmt.Errorf("%s is still listed as a member, although the cluster says that it was removed; try again", id)
	}
	return after, err
}

func has(m *protocol.Members, id string) bool {
	for _, one := range m.Members {
		if one.ID == id {
			return true
		}
	}
	return false
}

// Transfer hands the leadership over to a coordinator; empty: to any other.
func (m Members) Transfer(ctx context.Context, to string) error {
	return m.c.json(ctx, http.MethodPost, at("transfer"), protocol.TransferRequest{To: to}, nil)
}

// Certificates asks a cluster about revoked certificates.
type Certificates struct{ c *Client }

// Certificates returns the requests about revoked certificates.
func (c *Client) Certificates() Certificates { return Certificates{c} }

// List lists the revoked certificates, by serial number.
func (r Certificates) List(ctx context.Context) ([]protocol.Revocation, error) {
	return listed[protocol.Revocation](ctx, r.c, at("revocations"))
}

// Revoke revokes a certificate. Time is set by the cluster.
func (r Certificates) Revoke(ctx context.Context, one protocol.Revocation) (*protocol.Revocation, error) {
	return send[protocol.Revocation](ctx, r.c, http.MethodPost, at("revocations"), one)
}

// Tokens asks a cluster about the tokens of its users.
type Tokens struct{ c *Client }

// Tokens returns the requests about tokens.
func (c *Client) Tokens() Tokens { return Tokens{c} }

// List lists the tokens, also expired and revoked ones.
func (t Tokens) List(ctx context.Context) ([]protocol.Token, error) {
	return listed[protocol.Token](ctx, t.c, at("tokens"))
}

// Create makes a token valid.
func (t Tokens) Create(ctx context.Context, r protocol.TokenRequest) (*protocol.Token, error) {
	return send[protocol.Token](ctx, t.c, http.MethodPost, at("tokens"), r)
}

// Revoke ends a token.
func (t Tokens) Revoke(ctx context.Context, id string) (*protocol.Token, error) {
	return send[protocol.Token](ctx, t.c, http.MethodDelete, at("tokens", id), nil)
}

func (c *Client) bytes(ctx context.Context, path string) (b []byte, err error) {
	return b, c.do(ctx, &call{method: http.MethodGet, path: path, timeout: blobTimeout, limit: c.maxBytes,
		take: func(r io.Reader) error {
			b, err = io.ReadAll(r)
			return err
		}})
}
