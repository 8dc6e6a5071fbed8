package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestDatasets checks that a dataset is imported once its manifest is committed, after
// its blobs.
func TestDatasets(t *testing.T) {
	s := newSite(t)
	var list []protocol.Dataset
	if s.get("GET", "/v1/datasets", nil, &list); list == nil || len(list) != 0 {
		t.Errorf("no datasets are listed as %v, not as []", list)
	}
	m, shards := imported(t, 200)
	entry := protocol.DatasetPut{Name: "art", Manifest: m}
	s.refuse(424, "POST", "/v1/datasets", entry, "shard 0", m.Shards[0].Digest, "is not on the cluster",
		"upload the blob first")
	s.put("art", 200)
	var got protocol.Dataset
	s.get("GET", "/v1/datasets/art", nil, &got)
	if diff := cmp.Diff(m, got.Manifest); diff != "" || got.Name != "art" || got.Digest != m.Digest() || got.Time == 0 {
		t.Errorf("dataset %+v (-want +got):\n%s", got, diff)
	}
	var blob []byte
	if s.get("GET", "/v1/blobs/"+m.Shards[0].Digest, nil, &blob); !bytes.Equal(blob, shards[0]) {
		t.Errorf("%d bytes of %d", len(blob), len(shards[0]))
	}
	s.get("POST", "/v1/datasets", entry, &got) // the same once more
	s.put("more", 50)
	other, _ := imported(t, 50)
	s.refuse(409, "POST", "/v1/datasets", protocol.DatasetPut{Name: "art", Manifest: other}, `"art"`,
		"already exists with other content", "200 samples")
	if s.get("GET", "/v1/datasets", nil, &list); len(list) != 2 {
		t.Errorf("%d datasets", len(list))
	}

	j := s.submit("job")
	s.refuse(409, "DELETE", "/v1/datasets/art", nil, "in use by job "+strconv.FormatUint(j.ID, 10))
	s.get("POST", "/v1/jobs/job/cancel", nil, nil)
	s.get("DELETE", "/v1/datasets/art", nil, nil)
	s.refuse(404, "GET", "/v1/datasets/art", nil, `"art"`)
	s.refuse(404, "DELETE", "/v1/datasets/art", nil, `"art"`)
}

// TestBadDatasets are refused with what is wrong.
func TestBadDatasets(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	m, _ := imported(t, 200)
	entry := func(name string, change func(*dataset.Manifest)) protocol.DatasetPut {
		c := *m
		c.Shards = append([]dataset.ShardRef{}, m.Shards...)
		change(&c)
		return protocol.DatasetPut{Name: name, Manifest: &c}
	}
	good := func(*dataset.Manifest) {}
	for what, body := range map[string]any{
		"no manifest":           protocol.DatasetPut{Name: "x"},
		"no name":               entry("", good),
		"a name with a slash":   entry("a/b", good),
		"a name that is an ID":  entry("12", good),
		"a name with a dot":     entry("..", good),
		"other rows":            entry("x", func(m *dataset.Manifest) { m.Rows++ }),
		"no labels":             entry("x", func(m *dataset.Manifest) { m.Labels = 0 }),
		"another format":        entry("x", func(m *dataset.Manifest) { m.Format = 9 }),
		"a shard too few":       entry("x", func(m *dataset.Manifest) { m.Shards = m.Shards[1:] }),
		"a shard of other rows": entry("x", func(m *dataset.Manifest) { m.Shards[0].Rows++ }),
		"no digest":             entry("x", func(m *dataset.Manifest) { m.Shards[0].Digest = "../../etc/passwd" }),
		"no JSON":               []byte("rows"),
		"an unknown key":        []byte(`{"name":"x","rows":5}`),
		"nothing":               []byte{},
	} {
		answer := s.ask("POST", "/v1/datasets", body)
		s.problem(answer, 400, what)
	}
	if n := len(s.cfg.Store.State().Datasets()); n != 1 {
		t.Errorf("%d datasets afterwards", n)
	}
}

// TestBlobs are stored under their own digest only.
func TestBlobs(t *testing.T) {
	s := newSite(t)
	data, other := []byte("some bytes"), blobs.Sum([]byte("others"))
	s.get("PUT", "/v1/blobs/"+blobs.Sum(data), data, nil)
	s.get("PUT", "/v1/blobs/"+blobs.Sum(data), data, nil)
	s.refuse(400, "PUT", "/v1/blobs/"+other, data, other, blobs.Sum(data))
	s.refuse(400, "PUT", "/v1/blobs/short", data, "short")
	s.refuse(404, "GET", "/v1/blobs/"+other, nil, other)
	s.refuse(400, "GET", "/v1/blobs/short", nil, "short")
	var got []byte
	if s.get("GET", "/v1/blobs/"+blobs.Sum(data), nil, &got); !bytes.Equal(got, data) {
		t.Errorf("got %q", got)
	}
	if list, err := s.cfg.Blobs.Folder.List(); err != nil || len(list) != 1 {
		t.Errorf("%d blobs are stored, error %v", len(list), err)
	}
}

// TestNoMajority: a blob that only this coordinator has is not acknowledged; the client
// tries again.
func TestNoMajority(t *testing.T) {
	s := newSite(t)
	s.cfg.Blobs.Conn = natstest.Connect(t, natstest.Server(t, bus.ServerOptions{}))
	s.cfg.Blobs.Peers = []string{"b", "c"}
	data := []byte("some bytes")
	s.refuse(503, "PUT", "/v1/blobs/"+blobs.Sum(data), data, "too few coordinators")
}

// TestJobs: submitted once, whatever the retries, found by number and by name.
func TestJobs(t *testing.T) {
	s := newSite(t)
	m := s.put("art", 200)
	j := s.submit("first")
	if j.Name != "first" || j.State != protocol.Queued || j.Dataset != "art" || j.Job.Dataset != m.Digest() ||
		j.Job.Seed != 1 || j.Submitted == 0 {
		t.Errorf("job %+v", j)
	}
	if again := s.submit("first"); again.ID != j.ID {
		t.Errorf("the same token made job %d and job %d", j.ID, again.ID)
	}
	var got protocol.JobInfo
	s.get("POST", "/v1/jobs", submission("another token", "first", nil), &got)
	if got.ID != j.ID {
		t.Error("the same name with the same settings made another job")
	}
	s.refuse(409, "POST", "/v1/jobs", submission("third", "first", map[string]string{"trees": "3"}), "first",
		"already exists")
	for _, key := range []string{"first", strconv.FormatUint(j.ID, 10)} {
		s.get("GET", "/v1/jobs/"+key, nil, &got)
		if diff := cmp.Diff(j, got, cmpopts.IgnoreFields(j, "Index")); diff != "" || got.Index < j.Index {
			t.Errorf("job %s (-submitted +got):\n%s", key, diff)
		}
	}
	s.get("POST", "/v1/jobs", submission("unnamed", "", map[string]string{"trees": "3", "steps": "10"}), &got)
	if got.Name == "" || !strings.Contains(string(got.Job.Params), `"trees":3`) {
		t.Errorf("job %+v", got)
	}
	var list protocol.JobList
	if s.get("GET", "/v1/jobs?sort=submitted", nil, &list); len(list.Jobs) != 2 || list.Jobs[0].ID != j.ID {
		t.Errorf("%d jobs", len(list.Jobs))
	}
	s.get("POST", "/v1/jobs/first/cancel", nil, &got)
	if got.State != protocol.Cancelled || got.Ended == 0 {
		t.Errorf("after cancelling: %+v", got)
	}
	s.get("POST", "/v1/jobs/first/cancel", nil, &got) // twice is once
	done := s.submit("done")
	s.finish(done)
	s.refuse(409, "POST", "/v1/jobs/done/cancel", nil, "has ended")
}

// TestBadSubmissions name the key at fault and what would be right.
func TestBadSubmissions(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	spec := func(change func(*protocol.Spec)) protocol.SubmitRequest {
		r := submission("token", "name", nil)
		change(&r.Spec)
		return r
	}
	s.refuse(400, "POST", "/v1/jobs", submission("", "", nil), "token")
	s.refuse(400, "POST", "/v1/jobs", []byte("{"), "EOF")
	s.refuse(400, "POST", "/v1/jobs", []byte(`{"tokens":"x"}`), `"tokens"`)
	s.refuse(404, "POST", "/v1/jobs", spec(func(s *protocol.Spec) { s.Dataset = "gone" }), `"gone"`)
	s.refuse(400, "POST", "/v1/jobs", spec(func(s *protocol.Spec) {
		s.Set = map[string]string{"depth": "40"}
	}), "depth", "20")
	s.refuse(400, "POST", "/v1/jobs", spec(func(s *protocol.Spec) {
		s.Set = map[string]string{"deep": "4"}
	}), "deep", "depth")
	s.refuse(400, "POST", "/v1/jobs", spec(func(s *protocol.Spec) { s.Algorithm = "oracle" }), "oracle", "ldlf")
	s.refuse(400, "POST", "/v1/jobs", spec(func(s *protocol.Spec) { s.TestFraction = 2 }), "test_fraction")
	s.refuse(400, "POST", "/v1/jobs", spec(func(s *protocol.Spec) { s.Name = "7" }), `"7"`)
	s.refuse(424, "POST", "/v1/jobs", spec(func(s *protocol.Spec) {
		s.Folds, s.Assigned = 3, blobs.Sum(nil)
	}), "the list of folds", "is not on the cluster", "upload the blob first")
	for _, path := range []string{"/v1/jobs/9", "/v1/jobs/9/changes", "/v1/jobs/none"} {
		s.refuse(404, "GET", path, nil, "there is no job")
	}
	s.refuse(404, "POST", "/v1/jobs/9/cancel", nil)
	if n := len(s.cfg.Store.State().Jobs()); n != 0 {
		t.Errorf("%d jobs afterwards", n)
	}
}

// TestWatch: a line at each change, the last one when the job has ended; through a
// follower as well.
func TestWatch(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	watchers := []*lines{s.watch("job"), s.follower().watch(strconv.FormatUint(j.ID, 10))}
	for _, l := range watchers {
		if got := l.next(protocol.Queued); got.ID != j.ID {
			t.Errorf("job %d is watched", got.ID)
		}
	}
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: s.cfg.Store.State().Epoch(), Job: j.ID,
		State: protocol.Running})
	for _, l := range watchers {
		l.next(protocol.Running)
	}
	s.finish(j)
	for _, l := range watchers {
		if got := l.next(protocol.Done); string(got.Outcome) != `{"loss":0.5}` {
			t.Errorf("outcome %s", got.Outcome)
		}
		l.ended()
	}
	s.watch("job").next(protocol.Done)
}

// TestWatchEndsWithTheLeadership: the watcher connects again and finds the next leader.
func TestWatchEndsWithTheLeadership(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	s.submit("job")
	l := s.watch("job")
	l.next(protocol.Queued)
	nobody := ""
	s.leader.Store(&nobody)
	s.propose(protocol.EntryMember, protocol.MemberEntry{ID: "z"}) // any change of the state
	l.ended()
}

// TestModels of finished jobs, by the job's name, by fold, or by digest.
func TestModels(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	s.finish(s.submit("one"), "the model")
	var folds protocol.JobInfo
	r := submission("folds", "cv", nil)
	r.Spec.Folds = 2
	s.get("POST", "/v1/jobs", r, &folds)
	s.finish(folds, "fold zero", "fold one")
	s.submit("queued")
	var list []protocol.ModelInfo
	s.get("GET", "/v1/models", nil, &list)
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
		if m.Algorithm != "ldlf" || m.Dataset != "art" || m.Time != 9 {
			t.Errorf("model %+v", m)
		}
	}
	if diff := cmp.Diff([]string{"one", "cv/0", "cv/1"}, names); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	for query, want := range map[string][]string{"1": {"cv/1"}, "2": {"cv/0", "cv/1"}, "3": names, "4": names} {
		var got []string
		list = nil
		for s.get("GET", "/v1/models?newest="+query, nil, &list); len(list) > 0; list = list[1:] {
			got = append(got, list[0].Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the newest %s models (-want +got):\n%s", query, diff)
		}
	}
	for _, query := range []string{"0", "-1", "all"} {
		s.refuse(400, "GET", "/v1/models?newest="+query, nil, "newest: want the number of models to list")
	}
	for name, want := range map[string]string{"one": "the model", "cv/1": "fold one",
		blobs.Sum([]byte("digest of fold zero")): "fold zero"} {
		var got []byte
		if s.get("GET", "/v1/models/"+name, nil, &got); string(got) != want {
			t.Errorf("model %s is %q", name, got)
		}
	}
	for _, name := range []string{"queued", "cv", "cv/2", "none"} {
		s.refuse(404, "GET", "/v1/models/"+name, nil, "there is no model")
	}
}

// TestFollowerForwards everything but what it knows itself.
func TestFollowerForwards(t *testing.T) {
	s := newSite(t)
	f := s.follower()
	f.put("art", 200)
	j := f.submit("job")
	var got protocol.JobInfo
	if f.get("GET", "/v1/jobs/job", nil, &got); got.ID != j.ID {
		t.Errorf("job %+v", got)
	}
	f.refuse(400, "POST", "/v1/jobs", submission("", "", nil), "token")
	f.refuse(404, "GET", "/v1/models/none", nil)
	var c protocol.Cluster
	if f.get("GET", "/v1/cluster", nil, &c); c.ID != "told by a" {
		t.Errorf("the cluster was %s", c.ID)
	}
	if list, _ := f.cfg.Blobs.Folder.List(); len(list) != 0 {
		t.Errorf("a follower stored %d blobs by itself", len(list))
	}
	for path, want := range map[string]string{"/metrics": "metrics of b", "/healthz": "ok\n", "/readyz": "ready\n"} {
		var b []byte
		if f.get("GET", path, nil, &b); string(b) != want {
			t.Errorf("%s: %q", path, b)
		}
	}
}

// TestNoLeader is a 503, for whatever reason there is none to be had.
func TestNoLeader(t *testing.T) {
	s := newSite(t)
	f := s.follower()
	again := f.ask("GET", "/v1/jobs", nil, forwardedHeader, "c")
	f.problem(again, 503, "forwarded once already", "no leader")

	unknown, nobody := "d", ""
	f.leader.Store(&unknown) // the log does not have its address
	f.refuse(503, "GET", "/v1/jobs", nil, "no leader")
	var c protocol.Cluster
	if f.get("GET", "/v1/cluster", nil, &c); c.ID != "told by b" {
		t.Errorf("the cluster was %s", c.ID)
	}
	f.leader.Store(&nobody)
	f.refuse(503, "POST", "/v1/jobs", submission("t", "n", nil), "no leader")
	f.refuse(503, "GET", "/v1/jobs/1/changes", nil, "no leader")
	f.refuse(503, "PUT", "/v1/blobs/"+blobs.Sum(nil), nil, "no leader")

	gone := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(gone.URL, "http://")
	gone.Close()
	s.propose(protocol.EntryMember, protocol.MemberEntry{ID: "d", HTTP: address})
	f.leader.Store(&unknown)
	f.refuse(503, "GET", "/v1/jobs", nil, "did not answer")

	// This one believes to lead, but Raft knows better: the store is closed.
	if err := s.cfg.Store.Close(); err != nil {
		t.Fatal(err)
	}
	s.refuse(503, "DELETE", "/v1/datasets/art", nil)
}

// TestNotReady says why.
func TestNotReady(t *testing.T) {
	s := newSite(t)
	why := errors.New("this coordinator is not connected to NATS")
	s.ready.Store(&why)
	answer := s.ask("GET", "/readyz", nil)
	defer answer.Body.Close()
	if b, _ := io.ReadAll(answer.Body); answer.StatusCode != 503 || !strings.Contains(string(b), why.Error()) {
		t.Errorf("status %d, %s", answer.StatusCode, b)
	}
	s.get("GET", "/healthz", nil, new([]byte))
}

// TestNothingThere is a Problem too.
func TestNothingThere(t *testing.T) {
	s := newSite(t)
	s.refuse(405, "PUT", "/", nil, "PUT /")
	s.refuse(404, "GET", "/v2/jobs", nil, "/v2/jobs")
	s.refuse(405, "PATCH", "/v1/jobs/1", nil, "PATCH", "the methods of this path are GET, HEAD")
}

// TestTooLarge: a body beyond its bound is refused, not read.
func TestTooLarge(t *testing.T) {
	s := newSite(t)
	long := append([]byte(`{"token":"`), bytes.Repeat([]byte("x"), maxBody)...)
	s.refuse(400, "POST", "/v1/jobs", long, "the JSON body of the request is larger than 16777216 bytes")
	r := httptest.NewRequest("PUT", "/v1/blobs/"+blobs.Sum(nil), unread{t})
	r.ContentLength = maxBlob + 1
	w := httptest.NewRecorder()
	s.web.Config.Handler.ServeHTTP(w, r)
	s.problem(w.Result(), 400, "a huge blob", "268435457 bytes")
}

// TestOneValue: a body is one JSON value, and nothing is passed over.
func TestOneValue(t *testing.T) {
	s := newSite(t)
	s.refuse(400, "POST", "/v1/jobs", []byte(`{"token":"a"} {"token":"b"}`),
		"the body of the request has more text after its JSON value")
	s.refuse(400, "POST", "/v1/jobs", []byte(`{"token":"a"}x`), "invalid character 'x'")
	s.refuse(400, "POST", "/v1/jobs", []byte(`{"tokens":"a"}`), "tokens")
	s.refuse(400, "POST", "/v1/jobs", []byte("  "), "empty")
	s.refuse(400, "POST", "/v1/jobs", append(bytes.Repeat([]byte(" "), maxBody), "{}"...),
		"the JSON body of the request is larger than 16777216 bytes")
}

// TestNoNull: a list that is empty is a list.
func TestNoNull(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/v1/cluster", "/v1/cluster?local=true", "/v1/jobs", "/v1/datasets", "/v1/models"} {
		answer := s.ask("GET", path, nil)
		b, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != 200 || bytes.Contains(b, []byte("null")) {
			t.Errorf("%s: status %d, %s: %v", path, answer.StatusCode, b, err)
		}
	}
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("a body that is too large is read")
	return 0, io.EOF
}

// TestFormerLeader checks that a former leader, which does not know yet that another
// leads, answers nothing from memory.
func TestFormerLeader(t *testing.T) {
	a := newSite(t)
	cfg := a.cfg
	config := store.Config{
		ID: "a", Dir: t.TempDir(), RaftAddr: "127.0.0.1:0", SegmentBytes: 1 << 20, Logger: cfg.Log,
		Peers: []store.Peer{{ID: "a", RaftAddr: "127.0.0.1:1"}, {ID: "b", RaftAddr: "127.0.0.1:2"},
			{ID: "c", RaftAddr: "127.0.0.1:3"}},
		Ask: func(context.Context, string) (store.Answer, error) { return store.Answer{}, errors.New("nobody") },
	}
	folder, err := store.Claim(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Join("x"); err != nil {
		t.Fatal(err)
	}
	if cfg.Store, err = store.Open(config, folder); err != nil {
		t.Fatal(err)
	}
	defer cfg.Store.Close()
	alone := serve(t, "a", cfg)
	for _, path := range []string{"/v1/jobs", "/v1/datasets/x", "/v1/models", "/v1/jobs/1/changes"} {
		alone.refuse(http.StatusServiceUnavailable, "GET", path, nil, "leads")
	}
}

// TestListsOfGroups: a manifest comes in only with a list that gives each of its rows a
// group, and each group a row.
func TestListsOfGroups(t *testing.T) {
	s := newSite(t)
	m := *s.put("art", 4)
	for _, c := range []struct {
		groups []uint16
		wrong  string
	}{
		{[]uint16{0, 1, 1}, "6 bytes"},
		{[]uint16{0, 1, 2, 0}, "sample 2 is in group 2, but there are 2 groups"},
		{[]uint16{0, 0, 0, 0}, `no sample is in the group "b"`},
		{[]uint16{0, 1, 1, 0}, ""},
	} {
		b := dataset.EncodeFolds(c.groups)
		s.get("PUT", "/v1/blobs/"+blobs.Sum(b), b, nil)
		m.Groups = &dataset.Groups{Digest: blobs.Sum(b), Names: []string{"a", "b"}}
		entry := protocol.DatasetPut{Name: "grouped", Manifest: &m}
		if c.wrong == "" {
			s.get("POST", "/v1/datasets", entry, nil)
		} else {
			s.refuse(400, "POST", "/v1/datasets", entry, c.wrong)
		}
	}
}

// TestAddMemberChecks checks that a coordinator with an impossible id or address is
// refused before anybody looks for it.
func TestAddMemberChecks(t *testing.T) {
	for body, says := range map[string]string{
		`{"id":"c/d","http":"h:7100"}`:     "letters, digits",
		`{"id":"","http":"h:7100"}`:        "letters, digits",
		`{"id":"d","http":"0.0.0.0:7100"}`: "all interfaces",
		`{"id":"d","http":"h"}`:            "HOST:PORT",
	} {
		_, err := new(clusterHandlers).add(httptest.NewRequest("POST", "/v1/members", strings.NewReader(body)))
		if err == nil || statusOf(err) != 400 || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// A client asks another coordinator if the disk or the folder of this one fails.
func TestStatusOfOwnDisk(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{&fs.PathError{Op: "open", Path: "c/blobs/tmp-1", Err: syscall.ENOENT}, 503},
		{fmt.Errorf("blobs: %w", &fs.PathError{Op: "write", Path: "c/blobs/tmp-1", Err: syscall.EIO}), 503},
		{&fs.PathError{Op: "open", Path: "c/blobs/tmp-1", Err: syscall.EROFS}, 503},
		{fmt.Errorf("c/raft: %w", files.ErrGone), 503},
		{&fs.PathError{Op: "write", Path: "c/blobs/tmp-1", Err: syscall.ENOSPC}, 507},
		{errors.New("a fault of the program"), 500},
	} {
		if got := statusOf(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}
