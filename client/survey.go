package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/protocol"
)

// Report is what one coordinator says of itself, whoever leads.
type Report struct {
	ID      string // empty where nobody knows it
	Address string // host:port
	Self    *protocol.Self
	// Local is what it knows of the cluster; nil while it starts.
	Local *protocol.Cluster
	Err   error // why it did not answer; Self is nil then
}

// Survey asks each coordinator for itself, all at once: those at the client's addresses
// and the members that these name, or named before. It takes at most twice protocol.Survey, needs neither
// a leader nor a majority, and returns a report of each, those at the client's
// addresses first.
func (c *Client) Survey(ctx context.Context) []Report {
	var first []Report
	for _, server := range c.places.given {
		first = append(first, Report{Address: bare(server)})
	}
	c.askAll(ctx, first)
	cluster, known := c.places.known()
	more := others(first, known)
	c.askAll(ctx, more)
	for i := range more {
		if r := &more[i]; r.Self != nil && cluster != "" && r.Self.Cluster != cluster {
			r.Self, r.Local, r.Err = nil, nil, fmt.Errorf("coordinator %s of cluster %s answers at this address, but this command asks cluster %s", r.ID, r.Self.Cluster, cluster)
		}
	}
	return named(distinct(append(first, more...)), known)
}

// askAll fills in the reports of coordinators, whose addresses are given.
func (c *Client) askAll(ctx context.Context, list []Report) {
	var asking sync.WaitGroup
	for i := range list {
		asking.Go(func() { list[i].fill(ctx) })
	}
	asking.Wait()
}

// fill asks one coordinator.
func (r *Report) fill(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, protocol.Survey, silent{protocol.Survey})
	defer cancel()
	server := r.Address
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	var self protocol.Self
	if r.Err = askOnce(ctx, server, "/v1/self", &self); r.Err != nil {
		return
	}
	r.ID, r.Self = self.ID, &self
	var local protocol.Cluster
	if askOnce(ctx, server, protocol.ClusterLocal, &local) == nil {
		r.Local = &local
	}
}

// The bounds of what coordinators say of themselves, in bytes, and of how many others they
// may have asked.
const (
	maxSelf   = 1 << 20
	maxOthers = 16
)

// askOnce reads a coordinator's answer in JSON.
func askOnce(ctx context.Context, server, path string, v any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+path, nil)
	if err != nil {
		return err
	}
	response, err := prober.Do(request)
	if err != nil {
		return found(server, short(context.Background(), ctx, err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || page(response) {
		_, err := refusal(server, response)
		return err
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxSelf)).Decode(v); err != nil {
		return short(context.Background(), ctx, err)
	}
	return nil
}

// others lists the members that coordinators name, and those that are known from before,
// that were not asked yet.
func others(asked []Report, known []protocol.MemberEntry) (more []Report) {
	seen := make(map[string]bool) // addresses, and ids of those that answered
	for _, r := range asked {
		seen[r.Address] = true
		if r.Self != nil {
			seen[r.ID] = true
		}
	}
	var named []protocol.MemberEntry
	for _, r := range asked {
		named = append(named, r.members()...)
	}
	for _, m := range append(named, known...) {
		if m.HTTP != "" && !seen[m.HTTP] && !seen[m.ID] && len(more) < maxOthers {
			seen[m.HTTP] = true
			more = append(more, Report{ID: m.ID, Address: m.HTTP})
		}
	}
	return more
}

// members lists the coordinators that one knows.
func (r *Report) members() []protocol.MemberEntry {
	if r.Self == nil {
		return nil
	}
	if r.Local == nil {
		return r.Self.Voters
	}
	return append(slices.Clone(r.Self.Voters), r.Local.Coordinators...)
}

// distinct leaves out whoever has answered at another address already.
func distinct(list []Report) (kept []Report) {
	seen := make(map[string]bool)
	for _, r := range list {
		if r.Self != nil && seen[r.ID] {
			continue
		}
		seen[r.ID] = r.Self != nil
		kept = append(kept, r)
	}
	return kept
}

// named gives those that did not answer the ids by which others know them, or knew them
// before.
func named(list []Report, known []protocol.MemberEntry) []Report {
	ids := make(map[string]string)
	for _, m := range known {
		ids[m.HTTP] = m.ID
	}
	for i := range list {
		for _, m := range list[i].members() {
			ids[m.HTTP] = m.ID
		}
	}
	for i := range list {
		list[i].ID = cmp.Or(list[i].ID, ids[list[i].Address])
	}
	return list
}
