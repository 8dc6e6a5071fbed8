package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzPages: no path, query or form of a browser makes the server panic, and none of its text becomes markup.
func FuzzPages(f *testing.F) {
	for _, path := range []string{"/jobs", "/jobs/7", "/live/jobs/%zz", "/static/a/b",
		"/download/models/../x", "/jobs/7/cancel"} {
		f.Add(http.MethodGet, path, "name=a&state=done", "")
		f.Add(http.MethodPost, path, "", "a=b&a=%zz")
	}
	h := Handler(Config{API: fakeAPI{}})
	f.Fuzz(func(t *testing.T, method, path, query, form string) {
		u, err := url.Parse("http://host" + Root + "/" + strings.TrimPrefix(path, "/"))
		if err != nil || method != http.MethodGet && method != http.MethodPost || strings.HasPrefix(u.Path, Root+"/live") {
			t.Skip()
		}
		u.RawQuery = query
		r := httptest.NewRequest(method, "http://host/", strings.NewReader(form))
		r.URL = u
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if body := w.Body.String(); strings.Contains(body, "<!doctype") &&
			(strings.Contains(body, "<img") || strings.Contains(body, "onerror=\"")) {
			t.Errorf("%s %s: %s", method, u, body)
		}
	})
}
