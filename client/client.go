// Package client speaks the HTTP API of the coordinators. Package protocol has its types.
// A client knows several addresses and tries each. It goes on trying while the cluster
// elects a leader, so that a change of leader is not noticed. Every request may be sent
// again without harm: submissions carry a token, and the content of a blob is its name.
//
// The methods of Client are the requests. transport sends them; places chooses the
// address.
package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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
			err = errtext.Errorf(errtext.NoAccess, "http is in the clear, but {tls-dir} and {ca-file} ask for TLS; leave out http://")
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
		http: &http.Client{Transport: source.Transport(&http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 30 * time.Second, DisableCompression: true}, certs.Proxy)},
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

// Cluster describes the cluster.
func (c *Client) Cluster(ctx context.Context) (*protocol.Cluster, error) {
	var v protocol.Cluster
	return &v, c.json(ctx, http.MethodGet, at("cluster"), nil, &v)
}

// Members lists the coordinators.
func (c *Client) Members(ctx context.Context) (*protocol.Members, error) {
	var v protocol.Members
	return &v, c.json(ctx, http.MethodGet, at("members"), nil, &v)
}

// AddMember makes a coordinator a member that runs and waits to be added. It does not
// vote yet when AddMember returns: Members says when it has caught up.
func (c *Client) AddMember(ctx context.Context, r protocol.AddRequest) (*protocol.Members, error) {
	var v protocol.Members
	return &v, c.json(ctx, http.MethodPost, at("members"), r, &v)
}

// RemoveMember removes a coordinator from the cluster and returns the members that are
// left, and the certificates that were revoked. If the coordinator leads, it first hands the leadership over.
// It is an error if the coordinator was no member when RemoveMember was called.
func (c *Client) RemoveMember(ctx context.Context, id string) (*protocol.Members, error) {
	before, err := c.Members(ctx)
	if err != nil {
		return nil, err
	}
	known, err := Revocations(ctx, c)
	if err != nil {
		return nil, err
	}
	after := new(protocol.Members)
	if err = c.json(ctx, http.MethodDelete, at("members", id), nil, after); IsNotFound(err) && has(before, id) {
		// It was a member, so the answer to an earlier try may be lost.
		refused := err
		if after, err = c.Members(ctx); err == nil && has(after, id) {
			return nil, refused
		}
		if err == nil {
			after.Revoked, err = Revocations(ctx, c)
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

// Revocations lists the revoked certificates, by serial number.
func Revocations(ctx context.Context, c *Client) (list []protocol.Revocation, err error) {
	return list, c.json(ctx, http.MethodGet, at("revocations"), nil, &list)
}

func has(m *protocol.Members, id string) bool {
	for _, one := range m.Members {
		if one.ID == id {
			return true
		}
	}
	return false
}

// TransferLeadership hands the leadership over to a coordinator; empty: to any other.
func (c *Client) TransferLeadership(ctx context.Context, to string) error {
	return c.json(ctx, http.MethodPost, at("transfer"), protocol.TransferRequest{To: to}, nil)
}

// Trust ends the quarantine of a worker. It is an error if the worker is not quarantined.
func (c *Client) Trust(ctx context.Context, worker string) error {
	quarantined := func() (bool, error) {
		cluster, err := c.Cluster(ctx)
		return err == nil && slices.ContainsFunc(cluster.Quarantined, func(d protocol.Quarantined) bool { return d.Worker == worker }), err
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

// Submit queues a job. A submission that is sent again because its answer was lost makes
// no second job.
func (c *Client) Submit(ctx context.Context, s protocol.Spec) (*protocol.JobInfo, error) {
	return c.SubmitRequest(ctx, protocol.SubmitRequest{Spec: s})
}

// SubmitRequest is Submit with more than a spec. An empty token is drawn. A request with
// the same token may be sent again at any time, even by another process. It is answered
// with the job that the first one made.
func (c *Client) SubmitRequest(ctx context.Context, r protocol.SubmitRequest) (*protocol.JobInfo, error) {
	if r.Token == "" {
		r.Token = rand.Text()
	}
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodPost, at("jobs"), r, &v)
}

// AllJobs lists all jobs of a cluster in full, the oldest first.
func AllJobs(ctx context.Context, c *Client) ([]protocol.JobInfo, error) {
	list, err := c.ListJobs(ctx, protocol.JobQuery{Sort: "submitted", Full: true})
	if err != nil {
		return nil, err
	}
	return list.Jobs, nil
}

// ListJobs lists the jobs that a query asks for.
func (c *Client) ListJobs(ctx context.Context, q protocol.JobQuery) (*protocol.JobList, error) {
	path := at("jobs")
	if values := q.Values().Encode(); values != "" {
		path += "?" + values
	}
	var v protocol.JobList
	return &v, c.json(ctx, http.MethodGet, path, nil, &v)
}

// Job describes a job, by id or name.
func (c *Client) Job(ctx context.Context, job string) (*protocol.JobInfo, error) {
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodGet, at("jobs", job), nil, &v)
}

// Curve returns the learning curve of a job, by id or name.
func (c *Client) Curve(ctx context.Context, job string) (*protocol.JobCurve, error) {
	var v protocol.JobCurve
	return &v, c.json(ctx, http.MethodGet, at("jobs", job, "curve"), nil, &v)
}

// Cancel cancels a job. Once it returns, the job will have no model, even after a change
// of leader.
func (c *Client) Cancel(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.change(ctx, job, "cancel")
}

// Pause pauses a job, which keeps its last commit.
func (c *Client) Pause(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.change(ctx, job, "pause")
}

// Resume lets a paused job go on.
func (c *Client) Resume(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.change(ctx, job, "resume")
}

// Share lets all users read the models and predictions of a job.
func (c *Client) Share(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return c.change(ctx, job, "share")
}

// change finds the job first. So a request that is sent again is about the same job, even
// if another job gets its name meanwhile.
func (c *Client) change(ctx context.Context, job, what string) (*protocol.JobInfo, error) {
	j, err := c.Job(ctx, job)
	if err != nil {
		return nil, err
	}
	var v protocol.JobInfo
	return &v, c.json(ctx, http.MethodPost, at("jobs", strconv.FormatUint(j.ID, 10), what), nil, &v)
}

// jobID returns the id of a job, by id or name. A request that is sent again names the
// id, as in change.
func (c *Client) jobID(ctx context.Context, job string) (uint64, error) {
	if id, err := strconv.ParseUint(job, 10, 64); err == nil { // no name has digits only
		return id, nil
	}
	j, err := c.Job(ctx, job)
	if err != nil {
		return 0, err
	}
	return j.ID, nil
}

// DeleteJobs deletes jobs that have ended, by id or name. It deletes none if one of them
// has not ended or does not exist. The answer says so if a job was deleted before.
func (c *Client) DeleteJobs(ctx context.Context, jobs ...string) (*protocol.Deletion, error) {
	var r protocol.DeleteRequest
	for _, job := range jobs {
		id, err := c.jobID(ctx, job)
		if err != nil {
			return nil, err
		}
		r.Jobs = append(r.Jobs, id)
	}
	var v protocol.Deletion
	return &v, c.json(ctx, http.MethodPost, at("jobs", "delete"), r, &v)
}

// Prune deletes the jobs that ended before a time. If an answer is lost and the request
// sent again, the answer is about the last try.
func (c *Client) Prune(ctx context.Context, r protocol.PruneRequest) (*protocol.Deletion, error) {
	var v protocol.Deletion
	return &v, c.json(ctx, http.MethodPost, at("jobs", "prune"), r, &v)
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

// Audit lists the newest audit records that a query asks for, the newest first.
func Audit(ctx context.Context, c *Client, q protocol.AuditQuery) (list []protocol.AuditRecord, err error) {
	values := make(url.Values)
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Since > 0 {
		values.Set("since", strconv.FormatInt(q.Since, 10))
	}
	if q.Caller != "" {
		values.Set("caller", q.Caller)
	}
	if q.Refused {
		values.Set("refused", "true")
	}
	return list, c.json(ctx, http.MethodGet, at("audit")+"?"+values.Encode(), nil, &list)
}

// Revoke revokes a certificate. Time is set by the cluster.
func Revoke(ctx context.Context, c *Client, r protocol.Revocation) (*protocol.Revocation, error) {
	var v protocol.Revocation
	return &v, c.json(ctx, http.MethodPost, at("revocations"), r, &v)
}
