package client

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// learnEvery is the least time between two questions for the coordinators of a cluster
	// that answers.
	learnEvery = 10 * time.Second
	// askAgain is that time where the last one had no answer.
	askAgain = time.Second
	// maxLearnt bounds the addresses that are learnt.
	maxLearnt = 16
)

// places are where a client finds the coordinators of its cluster: at the addresses that
// it was given, and at those that a coordinator there told. The former are always tried
// first. The latter are tried only where a coordinator says that it is of the cluster with
// the same id: an address may be another cluster's by now, or not reachable from here.
type places struct {
	given []string // "http://host:port"

	mu      sync.Mutex
	first   int                    // index in given of the one to try first
	current string                 // the learnt address that answered last
	cluster string                 // id, once a coordinator has told it
	members []protocol.MemberEntry // as that cluster told last
	learnt  []string               // where those are that are not given

	asked  time.Time // when a coordinator was asked for the others last
	asking bool
	ctx    context.Context // of the questions
	end    context.CancelFunc
	open   sync.WaitGroup
}

func newPlaces(given []string) *places {
	p := &places{given: given}
	p.ctx, p.end = context.WithCancel(context.Background())
	return p
}

// close ends what the places do in the background.
func (p *places) close() {
	p.mu.Lock()
	p.end()
	p.mu.Unlock()
	p.open.Wait()
}

// all lists every address, those that were given first.
func (p *places) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.given), p.learnt...)
}

// known returns the id of the cluster and its coordinators, as one of them told last.
func (p *places) known() (cluster string, members []protocol.MemberEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cluster, slices.Clone(p.members)
}

// heard notes that a coordinator has said something, and has it asked for the others now
// and then, in the background.
func (p *places) heard(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking || p.ctx.Err() != nil || time.Since(p.asked) < learnEvery && !p.asked.IsZero() {
		return
	}
	p.asking = true
	p.open.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, protocol.Survey)
		defer cancel()
		var c protocol.Cluster
		err := askOnce(ctx, server, protocol.ClusterLocal, &c)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asking, p.asked = false, time.Now()
		if err != nil {
			p.asked = p.asked.Add(askAgain - learnEvery)
			return
		}
		p.take(&c)
	})
}

// take learns of the coordinators that one names, with p.mu held, and reports whether it is
// of the same cluster. A coordinator that hears no leader may name former members.
func (p *places) take(c *protocol.Cluster) bool {
	if c.ID == "" || p.cluster != "" && c.ID != p.cluster {
		return false
	}
	if p.cluster = c.ID; len(c.Coordinators) == 0 || c.Leader == "" && len(p.members) > 0 {
		return true
	}
	p.members, p.learnt = nil, nil
	for _, m := range c.Coordinators {
		if protocol.CheckReachable(m.HTTP) != nil || len(p.members) == maxLearnt {
			continue
		}
		p.members = append(p.members, m)
		given := slices.ContainsFunc(p.given, func(s string) bool { return protocol.SamePlace(bare(s), m.HTTP) })
		if !given && !p.encrypted() {
			p.learnt = append(p.learnt, (&url.URL{Scheme: "http", Host: m.HTTP}).String())
		}
	}
	return true
}

// encrypted reports whether an address that was given has TLS. Then nothing is sent to those
// that are learnt, where it would go in the clear.
func (p *places) encrypted() bool {
	return slices.ContainsFunc(p.given, func(s string) bool { return strings.HasPrefix(s, "https://") })
}

// answered notes that a request was answered at an address, which is tried first from now
// on.
func (p *places) answered(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = server
	if i := slices.Index(p.given, server); i >= 0 {
		p.first, p.current = i, ""
	}
}

// failed notes that a try at an address had no success.
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
	last  bool // left has those that were learnt, or had
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

// next returns the address to try now; false: every one was tried.
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

// confirmed asks the coordinators at the learnt addresses, all at once, for their cluster. It
// returns the addresses of the right cluster, once a coordinator hears a leader or all have
// answered.
func (p *places) confirmed(ctx context.Context, but []string) (list []string) {
	ctx, cancel := context.WithTimeout(ctx, protocol.Survey)
	defer cancel()
	p.mu.Lock()
	ask := slices.DeleteFunc(slices.Clone(p.learnt), func(s string) bool { return slices.Contains(but, s) })
	p.mu.Unlock()
	type said struct {
		server  string
		cluster *protocol.Cluster
	}
	answers := make(chan said, len(ask))
	for _, server := range ask {
		go func() {
			c := new(protocol.Cluster)
			if askOnce(ctx, server, protocol.ClusterLocal, c) != nil {
				c = nil
			}
			answers <- said{server, c}
		}()
	}
	for range ask { // all, so that no goroutine is left
		a := <-answers
		if a.cluster == nil {
			continue
		}
		p.mu.Lock()
		if p.take(a.cluster) {
			list = append(list, a.server)
		}
		p.mu.Unlock()
		if len(list) > 0 && a.cluster.Leader != "" {
			cancel()
		}
	}
	return list
}
