package coordinator

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/api"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// TestOpenPagesOfOneCaller: by default, one caller can have 200 open pages, and then still visit pages and follow a
// job.
func TestOpenPagesOfOneCaller(t *testing.T) {
	b, err := Budget{}.prepared()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	var open atomic.Int64
	h := api.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		open.Add(1)
		<-r.Context().Done()
	}), limitsOf(&b))
	ask := func(path string) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil).WithContext(access.With(ctx,
			access.Caller{Name: "ana", Role: rights.Read})))
		return w.Code
	}
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			if status := ask("/ui/live/jobs"); status != http.StatusOK {
				t.Errorf("an open page: status %d", status)
			}
		})
	}
	testkit.Until(t, "200 open pages", func() bool { return open.Load() == 200 || t.Failed() })
	for _, path := range []string{"/ui/jobs", "/ui/workers", "/v1/jobs/1/changes", "/v1/jobs"} {
		all.Go(func() {
			if status := ask(path); status != http.StatusOK {
				t.Errorf("%s: status %d", path, status)
			}
		})
	}
	testkit.Until(t, "other requests", func() bool { return open.Load() == 204 || t.Failed() })
	cancel()
	all.Wait()
}
