package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
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
	heard := leaderState{epoch: 5, leader: "a", server: "a", tried: 5, mayRetry: true}
	with := func(f func(*leaderState)) leaderState { s := heard; f(&s); return s }
	silent := with(func(s *leaderState) { s.silent = true })
	lost := with(func(s *leaderState) { s.silent, s.lost = true, true })
	other := three("b", 6)
	other.ID = "y"
	elsewhere := three("", 5)
	elsewhere.NATS = []string{"nats://z"}
	outside := three("b", 6)
	outside.NATS = []string{"nats://z"}
	type list = []*protocol.Cluster
	for name, test := range map[string]struct {
		s       leaderState
		answers list
		does    decision
	}{
		"nobody answers":                      {silent, nil, stays},
		"nobody knows a leader":               {silent, list{three("", 5), three("", 5), three("", 5)}, stays},
		"the majority has another leader":     {silent, list{three("", 5), three("b", 9), three("b", 9)}, moves},
		"the former leader does not know yet": {silent, list{three("a", 5), three("b", 9)}, moves},
		"only the former leader answers":      {silent, list{three("a", 5)}, stays},
		"one that lags behind": {with(func(s *leaderState) {
			s.silent, s.epoch = true, 9
		}), list{three("a", 5)}, stays},
		"a leader that is heard elsewhere": {with(func(s *leaderState) { s.server = "b" }), list{three("a", 5)}, moves},
		"one that is not heard, elsewhere": {with(func(s *leaderState) {
			s.server, s.silent = "b", true
		}), list{three("a", 5)}, moves},
		"not connected": {with(func(s *leaderState) {
			s.server, s.silent = "", true
		}), list{three("a", 5)}, moves},
		"not twice under one epoch": {with(func(s *leaderState) {
			s.server, s.silent, s.mayRetry = "b", true, false
		}), list{three("a", 5)}, stays},
		"at once under a higher one": {with(func(s *leaderState) {
			s.silent, s.mayRetry = true, false
		}), list{three("b", 6)}, moves},
		"heard, and another of the epoch":    {with(func(s *leaderState) { s.server = "c" }), list{three("b", 5)}, stays},
		"a NATS of its own":                  {silent, list{outside}, stays},
		"the cluster is another, not yet":    {silent, list{other}, stays},
		"the cluster is another":             {lost, list{other}, ends},
		"its NATS is elsewhere":              {lost, list{elsewhere}, ends},
		"it began anew":                      {lost, list{three("a", 3), three("a", 3)}, startsOver},
		"it began anew, a minority says":     {lost, list{three("a", 3)}, stays},
		"it began anew, one does not say so": {lost, list{three("a", 3), three("", 3), three("", 5)}, stays},
		"it began anew, nobody leads yet":    {lost, list{three("", 3), three("", 3)}, stays},
	} {
		if does, _ := test.s.decide(three("a", 5), test.answers); does != test.does {
			t.Errorf("%s: %d, want %d", name, does, test.does)
		}
	}
}

func TestDoubts(t *testing.T) {
	for name, test := range map[string]struct {
		s         leaderState
		embedded  bool
		shouldAsk bool
	}{
		"at its leader's own server": {leaderState{epoch: 5, leader: "a", server: "a", mayRetry: true}, true, false},
		"silence":                    {leaderState{epoch: 5, leader: "a", server: "a", silent: true}, true, true},
		"at another server":          {leaderState{epoch: 5, leader: "a", server: "b", mayRetry: true}, true, true},
		"just after a try":           {leaderState{epoch: 5, leader: "a", server: "b", tried: 5}, true, false},
		"a new leader just after":    {leaderState{epoch: 6, leader: "a", server: "b", tried: 5}, true, true},
		"an external NATS":           {leaderState{epoch: 5, leader: "a", server: "nats", mayRetry: true}, false, false},
		"nobody has led yet":         {leaderState{server: "b", mayRetry: true}, true, false},
	} {
		if got := test.s.shouldAsk(test.embedded); got != test.shouldAsk {
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
		s := leaderState{
			epoch: epochs.Draw(t, "epoch"), leader: ids.Draw(t, "leader"), server: ids.Draw(t, "server"),
			silent: rapid.Bool().Draw(t, "silent"), mayRetry: rapid.Bool().Draw(t, "mayRetry"), tried: epochs.Draw(t, "tried"),
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
		does, c := s.decide(three("a", 1), answers)
		if does == moves {
			switch {
			case c.Epoch < s.epoch:
				t.Fatalf("it follows epoch %d after %d", c.Epoch, s.epoch)
			case c.Leader == "" || c.Leader == s.server:
				t.Fatalf("it moves to %q from %q", c.Leader, s.server)
			case !s.mayRetry && c.Epoch <= s.tried:
				t.Fatalf("it moves again under epoch %d, tried under %d", c.Epoch, s.tried)
			}
		}
		if leads != "" && leads != s.server && (s.mayRetry || latest > s.tried) && does != moves {
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
	if list, err = j.ask(t.Context(), timeout/300, never); len(list) != 0 || !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "404") {
		t.Errorf("nobody: %d answers, %v", len(list), err)
	}
}

// The time between two questions grows with the silence, to a bound.
func TestAskPause(t *testing.T) {
	limits := protocol.DeriveTimeouts(100 * time.Millisecond)
	for silence, want := range map[time.Duration]time.Duration{time.Second: 0, 8 * time.Second: time.Second,
		time.Hour: maxPause} {
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
		wait := time.Until(s.stayUntil)
		if s.tried != 5 || wait < last+s.limits.LeaderLost/2 {
			t.Errorf("after %v it waits for %v", last, wait)
		}
		last = wait
	}
	if s.failed(5, true); time.Until(s.stayUntil) > 0 {
		t.Error("it waits though it hears nobody")
	}
	if s.failed(6, false); time.Until(s.stayUntil) > s.limits.LeaderLost {
		t.Error("a higher epoch does not begin anew")
	}
}

// TestLateAnnouncement: two sessions overlap for a moment. An announcement of an earlier leader, which comes late over
// the former one, does not replace the leader of the next; neither does the move itself, if the next leader is quicker.
func TestLateAnnouncement(t *testing.T) {
	changed := 0
	l := &leadership{env: &env{id: "w", log: slog.New(slog.DiscardHandler)}, changed: func() { changed++ }}
	l.expect("c", 5)
	if !l.hears(&protocol.Lead{Epoch: 6, Coordinator: "b"}) || l.name != "b" {
		t.Fatalf("the leader is %q", l.name)
	}
	for _, late := range []string{"a", ""} {
		if l.hears(&protocol.Lead{Epoch: 5, Coordinator: late}) || l.name != "b" || l.vacant || changed != 1 {
			t.Fatalf("after an announcement of %q under an earlier epoch the leader is %q, vacant: %v", late, l.name, l.vacant)
		}
	}
	if l.expect("c", 6); l.name != "b" {
		t.Errorf("after the move the leader is %q", l.name)
	}
	if l.expect("c", 7); l.name != "" {
		t.Errorf("under a new epoch the leader is %q", l.name)
	}
	if !l.expect("d", 0) || !l.hears(&protocol.Lead{Epoch: 1, Coordinator: "a"}) {
		t.Error("epochs of another cluster count")
	}
}

// TestLeaderFirst: the leader's own NATS server comes first, an external one stays
// where it is, and what the coordinators said is left alone.
func TestLeaderFirst(t *testing.T) {
	c := &protocol.Cluster{
		NATS: []string{"nats://a", "nats://b", "nats://c"}, Leader: "c",
		Coordinators: []protocol.MemberEntry{{ID: "a", NATS: "nats://a"}, {ID: "c", NATS: "nats://c"}},
	}
	if got, want := leaderFirst(c, ""), []string{"nats://c", "nats://a", "nats://b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if c.NATS[0] != "nats://a" {
		t.Error("the cluster's own list was changed")
	}
	if got, want := leaderFirst(c, "a"), []string{"nats://c", "nats://b", "nats://a"}; !slices.Equal(got, want) {
		t.Errorf("to avoid a: %v, want %v", got, want)
	}
	c.NATS = []string{"nats://x", "nats://y"}
	if got := leaderFirst(c, "a"); !slices.Equal(got, c.NATS) {
		t.Errorf("%v, want %v", got, c.NATS)
	}
}

// TestMovesNearer: a worker that is connected to another server than the leader's own
// moves there at once, and what it works at goes on; where the server is out of reach it
// stays.
func TestMovesNearer(t *testing.T) {
	t.Parallel() // it waits
	d := importData(t, dense())
	options := serverOptions
	options.Name, options.Cluster, options.RoutePort = "b", "nearer", -1
	c := newClusterOf(t, options)
	c.add(d)
	options.Name, options.Routes = "a", []string{c.server.RouteURL()}
	server := natstest.Server(t, options)
	eventually(t, "a route", func() bool { return len(server.Routes()) == 1 })
	const nowhere = "nats://127.0.0.1:1"
	c.set(func(i *protocol.Cluster) {
		i.NATS = []string{c.server.ClientURL(), server.ClientURL(), nowhere}
		i.Coordinators = []protocol.MemberEntry{
			{ID: "b", NATS: c.server.ClientURL()}, {ID: "a", NATS: server.ClientURL()}, {ID: "x", NATS: nowhere},
		}
	})
	leads := func(l *leader) *leader {
		c.set(func(i *protocol.Cluster) { i.Leader, i.Epoch = l.id, l.epoch })
		l.announce()
		return l
	}
	// compute has the worker compute a round, asked again where a message is lost that
	// has a route to take; it returns the partial.
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	compute := func(w *running, l *leader) (p *protocol.Partial) {
		t.Helper()
		tick := time.NewTicker(timeout / 300)
		defer tick.Stop()
		eventually(t, "a part for "+l.id, func() bool {
			l.setup(w, 40, j, d.manifest)
			l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
			select {
			case p = <-l.parts:
			case <-tick.C:
			}
			return p != nil
		})
		return p
	}
	at := func(w *running) string { return w.link.session.Load().conn.ServerName() }

	w := c.start(Config{}) // nobody leads
	if at(w) != "b" {
		t.Fatalf("the worker is connected to %q", at(w))
	}
	open := c.close()
	l := c.unannounced("a", 5) // else the worker may be on its way when the orders come, and miss them
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
	busy := func() bool {
		return w.job(40) != nil && !w.quiet(func(j *batch.Job) bool { return j.Live() == 0 })
	}
	eventually(t, "work", busy)
	leads(l)
	eventually(t, "the move", func() bool { return at(w) == "a" })
	if !busy() {
		t.Error("the work has ended")
	}
	open()
	receive(t, "a part of what it was at", l.parts)
	if err := samePartial(compute(w, l).Partial, sums[0]); err != nil {
		t.Error(err)
	}
	compute(w, leads(c.unannounced("x", 6)))
	leads(c.unannounced("b", 7))
	eventually(t, "the move back", func() bool { return at(w) == "b" })
}

// TestFollowsTheMajority: the leader's coordinator is cut off from the others, and not
// from the worker. Nobody can reach the worker where it is connected, but a coordinator
// tells of a later leader when it is asked: there it goes with what it has in work.
func TestFollowsTheMajority(t *testing.T) {
	d := importData(t, dense())
	options := serverOptions
	options.Name = "a"
	c := newClusterOf(t, options)
	c.add(d)
	options.Name = "b"
	other := natstest.Server(t, options) // without a route between them
	c.set(func(i *protocol.Cluster) {
		i.NATS = []string{c.server.ClientURL(), other.ClientURL()}
		i.Coordinators = []protocol.MemberEntry{{ID: "a", NATS: c.server.ClientURL()}, {ID: "b", NATS: other.ClientURL()}}
		i.Leader, i.Epoch = "a", 5
	})
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
	receive(t, "a part", l.parts)

	c.server = other
	c.conn = c.dial()
	if _, err := bus.ServeBlobs(c.conn, c.subjects.Fetch("*"), "coordinators", c.open); err != nil {
		t.Fatal(err)
	}
	c.set(func(i *protocol.Cluster) { i.Leader, i.Epoch = "b", 9 })
	l = c.lead("b", 9)
	l.beat(w, "a beat at the other server", func(protocol.Heartbeat) bool { return true })
	l.announce()
	l.beat(w, "a full beat", func(b protocol.Heartbeat) bool { return b.Full })
	l.to(w, l.message(40, 0, list[0], allTasks(list[0].Tasks)))
	p := receive(t, "a part at the other server", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil {
		t.Error(err)
	}
	if at := w.link.session.Load().conn.ServerName(); at != "b" {
		t.Errorf("it is connected to %q", at)
	}
}

// TestTwinOfWorker: a worker logs once that another one has its id, and again if that changes.
func TestTwinOfWorker(t *testing.T) {
	var log bytes.Buffer
	l := &leadership{env: &env{id: "w", log: slog.New(slog.NewTextHandler(&log, nil))}, changed: func() {}}
	for _, addresses := range []string{"", "h:1 and h:2", "h:1 and h:2", "", "h:1 and h:3"} {
		l.hears(&protocol.Lead{Epoch: 1, Coordinator: "a", Twins: map[string]string{"w": addresses, "v": "h:4 and h:5"}})
	}
	if text := log.String(); strings.Count(text, "another worker has the same id; give one of them another --id") != 2 ||
		strings.Contains(text, "h:4") {
		t.Errorf("the log has %s", text)
	}
}
