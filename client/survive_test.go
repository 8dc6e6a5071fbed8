package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// lose ends a connection without an answer.
func lose(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	c.Close()
}

// A submission that took effect, but whose answer was lost, is sent again with its
// token, and there is one job.
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
		j, err := c.SubmitRequest(t.Context(), protocol.SubmitRequest{Audit: 0.5})
		if err != nil || j.ID != want+1 {
			t.Fatalf("got %+v, %v", j, err)
		}
	}
	j, err := c.SubmitRequest(t.Context(), protocol.SubmitRequest{Token: "kept", Audit: 0.5})
	again, err2 := c.SubmitRequest(t.Context(), protocol.SubmitRequest{Token: "kept", Audit: 0.5})
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

// What is asked of a job by name is about the job that had the name, however often it
// is sent.
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
	for want, wish := range map[string]func(context.Context, string) (*protocol.JobInfo, error){"cancel": c.Cancel, "pause": c.Pause, "resume": c.Resume} {
		posts.Store(0)
		if j, err := wish(t.Context(), "name"); err != nil || j.Name != want || posts.Load() != 2 {
			t.Errorf("%s: %+v, %v after %d tries", want, j, err, posts.Load())
		}
	}
}

// To trust a worker again whose first request went through is no error; to trust one
// that nobody distrusts is.
func TestTrust(t *testing.T) {
	distrusted := []protocol.Distrusted{{Worker: "w1"}}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/cluster":
			answer(w, http.StatusOK, protocol.Cluster{Distrusted: distrusted})
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
