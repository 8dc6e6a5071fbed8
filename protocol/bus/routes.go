package bus

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// SetRoutes has the server connect to these servers' route ports, as
// ServerOptions.Routes, and to no others any more; what connects to it stays
// connected. The server must have a route port.
func (s *Server) SetRoutes(routes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	urls, err := routeURLs(routes)
	if err != nil {
		return err
	}
	next := s.opts.Clone()
	next.Routes = urls
	if err := s.s.ReloadOptions(next.Clone()); err != nil {
		return fmt.Errorf("the routes of the NATS server cannot be set: %w", err)
	}
	s.opts = next
	return nil
}

// remakeRoutes ends the routes that this server has made, and makes the routes of its options again. The
// other servers verify themselves then.
func (s *Server) remakeRoutes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	without := s.opts.Clone()
	without.Routes = nil
	reload := func(o *natsserver.Options) {
		if err := s.s.ReloadOptions(o.Clone()); err != nil {
			s.log.Warn("the routes of the NATS server cannot be made again", "error", err)
		}
	}
	reload(without)
	// A route to a server that another server has named is not in the options. The library ends it only
	// with all routes, if the size of the pool changes; all negative sizes mean one connection.
	v, err := s.s.Routez(nil)
	if err != nil || slices.ContainsFunc(v.Routes, func(r *natsserver.RouteInfo) bool { return r.DidSolicit }) {
		s.opts.Cluster.PoolSize = -3 - s.opts.Cluster.PoolSize // -1 and -2 take turns
	}
	reload(s.opts)
}

// routeURLs parses the URLs of routes. They are in order: the library sorts them in place
// when options change, while its goroutines read them.
func routeURLs(routes []string) (urls []*url.URL, err error) {
	for _, r := range routes {
		u, err := url.Parse(r)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("%q is not the URL of a NATS route: want nats://host:port", r)
		}
		urls = append(urls, u)
	}
	slices.SortFunc(urls, func(a, b *url.URL) int { return cmp.Compare(a.String(), b.String()) })
	return urls, nil
}
