package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/protocol"
)

// serverFlags name the cluster of a command that changes nothing.
type serverFlags struct {
	Server  []string `placeholder:"HOST[:PORT]" group:"cluster" help:"HTTP addresses of coordinators; one is enough (default: COPPICE_SERVER, the context, or 127.0.0.1:7100)."`
	Context string   `seldom:"" placeholder:"NAME" group:"cluster" help:"Context with the addresses and files of a cluster; see coppice context --help (default: COPPICE_CONTEXT, or the current context)."`

	tokenFlags
	tlsFlag

	asked bool // set by connect: true if the user named a cluster for this command
}

// changeFlags name the cluster of a command that changes something.
type changeFlags struct {
	serverFlags
	Wait time.Duration `seldom:"" default:"30s" group:"cluster" help:"How long to wait for a cluster that does not answer. 0: do not wait, but say why there is no answer."`
}

const defaultServer = "127.0.0.1:7100"

// connect returns a client that waits for a short while for the cluster. Shortly before that time is over, all
// coordinators are asked for their state, so that an error can tell what they said.
func (s *serverFlags) connect(a *app) (*client.Client, error) {
	at, err := s.where(a)
	if err != nil {
		return nil, err
	}
	c, source, err := at.client()
	if err != nil {
		return nil, err
	}
	s.asked = at.explicit && len(at.server) > 0
	c.Patience = protocol.ClientRead
	ctx, cancel := context.WithCancel(a.ctx)
	go source.Watch(ctx)
	looks := &looks{survey: func() *outlook { return judge(c.Survey(ctx)) }, now: time.Now}
	early, now := time.AfterFunc(lookAfter, func() { looks.look() }), time.Now()
	a.atEnd = append(a.atEnd, func() {
		cancel()
		if !early.Stop() {
			looks.look() // wait for the survey to end
		}
	})
	a.asks = &asked{a: a, cl: c, looks: looks, early: early, since: now, last: now}
	c.Waiting = a.asks.waiting
	return c, nil
}

// connect returns a client that waits for the cluster as --wait says, and meanwhile says why on stderr.
func (f *changeFlags) connect(a *app) (*client.Client, error) {
	if f.Wait < 0 {
		return nil, usagef("--wait %v: want 0 or more", f.Wait)
	}
	c, err := f.serverFlags.connect(a)
	if err != nil {
		return nil, err
	}
	a.asks.patient(f.Wait)
	return c, nil
}

// guess is connect for a command that may not need a cluster. If the user names none, it does not wait.
func (s *serverFlags) guess(a *app) (*client.Client, error) {
	c, err := s.connect(a)
	if err == nil && !s.asked {
		c.Patience = 0
	}
	return c, err
}

// withPort adds the default port to a host without one. It returns everything else unchanged, for its reader to refuse.
// A number alone is a port, not a host.
func withPort(address string) string {
	var missing *net.AddrError
	_, _, err := net.SplitHostPort(address)
	if !errors.As(err, &missing) || missing.Err != "missing port in address" || address == "" || strings.Trim(address, "0123456789") == "" || strings.Contains(address, "/") {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(coordinator.DefaultPort))
}

func withPorts(addresses []string) []string {
	var all []string
	for _, a := range addresses {
		all = append(all, withPort(strings.TrimSpace(a)))
	}
	return all
}

// apartFromCluster refuses --server and --wait on the command line if flag says that no cluster is asked. A variable or
// a configuration file may name a cluster nevertheless.
func (a *app) apartFromCluster(flag string, asksNone bool) error {
	for _, name := range []string{"server", "context", "tls-dir", "token-file", "ca-file", "wait"} {
		if asksNone && a.given[name] {
			return usagef("--%s needs a cluster, but %s uses none; leave one of them out", name, flag)
		}
	}
	return nil
}

const (
	// lull is the time without a repeated request after which a new wait begins. A try may take nearly as long.
	lull = protocol.ClientTry + time.Second
	// tellEvery is the interval between two lines about a wait.
	tellEvery = 5 * time.Second
	// lookAfter is when all coordinators are asked for their state. A command that only reads has their answers when
	// its own time is over.
	lookAfter = protocol.ClientRead - 2*protocol.Survey - 250*time.Millisecond
	// lookKept is how long the answers of coordinators explain an error: as long as a command that only reads waits for
	// an answer.
	lookKept = protocol.ClientRead
)

// asked is the cluster that a command asks, and why it does not answer.
type asked struct {
	a     *app
	cl    *client.Client
	tells bool        // true if the command says on stderr why it waits
	looks *looks      // what each coordinator said
	early *time.Timer // fills looks before they are needed

	mu                sync.Mutex
	since, last, told time.Time
}

// looks keeps for a while what the coordinators said when each was asked.
type looks struct {
	survey func() *outlook
	now    func() time.Time

	mu   sync.Mutex
	last *outlook
	at   time.Time
}

// look returns what the coordinators said last. It asks them if that is too old.
func (l *looks) look() *outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.now().Sub(l.at) > lookKept {
		l.last = l.survey()
		l.at = l.now()
	}
	return l.last
}

// patient makes the client wait for the cluster, and say why on stderr.
func (s *asked) patient(wait time.Duration) {
	s.early.Stop()
	s.tells, s.cl.Patience = true, wait
}

// waiting says why a request waits: after two seconds, then every five.
func (s *asked) waiting(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.last) > lull {
		s.since = now
	}
	s.last = now
	if !s.tells || now.Sub(s.since) < quiet || now.Sub(s.told) < tellEvery {
		return
	}
	s.told = now
	o := judge(s.cl.Survey(s.a.ctx))
	if s.last = time.Now(); s.a.ctx.Err() == nil {
		s.a.note("waiting for the cluster: %s", o.reason(err))
	}
}

// explained adds what each coordinator says to the error that no coordinator answered.
func (s *asked) explained(err error) error {
	var e *client.Unavailable
	if s == nil || !errors.As(err, &e) {
		return err
	}
	var o *outlook
	if s.tells {
		o = judge(s.cl.Survey(s.a.ctx))
	} else {
		o = s.looks.look()
	}
	if s.a.ctx.Err() != nil {
		return s.a.ctx.Err()
	}
	text := strings.Replace(err.Error(), e.Error(), o.reason(e.Last), 1)
	if e.Unknown {
		text += "; the command may have taken effect nevertheless: check before you repeat it"
	}
	return reworded{err, text}
}
