package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// endless is a body that never ends.
type endless struct {
	begin, rest string
	read        atomic.Int64 // bytes; the transport may still read when the answer is there
}

func (e *endless) Read(p []byte) (int, error) {
	at := int(e.read.Load())
	n := copy(p, e.begin[min(at, len(e.begin)):])
	for n < len(p) {
		n += copy(p[n:], e.rest[(at+n-len(e.begin))%len(e.rest):])
	}
	e.read.Add(int64(n))
	return n, nil
}

// TestHostileRequests checks that hostile requests are answered or cut off within the
// bounds of bodies, and that the next request is served.
func TestHostileRequests(t *testing.T) {
	a := newSite(t)
	m, shards := imported(t, 300)
	for i, b := range shards {
		a.get("PUT", "/v1/blobs/"+m.Shards[i].Digest, b, nil)
	}
	a.get("POST", "/v1/datasets", protocol.DatasetPut{Name: "d", Manifest: m}, nil)
	raw(t, a)
	for path, e := range map[string]*endless{
		"/v1/jobs":           {begin: `{"token":"`, rest: strings.Repeat("x", 1<<10)},
		"/v1/datasets":       {begin: `{"manifest":{"shards":[{}`, rest: strings.Repeat(",{}", 1<<10)},
		"/v1/datasets/check": {begin: "", rest: strings.Repeat("[", 1<<10)},
	} {
		n := allocs.Of(func() { a.send("POST", path, e) })
		if read := e.read.Load(); read > maxBody+8<<20 || n > 64*maxBody {
			t.Errorf("POST %s: %d bytes were read, %d allocated", path, read, n)
		}
	}
	for _, path := range []string{"/v1/jobs/" + strings.Repeat("x", 1<<19), "/v1/blobs/..%2f..%2fetc",
		"/v1/models/%00/../..", "//", "/v1/jobs/18446744073709551616"} {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "BREW"} {
			a.send(method, path, strings.NewReader("{}"))
		}
	}
	huge := *m
	huge.Rows, huge.Shards = dataset.MaxRows, make([]dataset.ShardRef, 1<<16)
	for body, spec := range map[string]protocol.Spec{
		"folds":    {Algorithm: "ldlf", Dataset: "d", Folds: 1 << 40},
		"fraction": {Algorithm: "ldlf", Dataset: "d", TestFraction: 1e300},
		"trees":    {Algorithm: "rf", Dataset: "d", Set: map[string]string{"trees": "9223372036854775807"}},
		"sizes": {Algorithm: "ldlf", Dataset: "d", Set: map[string]string{"trees": "1000", "depth": "20",
			"outputs": "1048576"}},
		"name":  {Algorithm: "ldlf", Dataset: "d", Name: strings.Repeat("n", 1<<20)},
		"split": {Algorithm: "ldlf", Dataset: "d", Folds: 2, Assigned: "../../etc/passwd"},
	} {
		a.refuse(http.StatusBadRequest, "POST", "/v1/jobs", protocol.SubmitRequest{Token: body, Spec: spec})
	}
	a.refuse(http.StatusBadRequest, "POST", "/v1/datasets", protocol.DatasetPut{Name: "h", Manifest: &huge})
	var j protocol.JobInfo
	a.get("POST", "/v1/jobs", protocol.SubmitRequest{Token: "t", Spec: protocol.Spec{Algorithm: "ldlf", Dataset: "d"}}, &j)
	if j.State != protocol.Queued {
		t.Errorf("the job is %s", j.State)
	}
}

// send sends a request. Its answer does not matter.
func (s *site) send(method, path string, body io.Reader) {
	s.t.Helper()
	ctx := testkit.Context(s.t)
	r, err := http.NewRequestWithContext(ctx, method, s.web.URL+path, body)
	if err != nil {
		return // no request
	}
	answer, err := s.web.Client().Do(r)
	if ctx.Err() != nil {
		s.t.Fatalf("%s %.80s is not answered", method, path)
	}
	if err == nil {
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
}

// raw sends what is no HTTP, or not a whole request.
func raw(t *testing.T, a *site) {
	t.Helper()
	for _, text := range []string{
		"\x00\x01\x02", "GET / HTTP/9.9\r\n\r\n", "GET /v1/cluster HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
		"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
		"PUT /v1/blobs/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n",
		"GET / HTTP/1.1\r\n" + strings.Repeat("A: "+strings.Repeat("b", 1<<10)+"\r\n", 2<<10),
	} {
		c, err := net.Dial("tcp", a.web.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(testkit.Limit))
		io.WriteString(c, text) // an error: it is refused already
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
}

// FuzzRequests sends bodies to every request that has one: they are answered with success
// or a Problem, in proportion to their size.
func FuzzRequests(f *testing.F) {
	a := newSite(f)
	a.cfg.Quotas.Queue = 5
	h := inClear(a.cfg)
	m, shards := imported(f, 300)
	for i, b := range shards {
		a.get("PUT", "/v1/blobs/"+m.Shards[i].Digest, b, nil)
	}
	a.get("POST", "/v1/datasets", protocol.DatasetPut{Name: "d", Manifest: m}, nil)
	requests := []string{
		"POST /v1/jobs", "POST /v1/experiments", "POST /v1/datasets", "POST /v1/datasets/check", "PUT /v1/blobs/" +
			m.Shards[0].Digest,
		"POST /v1/jobs/1/cancel", "POST /v1/workers/w/trust", "POST /v1/jobs/delete", "POST /v1/jobs/prune",
	}
	seed := func(which uint8, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(which, b)
	}
	seed(0, protocol.SubmitRequest{Token: "t", Spec: protocol.Spec{Algorithm: "ldlf", Dataset: "d",
		Set: map[string]string{"trees": "3"}}})
	seed(1, protocol.DatasetPut{Name: "e", Manifest: m})
	seed(2, protocol.DatasetPut{Name: "e", Manifest: &dataset.Manifest{Rows: 1 << 32}})
	f.Add(uint8(3), shards[0])
	seed(6, protocol.DeleteRequest{Jobs: []uint64{1, 1 << 63}})
	seed(7, protocol.PruneRequest{OlderThan: 1, States: []protocol.JobState{protocol.Done}})
	seed(7, protocol.PruneRequest{OlderThan: 1 << 62})
	f.Add(uint8(0), []byte(`{"spec":{"seed":-1}}`))
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		method, path, _ := strings.Cut(requests[int(which)%len(requests)], " ")
		r := httptest.NewRequest(method, path, bytes.NewReader(b))
		w := httptest.NewRecorder()
		allocs.AtMost(t, 256*len(b)+32<<20, method+" "+path, func() { h.ServeHTTP(w, r) })
		if w.Code == http.StatusOK {
			return
		}
		var p protocol.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Error == "" || w.Code < 400 ||
			w.Code == http.StatusInternalServerError {
			t.Fatalf("%s %s: status %d, %s", method, path, w.Code, w.Body)
		}
	})
}
