package page

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestRecent: visits of one caller share what was made of a live view, until something changes. Nobody else sees it.
func TestRecent(t *testing.T) {
	asked, edits, state := 0, uint64(1), protocol.Running
	api := fakeAPI{"/v1/cluster": protocol.Cluster{Coordinators: []protocol.MemberEntry{{ID: "a", HTTP: "one:1"},
		{ID: "b", HTTP: "two:1"}}}, "/v1/jobs/7/curve": protocol.JobCurve{}}
	api["/v1/jobs/7"] = describeAs(&asked, &state)
	h := Handler(Config{API: api, Edits: func() uint64 { return edits }})
	visit := func(host, path, name, token string) string {
		t.Helper()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(access.With(testkit.Context(t), access.Caller{Role: rights.Submit, Name: name,
			Token: token, From: fmt.Sprint("192.0.2.7:", asked)})))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
		}
		return w.Body.String()
	}
	shows := func(what, text string, want int, parts ...string) {
		t.Helper()
		for _, part := range append(parts, fmt.Sprintf("-%d.</h1>", want)) {
			if !strings.Contains(text, part) {
				t.Errorf("%s: the page lacks %q:\n%s", what, part, text)
			}
		}
	}
	const path = "/ui/jobs/7"
	shows("the first visit", visit("one:1", path, "ana", "1"), 1, "two:1/ui/jobs/7", "ana (submit)", "ana-")
	shows("again", visit("one:1", path, "ana", "1"), 1, "two:1/ui/jobs/7")
	shows("at another address", visit("two:1", path, "ana", "1"), 1, "one:1/ui/jobs/7")
	shows("another query", visit("one:1", path+"?by=seconds", "ana", "1"), 2)
	shows("another caller", visit("one:1", path, "eve", "1"), 3, "eve (submit)", "eve-")
	shows("another token", visit("one:1", path, "ana", "2"), 4)
	shows("nothing has changed", visit("one:1", path, "ana", "1"), 1)
	edits++
	shows("after a change", visit("one:1", path, "ana", "1"), 5)
	edits, state = edits+1, protocol.Done
	shows("a view that stays as it is", visit("one:1", path, "ana", "1"), 6)
	shows("it is not kept", visit("one:1", path, "ana", "1"), 7)
}

// describeAs answers with a job that is named after the caller and the number of the request.
func describeAs(asked *int, state *protocol.JobState) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*asked++
		j := hostileJob()
		j.Name, j.State = fmt.Sprintf("%s-%d.", access.Of(r.Context()).Name, *asked), *state
		fakeAPI{r.URL.Path: j}.ServeHTTP(w, r)
	}
}

// TestRecentIsBounded: what was made a while ago is not shown, and the bytes that are kept are bounded.
func TestRecentIsBounded(t *testing.T) {
	var c recent
	key := func(i int) viewKey { return viewKey{path: fmt.Sprint(i)} }
	add := func(i, size int, age time.Duration) {
		c.put(key(i), &rendering{main: template.HTML(strings.Repeat("x", size)), began: time.Now().Add(-age), edits: 3})
	}
	add(1, 10, 0)
	add(2, 10, freshFor)
	if c.find(key(1), 3) == nil || c.find(key(1), 4) != nil || c.find(key(2), 3) != nil || c.find(key(3), 3) != nil {
		t.Errorf("%+v", c.made)
	}
	for i := range 100 {
		add(i%10, maxRecent/20, 0)
		kept := 0
		for _, r := range c.made {
			kept += 2 * len(r.main)
		}
		if kept != c.bytes || kept > maxRecent {
			t.Fatalf("%d bytes are kept, counted as %d", kept, c.bytes)
		}
	}
	add(1, maxRecent, 0)
	if len(c.made) != 1 {
		t.Errorf("%d views are kept with a large one", len(c.made))
	}
}
