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
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// addressBook lists the coordinators and their addresses, as this coordinator knows
// them. Raft's configuration in the log says who is a member, and Member entries in the
// log have the address of each member.
//
// Until the log is open, the folder's MEMBERS file and Config.Peers take its place.
// Config.Peers can also move a coordinator: an address there that was not there at an
// earlier start holds until the log has another one.
type addressBook struct {
	self  protocol.MemberEntry
	given map[string]protocol.MemberEntry // the others in Config.Peers, by id
	// kept is MEMBERS as read at the start. Only founded replaces it. The value itself
	// never changes.
	kept  atomic.Pointer[memberFile]
	store atomic.Pointer[store.Store] // nil until the log is open
}

// newAddressBook returns the addresses at the start of a coordinator; its folder has
// kept.
func newAddressBook(c *Config, kept memberFile) *addressBook {
	b := &addressBook{self: c.entry(), given: make(map[string]protocol.MemberEntry)}
	for _, p := range c.Peers {
		if p.ID != c.ID {
			b.given[p.ID] = c.entryOf(p)
		}
	}
	b.kept.Store(&kept)
	if len(kept.Members) == 0 {
		first := kept
		first.Members = b.known()
		b.kept.Store(&first)
	}
	return b
}

// find returns a coordinator's addresses.
func (b *addressBook) find(id string) (protocol.MemberEntry, bool) {
	if id == b.self.ID {
		return b.self, true
	}
	m, known := protocol.MemberEntry{}, false
	if s := b.store.Load(); s != nil {
		m, known = s.State().Member(id)
	}
	if !known {
		m, known = b.kept.Load().find(id)
	}
	g, given := b.given[id]
	switch {
	case !known:
		return g, given
	case given && b.moved(g, m):
		g.Version = m.Version
		return g, true
	case m.Routes == "" && given: // its NATS was external when the entry was written
		m.Routes = g.Routes
	}
	return m, true
}

// moved reports whether an address of Config.Peers is newer than the committed one: no
// earlier start had it, and the committed one has not changed since MEMBERS was written.
func (b *addressBook) moved(given, committed protocol.MemberEntry) bool {
	k := b.kept.Load()
	old, had := k.find(given.ID)
	return k.Given[given.ID] != given.HTTP && had && old == committed
}

// raft returns the Raft address of a coordinator, or "".
func (b *addressBook) raft(id string) string {
	m, _ := b.find(id)
	return m.Raft
}

// known lists the coordinators by id: the members, or, until the log has members, those
// of MEMBERS and Config.Peers.
func (b *addressBook) known() []protocol.MemberEntry {
	ids := make(map[string]bool)
	if s := b.store.Load(); s != nil {
		for _, m := range s.Members() {
			ids[m.ID] = true
		}
	}
	if k := b.kept.Load(); len(ids) == 0 {
		ids[b.self.ID] = true
		for _, m := range k.Members {
			ids[m.ID] = true
		}
		for id, g := range b.given {
			if k.Given[id] != g.HTTP { // if equal, the log had it, and the coordinator was removed since
				ids[id] = true
			}
		}
	}
	var list []protocol.MemberEntry
	for id := range ids {
		if m, ok := b.find(id); ok {
			list = append(list, m)
		}
	}
	sortByID(list)
	return list
}

// others lists the known coordinators other than this one.
func (b *addressBook) others() []protocol.MemberEntry {
	return slices.DeleteFunc(b.known(), func(m protocol.MemberEntry) bool { return m.ID == b.self.ID })
}

// voters lists the other members with a vote, and the rest, which get a vote once they
// have caught up. Both lists are empty until the log is open.
func (b *addressBook) voters() (voters, rest []string) {
	s := b.store.Load()
	if s == nil {
		return nil, nil
	}
	members := s.Members()
	for _, m := range members {
		if m.Voter && m.ID != b.self.ID {
			voters = append(voters, m.ID)
		}
	}
	for _, m := range members {
		if !m.Voter && m.ID != b.self.ID && !slices.Contains(voters, m.ID) {
			rest = append(rest, m.ID)
		}
	}
	return voters, rest
}

// routes lists the URLs at which the NATS servers of the other coordinators accept
// routes.
func (b *addressBook) routes() (urls []string) {
	for _, m := range b.others() {
		if m.Routes != "" {
			urls = append(urls, "nats://"+m.Routes)
		}
	}
	return urls
}

// founded stores the addresses of the founders of a cluster, from its folder and from
// what they said of themselves: Config.Peers has only their HTTP addresses. It is
// called once, before the log is open.
func (b *addressBook) founded(founders []store.Server, said []protocol.MemberEntry) {
	next := *b.kept.Load()
	next.Members = slices.Clone(next.Members)
	next.Given = maps.Clone(next.Given)
	if next.Given == nil {
		next.Given = make(map[string]string)
	}
	for i := range next.Members {
		m := &next.Members[i]
		at := slices.IndexFunc(founders, func(f store.Server) bool { return f.ID == m.ID })
		if g, ok := b.given[m.ID]; ok && at >= 0 && next.Given[m.ID] == "" {
			m.Raft = founders[at].RaftAddr
			next.Given[m.ID] = g.HTTP
		}
	}
	for _, m := range said {
		if !slices.ContainsFunc(founders, func(f store.Server) bool { return f.ID == m.ID }) {
			continue
		}
		next.Members = slices.DeleteFunc(next.Members, func(k protocol.MemberEntry) bool { return k.ID == m.ID })
		next.Members = append(next.Members, m)
		if g, ok := b.given[m.ID]; ok {
			next.Given[m.ID] = g.HTTP
		}
	}
	sortByID(next.Members)
	b.kept.Store(&next)
}

// current returns what MEMBERS should say now.
func (b *addressBook) current(s *store.Store) memberFile {
	kept := b.kept.Load()
	k := memberFile{Format: membersFormat, External: kept.External, Given: make(map[string]string)}
	maps.Copy(k.Given, kept.Given)
	k.Members = append(k.Members, s.State().Members()...)
	for id, g := range b.given { // of these members only: the state may have one more by now
		if m, ok := k.find(id); ok && !b.moved(g, m) || ok && m.HTTP == g.HTTP {
			k.Given[id] = g.HTTP
		}
	}
	if len(k.Members) == 0 {
		k.Members = kept.Members
		return k
	}
	// The leader makes the addresses of members known one after the other, and this coordinator may end in
	// between. Its next start must find all members, so what is known of the others stays.
	list := s.Members()
	for _, m := range kept.Members {
		_, known := k.find(m.ID)
		if !known && slices.ContainsFunc(list, func(one store.Member) bool { return one.ID == m.ID }) {
			k.Members = append(k.Members, m)
		}
	}
	sortByID(k.Members)
	return k
}

// sortByID sorts coordinators by their names.
func sortByID(list []protocol.MemberEntry) {
	slices.SortFunc(list, func(a, b protocol.MemberEntry) int { return strings.Compare(a.ID, b.ID) })
}

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
				return nil,
					fmt.Errorf("%w; its certificate was revoked with the removal: issue another one with coppice certs node", err)
			}
			last = err
		}
		if time.Since(logged) >= joinLogEvery {
			logged = time.Now()
			c.Log.Warn("no coordinator of --join-cluster answers; this coordinator keeps asking", "error", last)
		}
		wait.For(ctx, joinPause)
	}
	return nil, fmt.Errorf("no coordinator answers at %s: %w", strings.Join(c.Join, ", "),
		errors.Join(last, context.Cause(ctx)))
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
		return fmt.Errorf("the cluster at %s (%s) has protocol version %d and arithmetic version %d; this coordinator (%s) "+
			"has %d and %d",
			address, j.Version, j.Protocol, j.Numerics, version.String, protocol.Version, round.Numerics)
	}
	// Answers have whole milliseconds.
	if h := time.Duration(j.Heartbeat) * time.Millisecond; h != c.Heartbeat.Truncate(time.Millisecond) {
		return fmt.Errorf("%w: the cluster at %s has a heartbeat of %v; start with --heartbeat %v", ErrUsage, address, h, h)
	}
	for _, m := range j.members {
		if m.ID == c.ID && m.HTTP != c.entry().HTTP {
			return fmt.Errorf("%w: the cluster at %s already has a coordinator %s, at %s; take another --id, or remove that "+
				"coordinator first: coppice cluster remove %s",
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
		return a, fmt.Errorf("the coordinator there (%s) has protocol version %d and arithmetic version %d; this "+
			"coordinator has %d and %d", s.Version, s.Protocol, s.Numerics, protocol.Version, round.Numerics)
	}
	a = store.Answer{
		Phase: store.Phase(s.Phase), ID: s.ID, Directory: s.Directory, Cluster: s.Cluster, Seeded: s.Seeded, RaftAddr: s.Raft,
		Peers: s.Peers, Heartbeat: time.Duration(s.Heartbeat) * time.Millisecond, Term: s.Term, Last: s.Last,
		Founders: s.Founders, Members: s.Servers,
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
		External: p.cfg.NATS, Condition: protocol.Condition{Contact: -1},
		Term: a.Term, Last: a.Last, Phase: string(a.Phase), Directory: a.Directory, Seeded: a.Seeded, Peers: a.Peers,
		Founders: a.Founders, Servers: a.Members,
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
		// after an error it is empty
		asking.Go(func() { _ = p.cfg.asker.ask(ctx, m.HTTP, protocol.ClusterLocal, &clusters[k]) })
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
			return fmt.Errorf("%w: coordinator %s of cluster %s already runs at %s with a copy of the folder %s: stop one of "+
				"the two processes, or start this one with an empty folder and another --id",
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
		if slices.ContainsFunc(list.Members, func(m protocol.Member) bool {
			return m.ID == p.book.self.ID && m.Directory == directory
		}) {
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
				silent[i] = strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(),
					fmt.Sprintf("no answer in %v", votersTimeout))
			}
		})
	}
	asking.Wait()
	return silent
}
