package api

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestRequestsAreCounted by pattern and status, never by path; what waits says so.
func TestRequestsAreCounted(t *testing.T) {
	var mu sync.Mutex
	var counted []string
	s := newSite(t)
	cfg := s.cfg
	backups := 0
	cfg.Count = func(route string, code int, took time.Duration, waits bool) {
		mu.Lock()
		defer mu.Unlock()
		if took < 0 || took > testkit.Limit {
			t.Errorf("%s took %v", route, took)
		}
		counted = append(counted, fmt.Sprint(route, " ", code, " ", waits))
	}
	cfg.Backed = func() { backups++ }
	c := serve(t, "a", cfg)
	s.put("art", 100)
	j := c.submit("job")
	c.get("POST", "/v1/jobs/job/cancel", nil, nil)
	lines := c.watch("job")
	if last := <-lines.ch; last.State != protocol.Cancelled {
		t.Errorf("watched %+v", last)
	}
	var blob []byte
	c.get("GET", "/v1/backup", nil, &blob)
	c.get("GET", "/v1/cluster?local=true&wait_ms=1", nil, nil)
	for path, method := range map[string]string{"/v1/jobs/none": "GET", "/etc/passwd": "GET", "/v1/jobs": "BREW"} {
		c.ask(method, path, nil).Body.Close()
	}
	want := []string{
		"GET /v1/backup 200 false", "GET /v1/cluster 200 true", "GET /v1/jobs/{job} 404 false", "GET /v1/jobs/{job}/watch 200 true",
		"POST /v1/jobs 200 false", "POST /v1/jobs/{job}/cancel 200 false", "other 404 false", "other 404 false",
	}
	testkit.Until(t, "all counted", func() bool { mu.Lock(); defer mu.Unlock(); return len(counted) == len(want) })
	slices.Sort(counted)
	if !slices.Equal(counted, want) {
		t.Errorf("counted %q, want %q", counted, want)
	}
	if backups != 1 || j.ID == 0 || len(blob) == 0 {
		t.Errorf("%d backups", backups)
	}
}

// TestCountedKeepsTheWriter: what handlers ask of the connection still reaches it.
func TestCountedKeepsTheWriter(t *testing.T) {
	s := newSite(t)
	s.cfg.Count = func(string, int, time.Duration, bool) {}
	c := serve(t, "a", s.cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		rc := http.NewResponseController(w)
		if rc.Flush() != nil || rc.SetWriteDeadline(time.Now().Add(testkit.Limit)) != nil || rc.SetReadDeadline(time.Time{}) != nil {
			t.Error("the connection is out of reach")
		}
	})
	c.web.Config.Handler = (&Server{cfg: c.cfg}).counted(mux)
	c.get("GET", "/", nil, new([]byte))
}
