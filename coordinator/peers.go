package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// peers asks other coordinators how they are: see store.Config.Ask.
type peers struct {
	roster *roster

	mu    sync.Mutex
	told  map[string]string               // HTTP addresses, by others, by id
	selfs map[string]protocol.MemberEntry // what each said of itself last
}

func newPeers(r *roster) *peers {
	return &peers{roster: r, told: make(map[string]string), selfs: make(map[string]protocol.MemberEntry)}
}

// ask asks one coordinator, where others say that it is or else where this one takes
// it to be. The error names it and its address.
func (p *peers) ask(ctx context.Context, id string) (a store.Answer, err error) {
	addresses := p.addresses(id)
	if len(addresses) == 0 {
		return a, fmt.Errorf("the address of coordinator %s is not known", id)
	}
	for _, address := range slices.Backward(addresses) { // the error is that of the first
		if a, err = p.askAt(ctx, id, address); err == nil {
			return a, nil
		}
		err = fmt.Errorf("%s (%s): %w", id, address, cause(err))
	}
	return store.Answer{}, err
}

func (p *peers) askAt(ctx context.Context, id, address string) (a store.Answer, err error) {
	s, err := askSelf(ctx, address)
	if err != nil {
		return a, err
	}
	if s.ID != id {
		return a, fmt.Errorf("coordinator %s answers at this address", s.ID)
	}
	if s.Protocol != protocol.Version || s.Numerics != round.Numerics {
		return a, fmt.Errorf("the coordinator there (%s) has protocol version %d and arithmetic version %d; this coordinator has %d and %d", s.Version, s.Protocol, s.Numerics, protocol.Version, round.Numerics)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selfs[id] = s.MemberEntry
	for _, m := range s.Voters {
		p.told[m.ID] = m.HTTP
	}
	return answerOf(&s), nil
}

// answerOf is what a coordinator said of itself as the store takes it.
func answerOf(s *protocol.Self) store.Answer {
	a := store.Answer{
		Phase: store.Phase(s.Phase), ID: s.ID, Directory: s.Directory, Cluster: s.Cluster, Seeded: s.Seeded, RaftAddr: s.Raft,
		Peers: s.Peers, Heartbeat: time.Duration(s.Heartbeat) * time.Millisecond, Term: s.Term, Last: s.Last,
	}
	for _, f := range s.Founders {
		a.Founders = append(a.Founders, store.Server(f))
	}
	for _, m := range s.Servers {
		a.Members = append(a.Members, store.Server(m))
	}
	for _, v := range s.Voters {
		a.Voters = append(a.Voters, v.ID)
	}
	return a
}

// entries lists what coordinators said of themselves.
func (p *peers) entries() []protocol.MemberEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.selfs))
}

func (p *peers) addresses(id string) (list []string) {
	if m, ok := p.roster.find(id); ok && m.HTTP != "" {
		list = append(list, m.HTTP)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.told[id]; a != "" && !slices.Contains(list, a) {
		list = append(list, a)
	}
	return list
}

// cause returns what is behind an error of HTTP, without the address.
func cause(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if o := (*net.OpError)(nil); errors.As(err, &o) {
		err = o.Err
	}
	return err
}
