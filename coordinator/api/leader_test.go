package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// mute is a network on which nobody answers.
type mute struct{ bus.Link }

func (mute) Request(context.Context, string, []byte) ([]byte, error) { return nil, bus.ErrNoAnswer }
func (mute) MaxPayload() int                                         { return 1 << 20 }
func (mute) Connected() bool                                         { return true }

// TestSilentHolder checks that the client is told to try again if a coordinator that may
// have the blob does not answer.
func TestSilentHolder(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	s.cfg.Blobs.Peers, s.cfg.Blobs.Conn = []string{"b"}, bus.New(mute{}, bus.Options{Log: slog.New(slog.DiscardHandler)})
	m, _ := imported(t, 300)
	s.refuse(503, "POST", "/v1/datasets", protocol.DatasetPut{Name: "other", Manifest: m}, "shard 0", m.Shards[0].Digest)
	r := submission("art", "", nil)
	r.Spec.Folds, r.Spec.Assigned = 3, blobs.Sum(nil)
	s.refuse(503, "POST", "/v1/jobs", r, "the list of folds")
	if err := notSent("the split", "x", errors.Join(blobs.ErrDigest)); !errors.Is(err, errBad) {
		t.Errorf("what is no digest: %v", err)
	}
}

// TestSilentLeader checks that a request is given up if the leader takes connections and
// says nothing, as if one direction were cut. It is not given up if the leader only takes
// long.
func TestSilentLeader(t *testing.T) {
	s := newSite(t)
	f := s.follower()
	var quiet atomic.Bool
	over := make(chan struct{})
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case quiet.Load():
			<-over
		case r.URL.Path != "/healthz":
			<-time.After(3 * silenceHere)
			_ = writeJSON(w, http.StatusOK, protocol.JobList{Jobs: []protocol.JobInfo{}})
		}
	}))
	defer leader.Close()
	defer close(over)
	s.propose(protocol.EntryMember, protocol.MemberEntry{ID: "d", HTTP: strings.TrimPrefix(leader.URL, "http://")})
	id := "d"
	f.leader.Store(&id)
	var list protocol.JobList
	f.get("GET", "/v1/jobs", nil, &list)
	quiet.Store(true)
	f.refuse(503, "GET", "/v1/jobs", nil, "did not answer")
	f.refuse(503, "GET", "/v1/jobs/1/changes", nil, "did not answer")
	f.refuse(503, "PUT", "/v1/blobs/"+blobs.Sum(nil), nil, "did not answer")
}

// TestUnknownOutcome checks that the answer says so if the leader may have received the
// request, or if the entry may be in the log, and only then.
func TestUnknownOutcome(t *testing.T) {
	s := newSite(t)
	f := s.follower()
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler) // as if the leader died
	}))
	defer leader.Close()
	id, nobody := "d", ""
	s.propose(protocol.EntryMember, protocol.MemberEntry{ID: id, HTTP: strings.TrimPrefix(leader.URL, "http://")})
	asked := func() (p protocol.Problem) {
		t.Helper()
		answer := f.ask("POST", "/v1/jobs", submission("t", "n", nil))
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || answer.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("status %d, %+v, %v", answer.StatusCode, p, err)
		}
		return p
	}
	if f.leader.Store(&nobody); asked().Unknown {
		t.Error("without a leader it may be done")
	}
	if f.leader.Store(&id); !asked().Unknown {
		t.Error("a leader that died after it heard of it cannot have done it")
	}
	if leader.Close(); asked().Unknown {
		t.Error("a leader that is gone may have done it")
	}
	if err := fmt.Errorf("store: %w", store.ErrAmbiguous); !unknown(err) {
		t.Errorf("%v: it cannot be in the log", err)
	}
	if unknown(store.ErrNotLeader) {
		t.Error("who does not lead may have done it")
	}
}

// TestLocal checks that a coordinator answers with what it knows itself. If it knows no
// leader, it answers once it does, or after the wait.
func TestLocal(t *testing.T) {
	f := newSite(t).follower()
	var c protocol.Cluster
	if f.get("GET", protocol.ClusterLocal, nil, &c); c.ID != "told by b" {
		t.Errorf("the cluster was %s", c.ID)
	}
	nobody, somebody := "", "a"
	f.leader.Store(&nobody)
	f.get("GET", protocol.ClusterLocal+"&wait_ms=10", nil, &c)
	if c.Leader != "" {
		t.Errorf("%q leads", c.Leader)
	}
	time.AfterFunc(10*time.Millisecond, func() { f.leader.Store(&somebody) })
	if f.get("GET", protocol.ClusterLocal+"&wait_ms=5000", nil, &c); c.Leader != "a" {
		t.Errorf("%q leads after the wait", c.Leader)
	}
	f.refuse(400, "GET", protocol.ClusterLocal+"&wait_ms=soon", nil, "wait_ms")
}
