package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/protocol"
)

// maxOthers bounds the coordinators that are asked because others name them.
const maxOthers = 16

// Report is what one coordinator says of itself, even if it does not lead.
type Report struct {
	ID      string            // empty if nobody knows it
	Address string            // host:port
	Self    *protocol.Self    // nil if it did not answer
	Local   *protocol.Cluster // what it knows of the cluster; nil while it starts
	Err     error             // why it did not answer
}

// Survey asks each coordinator for itself, all at once. It asks at the addresses of the
// client, and the members that these name or named before. It takes at most twice
// protocol.Survey, and needs neither a leader nor a quorum. The reports of the addresses
// of the client come first.
func (c *Client) Survey(ctx context.Context) []Report {
	var first []Report
	for _, server := range c.places.given {
		first = append(first, Report{Address: bare(server)})
	}
	askAll(ctx, first)
	cluster, known := c.places.known()
	more := others(first, known)
	askAll(ctx, more)
	for i := range more {
		if r := &more[i]; r.Self != nil && cluster != "" && r.Self.Cluster != cluster {
			r.Self, r.Local, r.Err = nil, nil, fmt.Errorf("coordinator %s of cluster %s answers at this address, but this command asks cluster %s", r.ID, r.Self.Cluster, cluster)
		}
	}
	return named(distinct(append(first, more...)), known)
}

// askAll fills in reports with an address.
func askAll(ctx context.Context, list []Report) {
	var asking sync.WaitGroup
	for i := range list {
		asking.Go(func() {
			r := &list[i]
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
		})
	}
	asking.Wait()
}

// others lists the members that were not asked: coordinators named them, or they were
// known before.
func others(asked []Report, known []protocol.MemberEntry) (more []Report) {
	seen := make(map[string]bool) // addresses, and ids of coordinators that answered
	for _, r := range asked {
		seen[r.Address] = true
		if r.Self != nil {
			seen[r.ID] = true
		}
	}
	var named []protocol.MemberEntry
	for _, r := range asked {
		named = append(named, r.names()...)
	}
	for _, m := range append(named, known...) {
		if m.HTTP != "" && !seen[m.HTTP] && !seen[m.ID] && len(more) < maxOthers {
			seen[m.HTTP] = true
			more = append(more, Report{ID: m.ID, Address: m.HTTP})
		}
	}
	return more
}

// names lists the coordinators that a coordinator knows.
func (r *Report) names() []protocol.MemberEntry {
	if r.Self == nil {
		return nil
	}
	if r.Local == nil {
		return r.Self.Voters
	}
	return append(slices.Clone(r.Self.Voters), r.Local.Coordinators...)
}

// distinct leaves out a coordinator that has answered at another address already.
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

// named gives coordinators that did not answer the ids by which others know them, or knew
// them before.
func named(list []Report, known []protocol.MemberEntry) []Report {
	ids := make(map[string]string) // by address
	for _, m := range known {
		ids[m.HTTP] = m.ID
	}
	for i := range list {
		for _, m := range list[i].names() {
			ids[m.HTTP] = m.ID
		}
	}
	for i := range list {
		list[i].ID = cmp.Or(list[i].ID, ids[list[i].Address])
	}
	return list
}
