package worker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// three is a cluster of three coordinators with NATS servers of their own, as one that
// hears a leader of an epoch tells of it.
func three(leader string, epoch uint64) *protocol.Cluster {
	c := &protocol.Cluster{
		ID: "x", Leader: leader, Epoch: epoch, Heartbeat: 25,
		Protocol: protocol.Version, Numerics: round.Numerics,
	}
	for _, id := range []string{"a", "b", "c"} {
		c.Coordinators = append(c.Coordinators, protocol.MemberEntry{ID: id, NATS: "nats://" + id})
		c.NATS = append(c.NATS, "nats://"+id)
	}
	return c
}

func TestCourse(t *testing.T) {
	heard := standing{epoch: 5, leader: "a", server: "a", tried: 5, rested: true}
	with := func(f func(*standing)) standing { s := heard; f(&s); return s }
	silent := with(func(s *standing) { s.silent = true })
	lost := with(func(s *standing) { s.silent, s.lost = true, true })
	other := three("b", 6)
	other.ID = "y"
	elsewhere := three("", 5)
	elsewhere.NATS = []string{"nats://z"}
	outside := three("b", 6)
	outside.NATS = []string{"nats://z"}
	type list = []*protocol.Cluster
	for name, test := range map[string]struct {
		s       standing
		answers list
		does    course
	}{
		"nobody answers":                      {silent, nil, stays},
		"nobody knows a leader":               {silent, list{three("", 5), three("", 5), three("", 5)}, stays},
		"the majority has another leader":     {silent, list{three("", 5), three("b", 9), three("b", 9)}, moves},
		"the former leader does not know yet": {silent, list{three("a", 5), three("b", 9)}, moves},
		"only the former leader answers":      {silent, list{three("a", 5)}, stays},
		"one that lags behind":                {with(func(s *standing) { s.silent, s.epoch = true, 9 }), list{three("a", 5)}, stays},
		"a leader that is heard elsewhere":    {with(func(s *standing) { s.server = "b" }), list{three("a", 5)}, moves},
		"one that is not heard, elsewhere":    {with(func(s *standing) { s.server, s.silent = "b", true }), list{three("a", 5)}, moves},
		"not connected":                       {with(func(s *standing) { s.server, s.silent = "", true }), list{three("a", 5)}, moves},
		"not twice under one epoch":           {with(func(s *standing) { s.server, s.silent, s.rested = "b", true, false }), list{three("a", 5)}, stays},
		"at once under a higher one":          {with(func(s *standing) { s.silent, s.rested = true, false }), list{three("b", 6)}, moves},
		"heard, and another of the epoch":     {with(func(s *standing) { s.server = "c" }), list{three("b", 5)}, stays},
		"a NATS of its own":                   {silent, list{outside}, stays},
		"the cluster is another, not yet":     {silent, list{other}, stays},
		"the cluster is another":              {lost, list{other}, ends},
		"its NATS is elsewhere":               {lost, list{elsewhere}, ends},
		"it began anew":                       {lost, list{three("a", 3), three("a", 3)}, anew},
		"it began anew, a minority says":      {lost, list{three("a", 3)}, stays},
		"it began anew, one does not say so":  {lost, list{three("a", 3), three("", 3), three("", 5)}, stays},
		"it began anew, nobody leads yet":     {lost, list{three("", 3), three("", 3)}, stays},
	} {
		if does, _ := test.s.course(three("a", 5), test.answers); does != test.does {
			t.Errorf("%s: %d, want %d", name, does, test.does)
		}
	}
}

func TestDoubts(t *testing.T) {
	for name, test := range map[string]struct {
		s        standing
		embedded bool
		doubts   bool
	}{
		"at its leader's own server": {standing{epoch: 5, leader: "a", server: "a", rested: true}, true, false},
		"silence":                    {standing{epoch: 5, leader: "a", server: "a", silent: true}, true, true},
		"at another server":          {standing{epoch: 5, leader: "a", server: "b", rested: true}, true, true},
		"just after a try":           {standing{epoch: 5, leader: "a", server: "b", tried: 5}, true, false},
		"a new leader just after":    {standing{epoch: 6, leader: "a", server: "b", tried: 5}, true, true},
		"an external NATS":           {standing{epoch: 5, leader: "a", server: "nats", rested: true}, false, false},
		"nobody has led yet":         {standing{server: "b", rested: true}, true, false},
	} {
		if got := test.s.doubts(test.embedded); got != test.doubts {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Whatever coordinators answer: a session never follows an epoch below the highest seen,
// goes where it is not yet and where a leader has a server, does not move twice under
// one epoch without a rest, and follows a later leader that anybody names.
func TestCourseHolds(t *testing.T) {
	ids := rapid.SampledFrom([]string{"", "a", "b", "c"})
	epochs := rapid.Uint64Range(1, 6)
	rapid.Check(t, func(t *rapid.T) {
		s := standing{
			epoch: epochs.Draw(t, "epoch"), leader: ids.Draw(t, "leader"), server: ids.Draw(t, "server"),
			silent: rapid.Bool().Draw(t, "silent"), rested: rapid.Bool().Draw(t, "rested"), tried: epochs.Draw(t, "tried"),
		}
		s.lost = s.silent && rapid.Bool().Draw(t, "lost")
		var answers []*protocol.Cluster
		latest := s.epoch // that somebody leads
		leads := ""
		for range rapid.IntRange(0, 3).Draw(t, "answers") {
			c := three(ids.Draw(t, "named"), epochs.Draw(t, "of"))
			if answers = append(answers, c); c.Epoch > latest {
				latest, leads = c.Epoch, ""
			}
			if c.Epoch == latest && c.Epoch > s.epoch && c.Leader != "" && leads == "" {
				leads = c.Leader
			}
		}
		does, c := s.course(three("a", 1), answers)
		if does == moves {
			switch {
			case c.Epoch < s.epoch:
				t.Fatalf("it follows epoch %d after %d", c.Epoch, s.epoch)
			case c.Leader == "" || c.Leader == s.server:
				t.Fatalf("it moves to %q from %q", c.Leader, s.server)
			case !s.rested && c.Epoch <= s.tried:
				t.Fatalf("it moves again under epoch %d, tried under %d", c.Epoch, s.tried)
			}
		}
		if leads != "" && leads != s.server && (s.rested || latest > s.tried) && does != moves {
			t.Fatalf("%s leads since %d, it was at %q under %d, and does %d", leads, latest, s.server, s.epoch, does)
		}
	})
}

// All coordinators are asked at once, and one that hangs holds up nobody once an answer
// is enough; else no longer than the time that is given.
func TestAskAll(t *testing.T) {
	tell := func(c *protocol.Cluster) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.String(), protocol.ClusterLocal+"&wait_ms=") {
				t.Errorf("asked for %s", r.URL)
			}
			json.NewEncoder(w).Encode(c)
		}))
		t.Cleanup(s.Close)
		return s
	}
	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer hangs.Close()
	defer close(over)
	old, next := tell(three("a", 5)), tell(three("b", 9))
	j := newCoordinators(&Config{Join: []string{hangs.URL, old.URL, next.URL}, Log: nil})
	defer j.close()
	list, err := j.ask(t.Context(), timeout, func(c *protocol.Cluster) bool { return c.Epoch == 9 })
	if c := newest(list); err != nil || c == nil || c.Leader != "b" {
		t.Errorf("%v, %v", list, err)
	}
	never := func(*protocol.Cluster) bool { return false }
	if list, err = j.ask(t.Context(), timeout/300, never); err != nil || len(list) != 2 {
		t.Errorf("within a bound: %d answers, %v", len(list), err)
	}
	next.Config.Handler = http.NotFoundHandler()
	j = newCoordinators(&Config{Join: []string{next.URL, hangs.URL}, Log: nil})
	defer j.close()
	if list, err = j.ask(t.Context(), timeout/300, never); len(list) != 0 || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "404") {
		t.Errorf("nobody: %d answers, %v", len(list), err)
	}
}

// The time between two questions grows with the silence, to a bound.
func TestAskPause(t *testing.T) {
	limits := protocol.DeriveTimeouts(100 * time.Millisecond)
	for silence, want := range map[time.Duration]time.Duration{time.Second: 0, 8 * time.Second: time.Second, time.Hour: maxPause} {
		if got := askPause(silence, limits); got != want {
			t.Errorf("after %v: %v, want %v", silence, got, want)
		}
	}
}

// A session that hears a leader whose server does not answer tries again later and
// later, one that does not hear it at once, and both at once under a higher epoch.
func TestFailedMoves(t *testing.T) {
	s := &session{limits: protocol.DeriveTimeouts(100 * time.Millisecond), tried: 4}
	last := time.Duration(0)
	for range 4 {
		s.failed(5, false)
		wait := time.Until(s.stay)
		if s.tried != 5 || wait < last+s.limits.LeaderLost/2 {
			t.Errorf("after %v it waits for %v", last, wait)
		}
		last = wait
	}
	if s.failed(5, true); time.Until(s.stay) > 0 {
		t.Error("it waits though it hears nobody")
	}
	if s.failed(6, false); time.Until(s.stay) > s.limits.LeaderLost {
		t.Error("a higher epoch does not begin anew")
	}
}
