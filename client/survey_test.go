package client

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// describes serves what a coordinator says of itself, and where the members are.
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

// A survey asks the coordinators that it is told of and those that they name, each once,
// does not wait long for one that hangs, and knows by name those that do not answer.
func TestSurvey(t *testing.T) {
	var members []protocol.MemberEntry
	named := func() []protocol.MemberEntry { return members }
	a, b, again := describes(t, "a", named), describes(t, "b", named), describes(t, "a", named)
	frozen, gone := bare(hanging(t).URL), bare(dead(t))
	members = []protocol.MemberEntry{{ID: "a", HTTP: a}, {ID: "b", HTTP: b}, {ID: "c", HTTP: frozen}, {ID: "d", HTTP: gone}}
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

// One that only starts describes itself, and what is no coordinator is called so.
func TestSurveyOfOthers(t *testing.T) {
	starts := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/self" {
			answer(w, http.StatusOK, protocol.Self{Phase: "new", Problem: "the disk is full"})
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
