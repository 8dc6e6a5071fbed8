package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/store"
)

// peers asks other coordinators how they are: see store.Config.Ask.
type peers struct {
	roster *roster

	mu      sync.Mutex
	cluster string
	certain bool              // of the cluster's name: it is no guess by --peers
	told    map[string]string // HTTP addresses, by others, by id
}

func newPeers(r *roster, cluster string, certain bool) *peers {
	return &peers{roster: r, cluster: cluster, certain: certain, told: make(map[string]string)}
}

// name returns the cluster's name, which a coordinator whose folder is empty has
// from the others where they have a log.
func (p *peers) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cluster
}

// ask asks one coordinator, where others say that it is or else where this one takes
// it to be. The error names it and its address.
func (p *peers) ask(ctx context.Context, id string) (a store.Answer, err error) {
	addresses := p.addresses(id)
	if len(addresses) == 0 {
		return a, fmt.Errorf("%s: its address is not known", id)
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
		return a, fmt.Errorf("there is coordinator %s", s.ID)
	}
	if err := p.agree(store.Phase(s.Phase), s.Cluster); err != nil {
		return a, err
	}
	a = store.Answer{Phase: store.Phase(s.Phase), Mark: s.Mark, Founders: s.Founders, Term: s.Term, Last: s.Last, Leads: s.Leads}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range s.Voters {
		a.Voters = append(a.Voters, m.ID)
		p.told[m.ID] = m.HTTP
	}
	return a, nil
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

// agree refuses a coordinator of another cluster. Where this one only guesses its
// cluster's name, one that has a log knows better: the cluster may have been restored
// or have moved.
func (p *peers) agree(phase store.Phase, cluster string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	hasLog := phase == store.PhaseMember || phase == store.PhaseRecovering
	switch {
	case cluster == p.cluster:
		p.certain = p.certain || hasLog
		return nil
	case !p.certain && hasLog:
		p.cluster, p.certain = cluster, true
		return nil
	case phase == store.PhaseNew, phase == store.PhaseBegun:
		return fmt.Errorf("it begins cluster %s, this is %s: give each coordinator the same --peers", cluster, p.cluster)
	}
	return fmt.Errorf("it is of cluster %s, this is %s", cluster, p.cluster)
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
