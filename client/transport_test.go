package client

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// hanging answers nothing until the test ends.
func hanging(t *testing.T) *httptest.Server {
	t.Helper()
	end := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) }) // before the server closes
	return s
}

// A coordinator that answers nothing at all is left for the next, long before the time of
// one try is over; for a request that changes something as well.
func TestSilentCoordinatorIsLeft(t *testing.T) {
	well := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, protocol.JobInfo{ID: 7}) })
	c := connect(t, hanging(t).URL, well.URL)
	c.silent = 100 * time.Millisecond
	start := time.Now()
	j, err := c.Jobs().Submit(t.Context(), protocol.Spec{})
	if err != nil || j.ID != 7 {
		t.Fatalf("%+v, %v", j, err)
	}
	if took := time.Since(start); took > tryTimeout {
		t.Errorf("it took %v", took)
	}
}

// A coordinator that is slow, but there, is waited for.
func TestSlowCoordinatorIsWaitedFor(t *testing.T) {
	var asked, probed atomic.Int32
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			probed.Add(1)
			return
		}
		asked.Add(1)
		for probed.Load() < 2*probesPerSilence && r.Context().Err() == nil { // far beyond the silence that is borne
			time.Sleep(time.Millisecond)
		}
		answer(w, http.StatusOK, protocol.JobList{Jobs: []protocol.JobInfo{{ID: 7}}, Total: 1})
	})
	c := connect(t, slow.URL)
	c.silent = 300 * time.Millisecond
	if jobs, err := c.Jobs().All(t.Context()); err != nil || len(jobs) != 1 || asked.Load() != 1 {
		t.Errorf("%v, %v after %d requests", jobs, err, asked.Load())
	}
}

// No request takes much longer than the patience of its client, even if coordinators
// answer nothing, or only probes. The error says how long the client waited.
func TestPatienceBoundsTries(t *testing.T) {
	end := make(chan struct{})
	stuck := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(end) })
	for name, test := range map[string]struct {
		servers []string
		most    time.Duration // that the error says was waited; half of it at the least
	}{
		"silent": {[]string{hanging(t).URL, hanging(t).URL, hanging(t).URL}, time.Second}, // what is left for the second
		"stuck":  {[]string{stuck.URL, stuck.URL}, leastTry},
	} {
		c := connect(t, test.servers...)
		c.Patience = 0
		c.Faithful = true // of a cluster that it has not met
		start := time.Now()
		_, err := c.Jobs().All(t.Context())
		var e *Unavailable
		var waited silent
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &e) || !errors.As(e.Last, &waited) ||
			waited.Duration > test.most || waited.Duration < test.most/2 {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > leastTry+4*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

// The error of a request that may have changed something, though no answer came, says so.
func TestUnknownOutcome(t *testing.T) {
	busy := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
	})
	forwards := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "the leader did not answer", Unknown: true})
	})
	lost := serve(t, func(w http.ResponseWriter, _ *http.Request) { lose(w) })
	for _, test := range []struct {
		servers []string
		reads   bool
		want    bool
	}{
		{[]string{lost.URL, busy.URL}, false, true}, {[]string{lost.URL}, true, false},
		{[]string{busy.URL, dead(t)}, false, false},
		{[]string{forwards.URL, busy.URL}, false, true}, {[]string{forwards.URL}, true, false},
	} {
		c := connect(t, test.servers...)
		c.Patience = 0
		_, err := c.Jobs().Submit(t.Context(), protocol.Spec{})
		if test.reads {
			_, err = c.Jobs().All(t.Context())
		}
		var e *Unavailable
		if !errors.As(err, &e) || e.Unknown != test.want {
			t.Errorf("%v: %+v, want unknown %v", test.servers, err, test.want)
		}
	}
}

// lose ends a connection without an answer.
func lose(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	c.Close()
}

// A submission that took effect without an answer is sent again with its token, and there
// is one job.
func TestLostAnswer(t *testing.T) {
	jobs := make(map[string]uint64) // by token; one request at a time
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var req protocol.SubmitRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || req.Audit != 0.5 {
			t.Errorf("request %+v, error %v", req, err)
		}
		if _, again := jobs[req.Token]; !again {
			jobs[req.Token] = uint64(len(jobs) + 1)
			lose(w)
			return
		}
		answer(w, http.StatusOK, protocol.JobInfo{ID: jobs[req.Token]})
	})
	c := connect(t, s.URL)
	for want := range uint64(2) {
		j, err := c.Jobs().SubmitRequest(t.Context(), protocol.SubmitRequest{Audit: 0.5})
		if err != nil || j.ID != want+1 {
			t.Fatalf("got %+v, %v", j, err)
		}
	}
	j, err := c.Jobs().SubmitRequest(t.Context(), protocol.SubmitRequest{Token: "kept", Audit: 0.5})
	again, err2 := c.Jobs().SubmitRequest(t.Context(), protocol.SubmitRequest{Token: "kept", Audit: 0.5})
	if err != nil || err2 != nil || j.ID != again.ID || len(jobs) != 3 {
		t.Errorf("a kept token makes jobs %+v and %+v of %d, %v, %v", j, again, len(jobs), err, err2)
	}
}

// A faithful client waits for a cluster that it has met, and for no other.
func TestFaithful(t *testing.T) {
	var away atomic.Bool
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
			return
		}
		answer(w, http.StatusOK, protocol.Cluster{ID: "c"})
	})
	stranger := connect(t, dead(t))
	stranger.Patience, stranger.Faithful = 50*time.Millisecond, true
	if _, err := stranger.Cluster(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a cluster that nobody has met: %v", err)
	}
	for _, faithful := range []bool{false, true} {
		c := connect(t, s.URL)
		c.Patience, c.Faithful = 50*time.Millisecond, faithful
		away.Store(false)
		if _, err := c.Cluster(t.Context()); err != nil {
			t.Fatal(err)
		}
		away.Store(true)
		var waits atomic.Int32
		c.Waiting = func(error) {
			if waits.Add(1) == 6 { // far beyond its patience
				away.Store(false)
			}
		}
		_, err := c.Cluster(t.Context())
		if faithful && (err != nil || waits.Load() < 6) || !faithful && !errors.Is(err, ErrUnavailable) {
			t.Errorf("faithful %v: %v after %d waits", faithful, err, waits.Load())
		}
	}
	c := connect(t, s.URL)
	c.Faithful = true
	ctx, cancel := context.WithCancel(t.Context())
	c.Waiting = func(error) { cancel() }
	away.Store(true)
	if _, err := c.Cluster(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// What is asked of a job by name is about the job that had the name, however often it is
// sent.
func TestWishesAreOfOneJob(t *testing.T) {
	var posts atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/v1/jobs/name" && posts.Load() == 0:
			answer(w, http.StatusOK, protocol.JobInfo{ID: 7})
		case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/v1/jobs/7/"):
			if posts.Add(1)%2 == 1 {
				lose(w)
				return
			}
			answer(w, http.StatusOK, protocol.JobInfo{ID: 7, Name: strings.TrimPrefix(r.URL.Path, "/v1/jobs/7/")})
		default:
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
	})
	c := connect(t, s.URL)
	for want, wish := range map[string]func(context.Context, string) (*protocol.JobInfo, error){"cancel": c.Jobs().Cancel,
		"pause": c.Jobs().Pause, "resume": c.Jobs().Resume} {
		posts.Store(0)
		if j, err := wish(t.Context(), "name"); err != nil || j.Name != want || posts.Load() != 2 {
			t.Errorf("%s: %+v, %v after %d tries", want, j, err, posts.Load())
		}
	}
}

// Trusting a worker is no error if an earlier try went through. Trusting a worker that is
// not quarantined is one.
func TestTrust(t *testing.T) {
	distrusted := []protocol.Quarantined{{Worker: "w1"}}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/cluster":
			answer(w, http.StatusOK, protocol.Cluster{Quarantined: distrusted})
		case distrusted != nil:
			distrusted = nil
			lose(w)
		default:
			answer(w, http.StatusNotFound, protocol.Problem{Error: "not found"})
		}
	})
	c := connect(t, s.URL)
	if err := c.Trust(t.Context(), "w2"); !IsNotFound(err) || !strings.Contains(err.Error(), `"w2"`) {
		t.Errorf("a worker that is trusted: %v", err)
	}
	if err := c.Trust(t.Context(), "w1"); err != nil {
		t.Error(err)
	}
	if err := c.Trust(t.Context(), "w1"); !IsNotFound(err) {
		t.Errorf("trusted again: %v", err)
	}
}

// says listens and writes text to each connection.
func says(t *testing.T, l net.Listener, text string) string {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(text))
			c.Read(make([]byte, 1024)) // the request: closing before would reset the connection
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// What answers and is no coordinator is named with its address in one sentence, at once.
func TestStrangers(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	page := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte("<html>log in</html>"))
	})
	plain := serve(t, http.NotFound)
	old := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte("<html>The plain HTTP request was sent to HTTPS port</html>"))
	})
	tests := []struct{ name, address, says string }{
		{"another HTTP server", plain.URL, "answers the request GET /v1/jobs with the status 404 Not Found"},
		{"a web page", page.URL, "a web page"},
		{"NATS", says(t, testkit.Listen(t), "INFO {\"server_id\":\"X\",\"version\":\"2.15.2\"} \r\n"),
			"a NATS server answers there"},
		{"SSH", says(t, testkit.Listen(t), "SSH-2.0-OpenSSH\r\n"), "does not use HTTP"},
		{"TLS of Go", strings.TrimPrefix(secure.URL, "https://"), "uses TLS"},
		{"TLS of nginx", old.URL, "uses TLS"},
		{"TLS that answers with an alert", says(t, testkit.Listen(t), "\x15\x03\x01\x00\x02\x02\x46\r\n\r\n"), "uses TLS"},
		{"plain HTTP for https", "https://" + strings.TrimPrefix(plain.URL, "http://"), "uses plain HTTP"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, test.address)
			start := time.Now()
			_, err := c.Jobs().All(t.Context())
			if !errors.Is(err, ErrStranger) || !strings.Contains(err.Error(), test.says) ||
				strings.ContainsAny(err.Error(), "\n{<") {
				t.Errorf("got %v", err)
			}
			host := strings.TrimPrefix(strings.TrimPrefix(test.address, "https://"), "http://")
			if err != nil && strings.Count(err.Error(), host) != 1 {
				t.Errorf("%q does not name %s once", err, host)
			}
			if took := time.Since(start); took > c.Patience/2 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A stranger among the addresses does no harm. If a coordinator answered before, the
// client waits for one.
func TestStrangerAmongOthers(t *testing.T) {
	plain := serve(t, http.NotFound)
	real := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, protocol.JobList{Jobs: []protocol.JobInfo{{ID: 7}}})
	})
	c := connect(t, plain.URL, real.URL)
	if jobs, err := c.Jobs().All(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("%v, %v", jobs, err)
	}
	dark := connect(t, plain.URL, dead(t))
	dark.Patience = 50 * time.Millisecond
	_, err := dark.Jobs().All(t.Context())
	if !errors.Is(err, ErrUnavailable) || !errors.Is(err, ErrStranger) {
		t.Errorf("a stranger and a dead address: %v", err)
	}
	n := 0
	flaky := connect(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 2 {
			http.NotFound(w, r)
			return
		}
		answer(w, http.StatusOK, protocol.JobList{})
	}).URL)
	for range 2 {
		if _, err := flaky.Jobs().All(t.Context()); err != nil {
			t.Errorf("a proxy without a coordinator behind it for a moment: %v", err)
		}
	}
}

// A refused connection is told without the words of package net.
func TestRefusedConnection(t *testing.T) {
	c := connect(t, dead(t))
	c.Patience = 50 * time.Millisecond
	_, err := c.Jobs().All(t.Context())
	want := "no coordinator answers at " + bare(c.Servers()[0]) + ": connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLongPlanIsWaitedFor: a plan of very many runs takes longer than a try of other requests, and one request is
// enough. A coordinator that answers no probe either is left.
func TestLongPlanIsWaitedFor(t *testing.T) {
	var asked atomic.Int32
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		asked.Add(1)
		select {
		case <-r.Context().Done():
		case <-time.After(tryTimeout + 500*time.Millisecond):
			answer(w, http.StatusOK, protocol.ExperimentPlan{Runs: 7})
		}
	})
	c := connect(t, hanging(t).URL, slow.URL)
	c.silent = time.Second
	if p, err := c.Experiments().Submit(t.Context(), protocol.ExperimentRequest{}); err != nil || p.Runs != 7 ||
		asked.Load() != 1 {
		t.Errorf("%+v, %v, asked %d times", p, err, asked.Load())
	}
}
