package page

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

const hostile = `<img src=x onerror=alert(1)>"'&--></script>`

// fakeAPI answers with values by path.
type fakeAPI map[string]any

// ServeHTTP implements http.Handler.
func (f fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, ok := f[r.URL.Path]
	if do, is := v.(http.HandlerFunc); is {
		do(w, r)
		return
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		v = protocol.Problem{Error: "there is no " + r.URL.Path}
	}
	json.NewEncoder(w).Encode(v)
}

func hostileJob() protocol.JobInfo {
	return protocol.JobInfo{ID: 7, Name: hostile, Dataset: hostile, Error: hostile, State: protocol.Running,
		Waiting: hostile, Experiment: hostile, Ownership: protocol.Ownership{Owner: hostile},
		Job: &round.Job{Algorithm: hostile}, Spec: json.RawMessage(`{"settings":{"trees":"5"},"seed":3}`)}
}

// TestHostileNames: what others wrote is text in every page.
func TestHostileNames(t *testing.T) {
	j := hostileJob()
	api := fakeAPI{"/v1/jobs": protocol.JobList{Jobs: []protocol.JobInfo{j}, Total: 1}, "/v1/jobs/7": j,
		"/v1/jobs/7/curve": protocol.JobCurve{Points: []curve.Point{{Step: 1, Training: 2, Validation: 3}, {Step: 2,
			Training: 1, Validation: 2}}}}
	h := Handler(Config{API: api, Prefix: "/p"})
	for _, path := range []string{"/ui", "/ui/jobs", "/ui/jobs/7", "/ui/jobs/8", "/ui/none/" + "%3Cimg%20src=x%3E"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		body := w.Body.String()
		if strings.Contains(body, "<img") || strings.Contains(body, " style=") || !strings.Contains(body, "</html>") {
			t.Errorf("%s: status %d:\n%s", path, w.Code, body)
		}
	}
}

// TestLive: a stream of events has the regions of a view, and again after a change.
func TestLive(t *testing.T) {
	j, more := hostileJob(), make(chan string)
	api := fakeAPI{"/v1/jobs/7/curve": protocol.JobCurve{}}
	api["/v1/jobs/7"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { json.NewEncoder(w).Encode(j) })
	api["/v1/jobs/7/changes"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case name := <-more:
				j.Error = name
				w.Write([]byte("{}\n"))
			case <-r.Context().Done():
				return
			}
		}
	})
	server := httptest.NewServer(Handler(Config{API: api}))
	defer server.Close()
	r, err := server.Client().Get(server.URL + "/ui/live/jobs/7")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	want := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("the stream ended without %q: %v", text, lines.Err())
	}
	want("event: regions")
	more <- "first change"
	want("first change")
	more <- "second change"
	want("second change")
}
