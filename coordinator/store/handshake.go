package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/internal/certs"
)

// Every connection between two nodes begins with a greeting, before any message of Raft.
// The node that dials names its cluster, its server ID and the server that it wants to
// reach. The other node answers who it is, and whether it agrees. So neither a node of
// another cluster nor a node with an emptied folder takes part, at any address.
//
//	0           4         5         6         7
//	| "CRG1"    | lengths of cluster, from and to    | cluster, from, to |
//	0           4         5         6         7
//	| "CRG1"    | 1 or 0  | lengths of cluster and id | cluster, id       |
//
// A length is one byte, so each text has at most 255 bytes. With TLS, the coordinator that an
// end says to be must have the name in the certificate of that end.
const greetingMagic = "CRG1"

// party is one end of a connection: a cluster and the server ID of Raft in it.
type party struct{ cluster, server string }

func (p party) String() string { return fmt.Sprintf("%s of cluster %s", p.server, p.cluster) }

// Mismatch says that an unexpected server answers at an address.
type Mismatch struct {
	Expected party
	Found    party
}

func (e *Mismatch) Error() string {
	return fmt.Sprintf("store: the server at this Raft address is %v, want %v", e.Found, e.Expected)
}

// encodeGreeting returns the greeting of the node that dials.
func encodeGreeting(self party, to string) []byte {
	b := append([]byte(greetingMagic), byte(len(self.cluster)), byte(len(self.server)), byte(len(to)))
	return append(append(append(b, self.cluster...), self.server...), to...)
}

// encodeReply returns the answer of the node that was dialled.
func encodeReply(self party, welcome bool) []byte {
	b := append([]byte(greetingMagic), 0, byte(len(self.cluster)), byte(len(self.server)))
	if welcome {
		b[4] = 1
	}
	return append(append(b, self.cluster...), self.server...)
}

// readTexts reads a head, and as many texts; the last bytes of the head are their lengths.
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

// greeted is a connection that begins with a greeting. The first Read exchanges it, since
// neither Accept nor Dial may wait for the other end.
type greeted struct {
	net.Conn
	self    party
	to      string                             // the server that was dialled; empty if this end was dialled
	within  time.Duration                      // the time for the greeting
	strange func(self, found party, to string) // is told of a mismatch
	forged  func(found party, name string)     // is told of a certificate with another name

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

// greet reads the greeting of the other end, and answers it if this end was dialled.
func (g *greeted) greet() error {
	if g.to != "" {
		texts, welcome, err := readReply(g.Conn)
		if err != nil {
			return err
		}
		found := party{texts[0], texts[1]}
		if name, ok := g.vouched(found); !ok {
			return fmt.Errorf("store: the coordinator at this Raft address says that it is %v, but its certificate has the name %s", found, name)
		}
		if !welcome || found != (party{g.self.cluster, g.to}) {
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
	if _, ok := g.vouched(found); !ok {
		return io.EOF
	}
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

// vouched reports whether the certificate of the other end has the name of the coordinator that
// it says to be. In the clear there is no certificate, and every name is accepted.
func (g *greeted) vouched(found party) (name string, ok bool) {
	name, secure := certs.NameOf(g.Conn)
	if !secure || parseServer(raft.ServerID(found.server), "").ID == name {
		return name, true
	}
	g.forged(found, name)
	return name, false
}

// readReply reads the answer to a greeting: the cluster and the server, and whether the
// node is welcome.
func readReply(r io.Reader) (texts []string, welcome bool, err error) {
	head := make([]byte, len(greetingMagic)+3)
	texts, err = readTexts(r, head, 2)
	return texts, head[len(greetingMagic)] == 1, err
}

// mismatches remembers for a minute which parties were refused.
type mismatches struct {
	log *slog.Logger

	mu     sync.Mutex
	found  map[string]sighting // who answered, by the expected server; guarded by mu
	guests map[party]sighting  // who dialled this node; guarded by mu
	forged map[party]sighting  // parties that have a certificate with another name; guarded by mu
}

// sighting says who was found, and when it was seen and logged last.
type sighting struct {
	party
	seen, logged time.Time
}

// mismatchLogged is the time between two log lines about one party, and the time after
// which a party is forgotten.
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

// severity returns the level of a log line about a mismatch. An emptied folder is replaced
// within seconds.
func severity(self, found party) slog.Level {
	if self.cluster == found.cluster {
		return slog.LevelInfo
	}
	return slog.LevelWarn
}

// answered records that an unexpected party answered for a server that was dialled.
func (m *mismatches) answered(self, found party, to string) {
	m.mu.Lock()
	tell := note(&m.found, to, found)
	m.mu.Unlock()
	if tell {
		m.log.Log(context.Background(), severity(self, found), "an unexpected server answers at the Raft address; no data is exchanged with it",
			"expected", to, "expected_cluster", self.cluster, "found", found.server, "found_cluster", found.cluster)
	}
}

// dialled records that a party of another cluster dialled this node, or a party that wanted
// another server.
func (m *mismatches) dialled(self, found party, to string) {
	m.mu.Lock()
	tell := note(&m.guests, found, found)
	m.mu.Unlock()
	if tell {
		m.log.Log(context.Background(), severity(self, found), "a coordinator that expected another server at this Raft address was refused",
			"from", found.server, "from_cluster", found.cluster, "expects", to, "this", self.server, "cluster", self.cluster)
	}
}

// impostor records that a party has a certificate with another name.
func (m *mismatches) impostor(found party, name string) {
	m.mu.Lock()
	tell := note(&m.forged, found, party{server: name})
	m.mu.Unlock()
	if tell {
		m.log.Warn("a connection to Raft was refused: the certificate of the other side has another name than the coordinator that it says to be",
			"says", found.server, "certificate", name)
	}
}

// at returns the party that answered lately for a server.
func (m *mismatches) at(server string) (party, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.found[server]
	return s.party, ok && time.Since(s.seen) < mismatchLogged
}

// foreign lists the parties of other clusters that dialled this node lately.
func (m *mismatches) foreign(cluster string) (list []party) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p, g := range m.guests {
		if p.cluster != cluster && time.Since(g.seen) < mismatchLogged {
			list = append(list, p)
		}
	}
	return list
}
