package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestPauseAndResume checks that both are acknowledged with the state that they
// committed, do no harm twice, and are refused once the job has ended.
func TestPauseAndResume(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	l := s.watch("job")
	l.next(protocol.Queued)
	var got protocol.JobInfo
	for range 2 {
		s.get("POST", "/v1/jobs/job/pause", nil, &got)
		if got.State != protocol.Paused || s.cfg.Store.State().Job(j.ID).State != protocol.Paused || got.Index < j.Index {
			t.Fatalf("paused: %+v", got)
		}
	}
	l.next(protocol.Paused)
	s.refuse(409, "DELETE", "/v1/datasets/art", nil, "in use")
	for range 2 {
		s.get("POST", "/v1/jobs/"+strconv.FormatUint(j.ID, 10)+"/resume", nil, &got)
		if got.State != protocol.Queued {
			t.Fatalf("resumed: %+v", got)
		}
	}
	l.next(protocol.Queued)
	s.finish(j)
	for _, wish := range []string{"pause", "resume", "cancel"} {
		s.refuse(409, "POST", "/v1/jobs/job/"+wish, nil, "has ended", "done")
		s.refuse(404, "POST", "/v1/jobs/none/"+wish, nil, "none")
	}
}

// TestSubmissionIsSentAgain checks that the same token is answered with its job, though
// job, dataset and queue have changed meanwhile.
func TestSubmissionIsSentAgain(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	s.get("POST", "/v1/jobs/job/cancel", nil, nil)
	s.get("DELETE", "/v1/datasets/art", nil, nil)
	if again := s.submit("job"); again.ID != j.ID || again.State != protocol.Cancelled {
		t.Errorf("sent again it makes %+v", again)
	}
	s.put("art", 200)
	first := submission("of my own", "first", nil)
	s.get("POST", "/v1/jobs", first, nil)
	first.Spec.Set = map[string]string{"trees": "9"}
	s.refuse(409, "POST", "/v1/jobs", first, "the token of the submission already exists", "choose another token")
	var anew protocol.JobInfo
	s.get("POST", "/v1/jobs", submission("another token", "job", nil), &anew)
	if anew.ID == j.ID || anew.State != protocol.Queued {
		t.Errorf("the name of a cancelled job is not free: %+v", anew)
	}
	var got protocol.JobInfo
	if s.get("GET", "/v1/jobs/job", nil, &got); got.ID != anew.ID {
		t.Errorf("the name means job %d, not the newest, %d", got.ID, anew.ID)
	}
	s.refuse(409, "POST", "/v1/jobs", submission("third", "job", map[string]string{"trees": "3"}), "already exists",
		"job 12 (job) already exists and is queued; its trees is 5, but the new job has 3")
}

// TestCheckJob: a check says what job a submission would queue, or why it would be refused, and queues none.
func TestCheckJob(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	r := submission("", "checked", map[string]string{"trees": "9"})
	var got, made protocol.JobInfo
	s.get("POST", "/v1/jobs?check=true", r, &got)
	if got.ID != 0 || got.Name != "checked" || got.State != protocol.Queued {
		t.Errorf("a check answers with %+v", got)
	}
	s.refuse(404, "GET", "/v1/jobs/checked", nil, "checked")
	r.Token = "token"
	if s.get("POST", "/v1/jobs?check=false", r, &made); !bytes.Equal(made.Job.Params, got.Job.Params) ||
		!bytes.Equal(made.Spec, got.Spec) {
		t.Errorf("the job is %+v with %s, but the check said %+v with %s", made.Job, made.Spec, got.Job, got.Spec)
	}
	var again protocol.JobInfo
	if s.get("POST", "/v1/jobs?check=true", r, &again); again.ID != made.ID {
		t.Errorf("a check of the same job answers with job %d, want %d", again.ID, made.ID)
	}
	other := r
	other.Spec.Seed = new(uint64(77))
	s.refuse(409, "POST", "/v1/jobs?check=true", other, "choose another name")
	r.Spec.Folds = 500
	s.refuse(400, "POST", "/v1/jobs?check=true", r, "500 folds are too many")
	s.refuse(400, "POST", "/v1/jobs?chek=true", r, "chek")
}

func TestAuditRate(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	for rate, want := range map[float64]uint32{0: 0, 1e-9: 1, 0.05: 50000, 1: 1e6} {
		r := submission(fmt.Sprint("token ", rate), fmt.Sprint("job-", want), nil)
		r.Audit = rate
		var got protocol.JobInfo
		if s.get("POST", "/v1/jobs", r, &got); got.AuditPPM != want {
			t.Errorf("a rate of %v is %d units of a million", rate, got.AuditPPM)
		}
	}
	for _, rate := range []float64{-0.1, 1.1} {
		r := submission("bad", "", nil)
		r.Audit = rate
		s.refuse(400, "POST", "/v1/jobs", r, "audit", "0 to 1")
	}
}

// TestTrust checks that a quarantine is ended once.
func TestTrust(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	s.propose(protocol.EntrySuspect, protocol.SuspectEntry{Epoch: s.cfg.Store.State().Epoch(), Worker: "w1",
		Jobs: []uint64{j.ID}, Reason: "unit 3 differs"})
	var got protocol.JobInfo
	if s.get("GET", "/v1/jobs/job", nil, &got); got.Suspect != "worker w1: unit 3 differs" {
		t.Errorf("suspect: %q", got.Suspect)
	}
	s.finish(j, "model")
	var models []protocol.ModelInfo
	if s.get("GET", "/v1/models", nil, &models); len(models) != 1 || models[0].Suspect == "" {
		t.Errorf("models %+v", models)
	}
	s.get("POST", "/v1/workers/w1/trust", nil, nil)
	if n := len(s.cfg.Store.State().Quarantined()); n != 0 {
		t.Errorf("%d are distrusted", n)
	}
	s.refuse(404, "POST", "/v1/workers/w1/trust", nil, "w1")
}

// bounded is a site with quotas.
func bounded(t *testing.T, q Quotas) *site {
	s := newSite(t)
	cfg := s.cfg
	cfg.Quotas = q
	return serve(t, "a", cfg)
}

// TestQuotas checks that a refusal says what is used, what is allowed and which flag
// allows more. What was accepted before stays accepted.
func TestQuotas(t *testing.T) {
	s := bounded(t, Quotas{Queue: 2})
	s.put("art", 200)
	s.submit("one")
	s.submit("two")
	s.refuse(403, "POST", "/v1/jobs", submission("t", "three", nil), "2 jobs", "at most 2", "--max-queue")
	s.submit("two")
	s.get("POST", "/v1/jobs/one/cancel", nil, nil)
	s.submit("three")

	s = bounded(t, Quotas{JobMemory: 1 << 20})
	s.put("art", 200)
	s.submit("small")
	large := submission("t", "large", map[string]string{"depth": "16", "trees": "40"})
	s.refuse(403, "POST", "/v1/jobs", large, "MiB", "at most 1.0 MiB", "--max-job-memory")

	s = bounded(t, Quotas{Message: 256 << 10})
	s.put("art", 200)
	s.submit("small")
	s.refuse(403, "POST", "/v1/jobs", large, "at most 256.0 KiB", "--message-memory")

	m, shards := imported(t, 200)
	total := int64(10)
	for _, b := range shards {
		total += int64(len(b))
	}
	s = bounded(t, Quotas{BlobBytes: total})
	s.get("POST", "/v1/datasets/check", protocol.DatasetPut{Name: "art", Manifest: m}, nil)
	s.put("art", 200)
	more, bytes := imported(t, 300)
	s.refuse(507, "POST", "/v1/datasets/check", protocol.DatasetPut{Name: "more", Manifest: more}, "blobs already take",
		"--max-blob-bytes")
	s.refuse(507, "PUT", "/v1/blobs/"+more.Shards[0].Digest, bytes[0], "blobs already take", "--max-blob-bytes")
	s.put("art", 200) // a blob that is there takes no room again
	s.get("PUT", "/v1/blobs/"+blobs.Sum([]byte("ten bytes.")), []byte("ten bytes."), nil)
	s.refuse(507, "PUT", "/v1/blobs/"+blobs.Sum([]byte("1")), []byte("1"), "--max-blob-bytes")
}

// TestMeterCountsWhatIsOnItsWay checks that concurrent imports do not exceed the quota
// together.
func TestMeterCountsWhatIsOnItsWay(t *testing.T) {
	m := &blobQuota{limit: 100, usage: func() (int64, error) { return 40, nil }}
	done, err := m.reserve(50)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.reserve(20); err == nil || !strings.Contains(err.Error(), "90 B of at most 100 B") {
		t.Errorf("error %v", err)
	}
	done(false)
	again, err := m.reserve(60)
	if err != nil {
		t.Error(err)
	}
	again(true)
	if _, err := m.reserve(1); err == nil {
		t.Error("what was stored since the measurement is forgotten")
	}
}

// TestCheckDataset checks that the client is told why an import would be refused before
// it sends a blob.
func TestCheckDataset(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	other, _ := imported(t, 50)
	s.refuse(409, "POST", "/v1/datasets/check", protocol.DatasetPut{Name: "art", Manifest: other}, `"art"`,
		"other content")
	s.refuse(400, "POST", "/v1/datasets/check", protocol.DatasetPut{Name: "17", Manifest: other}, `"17"`)
	s.refuse(400, "POST", "/v1/datasets/check", protocol.DatasetPut{Name: "x"}, "manifest")
	var answer protocol.DatasetCheck
	asked := func(name string, m *dataset.Manifest, want ...string) {
		t.Helper()
		s.get("POST", "/v1/datasets/check", protocol.DatasetPut{Name: name, Manifest: m}, &answer)
		if !slices.Equal(answer.Lacking, want) {
			t.Errorf("to be sent: %v, want %v", answer.Lacking, want)
		}
	}
	var all []string
	for _, shard := range other.Shards {
		all = append(all, shard.Digest)
	}
	asked("other", other, all...)
	m, _ := imported(t, 200)
	asked("art", m)
	folder, lost, damaged := s.cfg.Blobs.Folder, m.Shards[0].Digest, m.Shards[1].Digest
	path, err := folder.Path(damaged)
	if err := errors.Join(err, folder.Delete(lost), os.WriteFile(path, []byte("damaged"), 0o600),
		folder.Verify(lost)); !errors.Is(err, blobs.ErrMissing) {
		t.Fatal(err)
	}
	if err := folder.Verify(damaged); !errors.Is(err, blobs.ErrCorrupt) {
		t.Fatal(err)
	}
	asked("art", m, lost, damaged)
	asked("again", m, lost, damaged)
	s.put("art", 200)
	asked("art", m)
	if n := len(s.cfg.Store.State().Datasets()); n != 1 {
		t.Errorf("%d datasets afterwards", n)
	}
}

// TestForwardingEndsWithTheLeadership checks that a request that hangs at a former leader
// is given up, so that its client asks again.
func TestForwardingEndsWithTheLeadership(t *testing.T) {
	s := newSite(t)
	hangs := make(chan struct{})
	old := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(hangs)
		<-r.Context().Done()
	}))
	defer old.Close()
	s.propose(protocol.EntryMember, protocol.MemberEntry{ID: "z", HTTP: strings.TrimPrefix(old.URL, "http://")})
	lead := func(node string) {
		s.propose(protocol.EntryLead, protocol.LeadEntry{Node: node, Nonce: node})
	}
	lead("z")
	f := s.follower()
	z := "z"
	f.leader.Store(&z)
	led := make(chan struct{})
	go func() {
		defer close(led)
		<-hangs
		lead("a")
	}()
	f.refuse(503, "GET", "/v1/jobs", nil, "did not answer")
	<-led // the proposal ends with the test's context
}

// TestReadsAreOfTheTerm checks that a new leader answers from a state that has all that
// was committed before.
func TestReadsAreOfTheTerm(t *testing.T) {
	s := newSite(t)
	check := &leaderCheck{store: s.cfg.Store}
	ctx, cancel := context.WithCancel(testkit.Context(t))
	before := s.cfg.Store.Stats().LastIndex
	for range 3 {
		if err := check.verify(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.cfg.Store.Stats().LastIndex - before; n != 1 {
		t.Errorf("%d barriers for three reads of one term", n)
	}
	check.complete.Store(99)
	cancel()
	if err := check.verify(ctx); err == nil {
		t.Error("a read of another term does without a barrier")
	}
}

// TestNoReferenceBeforeAMajority checks that the log does not refer to a blob that only
// this coordinator has, since its upload found no quorum.
func TestNoReferenceBeforeAMajority(t *testing.T) {
	s := newSite(t)
	s.cfg.Blobs.Conn = natstest.Connect(t, natstest.Server(t, bus.ServerOptions{}))
	s.put("art", 200)
	m, shards := imported(t, 50)
	s.cfg.Blobs.Peers = []string{"b", "c"}
	for i, b := range shards {
		s.refuse(503, "PUT", "/v1/blobs/"+m.Shards[i].Digest, b, "too few coordinators")
	}
	s.refuse(503, "POST", "/v1/datasets", protocol.DatasetPut{Name: "more", Manifest: m}, "too few coordinators")
	r := submission("t", "folds", nil)
	r.Spec.Folds, r.Spec.Assigned = 2, m.Shards[0].Digest
	s.refuse(503, "POST", "/v1/jobs", r, "too few coordinators")
	if st := s.cfg.Store.State(); len(st.Datasets()) != 1 || len(st.Jobs()) != 0 {
		t.Errorf("%d datasets, %d jobs", len(st.Datasets()), len(st.Jobs()))
	}
}

// studyOf is an experiment of so many jobs of four runs.
func studyOf(m *dataset.Manifest, token string, jobs int) protocol.ExperimentEntry {
	e := protocol.ExperimentEntry{Name: "e"}
	for i := range jobs {
		e.Jobs = append(e.Jobs, protocol.SubmitEntry{Token: jobToken(token, i), Name: fmt.Sprintf("e.%s.%d", token, i),
			Dataset: "art", Spec: json.RawMessage(`{}`), Job: &round.Job{
				Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(),
				Split: dataset.Split{Seed: 1, Folds: 4}, Params: json.RawMessage(`{}`),
				Cells: &round.Cells{Rows: []round.CellRow{{Algorithm: "structrf", Params: json.RawMessage(`{}`)}},
					Repeats: 1, Folds: 4},
			}})
	}
	return e
}

// study queues the jobs of an experiment, and lists them.
func (s *site) study(e protocol.ExperimentEntry) (list protocol.JobList) {
	s.t.Helper()
	s.propose(protocol.EntryExperiment, e)
	s.get("GET", "/v1/jobs?sort=submitted&experiment="+e.Name, nil, &list)
	return list
}

// outcomeOf is the encoded outcome of a run.
func outcomeOf(unit int) []byte {
	o := childjob.Outcome{Head: fmt.Appendf(nil, `{"steps":%d}`, unit), Model: []byte("model")}
	return o.Encode()
}

// TestCellsOfJobs: the runs that have ended are told with their times while the job
// runs, when it was cancelled, and once it is done.
func TestCellsOfJobs(t *testing.T) {
	s := newSite(t)
	list := s.study(studyOf(s.put("art", 200), "t", 2))
	epoch := s.cfg.Store.State().Epoch()
	var parts [][]byte
	var took []uint64
	for _, j := range list.Jobs {
		s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
	}
	for unit := range 4 {
		parts, took = append(parts, outcomeOf(unit)), append(took, uint64(unit)*5e8)
		if unit == 2 {
			continue
		}
		digest, err := s.cfg.Blobs.Folder.Put(parts[unit])
		if err != nil {
			t.Fatal(err)
		}
		s.propose(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: list.Jobs[0].ID, Round: 1, Task: uint32(unit),
			Of: 4, Digest: digest, Bytes: uint64(len(parts[unit])), Compute: took[unit]})
	}
	check := func(job, from, want string) {
		t.Helper()
		var got protocol.JobCells
		s.get("GET", "/v1/jobs/"+job+"/runs?from="+from, nil, &got)
		text := ""
		for _, c := range got.Cells {
			text += fmt.Sprintf("%d %s %g, ", c.Task, c.Outcome, c.Seconds)
		}
		if text != want || got.Next != 0 {
			t.Errorf("%s from %s: %s and then %d, want %s", job, from, text, got.Next, want)
		}
	}
	three := `0 {"steps":0} 0, 1 {"steps":1} 0.5, 3 {"steps":3} 1.5, `
	check("e.t.0", "0", three)
	check("e.t.0", "2", `3 {"steps":3} 1.5, `)
	s.propose(protocol.EntryCancel, protocol.JobEntry{Job: list.Jobs[0].ID})
	check("e.t.0", "0", three)
	recorded := &childjob.Outcome{Head: []byte(`{"steps":2}`), Curve: []byte("curve"), Predictions: []byte("rows")}
	parts[2] = recorded.Encode()
	b := childjob.AppendCells(nil, parts, took)
	blob, err := s.cfg.Blobs.Folder.Put(b)
	if err != nil {
		t.Fatal(err)
	}
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: list.Jobs[1].ID,
		Outcome: json.RawMessage(`{}`), Time: 9,
		Cells:  []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: blob, Bytes: uint64(len(b))}, Count: 4}},
		Models: []protocol.ModelRef{{Digest: strings.Repeat("ab", 32), Blob: blob, Bytes: 5}}})
	check("e.t.1", "2", `2 {"steps":2} 1, 3 {"steps":3} 1.5, `)
	check("e.t.1", "4", "")
	for from, records := range map[string]bool{"2&records=true": true, "2&records=1": true, "2&records=false": false} {
		var got protocol.JobCells
		s.get("GET", "/v1/jobs/e.t.1/runs?from="+from, nil, &got)
		if c := got.Cells[0]; (string(c.Curve) == "curve" && string(c.Predictions) == "rows") != records ||
			(c.Curve == nil && c.Predictions == nil) == records {
			t.Errorf("%s: %+v", from, c)
		}
	}
	var models []protocol.ModelInfo
	if s.get("GET", "/v1/models", nil, &models); len(models) != 1 || models[0].Name != "e.t.1/abababababab" {
		t.Errorf("%+v", models)
	}
}
