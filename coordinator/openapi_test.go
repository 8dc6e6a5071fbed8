package coordinator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/openapi"
)

// TestExamplesWork: the examples of the description of the API work on a cluster with TLS, one after the other, also if
// each is sent twice.
func TestExamplesWork(t *testing.T) {
	t.Parallel()
	s := secure(t, 1)
	s.startAll(1)
	ctx := testkit.Context(t)
	s.leader(ctx)
	web := &http.Client{Transport: s.source(certs.User, "ana").Transport(&http.Transport{})}
	defer web.CloseIdleConnections()
	send := func(e *openapi.Example) (status int, answer string) {
		method, path, _ := strings.Cut(strings.ReplaceAll(e.Pattern, "...}", "}"), " ")
		path = strings.Replace(path, "/v1/models/{job}", "/v1/models/{name}", 1)
		for name, value := range e.Path {
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
		}
		query := make(url.Values)
		for name, value := range e.Query {
			if states, ok := value.([]protocol.JobState); ok {
				for _, state := range states {
					query.Add(name, string(state))
				}
			} else {
				query.Set(name, fmt.Sprint(value))
			}
		}
		body, ok := e.Body.([]byte)
		if !ok && e.Body != nil {
			var err error
			if body, err = json.Marshal(e.Body); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.NewRequestWithContext(ctx, method, "https://"+s.at(0)+path+"?"+query.Encode(), bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := web.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", e.Pattern, err)
		}
		defer response.Body.Close()
		b, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatalf("%s: %v", e.Pattern, err)
		}
		return response.StatusCode, string(b)
	}
	for _, e := range openapi.Examples() {
		for n := range 2 {
			status, answer := send(&e)
			again := n > 0 && strings.HasPrefix(e.Pattern, "DELETE ") && status == http.StatusNotFound
			if status != http.StatusOK && !slices.Contains(e.Refused, status) && !again {
				t.Errorf("%s, time %d: status %d, %.400s", e.Pattern, n+1, status, answer)
			}
			if e.Pattern == "GET /v1/jobs/{job}/changes" {
				lines := strings.Fields(strings.TrimSpace(answer))
				if len(lines) == 0 || !strings.Contains(answer, `"state":"done"`) {
					t.Errorf("the job of the examples does not end: %.400s", answer)
				}
			}
		}
	}
}
