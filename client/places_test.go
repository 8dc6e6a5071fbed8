package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// told is a fake cluster. Its coordinators name each other.
type told struct {
	mu      sync.Mutex
	id      string
	members []protocol.MemberEntry
	asked   map[string]int // requests by coordinator, without questions for the others
	servers map[string]*httptest.Server
}

// tell starts a coordinator of the cluster, which answers f.
func (c *told) tell(t *testing.T, id string, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		cluster := protocol.Cluster{ID: c.id, Leader: "a", Coordinators: slices.Clone(c.members)}
		if r.URL.String() != protocol.ClusterLocal {
			c.asked[id]++
		}
		c.mu.Unlock()
		if r.URL.String() == protocol.ClusterLocal {
			answer(w, http.StatusOK, cluster)
			return
		}
		f(w, r)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members = append(c.members, protocol.MemberEntry{ID: id, HTTP: bare(s.URL)})
	c.servers[id] = s
	return s
}

func (c *told) count(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[id]
}

func newTold(id string) *told {
	return &told{id: id, asked: make(map[string]int), servers: make(map[string]*httptest.Server)}
}

// learns waits until a client knows so many addresses.
func learns(t *testing.T, c *Client, n int) {
	t.Helper()
	testkit.Until(t, "the client to learn the others", func() bool { return len(c.places.all()) == n })
}

func list(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, []protocol.Dataset{}) }

// A client with one address continues with another coordinator if the first one stops. It
// tries the given addresses first, and does not learn from another cluster.
func TestClientLearnsTheOthers(t *testing.T) {
	cluster := newTold("c1")
	a, _ := cluster.tell(t, "a", list), cluster.tell(t, "b", list)
	c := connect(t, a.URL)
	if _, err := c.Datasets().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	learns(t, c, 2)
	if cluster.count("b") != 0 {
		t.Error("a learnt coordinator is asked while the given one answers")
	}
	a.Close()
	for range 2 {
		if _, err := c.Datasets().List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := cluster.count("b"); n != 2 {
		t.Errorf("%d requests reached the other", n)
	}
	if got := c.Servers(); len(got) != 1 || got[0] != a.URL {
		t.Errorf("it was given %v", got)
	}
}

// An address that has become another cluster's is not used, nor are addresses that
// another cluster names.
func TestClientStaysWithItsCluster(t *testing.T) {
	cluster := newTold("c1")
	a, _ := cluster.tell(t, "a", list), cluster.tell(t, "b", list)
	c := connect(t, a.URL)
	c.Patience = 0
	if _, err := c.Datasets().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	learns(t, c, 2)
	a.Close()
	cluster.mu.Lock()
	cluster.id = "c2"
	cluster.mu.Unlock()
	var e *Unavailable
	if _, err := c.Datasets().List(t.Context()); !errors.As(err, &e) || !strings.Contains(e.Last.Error(), "refused") {
		t.Errorf("got %v", err)
	}
	if cluster.count("b") != 0 {
		t.Error("a coordinator of another cluster was asked")
	}
	reports := c.Survey(t.Context())
	if len(reports) != 2 || reports[0].ID != "a" || reports[1].Self != nil {
		t.Errorf("a survey has %+v", reports)
	}
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	if c.places.learn(&protocol.Cluster{ID: "c2", Leader: "x",
		Coordinators: []protocol.MemberEntry{{ID: "x", HTTP: "10.0.0.1:1"}}}, true) || len(c.places.learnt) != 1 {
		t.Errorf("it learnt %v of another cluster", c.places.learnt)
	}
}

// Learnt addresses that are not reachable from here, as behind a NAT, change nothing
// while a given address answers. If none does, they cost a bounded wait.
func TestToldAddressesMayBeUnreachable(t *testing.T) {
	cluster := newTold("c1")
	var away atomic.Bool
	a := cluster.tell(t, "a", func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
			return
		}
		list(w, r)
	})
	cluster.members = append(cluster.members, protocol.MemberEntry{ID: "b", HTTP: bare(hanging(t).URL)},
		protocol.MemberEntry{ID: "c", HTTP: "0.0.0.0:7100"})
	c := connect(t, a.URL)
	if _, err := c.Datasets().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	learns(t, c, 2)
	away.Store(true)
	c.Waiting = func(error) { away.Store(false) }
	if _, err := c.Datasets().List(t.Context()); err != nil {
		t.Error(err)
	}
	if got := c.places.current; got != "" {
		t.Errorf("it goes on with %s", got)
	}
}

// If a given address has https, nothing is sent to learnt addresses.
func TestNothingIsLearntOverTLS(t *testing.T) {
	p := newPlaces([]string{"https://a:1"})
	defer p.close()
	if !p.learn(&protocol.Cluster{ID: "c1", Leader: "a",
		Coordinators: []protocol.MemberEntry{{ID: "a", HTTP: "10.0.0.1:7100"}}}, true) || len(p.learnt) > 0 ||
		len(p.members) != 1 {
		t.Errorf("it learnt %v of %v", p.learnt, p.members)
	}
}

// Through a proxy, in the clear or with TLS, no address behind it is learnt or asked. Requests wait for the proxy.
func TestNothingIsLearntBehindAProxy(t *testing.T) {
	cluster := newTold("c1")
	a, _ := cluster.tell(t, "a", list), cluster.tell(t, "b", list)
	to, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	var down atomic.Bool
	inner := httputil.NewSingleHostReverseProxy(to)
	proxy := serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "no coordinator", http.StatusBadGateway)
			return
		}
		inner.ServeHTTP(w, r)
	})
	c := connect(t, proxy.URL)
	c.Patience = 0
	if _, err := c.Datasets().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the client to ask for the others", func() bool {
		c.places.mu.Lock()
		defer c.places.mu.Unlock()
		return len(c.places.members) == 2
	})
	down.Store(true)
	var e *Unavailable
	if _, err := c.Datasets().List(t.Context()); !errors.As(err, &e) || len(c.places.all()) != 1 ||
		cluster.count("b") > 0 {
		t.Errorf("got %v; it knows %v, and b had %d requests", err, c.places.all(), cluster.count("b"))
	}
}

// A given address is of a member if both hosts have an address in common.
func TestIsMember(t *testing.T) {
	members := []protocol.MemberEntry{{ID: "a"}, {ID: "b", HTTP: "127.0.0.1:7100"},
		{ID: "c", HTTP: "no-such-host.invalid:7100"}}
	for address, want := range map[string]bool{
		"127.0.0.1:7100": true, "localhost:7100": true, "no-such-host.invalid:7100": true, "127.0.0.1:7101": false,
		"192.0.2.1:7100": false, "": false, "127.0.0.1:7100/coppice": false,
	} {
		if got := isMember(t.Context(), address, members); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// What is learnt is bounded, has no address twice, and gives way to what a leader's
// follower says later. A coordinator that hears no leader changes nothing.
func TestLearntAddresses(t *testing.T) {
	p := newPlaces([]string{"http://localhost:1"})
	defer p.close()
	of := func(leader string, addresses ...string) *protocol.Cluster {
		c := &protocol.Cluster{ID: "c1", Leader: leader}
		for _, a := range addresses {
			c.Coordinators = append(c.Coordinators, protocol.MemberEntry{ID: a, HTTP: a})
		}
		return c
	}
	for _, step := range []struct {
		cluster *protocol.Cluster
		want    string
	}{
		{of("", "127.0.0.1:1", "h:1"), "http://h:1"},
		{of("x", "127.0.0.1:1", "h:2", "[::]:7100", "a b:1"), "http://h:2"},
		{of("", "h:3"), "http://h:2"}, {of("x"), "http://h:2"},
		{&protocol.Cluster{Leader: "x", Coordinators: of("", "h:4").Coordinators}, "http://h:2"},
	} {
		p.learn(step.cluster, true)
		if got := strings.Join(p.learnt, " "); got != step.want {
			t.Errorf("after %+v: %q, want %q", step.cluster, got, step.want)
		}
	}
	many := of("x")
	for i := range 100 {
		many.Coordinators = append(many.Coordinators, protocol.MemberEntry{HTTP: "h:" + string(rune('1'+i%9)) +
			string(rune('0'+i/9%10))})
	}
	if p.learn(many, true); len(p.learnt) != maxLearnt {
		t.Errorf("%d addresses", len(p.learnt))
	}
}

// If the coordinator that was given ends, a watch goes on at a learnt one.
func TestWatchGoesOnElsewhere(t *testing.T) {
	cluster := newTold("c1")
	cut := make(chan struct{})
	a := cluster.tell(t, "a", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		answer(w, http.StatusOK, protocol.JobInfo{ID: 3, State: protocol.Running, Rounds: 1})
		http.NewResponseController(w).Flush()
		select {
		case <-cut:
		case <-r.Context().Done():
		}
	})
	cluster.tell(t, "b", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, protocol.JobInfo{ID: 3, State: protocol.Done, Rounds: 2})
	})
	c := connect(t, a.URL)
	type end struct {
		last *protocol.JobInfo
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		last, err := c.Jobs().Watch(testkit.Context(t), "3", func(*protocol.JobInfo) {})
		ended <- end{last, err}
	}()
	learns(t, c, 2)
	a.Listener.Close()
	close(cut)
	e := testkit.Receive(t, "the end of the watch", ended)
	if e.err != nil || e.last.Rounds != 2 || cluster.count("a") != 1 {
		t.Errorf("got %+v, %v after %d watches of the first", e.last, e.err, cluster.count("a"))
	}
}

// describes serves what a coordinator says of itself, and the addresses of the members.
func describes(t *testing.T, id string, members func() []protocol.MemberEntry) string {
	t.Helper()
	return bare(serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.String() {
		case "/v1/self":
			answer(w, http.StatusOK, protocol.Self{MemberEntry: protocol.MemberEntry{ID: id}, Phase: "member"})
		case protocol.ClusterLocal:
			answer(w, http.StatusOK, protocol.Cluster{Coordinators: members()})
		default: // nobody leads
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
		}
	}).URL)
}

// A survey asks the given coordinators and the coordinators that these name, each once.
// It does not wait long for a coordinator that hangs, and knows the names of coordinators
// that do not answer.
func TestSurvey(t *testing.T) {
	var members []protocol.MemberEntry
	named := func() []protocol.MemberEntry { return members }
	a, b, again := describes(t, "a", named), describes(t, "b", named), describes(t, "a", named)
	frozen, gone := bare(hanging(t).URL), bare(dead(t))
	members = []protocol.MemberEntry{{ID: "a", HTTP: a}, {ID: "b", HTTP: b}, {ID: "c", HTTP: frozen},
		{ID: "d", HTTP: gone}}
	start := time.Now()
	reports := connect(t, a, again, gone).Survey(t.Context())
	if took := time.Since(start); took > 2*protocol.Survey+10*time.Second {
		t.Errorf("it took %v", took)
	}
	got := make(map[string]Report)
	for _, r := range reports {
		got[r.ID] = r
	}
	if len(reports) != 4 || len(got) != 4 {
		t.Fatalf("%d reports of %d coordinators: %+v", len(reports), len(got), reports)
	}
	for _, id := range []string{"a", "b"} {
		if r := got[id]; r.Self == nil || r.Self.ID != id || r.Local == nil || r.Err != nil {
			t.Errorf("%s: %+v", id, r)
		}
	}
	for id, says := range map[string]string{"c": "no answer in 1s", "d": "connection refused"} {
		if r := got[id]; r.Self != nil || r.Err == nil || !strings.Contains(r.Err.Error(), says) {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// A coordinator that is starting describes itself. Another server is reported as a
// stranger.
func TestSurveyOfOthers(t *testing.T) {
	starts := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/self" {
			answer(w, http.StatusOK, protocol.Self{Phase: "new", Condition: protocol.Condition{Problem: "the disk is full"}})
			return
		}
		answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "the disk is full"})
	})
	page := serve(t, http.NotFound)
	reports := connect(t, starts.URL, page.URL).Survey(t.Context())
	if len(reports) != 2 || reports[0].Self == nil || reports[0].Local != nil || reports[0].Self.Problem == "" {
		t.Errorf("%+v", reports)
	}
	if err := reports[1].Err; err == nil || !strings.Contains(err.Error(), "not a coordinator") {
		t.Errorf("%v", err)
	}
}
