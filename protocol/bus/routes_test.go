package bus

import (
	"io"
	"net"
	"strings"
	"testing"
)

// startRouted starts a server with a route port, which connects to those of others.
func startRouted(t *testing.T, name string, routes ...string) *Server {
	t.Helper()
	s, err := StartServer(ServerOptions{Name: name, Host: "127.0.0.1", Cluster: "routes", RoutePort: -1, Routes: routes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A server follows the routes that it is given, and goes on taking those of others.
func TestSetRoutes(t *testing.T) {
	a, b := startRouted(t, "a"), startRouted(t, "b")
	if err := a.SetRoutes([]string{b.RouteURL()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a route", func() bool { return len(a.Routes()) == 1 && len(b.Routes()) == 1 })
	c := startRouted(t, "c", a.RouteURL())
	eventually(t, "routes among three", func() bool {
		return len(a.Routes()) == 2 && len(b.Routes()) == 2 && len(c.Routes()) == 2
	})
	b.Close()
	if err := a.SetRoutes([]string{c.RouteURL()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two to be left", func() bool { return len(a.Routes()) == 1 && len(c.Routes()) == 1 })
	if err := a.SetRoutes([]string{"nonsense"}); err == nil {
		t.Error("nonsense is a route")
	}
	if err := a.SetRoutes(nil); err != nil {
		t.Error(err)
	}
}

// A route that takes nothing to the other server is none, however often it is made.
func TestRouteOfOneDirection(t *testing.T) {
	a := startRouted(t, "a")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	made := make(chan struct{}, 100)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(a.RouteURL(), "nats://"))
			if err != nil {
				in.Close()
				return
			}
			go io.Copy(io.Discard, in) // what b says is lost
			go func() {
				io.Copy(in, out)
				in.Close()
				out.Close()
			}()
			made <- struct{}{}
		}
	}()
	b := startRouted(t, "b", "nats://"+l.Addr().String())
	seen := make(map[int]bool)
	for range 2 { // the second time the first was given up
		<-made
		eventually(t, "a route that looks whole", func() bool { seen[len(b.Routes())] = true; return b.s.NumRoutes() > 0 })
	}
	if seen[1] {
		t.Error("it counts")
	}
}
