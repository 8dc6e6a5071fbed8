package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a fake coordinator. It knows no others, unless h is to say so.
func serve(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	return serveAll(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() == protocol.ClusterLocal {
			http.NotFound(w, r)
			return
		}
		h(w, r)
	})
}

// serveAll starts a fake coordinator that is asked for the others as well.
func serveAll(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// dead returns the address of a server that is gone.
func dead(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	return s.URL
}

func connect(t testing.TB, servers ...string) *Client {
	t.Helper()
	c, err := New(strings.Join(servers, ","))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func TestNew(t *testing.T) {
	c := connect(t, "a:1", " http://b:2/ ", "", "https://c:3")
	if diff := cmp.Diff([]string{"http://a:1", "http://b:2", "https://c:3"}, c.Servers()); diff != "" {
		t.Error(diff)
	}
	if got := connect(t, "[fe80::1%eth0]:7100").Servers()[0]; got != "http://[fe80::1%25eth0]:7100" {
		t.Error(got)
	}
	c = connect(t, "https://a/coppice/", "http://b", "https://[::1]", "http://c:1/x/y.z", "HTTPS://d/P", "Http://e")
	if diff := cmp.Diff([]string{"https://a:443/coppice", "http://b:80", "https://[::1]:443", "http://c:1/x/y.z",
		"https://d:443/P", "http://e:80"}, c.Servers()); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", " , ", "a", "ftp://a:1", "a:1/x?y", "https://a/v1", "https://a/x//y",
		"https://a/../x", "https://a/x y", "https://a/%2e", "https://u@a/x", "https:///x", "a b:1", "::1", "a:port",
		"127.0.0.1:99999", "http://a:0"} {
		if _, err := New(bad); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

// TestPrefix: below the path of a proxy, requests, blobs and the survey have the path, and nothing is learnt.
func TestPrefix(t *testing.T) {
	cluster := newTold("c1")
	a, _ := cluster.tell(t, "a", list), cluster.tell(t, "b", list)
	to, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := serveAll(t, http.StripPrefix("/coppice", httputil.NewSingleHostReverseProxy(to)).ServeHTTP)
	c := connect(t, proxy.URL+"/coppice")
	if _, err := c.Datasets().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := c.Survey(t.Context()); len(r) == 0 || r[0].Address != bare(proxy.URL)+"/coppice" {
		t.Errorf("%+v", r)
	}
	if got := c.places.all(); len(got) != 1 {
		t.Errorf("it knows %v", got)
	}
}

// A dead address and an election are not noticed, and the token stays the same.
func TestRetry(t *testing.T) {
	var tries atomic.Int32
	var tokens sync.Map
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var submitted protocol.SubmitRequest
		if err := json.NewDecoder(r.Body).Decode(&submitted); err != nil {
			t.Error(err)
		}
		tokens.Store(submitted.Token, true)
		if tries.Add(1) < 4 {
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
			return
		}
		answer(w, http.StatusOK, protocol.JobInfo{ID: 7, Name: submitted.Spec.Name})
	})
	c := connect(t, dead(t), s.URL)
	var waited atomic.Int32
	c.Waiting = func(error) { waited.Add(1) }
	j, err := c.Jobs().Submit(t.Context(), protocol.Spec{Name: "x"})
	if err != nil || j.ID != 7 || j.Name != "x" {
		t.Fatalf("got %+v, %v", j, err)
	}
	n := 0
	tokens.Range(func(any, any) bool { n++; return true })
	if n != 1 || tries.Load() != 4 || waited.Load() != 3 {
		t.Errorf("%d tokens, %d tries, %d waits", n, tries.Load(), waited.Load())
	}
}

// A refusal is final, and said in the coordinator's words.
func TestRefusal(t *testing.T) {
	var tries atomic.Int32
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		answer(w, http.StatusNotFound, protocol.Problem{Error: "there is no dataset \"x\""})
	})
	_, err := connect(t, s.URL).Datasets().Get(t.Context(), "x")
	if !IsNotFound(err) || err.Error() != "there is no dataset \"x\"" || tries.Load() != 1 {
		t.Errorf("%v after %d tries", err, tries.Load())
	}
}

func TestUnavailable(t *testing.T) {
	address := dead(t)
	c := connect(t, address)
	c.Patience = 50 * time.Millisecond
	_, err := c.Jobs().All(t.Context())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), strings.TrimPrefix(address, "http://")) {
		t.Errorf("got %v", err)
	}
}

// What a watch tells never goes back, over cut connections and coordinators that lag.
func TestWatch(t *testing.T) {
	job := func(index uint64, state protocol.JobState, rounds uint64, step ...uint64) protocol.JobInfo {
		j := protocol.JobInfo{ID: 3, Index: index, State: state, Rounds: rounds}
		for _, s := range step {
			j.Progress = &round.Progress{Step: s}
		}
		return j
	}
	streams := [][]protocol.JobInfo{
		{job(7, protocol.Queued, 0), job(9, protocol.Running, 5)},
		{job(7, protocol.Queued, 0), job(8, protocol.Running, 3), job(8, protocol.Running, 5),
			job(12, protocol.Running, 6, 90), job(13, protocol.Running, 6, 94)},
		nil, // no leader
		{job(20, protocol.Running, 6, 91), job(20, protocol.Running, 6), job(20, protocol.Running, 6, 95),
			job(21, protocol.Paused, 6), job(22, protocol.Queued, 6), job(11, protocol.Running, 6),
			job(23, protocol.Done, 9, 93)},
	}
	var next atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := next.Add(1)
		if want := "/v1/jobs/name/changes"; n == 1 && r.URL.Path != want || n > 1 && r.URL.Path != "/v1/jobs/3/changes" {
			t.Errorf("path %s", r.URL.Path)
		}
		stream := streams[n-1]
		if stream == nil {
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
			return
		}
		for _, j := range stream {
			answer(w, http.StatusOK, j)
		}
	})
	var seen, steps []uint64
	last, err := connect(t, s.URL, dead(t)).Jobs().Watch(t.Context(), "name", func(j *protocol.JobInfo) {
		seen = append(seen, j.Rounds)
		if j.Progress != nil {
			steps = append(steps, j.Progress.Step)
		}
	})
	if err != nil || last.State != protocol.Done || last.Rounds != 9 {
		t.Fatalf("got %+v, %v", last, err)
	}
	if diff := cmp.Diff([]uint64{0, 5, 6, 6, 6, 6, 6, 6, 6, 9}, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{90, 94, 94, 94, 95, 95, 95, 93}, steps); diff != "" { // the end is as it is
		t.Error(diff)
	}
}

// A coordinator that hangs after it said something is left for another.
func TestWatchLeavesWhoHangs(t *testing.T) {
	var hung atomic.Int32
	hangs := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hung.Add(1)
		answer(w, http.StatusOK, protocol.JobInfo{ID: 3, State: protocol.Running, Rounds: 1})
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	good := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, protocol.JobInfo{ID: 3, State: protocol.Done, Rounds: 2})
	})
	c := connect(t, hangs.URL, good.URL)
	c.watchSilence = 500 * time.Millisecond
	last, err := c.Jobs().Watch(t.Context(), "3", func(*protocol.JobInfo) {})
	if err != nil || last.Rounds != 2 || hung.Load() != 1 {
		t.Errorf("got %+v, %v after %d watches that hung", last, err, hung.Load())
	}
}

// A line that takes longer to come than a watch may be silent is read to its end.
func TestWatchOverAThinLink(t *testing.T) {
	var watches atomic.Int32
	thin := serve(t, func(w http.ResponseWriter, r *http.Request) {
		watches.Add(1)
		b, err := json.Marshal(protocol.JobInfo{ID: 3, State: protocol.Done, Rounds: 2})
		if err != nil {
			t.Error(err)
		}
		for _, one := range append(b, '\n') {
			w.Write([]byte{one})
			http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(5 * time.Millisecond): // the rate of the link
			}
		}
	})
	c := connect(t, thin.URL)
	c.watchSilence = 500 * time.Millisecond
	ctx := testkit.Context(t)
	last, err := c.Jobs().Watch(ctx, "3", func(*protocol.JobInfo) {})
	if err != nil || last.Rounds != 2 || watches.Load() != 1 {
		t.Errorf("got %+v, %v after %d watches", last, err, watches.Load())
	}
}

func TestWatchUnknownJob(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, protocol.Problem{Error: "there is no job"})
	})
	if _, err := connect(t, s.URL).Jobs().Watch(t.Context(), "3", func(*protocol.JobInfo) {}); !IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// cluster is a fake coordinator that stores blobs and datasets.
type cluster struct {
	mu    sync.Mutex
	blobs map[string][]byte
	sets  map[string]protocol.Dataset
	puts  int
	asks  []string // digests that it asks for, whatever it has
	loses int      // blobs that the next leader lacks
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if digest, ok := strings.CutPrefix(r.URL.Path, "/v1/blobs/"); ok {
		c.blob(w, r, digest)
		return
	}
	if r.Method == http.MethodPost {
		var e protocol.DatasetPutEntry
		json.NewDecoder(r.Body).Decode(&e)
		if r.URL.Path == "/v1/datasets/check" {
			c.check(w, &e)
			return
		}
		if c.loses > 0 { // another leads, which lacks some
			for _, s := range e.Manifest.Shards[:c.loses] {
				delete(c.blobs, s.Digest)
			}
			c.loses = 0
			answer(w, http.StatusBadRequest, protocol.Problem{Error: "shard 0 was not sent"})
			return
		}
		c.sets[e.Name] = protocol.Dataset{Name: e.Name, Digest: e.Manifest.Digest(), Manifest: e.Manifest}
		answer(w, http.StatusOK, c.sets[e.Name])
		return
	}
	if name, one := strings.CutPrefix(r.URL.Path, "/v1/datasets/"); one {
		if d, ok := c.sets[name]; ok {
			answer(w, http.StatusOK, d)
		} else {
			answer(w, http.StatusNotFound, protocol.Problem{Error: "no such dataset"})
		}
		return
	}
	list := []protocol.Dataset{}
	for _, d := range c.sets {
		list = append(list, d)
	}
	answer(w, http.StatusOK, list)
}

// check says which blobs of a dataset are to be sent, and refuses another one of a name
// that is taken.
func (c *cluster) check(w http.ResponseWriter, e *protocol.DatasetPutEntry) {
	if d, ok := c.sets[e.Name]; ok && d.Digest != e.Manifest.Digest() {
		answer(w, http.StatusConflict, protocol.Problem{Error: fmt.Sprintf("a dataset %q exists with other content", e.Name)})
		return
	}
	check := protocol.DatasetCheck{Lacking: slices.Clone(c.asks)}
	for _, s := range e.Manifest.Shards {
		if _, ok := c.blobs[s.Digest]; !ok {
			check.Lacking = append(check.Lacking, s.Digest)
		}
	}
	answer(w, http.StatusOK, check)
}

func (c *cluster) blob(w http.ResponseWriter, r *http.Request, digest string) {
	if r.Method == http.MethodGet {
		w.Write(c.blobs[digest])
		return
	}
	b, _ := io.ReadAll(r.Body)
	c.blobs[digest] = b
	c.puts++
}

// An import that is done again sends nothing, and a name keeps its content.
func TestImport(t *testing.T) {
	fake := &cluster{blobs: make(map[string][]byte), sets: make(map[string]protocol.Dataset)}
	c := connect(t, serve(t, fake.ServeHTTP).URL)
	d, err := c.Datasets().Import(t.Context(), protocol.DatasetPut{Name: "set"}, generate.Artificial(200, 1),
		importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, shards := datatest.Artificial(t, 200)
	if d.Digest != want.Digest() || fake.puts != len(want.Shards) {
		t.Errorf("digest %s, %d blobs", d.Digest, fake.puts)
	}
	got, err := c.Datasets().Shards(t.Context(), d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shards, got); diff != "" {
		t.Errorf("the shards came back changed:\n%s", diff)
	}
	for _, name := range []string{"set", "other"} {
		if _, err := c.Datasets().Import(t.Context(), protocol.DatasetPut{Name: name}, generate.Artificial(200, 1),
			importer.Options{}); err != nil || fake.puts != len(want.Shards) {
			t.Errorf("%s: %v, %d blobs", name, err, fake.puts)
		}
	}
	for i := range want.Shards[:2] { // lost
		delete(fake.blobs, want.Shards[i].Digest)
	}
	fake.asks = []string{want.Shards[0].Digest, "../../etc/passwd", strings.Repeat("0", 64)} // twice, and what is no shard
	if _, err := c.Datasets().Import(t.Context(), protocol.DatasetPut{Name: "set"}, generate.Artificial(200, 1),
		importer.Options{}); err != nil || fake.puts != len(want.Shards)+2 || len(fake.blobs) != len(want.Shards) {
		t.Errorf("a repair: %v, %d blobs sent, %d there", err, fake.puts-len(want.Shards), len(fake.blobs))
	}
	fake.asks, fake.puts, fake.loses = nil, 0, 1
	delete(fake.blobs, want.Shards[1].Digest)
	if _, err := c.Datasets().Import(t.Context(), protocol.DatasetPut{Name: "set"}, generate.Artificial(200, 1),
		importer.Options{}); err != nil || fake.puts != 2 || len(fake.blobs) != len(want.Shards) {
		t.Errorf("another leader that lacks a blob: %v, %d blobs sent, %d there", err, fake.puts, len(fake.blobs))
	}
	fake.puts = len(want.Shards)
	_, err = c.Datasets().Import(t.Context(), protocol.DatasetPut{Name: "set"}, generate.Artificial(200, 2),
		importer.Options{})
	if err == nil || !strings.Contains(err.Error(), `"set" exists with other content`) || fake.puts != len(want.Shards) {
		t.Errorf("got %v, %d blobs", err, fake.puts)
	}
}

// TestImportFree: datasets with other content keep their names, and the same content is imported once.
func TestImportFree(t *testing.T) {
	m, _ := datatest.Artificial(t, 200)
	other := protocol.Dataset{Digest: "other"}
	fake := &cluster{blobs: make(map[string][]byte), sets: map[string]protocol.Dataset{"set": other}}
	c := connect(t, serve(t, fake.ServeHTTP).URL)
	second, last := "set-"+m.Digest()[:8], ""
	for i, want := range []string{second, second, second + "-2", second + "-2", second + "-3"} {
		switch i {
		case 2: // the last name is another dataset's now
			fake.sets[last] = other
		case 4: // the same samples with other names of labels
			m := *fake.sets[last].Manifest
			m.LabelNames = []string{"x", "y", "z"}
			fake.sets[last] = protocol.Dataset{Name: last, Digest: m.Digest(), Manifest: &m}
		}
		last = want
		d, err := c.Datasets().ImportFree(t.Context(), protocol.DatasetPut{Name: "set"}, generate.Artificial(200, 1),
			importer.Options{})
		if err != nil || d.Name != want || d.Digest != m.Digest() || fake.puts != len(m.Shards) ||
			fake.sets["set"].Digest != "other" {
			t.Fatalf("import %d: %+v, want %s; %d blobs, error %v", i, d, want, fake.puts, err)
		}
	}
}

func TestBlobIsVerified(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "other") })
	sum := sha256.Sum256([]byte("this"))
	if _, err := connect(t, s.URL).Blobs().Get(t.Context(), hex.EncodeToString(sum[:])); err == nil {
		t.Error("other bytes passed")
	}
}

func TestPath(t *testing.T) {
	if got := modelAt("a job/3"); got != "/v1/models/a%20job/3" {
		t.Error(got)
	}
	for _, name := range []string{"c/d", `b"c`, "x\xff", "..", ".", "a?b", "%2F", "a b"} {
		r, err := http.NewRequest(http.MethodGet, "http://a:1"+at("members", name), nil)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		got := ""
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/members/{id}", func(_ http.ResponseWriter, r *http.Request) { got = r.PathValue("id") })
		if mux.ServeHTTP(httptest.NewRecorder(), r); got != name {
			t.Errorf("%q arrives as %q", name, got)
		}
	}
}

// A watch of a job that is deleted meanwhile ends with what the cluster says, and its
// last state.
func TestWatchOfADeletedJob(t *testing.T) {
	asked := 0
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked == 1 {
			answer(w, http.StatusOK, protocol.JobInfo{ID: 12, Name: "x", State: protocol.Running})
			return
		}
		if r.URL.Path != "/v1/jobs/12/changes" {
			t.Errorf("it asks %s", r.URL.Path)
		}
		answer(w, http.StatusNotFound, protocol.Problem{Error: "job 12 (x) was deleted"})
	})
	last, err := connect(t, s.URL).Jobs().Watch(t.Context(), "x", func(*protocol.JobInfo) {})
	if !IsNotFound(err) || !strings.Contains(err.Error(), "was deleted") || last == nil || last.ID != 12 || asked != 2 {
		t.Errorf("after %d requests: %+v, %v", asked, last, err)
	}
}

// A list asks for what its query says, and a deletion for numbers: names are looked up
// first, so that a request which is sent again is about the same jobs.
func TestListsAndDeletions(t *testing.T) {
	var asked []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+string(b))
		switch {
		case r.URL.Path == "/v1/jobs/x":
			answer(w, http.StatusOK, protocol.JobInfo{ID: 12})
		case len(asked) == 2:
			answer(w, http.StatusServiceUnavailable, protocol.Problem{Error: "no leader"})
		default:
			answer(w, http.StatusOK, struct{}{})
		}
	})
	c := connect(t, s.URL)
	_, err1 := c.Jobs().Delete(t.Context(), "x", "7")
	_, err2 := c.Models().Delete(t.Context(), "x")
	_, err3 := c.Models().Delete(t.Context(), "x/3")
	_, err4 := c.Jobs().List(t.Context(), protocol.JobQuery{States: []protocol.JobState{protocol.Done, protocol.Failed},
		Sort: "-kl", Limit: 5})
	_, err5 := c.Jobs().List(t.Context(), protocol.JobQuery{})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /v1/jobs/x ", `POST /v1/jobs/delete {"jobs":[12,7]}`, `POST /v1/jobs/delete {"jobs":[12,7]}`,
		"GET /v1/jobs/x ", "DELETE /v1/models/12 ", "DELETE /v1/models/x/3 ",
		"GET /v1/jobs?limit=5&sort=-kl&state=done%2Cfailed ", "GET /v1/jobs ",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}
