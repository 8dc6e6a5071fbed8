package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Every connection between two nodes begins with a greeting, before anything of Raft's: the node
// that dials names its cluster, its server ID and the server that it wants to reach. The other
// one answers who it is, and whether it agrees. So neither a node of another cluster nor one
// whose folder was emptied takes part, at any address.
//
//	0           4         5         6         7
//	| "CRG1"    | lengths of cluster, from and to    | cluster, from, to |
//	0           4         5         6         7
//	| "CRG1"    | 1 or 0  | lengths of cluster and id | cluster, id       |
//
// A length is one byte, so each text has at most 255 bytes.
const greetingMagic = "CRG1"

// party is one end of a connection: a cluster and the server ID of Raft in it.
type party struct{ cluster, server string }

func (p party) String() string { return fmt.Sprintf("%s of cluster %s", p.server, p.cluster) }

// Mismatch says that another server than the expected one is at an address, or that a stranger
// dialled this node.
type Mismatch struct {
	Expected party
	Found    party
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("store: the server at this Raft address is %v, want %v", e.Found, e.Expected)
}

// encodeGreeting returns what the node that dials sends.
func encodeGreeting(self party, to string) []byte {
	b := append([]byte(greetingMagic), byte(len(self.cluster)), byte(len(self.server)), byte(len(to)))
	return append(append(append(b, self.cluster...), self.server...), to...)
}

// encodeReply returns what the node that was dialled answers.
func encodeReply(self party, welcome bool) []byte {
	b := append([]byte(greetingMagic), 0, byte(len(self.cluster)), byte(len(self.server)))
	if welcome {
		b[4] = 1
	}
	return append(append(b, self.cluster...), self.server...)
}

// readTexts reads a head of so many bytes and the texts whose lengths its last bytes are.
func readTexts(r io.Reader, head []byte, texts int) (list []string, err error) {
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if string(head[:len(greetingMagic)]) != greetingMagic {
		return nil, errors.New("store: the first bytes received are not the Raft handshake of a coordinator")
	}
	for _, n := range head[len(head)-texts:] {
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		list = append(list, string(b))
	}
	return list, nil
}

// greeted is a connection that begins with a greeting. It is exchanged by the first Read, since
// neither Accept nor Dial may wait for the other end.
type greeted struct {
	net.Conn
	self    party
	to      string                             // the server that was dialled; empty: this end was dialled
	within  time.Duration                      // for the greeting
	strange func(self, found party, to string) // is told of a mismatch

	once sync.Once
	err  error
}

// Read implements net.Conn.
func (g *greeted) Read(b []byte) (int, error) {
	g.once.Do(func() { g.err = g.greet() })
	if g.err != nil {
		return 0, g.err
	}
	return g.Conn.Read(b)
}

// greet reads the other end's greeting and, if this end was dialled, answers it.
func (g *greeted) greet() error {
	if g.to != "" {
		texts, welcome, err := readReply(g.Conn)
		if err != nil {
			return err
		}
		if found := (party{texts[0], texts[1]}); !welcome || found != (party{g.self.cluster, g.to}) {
			g.strange(g.self, found, g.to)
			return &Mismatch{Expected: party{g.self.cluster, g.to}, Found: found}
		}
		return nil
	}
	if err := g.SetDeadline(time.Now().Add(g.within)); err != nil {
		return err
	}
	texts, err := readTexts(g.Conn, make([]byte, len(greetingMagic)+3), 3)
	if err != nil {
		return io.EOF // a probe of the port, or no coordinator: Raft logs any other error
	}
	found, to := party{texts[0], texts[1]}, texts[2]
	welcome := found.cluster == g.self.cluster && to == g.self.server && found.server != g.self.server
	if _, err := g.Conn.Write(encodeReply(g.self, welcome)); err != nil {
		return io.EOF
	}
	if !welcome {
		g.strange(g.self, found, to)
		return io.EOF
	}
	return g.SetDeadline(time.Time{})
}

func readReply(r io.Reader) (texts []string, welcome bool, err error) {
	head := make([]byte, len(greetingMagic)+3)
	texts, err = readTexts(r, head, 2)
	return texts, head[len(greetingMagic)] == 1, err
}

// mismatches remembers who answered, or dialled, and was refused.
type mismatches struct {
	log *slog.Logger

	mu     sync.Mutex
	found  map[string]sighting // by the server that was expected
	guests map[party]sighting  // that dialled this node
}

// sighting is another party than the expected one, and when it was seen and logged last.
type sighting struct {
	party
	seen, logged time.Time
}

// The log has a line for each peer once a minute; what was not seen for as long is forgotten.
const mismatchLogged = time.Minute

// note records a sighting and reports whether to log it.
func note[K comparable](m *map[K]sighting, key K, found party) bool {
	if *m == nil {
		*m = make(map[K]sighting)
	}
	now := time.Now()
	for k, s := range *m {
		if now.Sub(s.seen) > mismatchLogged {
			delete(*m, k)
		}
	}
	s := (*m)[key]
	tell := s.party != found || now.Sub(s.logged) > mismatchLogged
	s.party, s.seen = found, now
	if tell {
		s.logged = now
	}
	(*m)[key] = s
	return tell
}

// answered notes that another party answered than the server that was dialled.
func (m *mismatches) answered(self party, found party, to string) {
	m.mu.Lock()
	tell := note(&m.found, to, found)
	m.mu.Unlock()
	if tell {
		m.log.Log(context.Background(), severity(self, found), "an unexpected server answers at the Raft address; no data is exchanged with it",
			"expected", to, "expected_cluster", self.cluster, "found", found.server, "found_cluster", found.cluster)
	}
}

// dialled notes that a party dialled this node that is not of its cluster, or that wanted
// another server.
func (m *mismatches) dialled(self party, found party, to string) {
	m.mu.Lock()
	tell := note(&m.guests, found, found)
	m.mu.Unlock()
	if tell {
		m.log.Log(context.Background(), severity(self, found), "a coordinator that expected another server at this Raft address was refused",
			"from", found.server, "from_cluster", found.cluster, "expects", to, "this", self.server, "cluster", self.cluster)
	}
}

// severity is of a mismatch: a folder that was emptied is replaced within seconds.
func severity(self, found party) slog.Level {
	if self.cluster == found.cluster {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// Reach reports why a server cannot be reached on its Raft address, or nil.
func (s *Store) Reach(ctx context.Context, m Server) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", m.RaftAddr)
	if err != nil {
		return err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(end); err != nil {
			return err
		}
	}
	if _, err := c.Write(encodeGreeting(s.stream.self, string(m.raftID()))); err != nil {
		return err
	}
	texts, welcome, err := readReply(c)
	if err != nil {
		return fmt.Errorf("no coordinator answers at this Raft address: %w", err)
	}
	if expected, found := (party{s.stream.self.cluster, string(m.raftID())}), (party{texts[0], texts[1]}); !welcome || found != expected {
		return &Mismatch{Expected: expected, Found: found}
	}
	return nil
}

// Replaced returns the server that answers at the address of a member, if that is the same
// coordinator of the same cluster with another folder.
func (s *Store) Replaced(m Member) (Server, bool) {
	found, ok := s.stream.mismatches.at(string(m.raftID()))
	if !ok || found.cluster != s.stream.self.cluster {
		return Server{}, false
	}
	other := parseServer(raft.ServerID(found.server), "")
	return other, other.ID == m.ID && other.Directory != m.Directory
}

// Stranger says who answers at the address of a member and belongs to another cluster, or
// nothing.
func (s *Store) Stranger(m Member) string {
	found, ok := s.stream.mismatches.at(string(m.raftID()))
	if !ok || found.cluster == s.stream.self.cluster {
		return ""
	}
	return fmt.Sprintf("the server at its Raft address is %s of cluster %s, this cluster is %s", parseServer(raft.ServerID(found.server), "").ID, found.cluster, s.stream.self.cluster)
}

// Guests lists the coordinators of other clusters that dialled this node lately.
func (s *Store) Guests() (list []string) {
	m := &s.stream.mismatches
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, g := range m.guests {
		if p.cluster != s.stream.self.cluster && time.Since(g.seen) < mismatchLogged {
			list = append(list, fmt.Sprintf("coordinator %s of cluster %s tries to reach the Raft address of this coordinator and is refused", parseServer(raft.ServerID(p.server), "").ID, p.cluster))
		}
	}
	slices.Sort(list)
	return list
}

// at returns who answered lately where a server was expected.
func (m *mismatches) at(server string) (party, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.found[server]
	return s.party, ok && time.Since(s.seen) < mismatchLogged
}
