package client

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// learnEvery is the least time between two questions for the coordinators of a
	// cluster that answers.
	learnEvery = 10 * time.Second
	// askAgain is that time after a question without an answer.
	askAgain = time.Second
	// maxLearnt bounds the learnt addresses.
	maxLearnt = 16
)

// places finds the coordinators of a cluster: first at the given addresses, then at
// learnt addresses, which other coordinators named. A learnt address may belong to
// another cluster by now, or not be reachable from here. So it is tried only if a
// coordinator there says that it belongs to the cluster with the same id.
type places struct {
	*prober
	given []string // "http://host:port", or https, with the path of a proxy

	mu      sync.Mutex             // guards the fields below
	first   int                    // index in given of the address to try first
	current string                 // the learnt address that answered last; empty: a given one did
	cluster string                 // id of the cluster, once a coordinator has told it
	members []protocol.MemberEntry // of the cluster, as it told last
	learnt  []string               // addresses of members that are not given

	asked  time.Time // when a coordinator was last asked for the members
	asking bool      // true while a coordinator is asked
	ctx    context.Context
	end    context.CancelFunc // of ctx
	open   sync.WaitGroup     // questions under way, which end with ctx
}

func newPlaces(given []string) *places {
	p := &places{prober: newProber(nil), given: given}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// close ends the questions under way.
func (p *places) close() {
	p.mu.Lock()
	p.end()
	p.mu.Unlock()
	p.open.Wait()
}

// all lists the addresses, the given ones first.
func (p *places) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.given), p.learnt...)
}

// heard notes that a coordinator lives. If it answered a request, its address is tried first
// from now on. Now and then heard asks the coordinator for the members, in the background.
func (p *places) heard(server string, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered {
		p.current = server
		if i := slices.Index(p.given, server); i >= 0 {
			p.first, p.current = i, ""
		}
	}
	if p.asking || p.ctx.Err() != nil || time.Since(p.asked) < learnEvery && !p.asked.IsZero() {
		return
	}
	p.asking = true
	p.open.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, protocol.Survey)
		defer cancel()
		var c protocol.Cluster
		err := p.askOnce(ctx, server, protocol.ClusterLocal, &c)
		direct := err == nil && isMember(ctx, p.address(server), c.Coordinators)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asking, p.asked = false, time.Now()
		if err != nil {
			p.asked = p.asked.Add(askAgain - learnEvery)
			return
		}
		p.learn(&c, direct)
	})
}

// isMember reports whether an address is the address of a member, by its text or because both hosts have an address in
// common. Otherwise it may be of a proxy.
func isMember(ctx context.Context, address string, members []protocol.MemberEntry) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	var own []string
	for _, m := range members {
		other, otherPort, err := net.SplitHostPort(m.HTTP)
		if protocol.SamePlace(address, m.HTTP) {
			return true
		}
		if err != nil || port != otherPort {
			continue
		}
		if own == nil {
			own, _ = net.DefaultResolver.LookupHost(ctx, host) // an error: none is in common
		}
		found, _ := net.DefaultResolver.LookupHost(ctx, other)
		if slices.ContainsFunc(found, func(a string) bool { return slices.Contains(own, a) }) {
			return true
		}
	}
	return false
}

// learn takes the members that a coordinator names, and reports whether it belongs to the
// same cluster. A coordinator that hears no leader may name former members. Their addresses are
// learnt only if the coordinator was asked at its own address: a user who gives the address of a
// proxy wants no request to go round it. If a given address has TLS without certificates of the
// cluster, nothing is learnt either, since requests to a learnt address would not be encrypted.
// The lock is held.
func (p *places) learn(c *protocol.Cluster, direct bool) bool {
	if c.ID == "" || p.cluster != "" && c.ID != p.cluster {
		return false
	}
	if p.cluster = c.ID; len(c.Coordinators) == 0 || c.Leader == "" && len(p.members) > 0 {
		return true
	}
	encrypted := p.source == nil && slices.ContainsFunc(p.given, func(s string) bool {
		return strings.HasPrefix(s, "https://")
	})
	p.members = nil
	if direct {
		p.learnt = nil
	}
	for _, m := range c.Coordinators {
		if protocol.CheckReachable(m.HTTP) != nil || len(p.members) == maxLearnt {
			continue
		}
		p.members = append(p.members, m)
		given := slices.ContainsFunc(p.given, func(s string) bool { return protocol.SamePlace(p.address(s), m.HTTP) })
		if direct && !given && !encrypted {
			p.learnt = append(p.learnt, (&url.URL{Scheme: p.source.URLScheme(), Host: m.HTTP}).String())
		}
	}
	return true
}

// failed notes that a try at an address failed. Another one is tried first from now on.
func (p *places) failed(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == server {
		p.current = ""
	}
	if p.given[p.first] == server {
		p.first = (p.first + 1) % len(p.given)
	}
}

// turn is one round of tries, at each address at most once.
type turn struct {
	p     *places
	left  []string
	tried []string
	last  bool // true once left has the learnt addresses
}

func (p *places) turn() *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &turn{p: p}
	if p.current != "" {
		t.left = append(t.left, p.current)
	}
	t.left = append(append(t.left, p.given[p.first:]...), p.given[:p.first]...)
	return t
}

// next returns the address to try now. ok is false if all were tried.
func (t *turn) next(ctx context.Context) (server string, ok bool) {
	if len(t.left) == 0 && !t.last {
		t.last, t.left = true, t.p.confirmed(ctx, t.tried)
	}
	if len(t.left) == 0 {
		return "", false
	}
	server, t.left = t.left[0], t.left[1:]
	t.tried = append(t.tried, server)
	return server, true
}

// confirmed asks the coordinators at the learnt addresses for their cluster, all at once,
// except those tried. It returns the addresses of the right cluster, once a coordinator
// hears a leader or all have answered.
func (p *places) confirmed(ctx context.Context, tried []string) (list []string) {
	ctx, cancel := context.WithTimeout(ctx, protocol.Survey)
	defer cancel()
	p.mu.Lock()
	ask := slices.DeleteFunc(slices.Clone(p.learnt), func(s string) bool { return slices.Contains(tried, s) })
	p.mu.Unlock()
	type answer struct {
		server  string
		cluster *protocol.Cluster // nil: there was no answer
	}
	answers := make(chan answer, len(ask))
	for _, server := range ask {
		go func() {
			c := new(protocol.Cluster)
			if p.askOnce(ctx, server, protocol.ClusterLocal, c) != nil {
				c = nil
			}
			answers <- answer{server, c}
		}()
	}
	for range ask { // wait for all, so that no goroutine is left
		a := <-answers
		if a.cluster == nil {
			continue
		}
		p.mu.Lock()
		if p.learn(a.cluster, true) {
			list = append(list, a.server)
		}
		p.mu.Unlock()
		if len(list) > 0 && a.cluster.Leader != "" {
			cancel()
		}
	}
	return list
}

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
		first = append(first, Report{Address: c.places.address(server)})
	}
	c.places.askAll(ctx, first)
	c.places.mu.Lock()
	cluster, known := c.places.cluster, slices.Clone(c.places.members)
	c.places.mu.Unlock()
	more := others(first, known)
	c.places.askAll(ctx, more)
	for i := range more {
		if r := &more[i]; r.Self != nil && cluster != "" && r.Self.Cluster != cluster {
			r.Self, r.Local, r.Err = nil, nil, fmt.Errorf("coordinator %s of cluster %s answers at this address, but this "+
				"command asks cluster %s", r.ID, r.Self.Cluster, cluster)
		}
	}
	return merged(append(first, more...), known)
}

// askAll fills in reports with an address.
func (p *prober) askAll(ctx context.Context, list []Report) {
	var asking sync.WaitGroup
	for i := range list {
		asking.Go(func() {
			r := &list[i]
			ctx, cancel := context.WithTimeoutCause(ctx, protocol.Survey, silent{protocol.Survey})
			defer cancel()
			server := r.Address
			if !strings.Contains(server, "://") {
				server = p.source.URLScheme() + "://" + server
			}
			var self protocol.Self
			if r.Err = p.askOnce(ctx, server, "/v1/self", &self); r.Err != nil {
				return
			}
			r.ID, r.Self = self.ID, &self
			var local protocol.Cluster
			if p.askOnce(ctx, server, protocol.ClusterLocal, &local) == nil {
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

// merged leaves out a coordinator that has answered at another address already. It gives
// coordinators that did not answer the ids by which others know them, or knew them before.
func merged(list []Report, known []protocol.MemberEntry) (kept []Report) {
	seen := make(map[string]bool)
	ids := make(map[string]string) // by address
	for _, m := range known {
		ids[m.HTTP] = m.ID
	}
	for _, r := range list {
		if r.Self != nil && seen[r.ID] {
			continue
		}
		seen[r.ID] = r.Self != nil
		kept = append(kept, r)
		for _, m := range r.names() {
			ids[m.HTTP] = m.ID
		}
	}
	for i := range kept {
		kept[i].ID = cmp.Or(kept[i].ID, ids[kept[i].Address])
	}
	return kept
}
