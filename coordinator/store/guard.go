package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// guard looks over what comes on a connection of Raft's before the library decodes
// it, which takes memory for some lengths that are only claimed. It follows the
// bytes as MessagePack: on an accepted connection, requests of a byte for the kind
// and a value each, that of a snapshot followed by as many bytes as its field Size
// says; on one that was dialled, values. A length above its bound ends the
// connection.
type guard struct {
	net.Conn
	requests bool // of an accepted connection
	scan     scanner
	patience time.Duration // with a peer that stops within a request; 0: for ever
	armed    bool          // a deadline is set
	stalled  error         // the deadline has passed
}

// The bounds of what Raft sends. An entry is at most 16 MiB, and a request carries
// a few.
const (
	maxRaftBytes = 64 << 20 // of a text or of bytes
	maxRaftExt   = 1 << 10  // of a value of an extension's type
	maxRaftItems = 1 << 16  // of a list or a mapping
	maxRaftDepth = 16
)

// installSnapshot is the kind of request that bytes follow.
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
	if bad := g.look(b[:n]); bad != nil {
		return 0, fmt.Errorf("store: a Raft message from %s is not valid: %w", g.RemoteAddr(), bad)
	}
	return n, err
}

// arm bounds the wait for the rest of a request. Raft reads a snapshot in its main
// loop, which would hang with a leader that is stopped or cut off in the middle; for
// the next request it may wait as long as it likes.
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

func (g *guard) look(b []byte) error {
	s := &g.scan
	for len(b) > 0 {
		if s.skip > 0 { // bytes that mean nothing here
			n := min(s.skip, uint64(len(b)))
			s.note(b[:n])
			s.skip -= n
			b = b[n:]
			if s.skip == 0 && len(s.open) > 0 {
				s.end()
			}
			continue
		}
		if len(s.open) == 0 { // between values
			s.begin()
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
	open []int  // values still due, by depth
	head []byte // of the token at hand: its first byte and its length so far
	want int    // bytes of head
	skip uint64 // bytes of the token's contents

	text  []byte // contents of the text at hand, or what of them matters
	named bool   // the next value at depth 1 is the field Size
	size  uint64 // that
}

// begin begins a value.
func (s *scanner) begin() {
	s.open = append(s.open[:0], 1)
	s.named, s.size, s.text = false, 0, s.text[:0]
}

// token takes a byte of a token's head.
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

// lengthBytes returns how many bytes of a head follow its first: of a length, or of
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

func number(b []byte) uint64 {
	var all [8]byte
	copy(all[8-len(b):], b)
	return binary.BigEndian.Uint64(all[:])
}

// counted returns a token's length: n, or what its first byte holds.
func counted(c byte, n uint64, mask byte) uint64 {
	if c < 0xc0 {
		return uint64(c & mask)
	}
	return n
}

// contents skips a token's contents.
func (s *scanner) contents(n, limit uint64) error {
	if n > limit {
		return fmt.Errorf("a value has %d bytes, want at most %d", n, limit)
	}
	if s.skip = n; n == 0 {
		s.end()
	}
	return nil
}

// push begins a list or mapping.
func (s *scanner) push(n, limit uint64) error {
	if n > limit || len(s.open) >= maxRaftDepth {
		return fmt.Errorf("a list or map has %d values at depth %d, which is too many or too deep", n, len(s.open))
	}
	s.open = append(s.open, int(n))
	s.settle()
	return nil
}

// end ends a value that holds no others.
func (s *scanner) end() {
	last := len(s.open) - 1
	s.open[last]--
	if last == 1 && s.open[last]%2 == 1 { // it was a name
		s.named = string(s.text) == "Size"
	}
	s.text = s.text[:0]
	s.settle()
}

// settle closes what is complete; behind a whole value come a snapshot's bytes.
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

// note keeps a short text: it may be a field's name.
func (s *scanner) note(b []byte) {
	if len(s.open) == 2 && len(s.text)+len(b) <= len("Size") {
		s.text = append(s.text, b...)
	} else if len(b) > 0 {
		s.text = append(s.text[:0], 0)
	}
}

// number takes a number, a truth or nothing.
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
