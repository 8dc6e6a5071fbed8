package worker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// coordinatorThatKnows answers for a cluster, and names another coordinator; empty:
// itself.
func coordinatorThatKnows(t *testing.T, cluster, other string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w,
			`{"id":%q,"protocol":%d,"numerics":%d,"heartbeat_ms":100,"nats":["nats://x:1"],"coordinators":[{"id":"a","http":%q}]}`,
			cluster, protocol.Version, round.Numerics, cmp.Or(other, r.Host))
	}))
	t.Cleanup(s.Close)
	return s
}

// gone is an address at which nobody is.
func gone(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(nil)
	defer s.Close()
	return s.Listener.Addr().String()
}

// A worker asks the coordinators that there are: those of its --join, and those
// that one names that hears a leader.
func TestCoordinatorsAreForgotten(t *testing.T) {
	var told atomic.Pointer[protocol.Cluster]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(told.Load())
	}))
	t.Cleanup(s.Close)
	join := s.Listener.Addr().String()
	j := newCoordinators(&Config{Join: []string{join}, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(j.close)
	tell := func(leader string, others ...string) {
		t.Helper()
		c := &protocol.Cluster{ID: "c1", Leader: leader, Protocol: protocol.Version, Numerics: round.Numerics, Heartbeat: 100,
			NATS: []string{"nats://x:1"}}
		for i, a := range others {
			c.Coordinators = append(c.Coordinators, protocol.MemberEntry{ID: fmt.Sprint(i), HTTP: a})
		}
		told.Store(c)
		if _, err := ask(t, j); err != nil {
			t.Fatal(err)
		}
	}
	const many = 20
	for range many {
		tell("0", gone(t), gone(t))
	}
	last := []string{gone(t), gone(t)}
	tell("0", last...)
	tell("", gone(t)) // cut off from the others, it may be late
	tell("")
	if len(j.addresses) != 4 || j.addresses[0] != join || !slices.Equal(j.addresses[1:3], last) {
		t.Errorf("after %d replacements it asks %v, want %s, %v and one more", many, j.addresses, join, last)
	}
}

// TestRefusedWorker: the log says once why coordinators refuse a worker. The worker then asks less and
// less often, until it is accepted.
func TestRefusedWorker(t *testing.T) {
	var reason atomic.Pointer[string]
	accepts := coordinatorThatKnows(t, "c1", "").Config.Handler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		why := reason.Load()
		if why == nil {
			accepts.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		json.NewEncoder(w).Encode(protocol.Problem{Error: *why})
	}))
	t.Cleanup(s.Close)
	var log bytes.Buffer
	address := s.Listener.Addr().String()
	c := newCoordinators(&Config{Join: []string{address}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	t.Cleanup(c.close)
	refuse := func(why string, rounds int) {
		t.Helper()
		log.Reset()
		reason.Store(&why)
		for range rounds {
			if _, err := ask(t, c); err == nil || !c.warnRefused() {
				t.Fatalf("the worker is accepted: %v", err)
			}
		}
		line := log.String()
		if n := strings.Count(line, "no coordinator accepts this worker"); n != 1 ||
			!strings.Contains(line, address+": the coordinator refuses this worker: 403 Forbidden: "+why[:7]) ||
			len(line) > 2*refusedText {
			t.Errorf("logged %d times in %d bytes: %s", n, len(line), line)
		}
	}
	refuse("revoked", 3)
	if got := c.pause(joinPause); got != 3*time.Second {
		t.Errorf("after 3 refusals it waits for %v", got)
	}
	refuse(strings.Repeat("expired", 10000), 20)
	if got := c.pause(joinPause); got != refusedMost {
		t.Errorf("after 23 refusals it waits for %v", got)
	}
	reason.Store(nil)
	if _, err := ask(t, c); err != nil || c.warnRefused() || c.pause(joinPause) != joinPause {
		t.Errorf("accepted: error %v, pause %v", err, c.pause(joinPause))
	}
	refuse("revoked", 1)
	s.Close()
	if _, err := ask(t, c); err == nil || c.warnRefused() || c.pause(joinPause) != joinPause {
		t.Errorf("nobody answers: error %v, pause %v", err, c.pause(joinPause))
	}
}

// ask asks once and returns the newest answer.
func ask(t *testing.T, c *coordinators) (*protocol.Cluster, error) {
	list, err := c.ask(t.Context(), joinTimeout, func(a *protocol.Cluster) bool { return a.Leader != "" })
	return newest(list), err
}
