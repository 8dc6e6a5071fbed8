package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/harness/browser"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// answered is a handler that answers with a status and an error.
func answered(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(protocol.Problem{Error: text})
	}
}

// live returns the events of a stream that ends by itself.
func live(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(testkit.Context(t), testkit.Limit/4)
	defer cancel()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(access.With(ctx, admin)))
	if ctx.Err() != nil {
		t.Errorf("%s does not end", path)
	}
	return w.Body.String()
}

// TestPanics: a request of the API that panics is an error of the page. A stream that panics leaves a live view as
// it is, which is made again without it. A view that panics there is an error.
func TestPanics(t *testing.T) {
	j := hostileJob()
	j.State = protocol.Done
	bad := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") })
	api := fakeAPI{"/v1/jobs": bad, "/v1/jobs/7/curve": protocol.JobCurve{}, "/v1/jobs/7/changes": bad}
	asked := 0
	api["/v1/jobs/7"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			running := j
			running.State = protocol.Running
			json.NewEncoder(w).Encode(running)
			return
		}
		json.NewEncoder(w).Encode(j)
	})
	h := Handler(Config{API: api})
	if status, body, _ := visitAs(h, admin, http.MethodGet, "/ui/jobs", ""); status != http.StatusInternalServerError ||
		!strings.Contains(body, "fault of Coppice") {
		t.Errorf("%d %s", status, body)
	}
	if events := live(t, h, "/ui/live/jobs/7"); !strings.Contains(events, "state done") ||
		!strings.Contains(events, "event: over") {
		t.Errorf("%s", events)
	}
	s := newSite(Config{API: api})
	events := live(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.follow(w, r, func(*visit) (*view, error) { panic("a fault of a view") })
	}), "/ui/live/jobs")
	if !strings.Contains(events, "fault of Coppice") || !strings.Contains(events, "event: over") {
		t.Errorf("%s", events)
	}
}

// TestLastingErrors: a live view of something that was deleted says so and ends. Other errors may pass.
func TestLastingErrors(t *testing.T) {
	j, asked := hostileJob(), 0
	api := fakeAPI{"/v1/jobs/7/curve": protocol.JobCurve{}, "/v1/jobs/7/changes": answered(503, "no leader")}
	api["/v1/jobs/7"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; asked {
		case 1:
			answered(503, "no leader at the moment")(w, r)
		case 2:
			json.NewEncoder(w).Encode(j)
		default:
			answered(404, "job 7 was deleted")(w, r)
		}
	})
	events := live(t, Handler(Config{API: api}), "/ui/live/jobs/7")
	at := -1
	for _, text := range []string{"no leader at the moment", "event: regions", "job 7 was deleted", "event: over"} {
		next := strings.Index(events, text)
		if next <= at {
			t.Errorf("%q is missing, or too early:\n%s", text, events)
		}
		at = next
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// TestRefusedStream: if the API refuses the stream that a live view follows, the view is made again all the same, and
// says nothing of trouble.
func TestRefusedStream(t *testing.T) {
	j, asked := hostileJob(), 0
	api := fakeAPI{"/v1/jobs/7/curve": protocol.JobCurve{}, "/v1/jobs/7/changes": answered(503, "too many streams")}
	api["/v1/jobs/7"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		now := j
		if now.Error = fmt.Sprintf("error-%d.", asked); asked == 4 {
			now.State = protocol.Done
		}
		json.NewEncoder(w).Encode(now)
	})
	events := live(t, Handler(Config{API: api}), "/ui/live/jobs/7")
	if strings.Contains(events, "event: trouble") || !strings.Contains(events, "error-4.") ||
		!strings.Contains(events, "event: over") {
		t.Errorf("%s", events)
	}
}

// TestChangesOfFeeds: readers wait until something has changed, and all get the same event.
func TestChangesOfFeeds(t *testing.T) {
	f := &feed{changed: make(chan struct{})}
	was := f.changed
	f.publish(map[string]string{"a": "1", "b": "1"}, "", false)
	if was == f.changed || f.number != 1 || !strings.Contains(string(f.last), `"a":"1"`) {
		t.Errorf("the first change is %d: %s", f.number, f.last)
	}
	was = f.changed
	f.publish(map[string]string{"a": "1", "b": "1"}, "", false)
	if was != f.changed || f.number != 1 {
		t.Errorf("without a change, the feed has %d", f.number)
	}
	f.publish(map[string]string{"a": "1", "b": "<2"}, "", false)
	if string(f.last) != "event: regions\ndata: {\"b\":\"<2\"}\n\n" || f.number != 2 {
		t.Errorf("the second change is %d: %q", f.number, f.last)
	}
	was = f.changed
	if f.publish(nil, "trouble", false); was == f.changed || f.number != 2 || f.now["b"] != "<2" {
		t.Errorf("with trouble, the feed is %+v", f.shown)
	}
}

// TestSharedFeeds: a live view is shared by browsers of the same caller only, and ends with the last of them.
func TestSharedFeeds(t *testing.T) {
	begun, ended := make(chan struct{}, 10), make(chan struct{}, 10)
	s := newSite(Config{})
	wait := func(v *visit) (*view, error) {
		begun <- struct{}{}
		<-v.Context().Done()
		ended <- struct{}{}
		return nil, v.Context().Err()
	}
	join := func(c access.Caller, path string) (*feed, func()) {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		return s.live.join(s, r.WithContext(access.With(testkit.Context(t), c)), wait)
	}
	ana := access.Caller{Role: rights.Submit, Name: "ana", Token: "0123", From: "192.0.2.7:1"}
	first, leave := join(ana, "/ui/live/jobs?name=a")
	ana.From = "192.0.2.7:2"
	second, alsoLeave := join(ana, "/ui/live/jobs?name=a")
	if first != second {
		t.Error("two browsers of a caller have two feeds")
	}
	leaves := []func(){alsoLeave}
	for what, change := range map[string]func(c *access.Caller) string{
		"role":        func(c *access.Caller) string { c.Role = rights.Read; return "" },
		"name":        func(c *access.Caller) string { c.Name = "eve"; return "" },
		"token":       func(c *access.Caller) string { c.Token = "4567"; return "" },
		"certificate": func(c *access.Caller) string { c.Serial = "1"; return "" },
		"proxy":       func(c *access.Caller) string { c.Via = "edge"; return "" },
		"path":        func(*access.Caller) string { return "b" },
	} {
		c := ana
		path := "/ui/live/jobs?name=a" + change(&c)
		other, leave := join(c, path)
		if leaves = append(leaves, leave); other == first {
			t.Errorf("callers with another %s share a feed", what)
		}
	}
	for range leaves {
		<-begun
	}
	for _, leave := range leaves {
		leave()
	}
	for range len(leaves) - 1 {
		<-ended
	}
	select {
	case <-ended:
		t.Error("a feed has ended that a browser watches")
	default:
	}
	leave()
	<-ended
	if len(s.live.feeds) != 0 {
		t.Errorf("%d feeds are left", len(s.live.feeds))
	}
}

// TestDownloads: a model with any name can be downloaded as a file. A page says why another one cannot.
func TestDownloads(t *testing.T) {
	api := fakeAPI{"/v1/models/secret": answered(403, "it is private "+hostile)}
	for _, name := range []string{"a b", "50%", "a?b=c", "a#b", "é", "study/0a1b"} {
		api["/v1/models/"+name] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cookie") != "" || r.URL.RawQuery != "" {
				t.Errorf("the API was given %v %v", r.URL, r.Header)
			}
			io.WriteString(w, "model "+name)
		})
	}
	h := Handler(Config{API: api})
	for path := range api {
		name := strings.TrimPrefix(path, "/v1/models/")
		r := httptest.NewRequest(http.MethodGet, "/ui/download/models/"+escapePath(name), nil)
		r.Header.Set("Cookie", "a=b")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body, disposition := w.Body.String(), w.Header().Get("Content-Disposition")
		if name == "secret" {
			if w.Code != 403 || disposition != "" || !strings.Contains(body, "It is private") ||
				!strings.Contains(body, "</html>") || strings.Contains(body, "<img") {
				t.Errorf("%d %q %s", w.Code, disposition, body)
			}
		} else if want := fmt.Sprintf("attachment; filename=%q", strings.ReplaceAll(name, "/", "-")+".model"); body !=
			"model "+name || w.Code != 200 || disposition != want {
			t.Errorf("%s: %d %q %q", name, w.Code, disposition, body)
		}
	}
	for _, path := range []string{"/ui/download/models/..%2f..%2fv1%2fjobs", "/ui/download/models/x%2f%2e"} {
		if status, _, _ := visitAs(h, admin, http.MethodGet, path, ""); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

// TestLargeAnswers: an answer that is too large for a page is an error, not an empty page.
func TestLargeAnswers(t *testing.T) {
	x, g := study(protocol.Done, 1, 1)
	api := studyAPI(x, g, map[string]int{})
	api["/v1/experiments/study/report"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(make([]byte, protocol.MaxJSON+1))
	})
	contains(t, open(t, api, "/ui/experiments/study/report"), []string{"The report is too large for a page."})
	api["/v1/jobs"] = api["/v1/experiments/study/report"]
	if status, body, _ := visitAs(Handler(Config{API: api}), admin, http.MethodGet, "/ui/jobs", ""); status < 500 ||
		!strings.Contains(body, "too large") {
		t.Errorf("%d %s", status, body)
	}
}

// TestReportsOfFolders: an experiment of a folder may change and have as many runs as before. Its report is made again.
func TestReportsOfFolders(t *testing.T) {
	x, g := study(protocol.Done, 1, 1)
	asked := make(map[string]int)
	h := Handler(Config{API: studyAPI(x, g, asked), Folder: "/f"})
	for range 3 {
		visitAs(h, admin, http.MethodGet, "/ui/experiments/study/report", "")
	}
	if n := asked["/v1/experiments/study/report"]; n != 3 {
		t.Errorf("the report was made %d times", n)
	}
}

// TestTicks: each range has an axis, however narrow it is.
func TestTicks(t *testing.T) {
	for _, s := range []span{{0, 1}, {1, math.Nextafter(1, 2)}, {-math.Nextafter(1, 2), -1}, {1e16, 1e16 + 4},
		{1e308, math.MaxFloat64}, {-math.MaxFloat64, math.MaxFloat64}, {0, 5e-324}, {1, 1e300}, {0, math.Inf(1)},
		{math.NaN(), 1}} {
		all := ticks(s, ticksUp)
		if len(all) > ticksUp+2 {
			t.Errorf("%v: %v", s, all)
		}
		for i, v := range all {
			if !(v >= s.lo && v <= s.hi) && s.hi-s.lo < 1e300 && s.hi-s.lo > 1e-9 || i > 0 && v <= all[i-1] {
				t.Errorf("%v: %v", s, all)
			}
		}
	}
	if all := fmt.Sprint(ticks(span{0, 10}, ticksUp), ticks(span{-3, 7}, ticksUp)); all != "[0 2 4 6 8 10] [-2 0 2 4 6]" {
		t.Errorf("%v", all)
	}
	flat := series{X: []float64{0, 50, 100}, Y: []float64{9, 1, math.Nextafter(1, 2)}}
	if c := newChart("t", "x", "y", []series{flat}, nil); c == nil || len(c.YTicks) > ticksUp+2 {
		t.Errorf("%+v", c)
	}
}

// TestMarksAfterRestart: a job that goes back to its last commit has events at earlier steps. They keep their places.
func TestMarksAfterRestart(t *testing.T) {
	marks := []mark{{X: 90, Kind: eventMark, Label: "1"}, {X: 10, Kind: eventMark, Label: "2"}}
	c := newChart("t", "x", "y", []series{{X: []float64{0, 100}, Y: []float64{1, 2}}}, marks)
	if len(c.Marks) != 2 || c.Marks[1].At >= c.Marks[0].At {
		t.Errorf("%+v", c.Marks)
	}
}

// TestManyCompared: a comparison asks for a bounded number of jobs, whatever its address says.
func TestManyCompared(t *testing.T) {
	asked := 0
	h := Handler(Config{API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; r.URL.Path == "/v1/jobs" {
			json.NewEncoder(w).Encode(protocol.JobList{})
			return
		}
		answered(404, "no such job")(w, r)
	})})
	var query strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&query, "&job=%d", i)
	}
	status, body, _ := visitAs(h, admin, http.MethodGet, "/ui/compare?"+query.String(), "")
	if status != 200 || asked > maxAsked+10 || len(body) > 50_000 || !strings.Contains(body, "the others are left out") {
		t.Errorf("status %d, %d requests, %d bytes", status, asked, len(body))
	}
}

// TestWithoutCaller: the login has no navigation, since no view can be shown. Through a proxy, a page names no
// coordinator.
func TestWithoutCaller(t *testing.T) {
	h := Handler(Config{API: fakeAPI{}})
	if _, body, _ := visitAs(h, access.Caller{Role: rights.Anonymous}, http.MethodGet, "/ui/login", ""); strings.Contains(
		body, "<nav") || !strings.Contains(body, `name="token"`) {
		t.Errorf("%s", body)
	}
	c := protocol.Cluster{Coordinators: []protocol.MemberEntry{{ID: "b", HTTP: "192.0.2.9:7100"}}}
	for _, public := range []string{"", "https://example.org"} {
		c.PublicURL = public
		_, body, _ := visitAs(Handler(Config{API: fakeAPI{"/v1/cluster": c, "/v1/jobs": protocol.JobList{}}}), admin,
			http.MethodGet, "/ui/jobs", "")
		if strings.Contains(body, "192.0.2.9:7100") != (public == "") || !strings.Contains(body, "<nav") {
			t.Errorf("with the public URL %q: %s", public, body)
		}
	}
}

// TestFullInBrowser: a live page whose stream is refused says why all the time, and not that the coordinator does not
// answer. Once there is a stream, it says nothing.
func TestFullInBrowser(t *testing.T) {
	b := browser.Start(t)
	var full atomic.Bool
	full.Store(true)
	pages, refuses := Handler(Config{API: fakeAPI{"/v1/jobs": protocol.JobList{}}}), answered(503, "too many open pages")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if full.Load() && strings.HasPrefix(r.URL.Path, "/ui/live/") {
			refuses(w, r)
			return
		}
		pages.ServeHTTP(w, r.WithContext(access.With(r.Context(), admin)))
	}))
	defer server.Close()
	tab := b.Open(t, server.URL+"/ui/jobs")
	tab.Await("the reason", `!trouble.hidden && trouble.innerText.includes("too many open pages")`)
	tab.Await("another attempt", `(() => {
		window.seen ??= [];
		window.watch ??= setInterval(() => seen.push([trouble.hidden, away.hidden] + ""), 50);
		return performance.getEntriesByType("resource").filter((e) => e.name.includes("/live/")).length > 2;
	})()`)
	if seen := browser.Eval[string](tab, `[...new Set(seen)].join(" ")`); seen != "false,true" {
		t.Errorf("hidden were the reason, and that the coordinator does not answer: %s", seen)
	}
	full.Store(false)
	tab.Await("the stream", "stream && stream.readyState === EventSource.OPEN && trouble.hidden && away.hidden")
	full.Store(true) // no stream may keep the server from its end
	server.CloseClientConnections()
}

// TestRevokedInBrowser: a live page whose caller is refused shows the login.
func TestRevokedInBrowser(t *testing.T) {
	b := browser.Start(t)
	var revoked atomic.Bool
	pages := Handler(Config{API: fakeAPI{"/v1/jobs": protocol.JobList{}}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if revoked.Load() && !strings.Contains(r.URL.Path, "/static/") {
			w.WriteHeader(http.StatusUnauthorized)
			io.WriteString(w, "<!doctype html><title>x</title><h1>Log in again</h1>")
			return
		}
		pages.ServeHTTP(w, r.WithContext(access.With(r.Context(), admin)))
	}))
	defer server.Close()
	tab := b.Open(t, server.URL+"/ui/jobs")
	tab.Await("the stream", "stream && stream.readyState === EventSource.OPEN")
	revoked.Store(true)
	server.CloseClientConnections()
	tab.Await("the login", `document.body.innerText.includes("Log in again")`)
}
