package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/apitest"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/storetest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// idle knows nothing of jobs beyond the committed state.
var idle = Running{
	Journal: func() *jobs.Journal { return nil },
	Live:    func(uint64) (live dispatch.Live, ok bool) { return live, false },
	Workers: func(uint64) []string { return nil },
	Waits:   func(*state.State) map[uint64]jobs.Wait { return nil },
}

// silenceHere is after what silence a leader is given up.
const silenceHere = time.Second

// site is a coordinator's API on a real store of one node.
type site struct {
	t      testing.TB
	cfg    Config
	web    *httptest.Server
	leader atomic.Pointer[string] // the coordinator that it believes to lead
	ready  atomic.Pointer[error]
}

// newSite starts a coordinator that leads.
func newSite(t testing.TB) *site {
	t.Helper()
	s, _ := storetest.Leading(t)
	log := slog.New(slog.DiscardHandler)
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := serve(t, "a", Config{Store: s, Blobs: &replica.Blobs{Self: "a", Folder: folder, Log: log}, Log: log})
	a.propose(protocol.EntryMember, protocol.MemberEntry{ID: "a", HTTP: strings.TrimPrefix(a.web.URL, "http://")})
	return a
}

// serve starts the API of a coordinator.
func serve(t testing.TB, id string, cfg Config) *site {
	t.Helper()
	s := &site{t: t, cfg: cfg}
	leader := "a"
	s.leader.Store(&leader)
	s.ready.Store(new(error))
	s.cfg.ID = id
	s.cfg.Status.Cluster = func() protocol.Cluster {
		return protocol.Cluster{ID: "told by " + id, Leader: *s.leader.Load()}
	}
	s.cfg.Status.Leader = func() string { return *s.leader.Load() }
	s.cfg.Status.Local = s.cfg.Status.Cluster
	s.cfg.Status.Heard = func() bool { return *s.leader.Load() != "" }
	s.cfg.silence = silenceHere
	s.cfg.Running = idle
	s.cfg.Running.Workers = func(uint64) []string { return []string{"w1", "w2"} }
	s.cfg.Status.Ready = func() error { return *s.ready.Load() }
	s.cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics of "+id) })
	gate := &access.Gate{Hosts: []string{"example.com"}}
	s.web = httptest.NewServer(gate.Identify(apitest.Conforming(t, Handler(s.cfg))))
	t.Cleanup(s.web.Close)
	return s
}

// inClear returns the handler of a coordinator in the clear, where callers may do everything. Requests of
// httptest are for example.com.
func inClear(cfg Config) http.Handler {
	return (&access.Gate{Hosts: []string{"example.com"}}).Identify(Handler(cfg))
}

// follower starts another coordinator, which has the same committed state.
func (s *site) follower() *site {
	cfg := s.cfg
	folder, err := blobs.Open(s.t.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	cfg.Blobs = &replica.Blobs{Self: "b", Folder: folder, Log: cfg.Log}
	return serve(s.t, "b", cfg)
}

func (s *site) propose(kind protocol.EntryKind, body any) any {
	s.t.Helper()
	_, v, err := s.cfg.Store.Propose(testkit.Context(s.t), protocol.EncodeEntry(kind, body))
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// ask sends a request; a body that is not bytes goes as JSON.
func (s *site) ask(method, path string, body any, header ...string) *http.Response {
	s.t.Helper()
	b, ok := body.([]byte)
	if body != nil && !ok {
		var err error
		if b, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(testkit.Context(s.t), method, s.web.URL+path, bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := s.web.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// get sends a request that must succeed, and reads its answer into v: the bytes if v is a
// *[]byte, and else JSON.
func (s *site) get(method, path string, body, v any) {
	s.t.Helper()
	answer := s.ask(method, path, body)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s %s: status %d, %s", method, path, answer.StatusCode, b)
	}
	if raw, ok := v.(*[]byte); ok {
		*raw = b
	} else if v != nil {
		if err := json.Unmarshal(b, v); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, b)
		}
	}
}

// refuse sends a request that must fail with a status and a Problem that says all of
// parts.
func (s *site) refuse(status int, method, path string, body any, parts ...string) {
	s.t.Helper()
	s.problem(s.ask(method, path, body), status, method+" "+path, parts...)
}

func (s *site) problem(answer *http.Response, status int, what string, parts ...string) {
	s.t.Helper()
	defer answer.Body.Close()
	var p protocol.Problem
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil {
		s.t.Errorf("%s: the answer is no Problem: %v", what, err)
	}
	if answer.StatusCode != status || p.Error == "" || answer.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s: status %d, want %d: %s", what, answer.StatusCode, status, p.Error)
	}
	for _, part := range parts {
		if !strings.Contains(p.Error, part) {
			s.t.Errorf("%s: the problem %q lacks %q", what, p.Error, part)
		}
	}
}

// imported is a dataset and the bytes of its shards.
func imported(t testing.TB, rows int) (*dataset.Manifest, [][]byte) {
	t.Helper()
	m, shards := datatest.Artificial(t, rows)
	var encoded [][]byte
	for _, shard := range shards {
		encoded = append(encoded, dataset.EncodeShard(shard, nil))
	}
	return m, encoded
}

// put imports a dataset as a client does.
func (s *site) put(name string, rows int) *dataset.Manifest {
	s.t.Helper()
	m, shards := imported(s.t, rows)
	for i, b := range shards {
		s.get("PUT", "/v1/blobs/"+m.Shards[i].Digest, b, nil)
	}
	s.get("POST", "/v1/datasets", protocol.DatasetPut{Name: name, Manifest: m}, nil)
	return m
}

func submission(token, name string, set map[string]string) protocol.SubmitRequest {
	return protocol.SubmitRequest{Token: token, Spec: protocol.Spec{Algorithm: "ldlf", Dataset: "art",
		Name: name, Set: set}}
}

// submit queues a job.
func (s *site) submit(name string) protocol.JobInfo {
	s.t.Helper()
	var j protocol.JobInfo
	s.get("POST", "/v1/jobs", submission("of "+name, name, nil), &j)
	return j
}

// finish runs a job to its end, with one model for each text.
func (s *site) finish(j protocol.JobInfo, models ...string) {
	s.t.Helper()
	epoch := s.cfg.Store.State().Epoch()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
	e := protocol.FinishEntry{Epoch: epoch, Job: j.ID, Outcome: json.RawMessage(`{"loss":0.5}`), Time: 9}
	for _, text := range models {
		blob, err := s.cfg.Blobs.Folder.Put([]byte(text))
		if err != nil {
			s.t.Fatal(err)
		}
		e.Models = append(e.Models, protocol.ModelRef{Digest: blobs.Sum([]byte("digest of " + text)), Blob: blob,
			Bytes: uint64(len(text))})
	}
	s.propose(protocol.EntryFinish, e)
}

// lines reads a watch: each line as it comes.
type lines struct {
	t    testing.TB
	body io.Closer
	ch   chan protocol.JobInfo
}

func (s *site) watch(job string) *lines {
	s.t.Helper()
	answer := s.ask("GET", "/v1/jobs/"+job+"/changes", nil)
	if answer.StatusCode != http.StatusOK {
		s.t.Fatalf("status %d", answer.StatusCode)
	}
	l := &lines{s.t, answer.Body, make(chan protocol.JobInfo)}
	s.t.Cleanup(func() { answer.Body.Close() })
	go func() {
		defer close(l.ch)
		for r := bufio.NewScanner(answer.Body); r.Scan(); {
			var j protocol.JobInfo
			if err := json.Unmarshal(r.Bytes(), &j); err != nil {
				s.t.Errorf("line %q: %v", r.Text(), err)
			}
			select {
			case l.ch <- j:
			case <-s.t.Context().Done():
				return
			}
		}
	}()
	return l
}

// next returns the next line that says a state; others, such as the repeated lines of a
// job that does not change, are passed over.
func (l *lines) next(want protocol.JobState) protocol.JobInfo {
	l.t.Helper()
	for {
		select {
		case j, ok := <-l.ch:
			if !ok {
				l.t.Fatalf("the watch ended before the job was %s", want)
			}
			if j.State == want {
				return j
			}
		case <-time.After(testkit.Limit):
			l.t.Fatalf("no line says %s", want)
		}
	}
}

// ended waits for the end of the watch.
func (l *lines) ended() {
	l.t.Helper()
	for {
		select {
		case j, ok := <-l.ch:
			if !ok {
				return
			}
			l.t.Errorf("a line after the last: %+v", j)
		case <-time.After(testkit.Limit):
			l.t.Fatal("the watch does not end")
		}
	}
}
