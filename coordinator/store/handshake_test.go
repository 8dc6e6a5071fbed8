package store

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
)

// TestGreetingNamesTheCertificate: with TLS, both ends refuse a coordinator that says to be
// another one than its certificate. It is not taken for a coordinator with a new folder either.
func TestGreetingNamesTheCertificate(t *testing.T) {
	authority := certtest.New(t)
	self := party{"k", "a.1"}
	for name, good := range map[string]bool{"b": true, "c": false} {
		for _, dialled := range []bool{true, false} {
			l := certs.Listen(testkit.Listen(t), authority.Source(certs.Coordinator, "a"),
				certs.Terms{Port: certs.PortRaft, Within: time.Minute})
			if dialled { // b is dialled, and the certificate of name is shown
				l = certs.Listen(testkit.Listen(t), authority.Source(certs.Coordinator, name),
					certs.Terms{Port: certs.PortRaft, Within: time.Minute})
			}
			t.Cleanup(func() { l.Close() })
			accepted := make(chan net.Conn, 1)
			go func() {
				c, err := l.Accept()
				if err != nil {
					t.Error(err)
				}
				accepted <- c
			}()
			source := authority.Source(certs.Coordinator, name)
			if dialled {
				source = authority.Source(certs.Coordinator, "a")
			}
			there, err := (&certs.Dialer{Source: source, Roles: []certs.Role{certs.Coordinator}}).DialContext(testkit.Context(t),
				"tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			here := testkit.Receive(t, "the connection", accepted)
			t.Cleanup(func() { there.Close(); here.Close() })
			var refused []string
			g := &greeted{self: self, within: time.Minute, strange: func(party, party, string) {
				refused = append(refused, "strange")
			}, forged: func(_ party, name string) { refused = append(refused, name) }}
			send := encodeGreeting(party{"k", "b.1"}, "a.1")
			g.Conn = here
			other := there
			if dialled {
				g.Conn, other, g.to, send = there, here, "b.1", encodeReply(party{"k", "b.1"}, true)
			}
			if _, err := other.Write(send); err != nil {
				t.Fatal(err)
			}
			err = g.greet()
			want := []string{"c"}
			if good {
				want = nil
			}
			if (err == nil) != good || !slices.Equal(refused, want) {
				t.Errorf("the certificate of %s for b, dialled %v: %v, refused %v", name, dialled, err, refused)
			}
			if err != nil && dialled && !strings.Contains(err.Error(), "its certificate has the name c") {
				t.Error(err)
			}
		}
	}
}
