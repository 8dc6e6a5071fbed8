package bus

import "testing"

// A server follows the routes that it is given, and goes on taking those of others.
func TestSetRoutes(t *testing.T) {
	start := func(name string, routes ...string) *Server {
		s, err := StartServer(ServerOptions{Name: name, Host: "127.0.0.1", Cluster: "routes", RoutePort: -1, Routes: routes})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	a, b := start("a"), start("b")
	if err := a.SetRoutes([]string{b.RouteURL()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a route", func() bool { return a.Routes() == 1 && b.Routes() == 1 })
	c := start("c", a.RouteURL())
	eventually(t, "routes among three", func() bool { return a.Routes() == 2 && b.Routes() == 2 && c.Routes() == 2 })
	b.Close()
	if err := a.SetRoutes([]string{c.RouteURL()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two to be left", func() bool { return a.Routes() == 1 && c.Routes() == 1 })
	if err := a.SetRoutes([]string{"nonsense"}); err == nil {
		t.Error("nonsense is a route")
	}
	if err := a.SetRoutes(nil); err != nil {
		t.Error(err)
	}
}
