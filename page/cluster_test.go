package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// cluster returns a cluster with coordinators a, b, ... on these machines, and workers
// w1, w2, ... on these machines. Coordinator a leads.
func cluster(coordinators, workers string) *protocol.Cluster {
	c := &protocol.Cluster{ID: "c", Leader: "a"}
	for i, host := range strings.Fields(coordinators) {
		id := string(rune('a' + i))
		m := protocol.Coordinator{MemberEntry: protocol.MemberEntry{ID: id, HTTP: host + ":7100", Version: "1"},
			Role: protocol.RoleVoter, Alive: true, Condition: protocol.Condition{Host: host}}
		if i == 0 {
			m.Role = protocol.RoleLeader
		}
		c.Members, c.Coordinators = append(c.Members, m), append(c.Coordinators, m.MemberEntry)
	}
	for i, host := range strings.Fields(workers) {
		c.Workers = append(c.Workers, protocol.Worker{ID: fmt.Sprintf("w%d", i+1), State: "alive", Host: host, Slots: 2})
	}
	return c
}

// TestSurvival: a cluster survives the loss of a machine if the other machines have a quorum that can go on.
func TestSurvival(t *testing.T) {
	for _, test := range []struct {
		what                  string
		coordinators, workers string
		change                func(c *protocol.Cluster)
		kind, sentence, why   string
	}{
		{"three machines", "x y z", "x y", nil, "good", "survives the loss of one machine.", "on 3 machines"},
		{"five on three machines", "x x y y z", "x y", nil, "good", "survives the loss of one machine.", "3 are enough"},
		{"five on two machines", "x x x y y", "x y", nil, "bad", "does not survive", "Machine x has 3 of 5"},
		{"one machine", "x x x", "x x", nil, "bad", "does not survive", "survives the end of one process"},
		{"two machines", "x x y", "x y", nil, "bad", "does not survive", "Machine x has 2 of 3 coordinators: a, b"},
		{"two coordinators", "x y", "x y", nil, "bad", "does not survive", "2 coordinators with a vote"},
		{"one coordinator", "x", "x y", nil, "bad", "does not survive", "1 coordinator with a vote"},
		{"a dead one of three", "x y z", "x y", func(c *protocol.Cluster) {
			c.Members[2].Alive, c.Members[2].Problem = false, "connection refused"
		}, "bad", "does not survive", "Coordinator c does not answer: connection refused"},
		{"a dead one of five", "v w x y z", "x y", func(c *protocol.Cluster) {
			c.Members[2].Alive, c.Members[2].Problem = false, "connection refused"
		}, "good", "survives the loss of one machine.", "Coordinator c does not answer"},
		{"a full disk", "x y z", "x y", func(c *protocol.Cluster) { c.Members[1].Problem = "its disk is full" }, "bad",
			"does not survive", "Coordinator b has a problem: its disk is full"},
		{"missing blobs", "x y z", "x y", func(c *protocol.Cluster) { c.Members[1].Missing = 3 }, "bad", "does not survive",
			"b has not fetched 3 blobs"},
		{"lost blobs", "x y z", "x y", func(c *protocol.Cluster) { c.Members[1].Missing, c.Members[1].Lost = 3, 3 }, "good",
			"survives", ""},
		{"far behind", "x y z", "x y", func(c *protocol.Cluster) { c.Members[1].Lag = 20_000 }, "bad", "does not survive",
			"lacks 20,000 entries"},
		{"a fourth without a vote", "x y z z", "x y", func(c *protocol.Cluster) {
			c.Members[3].Role = protocol.RoleNonvoter
		}, "good", "survives", "3 coordinators"},
		{"not asked yet", "x y z", "x y", func(c *protocol.Cluster) {
			c.Members[1].Alive, c.Members[1].LastSeen = false, -1
		}, "", "has not heard all", ""},
		{"workers of one machine", "x y z", "x x", nil, "", "survives the loss of one machine, but jobs wait if it is x", ""},
		{"a worker in quarantine", "x y z", "x y", func(c *protocol.Cluster) {
			c.Quarantined = []protocol.Quarantined{{Worker: "w2"}}
		}, "", "but jobs wait if it is x", ""},
		{"no worker", "x y z", "", nil, "good", "survives", "no worker can be used"},
		{"no leader", "x y z", "x", func(c *protocol.Cluster) { c.Leader, c.Members = "", nil }, "bad", "has no leader",
			"quorum"},
		{"hosts without a name", "x y z", "x y", func(c *protocol.Cluster) {
			for i := range c.Members {
				c.Members[i].Host = ""
			}
		}, "good", "survives", "on 3 machines"},
	} {
		c := cluster(test.coordinators, test.workers)
		if test.change != nil {
			test.change(c)
		}
		v := survival(c)
		if v.Kind != test.kind || !strings.Contains(v.Sentence, test.sentence) ||
			!strings.Contains(strings.Join(v.Why, " "), test.why) {
			t.Errorf("%s: %q: %s %q", test.what, v.Kind, v.Sentence, v.Why)
		}
	}
}

// TestSlowWorkers: a worker is compared with the median of the others that compute the same kind of task.
func TestSlowWorkers(t *testing.T) {
	c := cluster("x", "x x x x x")
	times := []map[string]float64{{"step": 0.01}, {"step": 0.011, "leaf": 9}, {"step": 0.042}, {"tree": 3}, nil}
	for i := range c.Workers {
		c.Workers[i].TaskSeconds, c.Workers[i].MainKind = times[i], "step"
	}
	c.Workers[0].State = "unreachable"
	lines := workerLines(c)
	var ids []string
	for _, l := range lines {
		ids = append(ids, l.ID)
		if l.Slow() != (l.ID == "w3") {
			t.Errorf("%s is slow: %v (%v)", l.ID, l.Slow(), l.Ratio)
		}
	}
	if want := []string{"w3", "w1", "w2", "w4", "w5"}; !slices.Equal(ids, want) {
		t.Errorf("order %q, want %q", ids, want)
	}
	if text := lines[0].Speed(); !strings.Contains(text, "slow") || !strings.Contains(text, "4.0 times") {
		t.Errorf("%q", text)
	}
	if lines[3].Speed() != "" {
		t.Errorf("a worker without comparison: %q", lines[3].Speed())
	}
}

// as has the requests to a handler come from a caller with a role.
func as(role rights.Role, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Caller{Role: role, Name: "ana"})))
	})
}

// body returns the body of a page, which must have a status.
func body(t *testing.T, h http.Handler, status int, method, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	if w.Code != status {
		t.Errorf("%s %s: status %d, want %d:\n%.3000s", method, path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// TestClusterViews: what coordinators, workers and callers say of themselves is text, and only admins see actions.
func TestClusterViews(t *testing.T) {
	c := cluster("x y z", "x y")
	c.Quarantined = []protocol.Quarantined{{Worker: hostile, Reason: hostile}}
	c.Workers[0] = protocol.Worker{ID: hostile, State: "refused: " + hostile, Host: hostile, Address: hostile,
		Version: hostile, Idle: hostile, Jobs: []string{hostile}, TaskSeconds: map[string]float64{hostile: 1}}
	c.Members[1].Problem, c.Members[1].Warning, c.Members[1].Host = hostile, hostile, hostile
	j := hostileJob()
	var records []protocol.AuditRecord
	for i := range pageOf + 1 {
		records = append(records, protocol.AuditRecord{Number: uint64(1000 - i), Caller: hostile, Role: hostile,
			From: hostile, Via: hostile, Request: hostile, About: hostile, Refused: hostile, Count: 3})
	}
	var asked, posted []string
	api := fakeAPI{"/v1/cluster": c, "/v1/jobs": protocol.JobList{Jobs: []protocol.JobInfo{j}, Total: 9},
		"/v1/experiments": protocol.ExperimentList{Experiments: []protocol.Experiment{{Name: hostile, Waiting: hostile,
			State: protocol.Running, Runs: 4, Done: 1}}, Total: 1},
		"/v1/audit": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.RawQuery)
			json.NewEncoder(w).Encode(records)
		}),
		"/v1/transfer": http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var to protocol.TransferRequest
			json.NewDecoder(r.Body).Decode(&to)
			posted = append(posted, to.To)
		}),
		"/v1/workers/w/1/trust": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			posted = append(posted, "w/1")
		}),
	}
	admin, reader := as(rights.Admin, Handler(Config{API: api})), as(rights.Read, Handler(Config{API: api}))
	views := []string{"/ui", "/ui/workers", "/ui/coordinators", "/ui/coordinators/b/transfer",
		"/ui/audit?caller=%3Cimg&since=24h&refused=true"}
	for _, path := range views {
		for _, h := range []http.Handler{admin, reader} {
			text := body(t, h, http.StatusOK, "GET", path)
			if strings.Contains(text, "<img") || strings.Contains(text, " style=") || strings.Contains(text, "ZgotmplZ") ||
				!strings.Contains(text, "</html>") {
				t.Errorf("%s:\n%.5000s", path, text)
			}
		}
		if path != "/ui" && !strings.HasPrefix(path, "/ui/audit") {
			if strings.Contains(body(t, reader, http.StatusOK, "GET", path), `method="post" action="/ui/`) {
				t.Errorf("%s has an action that the caller may not take", path)
			}
		}
	}
	if len(asked) == 0 || !strings.Contains(asked[0], "caller=%3Cimg") || !strings.Contains(asked[0], "limit=101") ||
		!strings.Contains(asked[0], "since=1") {
		t.Errorf("the API was asked %q", asked)
	}
	if text := body(t, admin, http.StatusOK, "GET", "/ui/audit"); !strings.Contains(text, "?after=901") {
		t.Errorf("the records after the last one, 901, have no link:\n%s", text[len(text)-500:])
	}
	body(t, admin, http.StatusBadRequest, "GET", "/ui/audit?since=yesterday")
	body(t, admin, http.StatusBadRequest, "GET", "/ui/workers?page=2")
	body(t, admin, http.StatusNotFound, "GET", "/ui/coordinators/q/transfer")
	body(t, admin, http.StatusSeeOther, "POST", "/ui/coordinators/b/transfer")
	body(t, admin, http.StatusSeeOther, "POST", "/ui/workers/w%2F1/trust")
	if want := []string{"b", "w/1"}; !slices.Equal(posted, want) {
		t.Errorf("changes %q, want %q", posted, want)
	}
}

// TestManyWorkers: a page lists so many workers that it stays small, and leads to the next ones.
func TestManyWorkers(t *testing.T) {
	c := cluster("x y z", strings.Repeat("x ", 2*pageOf+1))
	h := Handler(Config{API: fakeAPI{"/v1/cluster": c}})
	for page, rows := range map[int]int{1: pageOf, 2: pageOf, 3: 1} {
		text := body(t, h, http.StatusOK, "GET", fmt.Sprintf("/ui/workers?page=%d", page))
		if n := strings.Count(text, `<tr id="worker-w`); n != rows {
			t.Errorf("page %d lists %d workers, want %d", page, n, rows)
		}
		if strings.Contains(text, "Next workers") != (page < 3) {
			t.Errorf("page %d and its successor:\n%s", page, text[len(text)-500:])
		}
		if len(text) > 80_000 {
			t.Errorf("page %d has %d bytes", page, len(text))
		}
	}
}

// TestWithoutLeader: the overview says how the cluster is while nobody leads, and why the jobs are missing.
func TestWithoutLeader(t *testing.T) {
	c := cluster("x y z", "")
	c.Leader, c.Members = "", nil
	h := Handler(Config{API: fakeAPI{"/v1/cluster": c}})
	for path, want := range map[string]string{"/ui": "cannot be listed now", "/ui/coordinators": "y:7100",
		"/ui/workers": "has no leader now"} {
		if text := body(t, h, http.StatusOK, "GET", path); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, text)
		}
	}
}
