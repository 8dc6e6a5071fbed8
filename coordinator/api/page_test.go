package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/page"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

var nextPart = regexp.MustCompile(`href="([^"]*)" rel="next"`)

// TestPagesOfLists: web pages lead through long lists of datasets and models, part by part, on the leader and on a
// follower. Each element is on one page, and no page is large.
func TestPagesOfLists(t *testing.T) {
	const count = 230
	s := newSite(t)
	m := s.put("art", 40)
	for i := range count {
		s.propose(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: fmt.Sprint("set-", i), Manifest: m,
			Time: int64(i)})
	}
	for i := range count {
		s.finish(s.submit(fmt.Sprint("job-", i)), strings.Repeat("ab", 32))
	}
	for _, on := range []*site{s, s.follower()} {
		h := (&access.Gate{Hosts: []string{"example.com"}}).Identify(page.Handler(page.Config{API: Handler(on.cfg),
			Log: on.cfg.Log}))
		for list, name := range map[string]string{"datasets": "set-", "models": "job-"} {
			link := regexp.MustCompile(`<th scope="row"><a href="/ui/` + list + `/(` + name + `\d+)">`)
			seen, pages := make(map[string]int), 0
			for path := "/ui/" + list; path != ""; pages++ {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				body := w.Body.String()
				if w.Code != http.StatusOK || len(body) > 80_000 || pages > count {
					t.Fatalf("%s %s: status %d, %d bytes: %.2000s", on.cfg.ID, path, w.Code, len(body), body)
				}
				for _, m := range link.FindAllStringSubmatch(body, -1) {
					seen[m[1]]++
				}
				path = ""
				if m := nextPart.FindStringSubmatch(body); m != nil {
					path = strings.ReplaceAll(m[1], "&amp;", "&")
				}
			}
			if len(seen) != count || pages != (count+99)/100 {
				t.Errorf("%s: %d of %d %s on %d pages", on.cfg.ID, len(seen), count, list, pages)
			}
			for name, n := range seen {
				if n != 1 {
					t.Errorf("%s is on %d pages", name, n)
				}
			}
		}
	}
}

// TestPageShowsChanges: visits share what was made of a view, but a change that was answered is on the page of the
// leader at once. Only how far a job is may be some seconds old.
func TestPageShowsChanges(t *testing.T) {
	s := newSite(t)
	s.put("art", 40)
	h := inClear(s.cfg)
	shows := func(state protocol.JobState, path string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if want := fmt.Sprintf(`<span class="state %s">`, state); !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: status %d, not %s:\n%s", path, w.Code, state, w.Body)
		}
	}
	for i := range 20 {
		j := s.submit(fmt.Sprint("job-", i))
		shows(protocol.Queued, "/ui/jobs/"+j.Name)
		shows(protocol.Queued, "/ui/jobs?name="+j.Name)
		s.get("POST", "/v1/jobs/"+j.Name+"/pause", nil, nil)
		shows(protocol.Paused, "/ui/jobs/"+j.Name)
		shows(protocol.Paused, "/ui/jobs?name="+j.Name)
	}
}
