package bus

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit/certtest"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
)

// TestCut: a server cuts the route and the client of a revoked certificate, whichever side has
// made the route, and refuses them from then on. Others stay.
func TestCut(t *testing.T) {
	t.Parallel()
	a := certtest.New(t)
	for _, name := range []string{"accepted", "made", "made because another server has named the server"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := a.Source(certs.Coordinator, "a")
			other := a.Source(certs.Coordinator, "b")
			last := a.Source(certs.Coordinator, "c")
			var one, two, third *Server
			switch name {
			case "accepted":
				two = secureServer(t, mine)
				one = secureServer(t, other, two.RouteURL())
				third = secureServer(t, last, two.RouteURL())
			case "made":
				one = secureServer(t, other)
				two = secureServer(t, mine, one.RouteURL())
				third = secureServer(t, last, two.RouteURL())
			default:
				two = secureServer(t, mine)
				third = secureServer(t, last, two.RouteURL())
				eventually(t, "a route", func() bool { return len(two.Routes()) == 1 })
				one = secureServer(t, other, third.RouteURL())
			}
			eventually(t, "routes", func() bool {
				return len(one.Routes()) == 2 && len(two.Routes()) == 2 && len(third.Routes()) == 2
			})
			cut, lost := new(counts), new(counts)
			worker := a.Source(certs.Worker, "w")
			client := connect(t, Options{URLs: []string{two.ClientURL()}, Name: "w", TLS: worker, Traffic: cut})
			connect(t, Options{URLs: []string{two.ClientURL()}, Name: "x", TLS: a.Source(certs.Worker, "x"), Traffic: lost})
			var revoked atomic.Pointer[string]
			mine.Revoked(func(serial string) bool {
				r := revoked.Load()
				return r != nil && *r == serial
			})
			mine.CutInvalid()
			if len(two.Routes()) != 2 || !client.Connected() {
				t.Fatal("connections are cut though nothing is revoked")
			}
			route, ofWorker := certs.Serial(other.Own()), certs.Serial(worker.Own())
			revoked.Store(&route)
			eventually(t, "the end of the route", func() bool { mine.CutInvalid(); return len(two.Routes()) == 1 })
			for range 20 {
				if mine.CutInvalid(); len(two.Routes()) > 1 {
					t.Fatal("the route is back")
				}
				if err := wait.For(t.Context(), 20*time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
			revoked.Store(&ofWorker)
			// it finds the other servers, which refuse nobody
			eventually(t, "the end of the client", func() bool { mine.CutInvalid(); return cut.disconnected.Load() > 0 })
			if n := lost.disconnected.Load(); n > 0 {
				t.Errorf("another client was disconnected %d times", n)
			}
		})
	}
}
