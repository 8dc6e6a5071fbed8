package coordinator

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestSimplePaths: a prefix, empty elements and a slash at the end are removed, and what a name contains is not.
func TestSimplePaths(t *testing.T) {
	for _, c := range []struct{ prefix, path, want string }{
		{"/coppice", "/coppice/v1/jobs", "/v1/jobs"}, {"/coppice", "/v1/jobs", "/v1/jobs"}, {"/coppice", "/coppicex/v1",
			"/coppicex/v1"},
		{"/coppice", "/coppice", "/"}, {"/coppice", "/coppice/", "/"}, {"/a/b", "/a/b/v1/jobs/?x=1", "/v1/jobs?x=1"},
		{"/a/b", "/a/v1", "/a/v1"},
		{"", "/", "/"}, {"", "/v1/jobs/", "/v1/jobs"}, {"", "/v1/jobs//", "/v1/jobs"}, {"", "/coppice/v1/jobs",
			"/coppice/v1/jobs"},
		{"/coppice", "/coppice/v1/jobs/a%2F", "/v1/jobs/a%2F"}, {"", "/v1/jobs/a%2F/", "/v1/jobs/a%2F"},
		{"/coppice", "/coppice/v1/models/a%20b/", "/v1/models/a%20b"},
		{"/p", "/p//v1/cluster", "/v1/cluster"}, {"/p", "//p/v1/cluster", "/v1/cluster"}, {"/p", "/p/v1//jobs?x=//",
			"/v1/jobs?x=//"}, {"", "/v1//jobs", "/v1/jobs"},
		{"/p", "/p/./v1/jobs/x/../y", "/v1/jobs/y"}, {"/p", "/p//", "/"}, {"", "/v1/jobs/%2E%2E", "/v1/jobs/%2E%2E"},
		{"", "/v1//models/a%2F%2Fb", "/v1/models/a%2F%2Fb"},
	} {
		r := httptest.NewRequest("GET", "http://h"+c.path, nil)
		got := ""
		simplePaths(c.prefix, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = r.URL.RequestURI()
		})).ServeHTTP(nil, r)
		if got != c.want || r.URL.RequestURI() != c.path {
			t.Errorf("%q %s: %s, want %s", c.prefix, c.path, got, c.want)
		}
	}
}
