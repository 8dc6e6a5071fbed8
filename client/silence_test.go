package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

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

// A coordinator that answers nothing at all is left for the next, long before the time
// of one try is over; for a request that changes something as well.
func TestSilentCoordinatorIsLeft(t *testing.T) {
	well := serve(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, protocol.JobInfo{ID: 7}) })
	c := connect(t, hanging(t).URL, well.URL)
	c.silent = 100 * time.Millisecond
	start := time.Now()
	j, err := c.Submit(t.Context(), protocol.Spec{})
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
		for probed.Load() < 2*probes && r.Context().Err() == nil { // far beyond the silence that is borne
			time.Sleep(time.Millisecond)
		}
		answer(w, http.StatusOK, protocol.JobList{Jobs: []protocol.JobInfo{{ID: 7}}, Total: 1})
	})
	c := connect(t, slow.URL)
	c.silent = 300 * time.Millisecond
	if jobs, err := c.Jobs(t.Context()); err != nil || len(jobs) != 1 || asked.Load() != 1 {
		t.Errorf("%v, %v after %d requests", jobs, err, asked.Load())
	}
}

// No request takes much longer than its client's patience, where coordinators answer
// nothing or only that they are there; the error says how long was waited.
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
		_, err := c.Jobs(t.Context())
		var e *Unavailable
		var waited silent
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &e) || !errors.As(e.Last, &waited) || waited.Duration > test.most || waited.Duration < test.most/2 {
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
		_, err := c.Submit(t.Context(), protocol.Spec{})
		if test.reads {
			_, err = c.Jobs(t.Context())
		}
		var e *Unavailable
		if !errors.As(err, &e) || e.Unknown != test.want {
			t.Errorf("%v: %+v, want unknown %v", test.servers, err, test.want)
		}
	}
}
