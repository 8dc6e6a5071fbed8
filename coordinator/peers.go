package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrDuplicate ends a coordinator if another process runs with a copy of its folder.
var ErrDuplicate = errors.New("this coordinator already runs elsewhere")

const (
	joinWithin = 30 * time.Second // in which a coordinator must answer to --join-cluster
	joinPause  = 250 * time.Millisecond
	// joinLogEvery is the time between two log lines while no coordinator answers.
	joinLogEvery = 10 * time.Second
	// votersTimeout bounds the questions to the other voters while somebody waits for
	// /readyz.
	votersTimeout = 500 * time.Millisecond
)

// joined is what a member of a cluster says to a coordinator that joins.
type joined struct {
	protocol.Self
	members []protocol.MemberEntry
}

// joinCluster asks the coordinators of Config.Join until one answers.
func joinCluster(ctx context.Context, c *settings) (*joined, error) {
	ctx, cancel := context.WithTimeout(ctx, joinWithin)
	defer cancel()
	var last error
	var logged time.Time
	for ctx.Err() == nil {
		for _, address := range c.Join {
			j, err := c.asker.join(ctx, address)
			switch {
			case err == nil:
				return j, c.mayJoin(address, j)
			case errors.Is(err, ErrRemoved):
				return nil, fmt.Errorf("%w; its certificate was revoked with the removal: issue another one with coppice certs node", err)
			}
			last = err
		}
		if time.Since(logged) >= joinLogEvery {
			logged = time.Now()
			c.Log.Warn("no coordinator of --join-cluster answers; this coordinator keeps asking", "error", last)
		}
		wait.For(ctx, joinPause)
	}
	return nil, fmt.Errorf("no coordinator answers at %s: %w", strings.Join(c.Join, ", "), errors.Join(last, context.Cause(ctx)))
}

// join asks a coordinator for its cluster.
func (k *asker) join(ctx context.Context, address string) (*joined, error) {
	self, err := k.askSelf(ctx, address)
	if err != nil {
		return nil, err
	}
	var c protocol.Cluster
	if err := k.ask(ctx, address, "/v1/cluster", &c); err != nil {
		return nil, err
	}
	if len(c.Coordinators) == 0 {
		return nil, fmt.Errorf("%s: the cluster has not started yet", address)
	}
	return &joined{Self: self, members: c.Coordinators}, nil
}

// mayJoin refuses to join a cluster that would not accept this coordinator. If the
// cluster already has a member with this id at the same address, this coordinator has
// lost its folder: the leader will replace the old member.
func (c *Config) mayJoin(address string, j *joined) error {
	if j.Protocol != protocol.Version || j.Numerics != round.Numerics {
		return fmt.Errorf("the cluster at %s (%s) has protocol version %d and arithmetic version %d; this coordinator (%s) has %d and %d",
			address, j.Version, j.Protocol, j.Numerics, version.String, protocol.Version, round.Numerics)
	}
	// Answers have whole milliseconds.
	if h := time.Duration(j.Heartbeat) * time.Millisecond; h != c.Heartbeat.Truncate(time.Millisecond) {
		return fmt.Errorf("%w: the cluster at %s has a heartbeat of %v; start with --heartbeat %v", ErrUsage, address, h, h)
	}
	for _, m := range j.members {
		if m.ID == c.ID && m.HTTP != c.entry().HTTP {
			return fmt.Errorf("%w: the cluster at %s already has a coordinator %s, at %s; take another --id, or remove that coordinator first: coppice cluster remove %s",
				ErrUsage, address, c.ID, m.HTTP, c.ID)
		}
	}
	return nil
}

// peers asks the other coordinators, and remembers the addresses that their answers
// have.
type peers struct {
	cfg       *settings
	book      *addressBook
	clusterID string // of this cluster; startup.decide sets it before other goroutines use it

	mu        sync.Mutex                      // guards both maps; their keys are ids
	addresses map[string]string               // HTTP addresses, as other coordinators gave them
	described map[string]protocol.MemberEntry // what each coordinator said of itself last
}

func newPeers(cfg *settings, b *addressBook) *peers {
	return &peers{cfg: cfg, book: b, addresses: make(map[string]string), described: make(map[string]protocol.MemberEntry)}
}

// ask asks a coordinator about its Raft folder: see store.Config.Ask. It tries the
// address that others gave, and then the address in the book. The error names the
// coordinator and the latter.
func (p *peers) ask(ctx context.Context, id string) (a store.Answer, err error) {
	var addresses []string
	if m, ok := p.book.find(id); ok && m.HTTP != "" {
		addresses = append(addresses, m.HTTP)
	}
	p.mu.Lock()
	if told := p.addresses[id]; told != "" && !slices.Contains(addresses, told) {
		addresses = append(addresses, told)
	}
	p.mu.Unlock()
	if len(addresses) == 0 {
		return a, fmt.Errorf("the address of coordinator %s is not known", id)
	}
	for _, address := range slices.Backward(addresses) {
		if a, err = p.askAt(ctx, id, address); err == nil {
			return a, nil
		}
		err = fmt.Errorf("%s (%s): %w", id, address, cause(err))
	}
	return store.Answer{}, err
}

func (p *peers) askAt(ctx context.Context, id, address string) (a store.Answer, err error) {
	s, err := p.cfg.asker.askSelf(ctx, address)
	if err != nil {
		return a, err
	}
	if s.ID != id {
		return a, fmt.Errorf("coordinator %s answers at this address", s.ID)
	}
	if s.Protocol != protocol.Version || s.Numerics != round.Numerics {
		return a, fmt.Errorf("the coordinator there (%s) has protocol version %d and arithmetic version %d; this coordinator has %d and %d", s.Version, s.Protocol, s.Numerics, protocol.Version, round.Numerics)
	}
	a = store.Answer{
		Phase: store.Phase(s.Phase), ID: s.ID, Directory: s.Directory, Cluster: s.Cluster, Seeded: s.Seeded, RaftAddr: s.Raft,
		Peers: s.Peers, Heartbeat: time.Duration(s.Heartbeat) * time.Millisecond, Term: s.Term, Last: s.Last,
	}
	for _, f := range s.Founders {
		a.Founders = append(a.Founders, store.Server(f))
	}
	for _, m := range s.Servers {
		a.Members = append(a.Members, store.Server(m))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.described[id] = s.MemberEntry
	for _, m := range s.Voters {
		a.Voters = append(a.Voters, m.ID)
		p.addresses[m.ID] = m.HTTP
	}
	return a, nil
}

// answer returns what this coordinator says of itself before Raft runs; a is what its
// Raft folder says.
func (p *peers) answer(a store.Answer) protocol.Self {
	s := protocol.Self{
		MemberEntry: p.book.self, Cluster: a.Cluster, Process: p.cfg.process,
		Protocol: protocol.Version, Numerics: round.Numerics, Heartbeat: int(p.cfg.Heartbeat / time.Millisecond),
		External: p.cfg.NATS, Contact: -1,
		Term: a.Term, Last: a.Last, Phase: string(a.Phase), Directory: a.Directory, Seeded: a.Seeded, Peers: a.Peers,
	}
	for _, f := range a.Founders {
		s.Founders = append(s.Founders, protocol.RaftServer(f))
	}
	for _, m := range a.Members {
		s.Servers = append(s.Servers, protocol.RaftServer(m))
	}
	for _, id := range a.Voters {
		m, _ := p.book.find(id)
		m.ID = id
		s.Voters = append(s.Voters, m)
	}
	return s
}

// entries lists what coordinators said of themselves.
func (p *peers) entries() []protocol.MemberEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.described))
}

// checkDuplicate returns an error if another process runs with a copy of this
// coordinator's folder: one voter would vote twice. It asks at the addresses of this
// coordinator in its folder and in the answers of the others.
func (p *peers) checkDuplicate(ctx context.Context, directory string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	self := p.book.self
	var at []string
	if m, ok := p.book.kept.Load().find(self.ID); ok {
		at = append(at, m.HTTP)
	}
	others := p.book.others()
	clusters := make([]protocol.Cluster, len(others))
	var asking sync.WaitGroup
	for k, m := range others {
		asking.Go(func() { _ = p.cfg.asker.ask(ctx, m.HTTP, protocol.ClusterLocal, &clusters[k]) }) // after an error it is empty
	}
	asking.Wait()
	for _, c := range clusters {
		for _, one := range c.Coordinators {
			if one.ID == self.ID && c.ID == p.clusterID {
				at = append(at, one.HTTP)
			}
		}
	}
	slices.Sort(at)
	for _, address := range slices.Compact(at) {
		if address == self.HTTP || address == "" {
			continue
		}
		other, err := p.cfg.asker.askSelf(ctx, address)
		same := other.ID == self.ID && other.Cluster == p.clusterID && other.Directory == directory
		if err == nil && same && other.Process != p.cfg.process {
			return fmt.Errorf("%w: coordinator %s of cluster %s already runs at %s with a copy of the folder %s: stop one of the two processes, or start this one with an empty folder and another --id",
				ErrDuplicate, self.ID, p.clusterID, address, p.cfg.Dir)
		}
	}
	return nil
}

// removedBy asks the other coordinators whether this one was removed, and returns the
// coordinator that says so, or "". It believes a coordinator that has revoked its certificate because of
// the removal. It also believes a leader of this cluster that a quorum obeys,
// with at least the given epoch. That leader says so if its members do not include this
// coordinator with its current folder.
func (p *peers) removedBy(ctx context.Context, directory string, epoch uint64) string {
	for _, m := range p.book.others() {
		if ctx.Err() != nil {
			return ""
		}
		var list protocol.Members
		err := p.cfg.asker.ask(ctx, m.HTTP, "/v1/members", &list)
		if errors.Is(err, ErrRemoved) {
			return m.ID
		}
		if err != nil || list.Cluster != p.clusterID || list.Leader == "" || len(list.Members) == 0 {
			continue
		}
		var c protocol.Cluster
		if err := p.cfg.asker.ask(ctx, m.HTTP, "/v1/cluster", &c); err != nil || c.Leader == "" || c.Epoch < epoch {
			continue
		}
		if slices.ContainsFunc(list.Members, func(m protocol.Member) bool { return m.ID == p.book.self.ID && m.Directory == directory }) {
			return ""
		}
		return list.Leader
	}
	return ""
}

// applied asks the leader up to which index it has applied the log. It returns false if
// the leader does not answer.
func (p *peers) applied(ctx context.Context, leader string) (index uint64, ok bool) {
	m, found := p.book.find(leader)
	if !found {
		return 0, false
	}
	var list protocol.Members
	err := p.cfg.asker.ask(ctx, m.HTTP, "/v1/members", &list)
	return list.Applied, err == nil && list.Cluster == p.clusterID && list.Leader != ""
}

// ready returns a voter that says it is ready to lead, or "". It asks first, and then
// all voters at once. query is added to the question.
func (p *peers) ready(ctx context.Context, first, query string) string {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.timeouts.RaftExchange)
	defer cancel()
	isReady := func(id string) bool {
		m, ok := p.book.find(id)
		if !ok {
			return false
		}
		response, err := p.cfg.asker.get(ctx, m.HTTP, "/readyz"+query)
		if err != nil {
			return false
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4096))
		return response.StatusCode == http.StatusOK
	}
	if isReady(first) {
		return first
	}
	var asking sync.WaitGroup
	var once sync.Once
	var found string
	voters, _ := p.book.voters()
	for _, id := range voters {
		asking.Go(func() {
			if isReady(id) {
				once.Do(func() {
					found = id
					cancel() // the other questions
				})
			}
		})
	}
	asking.Wait()
	return found
}

// silent asks the other voters, all at once, whether they are there. It returns for
// each what is wrong, or "". members are the current members.
func (p *peers) silent(ctx context.Context, members []store.Member) []string {
	ctx, cancel := context.WithTimeout(ctx, votersTimeout)
	defer cancel()
	voters, _ := p.book.voters()
	silent := make([]string, len(voters))
	var asking sync.WaitGroup
	for i, id := range voters {
		asking.Go(func() {
			a, err := p.ask(ctx, id)
			switch {
			case err != nil:
			case a.Directory == "":
				err = fmt.Errorf("%s is starting", id)
			case a.Cluster != p.clusterID:
				err = fmt.Errorf("%s is a member of cluster %s, this cluster is %s", id, cmp.Or(a.Cluster, "none"), p.clusterID)
			case !slices.ContainsFunc(members, func(m store.Member) bool { return m.ID == a.ID && m.Directory == a.Directory }):
				err = fmt.Errorf("%s has a new folder (directory id %s) and no vote yet", id, a.Directory)
			}
			if err != nil {
				silent[i] = strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), fmt.Sprintf("no answer in %v", votersTimeout))
			}
		})
	}
	asking.Wait()
	return silent
}
