package page

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// FuzzPathOfPage: whatever follows a login is a path of the page on the same server.
func FuzzPathOfPage(f *testing.F) {
	for _, text := range []string{"/ui/jobs?state=done", "//evil.example", `/\evil`, "/ui/../v1", "/ui/%2e%2e/x",
		"/ui/a%2Fb", "https://evil.example/ui/x", "/ui/x\r\ny", "/ui/%0d%0a"} {
		f.Add(text)
	}
	here, err := url.Parse("https://host/c/ui/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to := pathOfPage(text)
		u, err := here.Parse("/c" + to)
		if err != nil || u.Host != "host" || u.Scheme != "https" || u.User != nil || path.Clean(u.Path) != u.Path ||
			u.Path != "/c/ui" && !strings.HasPrefix(u.Path, "/c/ui/") || strings.ContainsAny(to, "\\\r\n\t #") {
			t.Errorf("%q leads to %q", text, to)
		}
		if again := pathOfPage(to); again != to {
			t.Errorf("%q leads to %q, which leads to %q", text, to, again)
		}
	})
}

// TestStarting: while a coordinator starts, each page says what it waits for, and browsers ask again. A caller without
// an identity is not told.
func TestStarting(t *testing.T) {
	h := Starting("/c", func() string { return "the disk <is> full" }, slog.New(slog.DiscardHandler))
	for _, request := range []string{"GET /ui", "GET /ui/jobs/7", "POST /ui/login", "GET /ui/live/jobs"} {
		method, at, _ := strings.Cut(request, " ")
		status, body, header := visitAs(h, access.Caller{Role: rights.Anonymous}, method, at, "")
		if status != http.StatusServiceUnavailable || header.Get("Refresh") == "" || strings.Contains(body, "disk") {
			t.Errorf("%s without an identity: %d %v %s", request, status, header, body)
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, at, nil)
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), admin)))
		if body := w.Body.String(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" ||
			w.Header().Get("Refresh") == "" || !strings.Contains(body, "the disk &lt;is&gt; full") ||
			!strings.Contains(body, `href="/c/ui`) {
			t.Errorf("%s: %d %v %s", request, w.Code, w.Header(), body)
		}
	}
	s := newSite(Config{})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/ui/static/"+s.static["page.css"].hash+"/page.css", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("the style sheet: %d %v", w.Code, w.Header())
	}
}
