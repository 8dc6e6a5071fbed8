package coordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
)

// roster is who the coordinators are and where, as this one knows. Who they are,
// Raft's log says; where, the Member entries in it. --peers begins a cluster and
// after that moves one: an address there that was not there at an earlier start
// holds until the log says otherwise.
type roster struct {
	self  protocol.MemberEntry
	given map[string]protocol.MemberEntry // by --peers, the others only
	kept  keptMembers                     // as they were when this process started
	store atomic.Pointer[store.Store]     // nil until it is open
}

// keptMembers is what the files MEMBERS and MEMBERS.copy of a coordinator's folder say.
type keptMembers struct {
	Format  int                    `json:"format"`
	Members []protocol.MemberEntry `json:"members"`
	// Given has the addresses of --peers that the log has taken note of.
	Given map[string]string `json:"given,omitempty"`
	// External is the NATS of the cluster that was joined, where it is not the
	// coordinators' own.
	External string `json:"external_nats,omitempty"`
	// Used is true if the folder had a list of members that is damaged.
	Used bool `json:"-"`
}

const (
	membersFormat = 2
	maxMembers    = 1 << 20 // bytes of the file
)

// The files that keep the members: a checksum on the first line, then JSON. The second is for
// when the first is damaged.
const (
	membersName = "MEMBERS"
	membersCopy = "MEMBERS.copy"
)

// readMembers reads what a folder keeps; a folder without the files has nothing. Of two files
// the first counts that is whole; damaged says what is wrong with the other. If neither is
// whole the log will tell who the members are: that there is one is all that is known.
func readMembers(dir string) (k keptMembers, damaged, err error) {
	missing := true
	for _, name := range []string{membersName, membersCopy} {
		k, err := readMembersFile(filepath.Join(dir, name))
		switch {
		case err == nil:
			return k, damaged, nil
		case errors.Is(err, store.ErrCorrupt):
			damaged, missing = errors.Join(damaged, err), false
		case !errors.Is(err, fs.ErrNotExist):
			return k, nil, err
		}
	}
	return keptMembers{Format: membersFormat, Used: !missing}, damaged, nil
}

// readMembersFile reads one of the files. The error of a damaged one wraps store.ErrCorrupt.
func readMembersFile(path string) (k keptMembers, err error) {
	corrupt := func(why string) error { return fmt.Errorf("%s: %w: %s", path, store.ErrCorrupt, why) }
	info, err := os.Stat(path)
	if err != nil {
		return k, err
	}
	if info.Size() > maxMembers {
		return k, corrupt(fmt.Sprintf("the file has %d bytes, want at most %d", info.Size(), maxMembers))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	sum, text, _ := strings.Cut(string(b), "\n")
	if sum != membersSum(text) {
		return k, corrupt("the checksum does not match the file")
	}
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return k, corrupt(err.Error())
	}
	if k.Format != membersFormat {
		return k, fmt.Errorf("%s: the file has format %d, but this version reads format %d", path, k.Format, membersFormat)
	}
	return k, nil
}

func membersSum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// write writes both files, each whole or not at all.
func (k *keptMembers) write(dir string) error {
	b, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	text := string(b) + "\n"
	text = membersSum(text) + "\n" + text
	return errors.Join(files.Replace(filepath.Join(dir, membersName), []byte(text), 0o600), files.Replace(filepath.Join(dir, membersCopy), []byte(text), 0o600))
}

// setAsideMembers keeps the damaged files of a folder for people.
func setAsideMembers(dir string) error {
	for _, name := range []string{membersName, membersCopy} {
		path := filepath.Join(dir, name)
		if _, err := readMembersFile(path); !errors.Is(err, store.ErrCorrupt) {
			continue
		}
		if err := os.Rename(path, path+".corrupt"); err != nil {
			return err
		}
	}
	return nil
}

func (k *keptMembers) find(id string) (protocol.MemberEntry, bool) {
	for _, m := range k.Members {
		if m.ID == id {
			return m, true
		}
	}
	return protocol.MemberEntry{}, false
}

// newRoster makes the roster of a coordinator whose folder has kept members.
func newRoster(c *Config, kept keptMembers) *roster {
	r := &roster{self: c.entry(), given: make(map[string]protocol.MemberEntry), kept: kept}
	for _, p := range c.Peers {
		if p.ID == c.ID {
			continue
		}
		r.given[p.ID] = c.entryOf(p)
	}
	return r
}

// entryOf describes a coordinator that is where --peers says.
func (c *Config) entryOf(p Peer) protocol.MemberEntry {
	m := protocol.MemberEntry{ID: p.ID, HTTP: p.addr(0), Raft: p.addr(1), NATS: "nats://" + p.addr(2), Version: version.String}
	if c.NATS == "" {
		m.Routes = p.addr(3)
	}
	return m
}

// entry describes this coordinator.
func (c *Config) entry() protocol.MemberEntry {
	if p, err := c.self(); err == nil && c.Proxied {
		return c.entryOf(p)
	}
	m := protocol.MemberEntry{
		ID: c.ID, HTTP: c.reached(c.HTTPAddr), Raft: c.reached(c.RaftAddr), NATS: "nats://" + c.reached(c.NATSAddr), Version: version.String,
	}
	if c.NATS == "" {
		m.Routes = c.reached(c.RouteAddr)
	}
	return m
}

// reached returns where the others reach an address that this coordinator listens
// on: of all interfaces, at the host that --peers gives.
func (c *Config) reached(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "" && !net.ParseIP(host).IsUnspecified() {
		return addr
	}
	for _, p := range c.Peers {
		if p.ID == c.ID {
			return net.JoinHostPort(p.Host, port)
		}
	}
	return addr
}

// committed returns what the log says of a coordinator, or said when the folder
// was last used.
func (r *roster) committed(id string) (protocol.MemberEntry, bool) {
	if s := r.store.Load(); s != nil {
		if m, ok := s.State().Member(id); ok {
			return m, true
		}
	}
	return r.kept.find(id)
}

// find returns a coordinator's addresses.
func (r *roster) find(id string) (protocol.MemberEntry, bool) {
	if id == r.self.ID {
		return r.self, true
	}
	m, known := r.committed(id)
	g, given := r.given[id]
	switch {
	case !known:
		return g, given
	case given && r.moves(g, m):
		g.Version = m.Version
		return g, true
	case m.Routes == "" && given: // recorded by a version that knew of none
		m.Routes = g.Routes
	}
	return m, true
}

// founded takes note of where the founders of a cluster said that they are, at its beginning:
// --peers has only their HTTP addresses. Where Raft is, the folder knows as well.
func (r *roster) founded(founders []store.Server, said []protocol.MemberEntry) {
	for i := range r.kept.Members {
		m := &r.kept.Members[i]
		at := slices.IndexFunc(founders, func(f store.Server) bool { return f.ID == m.ID })
		if g, ok := r.given[m.ID]; ok && at >= 0 && r.kept.Given[m.ID] == "" {
			m.Raft = founders[at].RaftAddr
			r.took(g)
		}
	}
	for _, m := range said {
		if !slices.ContainsFunc(founders, func(f store.Server) bool { return f.ID == m.ID }) {
			continue
		}
		r.kept.Members = slices.DeleteFunc(r.kept.Members, func(k protocol.MemberEntry) bool { return k.ID == m.ID })
		r.kept.Members = append(r.kept.Members, m)
		if g, ok := r.given[m.ID]; ok {
			r.took(g)
		}
	}
}

// took notes that an address of --peers is taken account of.
func (r *roster) took(given protocol.MemberEntry) {
	if r.kept.Given == nil {
		r.kept.Given = make(map[string]string)
	}
	r.kept.Given[given.ID] = given.HTTP
}

// moves reports whether --peers is newer than what the log says: it was not given
// at an earlier start, and the log says what it said before this one.
func (r *roster) moves(given, committed protocol.MemberEntry) bool {
	old, had := r.kept.find(given.ID)
	return r.kept.Given[given.ID] != given.HTTP && had && old == committed
}

// known lists the coordinators by id: the members, and until the log has a list,
// those given and those of the folder's last use.
func (r *roster) known() []protocol.MemberEntry {
	ids := make(map[string]bool)
	if s := r.store.Load(); s != nil {
		for _, m := range s.Members() {
			ids[m.ID] = true
		}
	}
	if len(ids) == 0 {
		ids = r.initial()
	}
	var list []protocol.MemberEntry
	for id := range ids {
		if m, ok := r.find(id); ok {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b protocol.MemberEntry) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// initial returns who the coordinators are as far as can be told without the log:
// a peer that the log took note of and that is no member any more was removed.
func (r *roster) initial() map[string]bool {
	ids := map[string]bool{r.self.ID: true}
	for _, m := range r.kept.Members {
		ids[m.ID] = true
	}
	for id, g := range r.given {
		if r.kept.Given[id] != g.HTTP {
			ids[id] = true
		}
	}
	return ids
}

// keep returns what the folder should keep now.
func (r *roster) keep(s *store.Store) keptMembers {
	k := keptMembers{Format: membersFormat, External: r.kept.External, Given: make(map[string]string)}
	for id, address := range r.kept.Given {
		k.Given[id] = address
	}
	k.Members = append(k.Members, s.State().Members()...)
	for id, g := range r.given { // of these members: the state may know one more by now
		if m, ok := k.find(id); ok && !r.moves(g, m) || ok && m.HTTP == g.HTTP {
			k.Given[id] = g.HTTP
		}
	}
	if len(k.Members) == 0 {
		k.Members = r.kept.Members
	}
	return k
}

// raft returns where Raft of a coordinator is, empty where that is not known.
func (r *roster) raft(id string) string {
	m, _ := r.find(id)
	return m.Raft
}
