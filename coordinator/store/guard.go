package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

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
