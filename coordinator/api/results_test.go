package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestCellStates checks which runs failed and which are not run, while the job runs and
// once it is done. If all ended well, no outcome is read.
func TestCellStates(t *testing.T) {
	s := newSite(t)
	list := s.study(studyOf(s.put("art", 200), "t", 2))
	epoch, job := s.cfg.Store.State().Epoch(), list.Jobs[0].ID
	for _, j := range list.Jobs {
		s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
	}
	failed := &childjob.Outcome{Head: []byte(`{"steps":1,"error":"why"}`)}
	parts := [][]byte{outcomeOf(0), failed.Encode(), nil, outcomeOf(3)}
	put := func(b []byte) string {
		digest, err := s.cfg.Blobs.Folder.Put(b)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	check := func(query, want string) {
		t.Helper()
		var got protocol.JobCellStates
		s.get("GET", "/v1/jobs/"+query, nil, &got)
		text := ""
		for _, c := range got.States {
			text += fmt.Sprintf("%d %v %v, ", c.Task, c.Failed, c.NotRun)
			if c.Failed != (c.Error == "why") {
				t.Errorf("%s: run %d failed: %v, with the error %q", query, c.Task, c.Failed, c.Error)
			}
		}
		if text != want || got.Next != 0 {
			t.Errorf("%s: %s and then %d, want %s", query, text, got.Next, want)
		}
	}
	check("e.t.0/runs/states", "")
	for _, unit := range []int{0, 1} {
		s.propose(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: job, Round: 1, Task: uint32(unit), Of: 4,
			Digest: put(parts[unit]), Bytes: uint64(len(parts[unit])), Failed: unit == 1})
	}
	s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: epoch, Job: job, Round: 1, Tasks: []uint32{2}})
	check("e.t.0/runs/states", "0 false false, 1 true false, 2 false true, ")
	check("e.t.0/runs/states?from=1&until=2", "1 true false, ")
	check("e.t.0/runs/states?from=9", "")
	blob := put(childjob.AppendCells(nil, parts, make([]uint64, 4)))
	cells := []protocol.CellsRef{{BlobRef: protocol.BlobRef{Blob: blob, Bytes: 1}, Count: 4}}
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: job,
		Outcome: json.RawMessage(`{"runs_failed":1,"runs_not_run":1}`), Time: 9, Cells: cells})
	check("e.t.0/runs/states", "0 false false, 1 true false, 2 false true, 3 false false, ")
	check("e.t.0/runs/states?from=1&until=3", "1 true false, 2 false true, ")
	var got protocol.JobCells
	if s.get("GET", "/v1/jobs/e.t.0/runs?from=1&until=3", nil, &got); len(got.Cells) != 1 || got.Cells[0].Task != 1 ||
		got.Next != 0 {
		t.Errorf("%+v", got)
	}
	cells[0].Blob = blobs.Sum([]byte("it is nowhere"))
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: list.Jobs[1].ID,
		Outcome: json.RawMessage(`{}`), Time: 9, Cells: cells})
	check("e.t.1/runs/states?from=2", "2 false false, 3 false false, ")
	s.refuse(400, "GET", "/v1/jobs/e.t.1/runs/states?until=x", nil, `until: want the number of a run, got "x"`)
	s.refuse(404, "GET", "/v1/jobs/"+strings.Repeat("x", 9)+"/runs/states", nil, "no job")
}

// TestPagesOfStates: more runs than a page has are told page by page.
func TestPagesOfStates(t *testing.T) {
	s := newSite(t)
	r := studyOf(s.put("art", 200), "t", 1)
	r.Jobs[0].Job.Cells.Repeats = protocol.CellStatesPage/4 + 1
	list := s.study(r)
	epoch := s.cfg.Store.State().Epoch()
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: list.Jobs[0].ID,
		State: protocol.Running, Time: 5})
	check := func(from, cells, next int) {
		t.Helper()
		var got protocol.JobCellStates
		s.get("GET", fmt.Sprintf("/v1/jobs/e.t.0/runs/states?from=%d", from), nil, &got)
		if len(got.States) != cells || got.Next != next || cells > 0 && got.States[0].Task != from {
			t.Errorf("from %d: %d runs and then %d, want %d and %d", from, len(got.States), got.Next, cells, next)
		}
	}
	units := make([]uint32, protocol.CellStatesPage+4)
	for u := range units {
		units[u] = uint32(u)
	}
	for some := range slices.Chunk(units, protocol.MaxWithheld) {
		s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: epoch, Job: list.Jobs[0].ID, Round: 1, Tasks: some})
	}
	check(0, protocol.CellStatesPage, protocol.CellStatesPage)
	check(protocol.CellStatesPage, 4, 0)
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: list.Jobs[0].ID,
		Outcome: json.RawMessage(`{}`), Time: 9})
	check(0, protocol.CellStatesPage, protocol.CellStatesPage)
	check(protocol.CellStatesPage+1, 3, 0)
}

// TestModelsOfEndedCells checks that a job that is not done, or was cancelled, has the
// models of the runs that ended, by their digests.
func TestModelsOfEndedCells(t *testing.T) {
	s := newSite(t)
	r := studyOf(s.put("art", 200), "t", 2)
	r.Jobs[0].Job.Cells.Models = true
	list := s.study(r)
	epoch := s.cfg.Store.State().Epoch()
	digests := []string{strings.Repeat("ab", 32), strings.Repeat("ac", 32)}
	for _, j := range list.Jobs {
		s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: j.ID, State: protocol.Running, Time: 5})
		s.propose(protocol.EntryWithhold, protocol.WithholdEntry{Epoch: epoch, Job: j.ID, Round: 1, Tasks: []uint32{0}})
		for i, digest := range digests {
			o := &childjob.Outcome{Head: fmt.Appendf(nil, `{"model_digest":%q}`, digest), Model: fmt.Append(nil, "model ", i)}
			blob, err := s.cfg.Blobs.Folder.Put(o.Encode())
			if err != nil {
				t.Fatal(err)
			}
			s.propose(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 1, Task: uint32(i + 1), Of: 4,
				Digest: blob, Bytes: 9})
		}
	}
	for range 2 {
		for i, digest := range digests {
			for _, name := range []string{digest, digest[:digestPrefix]} {
				answer := s.ask("GET", "/v1/models/e.t.0/"+name, nil)
				b, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || answer.StatusCode != 200 || string(b) != fmt.Sprint("model ", i) {
					t.Errorf("%s: status %d, %q, error %v", name, answer.StatusCode, b, err)
				}
			}
		}
		s.refuse(404, "GET", "/v1/models/e.t.0/"+digests[0][:digestPrefix-1], nil, "there is no model")
		s.refuse(404, "GET", "/v1/models/e.t.0/"+strings.Repeat("ad", 32), nil, "there is no model")
		s.refuse(404, "GET", "/v1/models/e.t.1/"+digests[0], nil, "there is no model")
		s.propose(protocol.EntryCancel, protocol.JobEntry{Job: list.Jobs[0].ID})
	}
}

// TestModelBesideLostResult checks that the model of a run is found though the result of
// an earlier run is lost. A model that no result has may be in the lost one, and the
// error says so.
func TestModelBesideLostResult(t *testing.T) {
	s := newSite(t)
	r := studyOf(s.put("art", 200), "t", 1)
	r.Jobs[0].Job.Cells.Models = true
	list := s.study(r)
	epoch, job := s.cfg.Store.State().Epoch(), list.Jobs[0].ID
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: epoch, Job: job, State: protocol.Running, Time: 5})
	digest := strings.Repeat("ab", 32)
	o := &childjob.Outcome{Head: fmt.Appendf(nil, `{"model_digest":%q}`, digest), Model: []byte("model")}
	blob, err := s.cfg.Blobs.Folder.Put(o.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for unit, part := range []string{blobs.Sum([]byte("it is nowhere")), blob} {
		s.propose(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: job, Round: 1, Task: uint32(unit), Of: 4,
			Digest: part, Bytes: 9})
	}
	answer := s.ask("GET", "/v1/models/e.t.0/"+digest, nil)
	defer answer.Body.Close()
	if b, err := io.ReadAll(answer.Body); err != nil || string(b) != "model" {
		t.Errorf("status %d, %q, error %v", answer.StatusCode, b, err)
	}
	s.refuse(404, "GET", "/v1/models/e.t.0/"+strings.Repeat("ad", 32), nil, "run 0 of", "may have the model")
}

// TestCurve checks the committed curve of a job, by id or name, and of folds. The job
// itself, which lists and watches have, has no points.
func TestCurve(t *testing.T) {
	s := newSite(t)
	s.put("art", 200)
	j := s.submit("job")
	var got protocol.JobCurve
	if s.get("GET", "/v1/jobs/job/curve", nil, &got); got.ID != j.ID || got.State != protocol.Queued ||
		got.Points == nil || len(got.Points) > 0 {
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
	s.propose(protocol.EntryFinish, protocol.FinishEntry{Epoch: epoch, Job: j.ID, Outcome: []byte(`{"loss":0.5}`),
		Curve: line, FoldCurves: [][]byte{line, line}})
	s.get("GET", "/v1/jobs/job/curve", nil, &got)
	if len(got.Points) != 4 || got.Points[2].Validation != 0.25 || got.Points[3].Millis != 3000 || len(got.Folds) != 2 ||
		len(got.Folds[1]) != 4 {
		t.Errorf("the curve is %+v", got)
	}
	body, err := io.ReadAll(s.ask("GET", "/v1/jobs/job", nil).Body)
	if err != nil || bytes.Contains(body, []byte("points")) || bytes.Contains(body, []byte("curve")) {
		t.Errorf("the job is told with its curve: %s, error %v", body, err)
	}
	s.refuse(404, "GET", "/v1/jobs/none/curve", nil, "there is no job")
}

// TestCurvesOfFolds checks that a fold has a curve once its result is recorded.
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
		s.propose(protocol.EntryResult, protocol.ResultEntry{Epoch: epoch, Job: j.ID, Round: 1, Task: uint32(2 - unit), Of: 3,
			Digest: digest, Bytes: uint64(len(b))})
	}
	var got protocol.JobCurve
	s.get("GET", "/v1/jobs/job/curve", nil, &got)
	parts := s.cfg.Store.State().Job(j.ID).Recorded(1)
	if err := s.cfg.Blobs.Folder.Delete(parts[1].Digest.String()); err != nil {
		t.Fatal(err)
	}
	s.get("GET", "/v1/jobs/job/curve", nil, &got) // no result is read twice
	if len(got.Folds) != 3 || len(got.Folds[0]) != 0 || len(got.Folds[1]) != 0 || len(got.Folds[2]) != 1 ||
		got.Folds[2][0].Training != 0.5 {
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
	s.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: s.cfg.Store.State().Epoch(), Job: j.ID,
		State: protocol.Running, Time: 5})
	if s.get("GET", "/v1/jobs/job", nil, &got); len(got.Workers) != 2 {
		t.Errorf("a running job has workers %v", got.Workers)
	}
}

// shelf has the results of folds, and counts how often each is read.
type shelf struct {
	result []byte
	away   string // the digest of a result that is not here
	reads  map[string]int
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	r := curve.NewRecorder(curve.JobPoints, nil)
	for step := range uint64(300) {
		r.Observe(round.Progress{Step: step, Loss: 0.5}, curve.Unknown)
	}
	r.End()
	b, err := (&pipeline.Outcome{Curve: r.Curve()}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{result: b, reads: make(map[string]int)}
}

func (s *shelf) read(digest string) ([]byte, error) {
	if digest == s.away {
		return nil, errors.New("it is not at hand")
	}
	s.reads[digest]++
	return s.result, nil
}

// partsOf makes recorded results of a job of folds.
func partsOf(job string, folds int, bytes uint64) (parts []state.RecordedResult) {
	for i := range folds {
		parts = append(parts, state.RecordedResult{Task: uint32(i), Digest: sha256.Sum256(fmt.Append(nil, job, i)),
			Bytes: bytes})
	}
	return parts
}

// TestResultsAreReadOnce checks that each result is read once, and that a request reads
// at most so many bytes. The next request reads on.
func TestResultsAreReadOnce(t *testing.T) {
	s, f := newShelf(t), new(foldCurves)
	parts := partsOf("job", 10, maxFoldReads/4)
	parts[9].Bytes, s.away = maxFoldPart+1, parts[1].Digest.String()
	for request, want := range []int{4, 8, 8, 8} {
		got := f.of(t.Context(), parts, s.read)
		if len(got) != want || len(s.reads) != want {
			t.Errorf("request %d: %d curves, %d results were read; want %d", request, len(got), len(s.reads), want)
		}
		for digest, points := range got {
			if n := len(points); n < 10 || n > curve.FoldPoints {
				t.Errorf("%s has %d points", digest, n)
			}
		}
	}
	if got := f.of(t.Context(), parts[9:], s.read); len(got) > 0 {
		t.Error("a result that is too large was read")
	}
	s.away = ""
	if got := f.of(t.Context(), parts, s.read); len(got) != 9 {
		t.Errorf("%d curves once all are at hand", len(got))
	}
	for digest, n := range s.reads {
		if n != 1 {
			t.Errorf("%s was read %d times", digest, n)
		}
	}
	s.result = []byte("no result")
	other := partsOf("other", 1, 9)
	for range 2 {
		f.of(t.Context(), other, s.read)
	}
	if n := s.reads[other[0].Digest.String()]; n != 1 {
		t.Errorf("what is no result was read %d times", n)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got := f.of(gone, partsOf("third", 3, 9), s.read); len(got) > 0 {
		t.Errorf("%d results were read for a client that has left", len(got))
	}
}

// TestKeptCurvesAreBounded checks that the cache keeps the curves of the job that is
// asked about.
func TestKeptCurvesAreBounded(t *testing.T) {
	s, f := newShelf(t), new(foldCurves)
	s.result = nil
	for job := range 5 {
		parts := partsOf(fmt.Sprint("job", job, "-"), maxFolds/2-1, 9)
		for range 2 {
			f.of(t.Context(), parts, s.read)
		}
		if len(f.points) > maxFolds {
			t.Fatalf("%d curves are kept, at most %d are allowed", len(f.points), maxFolds)
		}
	}
	for digest, n := range s.reads {
		if n != 1 {
			t.Fatalf("%s was read %d times", digest, n)
		}
	}
	f.of(t.Context(), partsOf("large", maxFolds+9, 9), s.read)
	if len(f.points) != maxFolds {
		t.Errorf("%d curves of a large job are kept, not %d", len(f.points), maxFolds)
	}
}
