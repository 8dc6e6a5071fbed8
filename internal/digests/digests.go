// Package digests has SHA-256 digests in 32 bytes, for what remembers very many of them: as text, which is what users
// and the log have, each takes 80.
package digests

import (
	"crypto/sha256"
	"encoding/hex"
)

// Digest is a SHA-256. The zero Digest is none.
type Digest [sha256.Size]byte

// Parse reads 64 lower-case hex digits. ok: the text is that.
func Parse(text string) (d Digest, ok bool) {
	if len(text) != 2*len(d) {
		return d, false
	}
	for i := range d {
		high, low := nibble(text[2*i]), nibble(text[2*i+1])
		if high > 15 || low > 15 {
			return Digest{}, false
		}
		d[i] = high<<4 | low
	}
	return d, true
}

// nibble returns the value of a lower-case hex digit, or 255.
func nibble(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// String returns the 64 hex digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Text returns the 64 hex digits, or, of the zero Digest, an empty text.
func (d Digest) Text() string {
	if d == (Digest{}) {
		return ""
	}
	return d.String()
}

// Set is a set of digests.
type Set map[Digest]struct{}

// Add adds a digest that is given as text; a text that is none is passed over.
func (s Set) Add(text string) {
	if d, ok := Parse(text); ok {
		s[d] = struct{}{}
	}
}

// Has reports whether the set has a digest that is given as text.
func (s Set) Has(text string) bool {
	d, ok := Parse(text)
	return ok && s.Contains(d)
}

// Contains reports whether the set has a digest.
func (s Set) Contains(d Digest) bool {
	_, ok := s[d]
	return ok
}
