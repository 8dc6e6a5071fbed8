package coordinator

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/coordinator/store"
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
