package page

import (
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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
	r := httptest.NewRequest(http.MethodPost, "/ui/jobs/8/pause", nil)
	h.ServeHTTP(httptest.NewRecorder(), r)
	shows("after an action of a page", visit("one:1", path, "ana", "1"), 6)
	edits, state = edits+1, protocol.Done
	shows("a view that stays as it is", visit("one:1", path, "ana", "1"), 7)
	shows("it is not kept", visit("one:1", path, "ana", "1"), 8)
}

// TestSharedForms: visits share the form that asks for an algorithm, but not a form with a token.
func TestSharedForms(t *testing.T) {
	asked := 0
	api := fakeAPI{"/v1/cluster": protocol.Cluster{}}
	api["/v1/datasets"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Write([]byte("[]"))
	})
	h := Handler(Config{API: api, Edits: func() uint64 { return 1 }})
	for _, c := range []struct {
		path string
		want int // requests to the API of two visits
	}{{"/ui/submit", 1}, {"/ui/submit?algorithm=ldlf", 2}, {"/ui/submit?dataset=a", 2}, {"/ui/submit/spec", 0}} {
		asked = 0
		_, first, _ := visitAs(h, admin, http.MethodGet, c.path, "")
		_, second, _ := visitAs(h, admin, http.MethodGet, c.path, "")
		if asked != c.want || strings.Contains(first, `name="token"`) && first == second {
			t.Errorf("%s: %d requests, want %d; the same form twice: %t", c.path, asked, c.want, first == second)
		}
	}
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
	find := func(i int, edits uint64) *rendering { return c.find(key(i), edits, freshFor) }
	add(1, 10, 0)
	add(2, 10, freshFor)
	if find(1, 3) == nil || find(1, 4) != nil || find(2, 3) != nil || find(3, 3) != nil {
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

// manyPages is more open pages than views with streams are made for.
const manyPages = 1000

// TestApart: the more pages are open, the less often views are made, up to a bound. Visits then share what feeds make.
func TestApart(t *testing.T) {
	s := newSite(Config{API: fakeAPI{}, Edits: func() uint64 { return 7 }})
	for users, want := range map[int64]time.Duration{0: renderApart, manyOpen: 2 * renderApart,
		2 * manyOpen: 3 * renderApart, manyPages: mostApart} {
		s.live.open.Store(users)
		if got := s.live.open.apart(); got != want || s.live.open.crowded() != (users == manyPages) {
			t.Errorf("with %d pages: %v, want %v; crowded: %t", users, got, want, s.live.open.crowded())
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/ui/jobs/7", nil)
	v, old := &visit{Request: r.WithContext(access.With(testkit.Context(t), admin)), site: s}, &rendering{edits: 7}
	s.live.recent.put(keyOf(v.Request), old)
	for users, shared := range map[int64]bool{0: false, manyPages: true} {
		old.began = time.Now().Add(-freshFor)
		s.live.open.Store(users)
		got, _ := s.make(v, func(*visit) (*view, error) { return nil, errLarge })
		if (got == old) != shared {
			t.Errorf("with %d pages, a view of a second ago is shared: %t", users, got == old)
		}
	}
}

// TestPause: a feed rests, but not longer than some time after an edit.
func TestPause(t *testing.T) {
	var edits atomic.Uint64
	ctx, cancel := context.WithCancel(testkit.Context(t))
	defer cancel()
	v := &visit{Request: httptest.NewRequest(http.MethodGet, "/ui/jobs", nil).WithContext(ctx),
		site: newSite(Config{Edits: edits.Load})}
	f, began := new(feed), time.Now()
	if f.pause(v, 0, renderApart); time.Since(began) < renderApart {
		t.Errorf("without an edit, the feed rested for %v", time.Since(began))
	}
	edits.Add(1)
	if f.pause(v, 0, 100*testkit.Limit); ctx.Err() != nil {
		t.Error("after an edit, the feed did not go on")
	}
	began, f.edits = time.Now(), 1
	time.AfterFunc(2*renderApart, func() { edits.Add(1) })
	if f.pause(v, 0, 100*testkit.Limit); time.Since(began) < 2*renderApart || ctx.Err() != nil {
		t.Errorf("the feed went on after %v, before an edit, or with the end: %v", time.Since(began), ctx.Err())
	}
	cancel()
	f.edits = edits.Load()
	f.pause(v, 0, 100*testkit.Limit)
}

// TestLinesAreRead: lines of a stream that come while a view is made count as one.
func TestLinesAreRead(t *testing.T) {
	making, written, asked := make(chan struct{}), make(chan struct{}), 0
	api := fakeAPI{"/v1/jobs/7/curve": protocol.JobCurve{}}
	api["/v1/jobs/7/changes"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("{}\n"))
		w.(http.Flusher).Flush()
		select {
		case <-making:
		case <-r.Context().Done():
			return
		}
		for range 100 {
			w.Write([]byte("{}\n"))
		}
		close(written)
		<-r.Context().Done()
	})
	api["/v1/jobs/7"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		j := hostileJob()
		switch asked++; asked {
		case 1:
		case 2:
			close(making)
			select {
			case <-written:
			case <-r.Context().Done():
			}
		default:
			j.State = protocol.Done
		}
		json.NewEncoder(w).Encode(j)
	})
	if events := live(t, Handler(Config{API: api}), "/ui/live/jobs/7"); !strings.Contains(events, "event: over") ||
		asked != 3 {
		t.Errorf("asked %d times:\n%s", asked, events)
	}
}

// TestCrowd: if many pages are open, views follow no streams, and an edit is shown all the same.
func TestCrowd(t *testing.T) {
	var edits atomic.Uint64
	asked := 0
	api := fakeAPI{"/v1/jobs/7/curve": protocol.JobCurve{}}
	api["/v1/jobs/7/changes"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a stream was asked for")
	})
	api["/v1/jobs/7"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		j := hostileJob()
		if asked++; asked == 3 {
			j.State = protocol.Done
		}
		edits.Add(1)
		json.NewEncoder(w).Encode(j)
	})
	s := newSite(Config{API: api, Edits: edits.Load})
	s.live.open.Store(manyPages)
	events := live(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.SetPathValue("job", "7")
		s.follow(w, r, jobView)
	}), "/ui/live/jobs/7")
	if asked != 3 || !strings.Contains(events, "event: over") {
		t.Errorf("asked %d times:\n%s", asked, events)
	}
}
