package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	experiments "github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// specOf is a request for methods on the dataset art, in four folds.
func specOf(token, methods string) protocol.ExperimentRequest {
	return protocol.ExperimentRequest{Token: token, File: "e.yaml",
		Spec: "name: e\ndatasets: [{dataset: art}]\nfolds: 4\nmethods: [" + methods + "]\n"}
}

// TestSubmitExperiment: a check changes nothing; a submission makes a job of the new runs; the same token is answered
// with the same job; runs are orphaned only if the request agrees.
func TestSubmitExperiment(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	post := func(path string, r protocol.ExperimentRequest) (p protocol.ExperimentPlan) {
		t.Helper()
		s.get("POST", path, r, &p)
		return p
	}
	const path = "/v1/experiments"
	if p := post(path+"?check=true", specOf("", "aa-knn, ranking")); p.Runs != 4 || p.Kept != 0 || len(p.Refused) != 1 ||
		p.Jobs == nil || len(p.Jobs) != 0 {
		t.Errorf("a check: %+v", p)
	}
	if n := len(s.cfg.Store.State().Jobs()); n != 0 {
		t.Fatalf("a check made %d jobs", n)
	}
	s.refuse(400, "POST", path, specOf("", "aa-knn"), "needs a token")
	s.refuse(400, "POST", path+"?check=perhaps", specOf("", "aa-knn"), "check: want true or false")
	s.refuse(400, "POST", path, specOf("x", "ranking"), "no method supports any dataset")
	s.get("POST", "/v1/jobs", protocol.SubmitRequest{Token: "job/0",
		Spec: protocol.Spec{Dataset: "art", Algorithm: "aa-knn"}}, nil)
	s.refuse(400, "POST", path, specOf("job", "aa-knn"), "the token of the submission names job", "choose another token")
	first := post(path, specOf("t", "aa-knn, rf"))
	if first.Runs != 8 || len(first.Jobs) != 1 || first.Jobs[0].Name != "e.art" || first.Jobs[0].CellCount != 8 ||
		!s.cfg.Blobs.Has(first.Jobs[0].Outline) {
		t.Fatalf("%+v", first)
	}
	if again := post(path, specOf("t", "aa-knn, rf")); again.Runs != 8 || len(again.Jobs) != 1 ||
		again.Jobs[0].ID != first.Jobs[0].ID {
		t.Errorf("the same token: %+v", again)
	}
	if same := post(path, specOf("u", "aa-knn, rf")); same.Runs != 0 || same.Kept != 8 || len(same.Jobs) != 0 ||
		same.Orphaned != 0 {
		t.Errorf("the same spec: %+v", same)
	}
	r := specOf("v", "aa-knn, sa-bfgs")
	answer := s.ask("POST", path, r)
	defer answer.Body.Close()
	var problem protocol.Problem
	if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil || answer.StatusCode != 409 ||
		problem.Plan == nil {
		t.Fatalf("%d %+v, %v", answer.StatusCode, problem, err)
	}
	var refused protocol.ExperimentPlan
	if err := json.Unmarshal(problem.Plan, &refused); err != nil {
		t.Fatal(err)
	}
	if p := refused; p.Runs != 4 || p.Kept != 4 || p.Orphaned != 4 || strings.Join(p.Orphans, "; ") != "art, rf: 4 runs" ||
		len(p.Changes) != 2 {
		t.Errorf("%+v", p)
	}
	if p := post(path+"?check=true", r); p.Orphaned != 4 {
		t.Errorf("a check: %+v", p)
	}
	r.LeaveOut = true
	if p := post(path, r); p.Runs != 4 || len(p.Jobs) != 1 || p.Jobs[0].Name != "e.art.2" {
		t.Errorf("with orphans: %+v", p)
	}
	var list protocol.JobList
	s.get("GET", "/v1/jobs?experiment=e", nil, &list)
	if len(list.Jobs) != 2 || list.Jobs[0].Outline != list.Jobs[1].Outline ||
		list.Jobs[0].Outline == first.Jobs[0].Outline {
		t.Errorf("%+v", list.Jobs)
	}
	s.refuse(409, "DELETE", path+"/e", nil, "has not ended")
	s.get("POST", path+"/e/cancel", nil, nil)
	var retried protocol.ExperimentPlan
	if s.get("POST", path+"/e/retry", protocol.ExperimentRetry{Token: "w"}, &retried); retried.Runs != 8 ||
		len(retried.Jobs) != 1 {
		t.Errorf("retry: %+v", retried)
	}
	s.refuse(404, "POST", path+"/none/retry", protocol.ExperimentRetry{Token: "x"}, `no experiment "none"`)
	s.get("POST", path+"/e/cancel", nil, nil)
	var gone protocol.Deletion
	if s.get("DELETE", path+"/e", nil, &gone); len(gone.Jobs) != 3 {
		t.Errorf("%+v", gone)
	}
	s.refuse(404, "DELETE", path+"/e", nil, `no experiment "e"`)
	s.refuse(409, "POST", path, specOf("t", "aa-knn, rf"), "was deleted")
}

// TestMistakesTogether: every mistake in a spec and its data is in one answer, with its line.
func TestMistakesTogether(t *testing.T) {
	s := newSite(t)
	m := s.put("art", 30)
	r := protocol.ExperimentRequest{Token: "t", File: "e.yaml", Spec: `name: e
datasets:
  - {dataset: art}
  - {dataset: nowhere}
  - file.csv
  - {file: other.csv, folds: {file: list.csv}}
folds: 40
methods:
  - aa-knn
  - no-such
  - {algorithm: rf, settings: {trees: -1}}
`}
	r.Datasets = map[string]protocol.ExperimentData{"other": {Dataset: "art"}}
	answer := s.ask("POST", "/v1/experiments?check=true", r)
	defer answer.Body.Close()
	var p protocol.Problem
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || answer.StatusCode != 400 ||
		!strings.HasSuffix(p.Error, "mistakes in the spec and its data") {
		t.Fatalf("%d %+v, %v", answer.StatusCode, p, err)
	}
	for i, want := range []string{
		"e.yaml:4:5: the cluster has no dataset \"nowhere\"", "e.yaml:5:5: dataset file is a file",
		"e.yaml:6:30: the folds of dataset other are a file",
		"e.yaml:7:8: dataset art: want 2 to 30 folds", "e.yaml:10:5: ", "e.yaml:11:39: ",
	} {
		if i >= len(p.Mistakes) || !strings.HasPrefix(p.Mistakes[i], want) {
			t.Fatalf("mistake %d of %q: want %q", i, p.Mistakes, want)
		}
	}
	lacks := specOf("t", "aa-knn")
	lacks.Spec = strings.Replace(lacks.Spec, "{dataset: art}", "{dataset: nowhere}", 1)
	s.refuse(404, "POST", "/v1/experiments", lacks, "the cluster has no dataset \"nowhere\"")
	with := func(d protocol.ExperimentData) protocol.ExperimentRequest {
		r := specOf("t", "aa-knn")
		r.Spec = strings.Replace(r.Spec, "{dataset: art}", "d.csv", 1)
		r.Datasets = map[string]protocol.ExperimentData{"d": d}
		return r
	}
	s.refuse(400, "POST", "/v1/experiments", with(protocol.ExperimentData{Manifest: m}), "only a check takes a manifest")
	s.refuse(400, "POST", "/v1/experiments?check=true", with(protocol.ExperimentData{Manifest: new(dataset.Manifest)}),
		"dataset d")
	s.refuse(400, "POST", "/v1/experiments", with(protocol.ExperimentData{Missing: true}), "its file is missing")
	s.get("POST", "/v1/experiments?check=true", with(protocol.ExperimentData{Manifest: m}), nil)
	r = with(protocol.ExperimentData{Dataset: "art"})
	r.Datasets["more"] = protocol.ExperimentData{}
	s.refuse(400, "POST", "/v1/experiments", r, `the spec has no dataset "more"`)
	r = specOf("t", "aa-knn")
	r.Record = []string{"everything"}
	s.refuse(400, "POST", "/v1/experiments", r, "everything")
	r = specOf("t", "aa-knn")
	r.Spec, r.KeepModels = strings.Replace(r.Spec, "folds: 4", fmt.Sprintf("folds: {k: 4, repeats: %d}",
		protocol.MaxCellModels/4+1), 1), true
	s.refuse(400, "POST", "/v1/experiments", r, "keeps the models of 10004 runs", "at most 10000")
	s.refuse(400, "POST", "/v1/experiments?check=true", r, "keeps the models of 10004 runs", "at most 10000")
	r = specOf("t", "aa-knn")
	r.File = strings.Repeat("e", 5000)
	s.refuse(400, "POST", "/v1/experiments", r, "at most 4096 bytes")
	r.File = "e\x1b[31m.yaml"
	s.refuse(400, "POST", "/v1/experiments", r, "without control characters")
	if n := len(s.cfg.Store.State().Jobs()); n != 0 {
		t.Errorf("%d jobs were made", n)
	}
}

// TestFoldsOfRequest: the folds of a file are a blob. Its list must be of the dataset's samples.
func TestFoldsOfRequest(t *testing.T) {
	s := newSite(t)
	m := s.put("art", 30)
	r := specOf("t", "aa-knn")
	r.Spec = strings.NewReplacer("{dataset: art}", "{file: d.csv, folds: {file: list.csv}}", "folds: 4\n", "").
		Replace(r.Spec)
	list := make([]uint16, m.Rows)
	for i := range list {
		list[i] = uint16(i % 3)
	}
	send := func(list []uint16, folds int) protocol.ExperimentRequest {
		b := dataset.EncodeFolds(list)
		s.get("PUT", "/v1/blobs/"+blobs.Sum(b), b, nil)
		r.Datasets = map[string]protocol.ExperimentData{"d": {Dataset: "art",
			Folds: &protocol.ExperimentFolds{Digest: blobs.Sum(b), Folds: folds}}}
		return r
	}
	s.refuse(400, "POST", "/v1/experiments", send(list[1:], 3), "e.yaml:2:", "the folds of dataset d", "damaged")
	s.refuse(400, "POST", "/v1/experiments", send(list, 2), "is in fold 2, but there are 2 folds")
	s.refuse(400, "POST", "/v1/experiments", send(list, 4), "fold 3 has no samples")
	var p protocol.ExperimentPlan
	if s.get("POST", "/v1/experiments", send(list, 3), &p); p.Runs != 3 ||
		!s.cfg.Blobs.Has(blobs.Sum(dataset.EncodeFolds(list))) {
		t.Errorf("%+v", p)
	}
	r.Token = "u"
	r.Datasets["d"].Folds.Digest = "../" + strings.Repeat("a", 61)
	s.refuse(400, "POST", "/v1/experiments", r, "is not a digest")
	r.Datasets["d"].Folds.Digest = blobs.Sum([]byte("nowhere"))
	s.refuse(424, "POST", "/v1/experiments", r, "the folds of dataset d")
}

// TestLabelsOfCells checks that runs with keys for another type of labels than the
// dataset has are refused.
func TestLabelsOfCells(t *testing.T) {
	s := newSite(t)
	e := studyOf(s.put("art", 200), "t", 1)
	h := &submissionHandlers{jobView{s.cfg.Store, s.cfg.Running}, newBlobHandlers(&s.cfg, responder{s.cfg.Log}),
		s.cfg.Quotas}
	j := experiments.Job{Name: "j", Dataset: "art", Job: e.Jobs[0].Job}
	if err := h.checkExperimentJob(t.Context(), &j, false); err != nil {
		t.Error(err)
	}
	j.Job.Cells.Labels.Classes = true
	if err := h.checkExperimentJob(t.Context(), &j, false); err == nil ||
		!strings.Contains(err.Error(), "job j expects labels that are") {
		t.Error(err)
	}
}

// experimentsOf returns the handlers of a site, and a request of a caller.
func (s *site) experimentsOf() *experimentHandlers {
	respond := responder{s.cfg.Log}
	blob := newBlobHandlers(&s.cfg, respond)
	view := jobView{s.cfg.Store, s.cfg.Running}
	return &experimentHandlers{
		responder: respond, jobView: view, results: &resultHandlers{store: s.cfg.Store, blobs: s.cfg.Blobs},
		submissions: &submissionHandlers{view, blob, s.cfg.Quotas},
		deciding:    newPlaces(2), committing: make(chan struct{}, 1),
	}
}

// from returns a request of a user, which ends with ctx.
func from(ctx context.Context, user string) *http.Request {
	r := httptest.NewRequest("POST", "/v1/experiments", nil)
	return r.WithContext(access.With(ctx, access.Caller{Name: user, Role: rights.Admin, From: "h:1"}))
}

// TestSubmissionMeanwhile: if the experiment changes while a submission is decided, the submission is decided again. If
// it is itself accepted meanwhile, because its first try was slow, its answer has the jobs of that try.
func TestSubmissionMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name, token string // of the submission that is accepted meanwhile
		jobs, runs  int    // of the answer
		decisions   int
	}{{"of the same token", "mine", 1, 4, 1}, {"of another token", "other", 0, 0, 2}} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.put("art", 200)
			h, n := s.experimentsOf(), 0
			answer, err := h.queue(from(t.Context(), "ana"), "mine", false, false,
				func(ctx context.Context) (*experiments.Submission, error) {
					r := specOf("mine", "aa-knn")
					sub, err := experiments.Decide(ctx, h, &r, false)
					if n++; n == 1 {
						s.get("POST", "/v1/experiments", specOf(c.token, "aa-knn"), nil)
					}
					return sub, err
				})
			if err != nil {
				t.Fatal(err)
			}
			if p := answer.(protocol.ExperimentPlan); len(p.Jobs) != c.jobs || p.Runs != c.runs || n != c.decisions {
				t.Errorf("after %d decisions: %+v", n, p)
			}
			if jobs := s.cfg.Store.State().Jobs(); len(jobs) != 1 {
				t.Errorf("there are %d jobs", len(jobs))
			}
		})
	}
	t.Run("before an empty decision", func(t *testing.T) {
		s := newSite(t)
		s.put("art", 200)
		h := s.experimentsOf()
		answer, err := h.queue(from(t.Context(), "ana"), "mine", false, false,
			func(ctx context.Context) (*experiments.Submission, error) {
				s.get("POST", "/v1/experiments", specOf("mine", "aa-knn"), nil) // the first try is accepted late
				r := specOf("mine", "aa-knn")
				return experiments.Decide(ctx, h, &r, false)
			})
		if p, ok := answer.(protocol.ExperimentPlan); err != nil || !ok || len(p.Jobs) != 1 || p.Runs != 4 {
			t.Errorf("%+v, %v", answer, err)
		}
	})
}

// TestDecisionsOfOthers: while a submission is decided, submissions of other users are decided and queued. Another one
// of the same user waits, and its wait ends with its request.
func TestDecisionsOfOthers(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	h := s.experimentsOf()
	begun, end := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		_, err := h.queue(from(t.Context(), "eve"), "slow", true, false,
			func(ctx context.Context) (*experiments.Submission, error) {
				close(begun)
				<-end
				return nil, errBusy
			})
		slow <- err
	}()
	testkit.Receive(t, "a decision", begun)
	quick := func(ctx context.Context, user string) (err error) {
		access.Route("POST /v1/experiments", func(_ http.ResponseWriter, r *http.Request) {
			_, err = h.queue(r, user, false, false, func(ctx context.Context) (*experiments.Submission, error) {
				r := specOf(user, "aa-knn")
				return experiments.Decide(ctx, h, &r, false)
			})
		})(httptest.NewRecorder(), from(ctx, user))
		return err
	}
	if err := quick(t.Context(), "ana"); err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := quick(short, "eve"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second submission of the same user: %v", err)
	}
	close(end)
	if err := testkit.Receive(t, "the end of the decision", slow); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	if n := len(h.deciding.by) + len(h.deciding.all); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}
