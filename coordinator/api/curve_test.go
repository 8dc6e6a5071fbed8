package api

import (
	"bytes"
	"io"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestCurve: what is committed of a curve is told, by number or name, also of folds; the
// job itself, which lists and watches carry, has no points.
func TestCurve(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	var got protocol.JobCurve
	if s.get("GET", "/v1/jobs/job/curve", nil, &got); got.ID != j.ID || got.State != protocol.Queued || got.Points == nil || len(got.Points) > 0 {
		t.Errorf("a queued job has the curve %+v", got)
	}
	epoch := s.cfg.Store.State().Epoch()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
	r := curve.NewRecorder(curve.JobPoints, nil)
	for step := range uint64(4) {
		r.Observe(round.Progress{Step: step, Loss: 0.5, Validation: 0.25, ValidatedAt: 2}, int64(1000*step))
	}
	r.End()
	line := r.Curve().Append(nil)
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: j.ID, Outcome: []byte(`{"loss":0.5}`), Curve: line, FoldCurves: [][]byte{line, line}})
	s.get("GET", "/v1/jobs/job/curve", nil, &got)
	if len(got.Points) != 4 || got.Points[2].Validation != 0.25 || got.Points[3].Millis != 3000 || len(got.Folds) != 2 || len(got.Folds[1]) != 4 {
		t.Errorf("the curve is %+v", got)
	}
	body, err := io.ReadAll(s.ask("GET", "/v1/jobs/job", nil).Body)
	if err != nil || bytes.Contains(body, []byte("points")) || bytes.Contains(body, []byte("curve")) {
		t.Errorf("the job is told with its curve: %s, error %v", body, err)
	}
	s.refuse(404, "GET", "/v1/jobs/none/curve", nil, "there is no job")
}

// TestCurvesOfFolds: those of the folds whose results are recorded.
func TestCurvesOfFolds(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	r := submission("token", "job", nil)
	r.Spec.Folds = 3
	var j protocol.JobInfo
	s.get("POST", "/v1/jobs", r, &j)
	epoch := s.cfg.Store.State().Epoch()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
	line := curve.NewRecorder(curve.FoldPoints, nil)
	line.Observe(round.Progress{Step: 7, Loss: 0.5}, curve.Unknown)
	line.End()
	part, err := (&pipeline.Outcome{Model: []byte("model"), Curve: line.Curve()}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for unit, b := range [][]byte{part, []byte("no result")} {
		digest, err := s.cfg.Blobs.Folder.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		s.propose(protocol.EntryCollected, protocol.CollectedEntry{Epoch: epoch, Job: j.ID, Round: 1, Unit: uint32(2 - unit), Of: 3, Digest: digest, Bytes: uint64(len(b))})
	}
	var got protocol.JobCurve
	s.get("GET", "/v1/jobs/job/curve", nil, &got)
	parts := s.cfg.Store.State().Job(j.ID).Parts(1)
	if err := s.cfg.Blobs.Folder.Delete(parts[1].Digest.String()); err != nil {
		t.Fatal(err)
	}
	s.get("GET", "/v1/jobs/job/curve", nil, &got) // no result is read twice
	if len(got.Folds) != 3 || len(got.Folds[0]) != 0 || len(got.Folds[1]) != 0 || len(got.Folds[2]) != 1 || got.Folds[2][0].Training != 0.5 {
		t.Errorf("the curves are %v", got.Folds)
	}
}

// TestWorkersOfAJob that runs are told with it, and with no other.
func TestWorkersOfAJob(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	var got protocol.JobInfo
	if s.get("GET", "/v1/jobs/job", nil, &got); got.Workers != nil {
		t.Errorf("a queued job has workers %v", got.Workers)
	}
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: s.cfg.Store.State().Epoch(), Job: j.ID, State: protocol.Running, Time: 5})
	if s.get("GET", "/v1/jobs/job", nil, &got); len(got.Workers) != 2 {
		t.Errorf("a running job has workers %v", got.Workers)
	}
}
