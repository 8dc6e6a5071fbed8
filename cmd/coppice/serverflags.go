package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
)

// serverFlags say which cluster a command speaks to.
type serverFlags struct {
	Server []string `placeholder:"HOST[:PORT]" group:"cluster" help:"HTTP addresses of coordinators; any of them will do (default: COPPICE_SERVER, or 127.0.0.1:7100)."`
}

const defaultServer = "127.0.0.1:7100"

// connect returns a client that says so on stderr when it has to wait for the
// cluster.
func (s *serverFlags) connect(a *app) (*client.Client, error) {
	servers := strings.Join(withPorts(s.Server), ",")
	if servers == "" {
		servers = defaultServer
	}
	c, err := client.New(servers)
	if err != nil {
		return nil, usagef("--server: %w", err)
	}
	c.Waiting = waiting(a)
	return c, nil
}

// lull is how long no request had to be sent again once the cluster is back: longer
// than a try may take.
const lull = 6 * time.Second

// waiting says why a request waits: once it has for two seconds, then every ten.
func waiting(a *app) func(error) {
	var mu sync.Mutex
	var since, last, told time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if now.Sub(last) > lull {
			since = now
		}
		last = now
		if now.Sub(since) > quiet && now.Sub(told) > 10*time.Second {
			told = now
			reason := ""
			if err != nil {
				reason = fmt.Sprintf(" (%v)", err)
			}
			a.note("waiting for the cluster%s", reason)
		}
	}
}
