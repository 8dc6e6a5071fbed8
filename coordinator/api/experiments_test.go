package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// studyOf is the submission of an experiment of so many jobs of four cells.
func studyOf(m *dataset.Manifest, token string, jobs int) protocol.ExperimentRequest {
	r := protocol.ExperimentRequest{Token: token, Name: "e"}
	for i := range jobs {
		r.Jobs = append(r.Jobs, protocol.ExperimentJob{Name: fmt.Sprintf("e.%s.%d", token, i), Dataset: "art", Spec: json.RawMessage(`{}`), Job: &round.Job{
			Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: 1, Dataset: m.Digest(), Split: dataset.Split{Seed: 1, Folds: 4}, Params: json.RawMessage(`{}`),
			Cells: &round.Cells{Rows: []round.CellRow{{Algorithm: "structrf", Params: json.RawMessage(`{}`)}}, Repeats: 1, Folds: 4},
		}})
	}
	return r
}

// outcomeOf is the encoded outcome of a cell.
func outcomeOf(unit int) []byte {
	o := childjob.Outcome{Head: fmt.Appendf(nil, `{"steps":%d}`, unit), Model: []byte("model")}
	return o.Encode()
}

// TestOutlines: an outline must have been sent; it is told with all jobs of its experiment, and one
// alone is taken where there are some.
func TestOutlines(t *testing.T) {
	s := newSite(t)
	m := s.put("art", 200)
	text := []byte(`{"table":{}}`)
	r := studyOf(m, "t", 2)
	r.Outline = blobs.Sum(text)
	s.refuse(400, "POST", "/v1/experiments", r, "the outline (blob "+r.Outline, "is not on the cluster")
	s.get("PUT", "/v1/blobs/"+r.Outline, text, nil)
	s.refuse(400, "POST", "/v1/experiments", protocol.ExperimentRequest{Token: "u", Name: "e", Outline: r.Outline}, "want 1 to 1024 jobs in a submission of an experiment, got 0")
	var list protocol.JobList
	s.get("POST", "/v1/experiments", r, &list)
	if len(list.Jobs) != 2 || list.Jobs[0].Outline != r.Outline || list.Jobs[1].CellCount != 4 {
		t.Fatalf("%+v", list.Jobs)
	}
	read, next := list.Jobs[0].Index, []byte(`{"table":null}`)
	s.get("PUT", "/v1/blobs/"+blobs.Sum(next), next, nil)
	s.get("POST", "/v1/experiments", protocol.ExperimentRequest{Token: "v", Name: "e", Outline: blobs.Sum(next)}, &list)
	s.refuse(409, "POST", "/v1/experiments", protocol.ExperimentRequest{Token: "late", Name: "e", Outline: r.Outline, After: read}, "a newer outline of experiment e already exists: the experiment was submitted meanwhile", "meanwhile")
	s.get("GET", "/v1/jobs?experiment=e", nil, &list)
	if len(list.Jobs) != 2 || list.Jobs[0].Outline != blobs.Sum(next) || list.Jobs[1].Outline != blobs.Sum(next) {
		t.Errorf("%+v", list.Jobs)
	}
	r = studyOf(m, "w", 1)
	r.Jobs[0].Job.Cells.PredictedRows = round.MaxPredictedRows + 1
	s.refuse(400, "POST", "/v1/experiments", r, "predictions kept for at most 6 samples in a run, got 7")
	r.Jobs[0].Job.Cells.PredictedRows = 0
	r.Jobs[0].Job.Cells.Models, r.Jobs[0].Job.Cells.Repeats = true, protocol.MaxCellModels/4+1
	s.refuse(400, "POST", "/v1/experiments", r, "keeps the models of 10004 runs", "at most 10000")
}

// TestCellsOfJobs: the cells that have ended are told with their times while the job runs, when it
// was cancelled, and once it is done.
func TestCellsOfJobs(t *testing.T) {
	s := newSite(t)
	var list protocol.JobList
	s.get("POST", "/v1/experiments", studyOf(s.put("art", 200), "t", 2), &list)
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
		s.propose(protocol.EntryCollected, protocol.CollectedEntry{Epoch: epoch, Job: list.Jobs[0].ID, Round: 1, Unit: uint32(unit), Of: 4, Digest: digest, Bytes: uint64(len(parts[unit])), Compute: took[unit]})
	}
	check := func(job, from, want string) {
		t.Helper()
		var got protocol.JobCells
		s.get("GET", "/v1/jobs/"+job+"/runs?from="+from, nil, &got)
		text := ""
		for _, c := range got.Cells {
			text += fmt.Sprintf("%d %s %g, ", c.Unit, c.Outcome, c.Seconds)
		}
		if text != want || got.Next != 0 {
			t.Errorf("%s from %s: %s and then %d, want %s", job, from, text, got.Next, want)
		}
	}
	three := `0 {"steps":0} 0, 1 {"steps":1} 0.5, 3 {"steps":3} 1.5, `
	check("e.t.0", "0", three)
	check("e.t.0", "2", `3 {"steps":3} 1.5, `)
	s.propose(protocol.EntryCancel, protocol.CancelEntry{Job: list.Jobs[0].ID})
	check("e.t.0", "0", three)
	recorded := &childjob.Outcome{Head: []byte(`{"steps":2}`), Curve: []byte("curve"), Predictions: []byte("rows")}
	parts[2] = recorded.Encode()
	b := childjob.AppendCells(nil, parts, took)
	blob, err := s.cfg.Blobs.Folder.Put(b)
	if err != nil {
		t.Fatal(err)
	}
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: list.Jobs[1].ID, Outcome: json.RawMessage(`{}`), Time: 9, Cells: []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: blob, Bytes: uint64(len(b))}, Count: 4}},
		Models: []protocol.ModelRef{{Digest: strings.Repeat("ab", 32), Blob: blob, Bytes: 5}}})
	check("e.t.1", "2", `2 {"steps":2} 1, 3 {"steps":3} 1.5, `)
	check("e.t.1", "4", "")
	for from, records := range map[string]bool{"2&records=true": true, "2&records=false": false} {
		var got protocol.JobCells
		s.get("GET", "/v1/jobs/e.t.1/runs?from="+from, nil, &got)
		if c := got.Cells[0]; (string(c.Curve) == "curve" && string(c.Predictions) == "rows") != records || (c.Curve == nil && c.Predictions == nil) == records {
			t.Errorf("%s: %+v", from, c)
		}
	}
	var models []protocol.ModelInfo
	if s.get("GET", "/v1/models", nil, &models); len(models) != 1 || models[0].Name != "e.t.1/abababababab" {
		t.Errorf("%+v", models)
	}
}
