package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
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
			return fmt.Errorf("store: the coordinator at this Raft address says that it is %v, but its certificate has the "+
				"name %s", found, name)
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

// tell records a sighting, and writes a log line if it is new. An emptied folder is replaced within seconds: without a
// stranger of another cluster it is no warning.
func tell[K comparable](m *mismatches, in *map[K]sighting, key K, found party, strange bool, text string, args ...any) {
	m.mu.Lock()
	isNew := note(in, key, found)
	m.mu.Unlock()
	level := slog.LevelInfo
	if strange {
		level = slog.LevelWarn
	}
	if isNew {
		m.log.Log(context.Background(), level, text, args...)
	}
}

// answered records that an unexpected party answered for a server that was dialled.
func (m *mismatches) answered(self, found party, to string) {
	tell(m, &m.found, to, found, self.cluster != found.cluster,
		"an unexpected server answers at the Raft address; no data is exchanged with it",
		"expected", to, "expected_cluster", self.cluster, "found", found.server, "found_cluster", found.cluster)
}

// dialled records that a party of another cluster dialled this node, or a party that wanted
// another server.
func (m *mismatches) dialled(self, found party, to string) {
	tell(m, &m.guests, found, found, self.cluster != found.cluster,
		"a coordinator that expected another server at this Raft address was refused",
		"from", found.server, "from_cluster", found.cluster, "expects", to, "this", self.server, "cluster", self.cluster)
}

// impostor records that a party has a certificate with another name.
func (m *mismatches) impostor(found party, name string) {
	tell(m, &m.forged, found, party{server: name}, true,
		"a connection to Raft was refused: the certificate of the other side has another name than the coordinator that it "+
			"says to be",
		"says", found.server, "certificate", name)
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

// guard checks the bytes of a Raft connection before the library decodes them, since the
// library allocates memory for some lengths that are only claimed. It follows the bytes as
// MessagePack. An accepted connection has requests: a byte for the kind, a value, and after
// a snapshot's value as many bytes as its field Size says. A dialled connection has values.
// A length above its bound ends the connection.
type guard struct {
	net.Conn
	requests bool // true for an accepted connection
	scan     scanner
	patience time.Duration // the longest wait within a request; 0 if there is no limit
	armed    bool          // true if a deadline is set
	stalled  error         // set after the deadline has passed
}

// The bounds of Raft's messages. An entry has at most 16 MiB, and a request has a few
// entries.
const (
	maxRaftBytes = 64 << 20 // of a text or bytes
	maxRaftExt   = 1 << 10  // of an extension
	maxRaftItems = 1 << 16  // of a list or map
	maxRaftDepth = 16
)

// installSnapshot is the kind of the request before the bytes of a snapshot.
const installSnapshot = 2

// Read implements net.Conn.
func (g *guard) Read(b []byte) (int, error) {
	if err := g.arm(); err != nil {
		return 0, err
	}
	n, err := g.Conn.Read(b)
	if g.armed && errors.Is(err, os.ErrDeadlineExceeded) {
		g.stalled = err
	}
	if bad := g.follow(b[:n]); bad != nil {
		return 0, fmt.Errorf("store: a Raft message from %s is not valid: %w", g.RemoteAddr(), bad)
	}
	return n, err
}

// arm bounds the wait for the rest of a request. Raft reads a snapshot in its main loop,
// which would hang if the leader is stopped or cut off in the middle. The wait for the next
// request has no bound.
func (g *guard) arm() error {
	within := g.patience > 0 && (len(g.scan.open) > 0 || g.scan.skip > 0)
	switch {
	case g.stalled != nil:
		return g.stalled
	case within:
		g.armed = true
		return g.SetReadDeadline(time.Now().Add(g.patience))
	case g.armed:
		g.armed = false
		return g.SetReadDeadline(time.Time{})
	}
	return nil
}

// follow feeds bytes to the scanner.
func (g *guard) follow(b []byte) error {
	s := &g.scan
	for len(b) > 0 {
		if s.skip > 0 { // contents
			n := min(s.skip, uint64(len(b)))
			s.note(b[:n])
			s.skip -= n
			b = b[n:]
			if s.skip == 0 && len(s.open) > 0 {
				s.end()
			}
			continue
		}
		if len(s.open) == 0 { // a value begins
			s.open = append(s.open[:0], 1)
			s.named, s.size, s.text = false, 0, s.text[:0]
			if g.requests {
				s.kind = b[0]
				b = b[1:]
				continue
			}
		}
		if err := s.token(b[0]); err != nil {
			return err
		}
		b = b[1:]
	}
	return nil
}

// scanner follows MessagePack byte by byte.
type scanner struct {
	kind byte   // of the request
	open []int  // the number of values that are still missing, by depth
	head []byte // of the current token: its first byte, and the bytes of its length so far
	want int    // bytes of a complete head
	skip uint64 // bytes that are left of the contents of the current token

	text  []byte // contents of the current text, if it may be the name of a field
	named bool   // true if the next value at depth 1 is the field Size
	size  uint64 // the field Size
}

// token reads a byte of the head of a token.
func (s *scanner) token(c byte) error {
	if len(s.head) == 0 {
		s.want = 1 + lengthBytes(c)
	}
	if s.head = append(s.head, c); len(s.head) < s.want {
		return nil
	}
	c, n := s.head[0], number(s.head[1:])
	s.head = s.head[:0]
	switch {
	case c&0xf0 == 0x80, c == 0xde, c == 0xdf:
		return s.push(2*counted(c, n, 0x0f), 2*maxRaftItems)
	case c&0xf0 == 0x90, c == 0xdc, c == 0xdd:
		return s.push(counted(c, n, 0x0f), maxRaftItems)
	case c >= 0xc7 && c <= 0xc9:
		return s.contents(n+1, maxRaftExt)
	case c >= 0xd4 && c <= 0xd8:
		return s.contents(1<<(c-0xd4)+1, maxRaftExt)
	case c&0xe0 == 0xa0, c >= 0xd9 && c <= 0xdb, c >= 0xc4 && c <= 0xc6:
		s.text = s.text[:0]
		return s.contents(counted(c, n, 0x1f), maxRaftBytes)
	}
	s.number(c, n)
	s.end()
	return nil
}

// lengthBytes returns the number of bytes that follow the first byte of a head: a length or
// a number.
func lengthBytes(c byte) int {
	switch c {
	case 0xc4, 0xc7, 0xd9, 0xcc, 0xd0:
		return 1
	case 0xc5, 0xc8, 0xda, 0xcd, 0xd1, 0xdc, 0xde:
		return 2
	case 0xc6, 0xc9, 0xdb, 0xce, 0xd2, 0xca, 0xdd, 0xdf:
		return 4
	case 0xcf, 0xd3, 0xcb:
		return 8
	}
	return 0
}

// number reads a big-endian number of at most eight bytes.
func number(b []byte) uint64 {
	var all [8]byte
	copy(all[8-len(b):], b)
	return binary.BigEndian.Uint64(all[:])
}

// counted returns the length of a token: n, or bits of its first byte.
func counted(c byte, n uint64, mask byte) uint64 {
	if c < 0xc0 {
		return uint64(c & mask)
	}
	return n
}

// contents skips the contents of a token.
func (s *scanner) contents(n, limit uint64) error {
	if n > limit {
		return fmt.Errorf("a value has %d bytes, want at most %d", n, limit)
	}
	if s.skip = n; n == 0 {
		s.end()
	}
	return nil
}

// push begins a list or map.
func (s *scanner) push(n, limit uint64) error {
	if n > limit || len(s.open) >= maxRaftDepth {
		return fmt.Errorf("a list or map has %d values at depth %d, which is too many or too deep", n, len(s.open))
	}
	s.open = append(s.open, int(n))
	s.settle()
	return nil
}

// end ends a value that has no elements.
func (s *scanner) end() {
	last := len(s.open) - 1
	s.open[last]--
	if last == 1 && s.open[last]%2 == 1 { // a key
		s.named = string(s.text) == "Size"
	}
	s.text = s.text[:0]
	s.settle()
}

// settle closes complete lists and maps. A complete InstallSnapshot request is followed by
// the bytes of the snapshot.
func (s *scanner) settle() {
	for len(s.open) > 0 && s.open[len(s.open)-1] == 0 {
		s.open = s.open[:len(s.open)-1]
		if len(s.open) > 0 {
			s.open[len(s.open)-1]--
		}
	}
	if len(s.open) == 0 && s.kind == installSnapshot {
		s.skip = s.size
	}
}

// note keeps a short text, which may be the name of a field.
func (s *scanner) note(b []byte) {
	if len(s.open) == 2 && len(s.text)+len(b) <= len("Size") {
		s.text = append(s.text, b...)
	} else if len(b) > 0 {
		s.text = append(s.text[:0], 0)
	}
}

// number reads a number, a boolean or nil.
func (s *scanner) number(c byte, n uint64) {
	if !s.named || len(s.open) != 2 {
		return
	}
	s.named = false
	switch {
	case c < 0x80:
		s.size = uint64(c)
	case c >= 0xcc && c <= 0xcf, c == 0xd3, c == 0xd2 && n < 1<<31, c == 0xd1 && n < 1<<15, c == 0xd0 && n < 1<<7:
		s.size = n
	}
}
