package state

import (
	"slices"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxRevoked bounds the revoked certificates.
	MaxRevoked = 10_000
	// forgetAfter is how many seconds after its end a certificate is forgotten: clocks differ.
	forgetAfter = 24 * 60 * 60
)

// revocations has the certificates that are refused, by serial number.
type revocations struct{ revoked []*protocol.Revocation }

// Revocations lists the revoked certificates, by serial number.
func (t *revocations) Revocations() []*protocol.Revocation { return t.revoked }

// Revoked reports whether the certificate with a serial number is revoked.
func (t *revocations) Revoked(serial string) bool {
	_, ok := t.findRevoked(serial)
	return ok
}

func (t *revocations) findRevoked(serial string) (int, bool) {
	return search(t.revoked, serial, func(r *protocol.Revocation) string { return r.Serial })
}

func revoke(s *State, e *protocol.RevokeEntry) (any, error) {
	if !protocol.CheckSerial(e.Serial) {
		return nil, invalid("serial number %.80q: want at most %d hexadecimal digits in lower case", e.Serial, protocol.MaxSerial)
	}
	if len(e.Identity) > protocol.MaxIdentity {
		return nil, invalid("the identity of certificate %s has %d bytes, want at most %d", e.Serial, len(e.Identity), protocol.MaxIdentity)
	}
	s.revoked = slices.DeleteFunc(slices.Clone(s.revoked), func(r *protocol.Revocation) bool {
		return r.Until != 0 && r.Until < e.Time-forgetAfter
	})
	at, ok := s.findRevoked(e.Serial)
	if ok {
		return s.revoked[at], nil
	}
	if len(s.revoked) >= MaxRevoked {
		return nil, invalid("%d certificates are revoked already; to refuse more, replace the authority", MaxRevoked)
	}
	r := e.Revocation
	s.revoked = slices.Insert(s.revoked, at, &r)
	return &r, nil
}

func revocationFields(c *wire.Coder, r *protocol.Revocation) {
	c.Text("serial number", &r.Serial)
	c.Text("identity", &r.Identity)
	wire.Numbers(c, "end", &r.Until)
	wire.Numbers(c, "time", &r.Time)
}
