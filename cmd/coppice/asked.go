package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// lull is how long no request had to be sent again once the cluster is back: longer
	// than a try may take.
	lull = protocol.ClientTry + time.Second
	// tellEvery is the time between two lines that say for whom a command waits.
	tellEvery = 5 * time.Second
	// lookAfter is when a command that only reads has each coordinator asked for itself, so
	// that it can tell what they said when its own time is over.
	lookAfter = protocol.ClientRead - 2*protocol.Survey - 250*time.Millisecond
	// lookKept is for how long the answers explain an error: as long as a command that only
	// reads waits for a first one.
	lookKept = protocol.ClientRead
)

// asked is a cluster that a command asks, and what is known of why it does not answer.
type asked struct {
	a     *app
	cl    *client.Client
	tells bool        // on stderr, while it waits; else it only reads
	looks *looks      // what each coordinator said for itself
	early *time.Timer // has that done before it is needed

	mu                sync.Mutex
	since, last, told time.Time
}

// newAsked prepares for a cluster that does not answer.
func newAsked(a *app, cl *client.Client) *asked {
	ctx, cancel := context.WithCancel(a.ctx)
	looks := &looks{survey: func() *outlook { return judge(cl.Survey(ctx)) }, now: time.Now}
	now := time.Now()
	s := &asked{a: a, cl: cl, since: now, last: now, looks: looks, early: time.AfterFunc(lookAfter, func() { looks.look() })}
	a.atEnd = append(a.atEnd, func() {
		cancel()
		if !s.early.Stop() {
			looks.look() // wait for its end
		}
	})
	return s
}

// looks keeps for a while what each coordinator said when all were asked.
type looks struct {
	survey func() *outlook
	now    func() time.Time

	mu   sync.Mutex
	last *outlook
	at   time.Time
}

// look returns what they said last, or asks them where that is too long ago.
func (l *looks) look() *outlook {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil || l.now().Sub(l.at) > lookKept {
		l.last = l.survey()
		l.at = l.now()
	}
	return l.last
}

// patient has the command say on stderr for whom it waits, for as long as it does.
func (s *asked) patient(wait time.Duration) {
	s.early.Stop()
	s.tells, s.cl.Patience = true, wait
}

// waiting says for whom a request waits: once it has for two seconds, then every five.
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

// explained says of an error that no coordinator answered what each of them says.
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
	return outage{err, text}
}

// reason says why a request got no answer whose last try ended with err.
func (o *outlook) reason(err error) string {
	if o.Leader == "" || err == nil {
		return o.problem()
	}
	return fmt.Sprintf("%v (%s)", err, o.said())
}

// outage is the error of a command that got no answer, with what each coordinator says.
type outage struct {
	error
	text string
}

func (e outage) Unwrap() error { return e.error }

func (e outage) Error() string { return e.text }
