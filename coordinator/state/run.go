package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/protocol"
)

// MaxModels bounds the models of one job.
const MaxModels = 1 << 16

func (s *State) jobState(e *protocol.JobStateEntry) (any, error) {
	j, err := s.moving(e.Epoch, e.Job)
	if err != nil {
		return nil, err
	}
	switch e.State {
	case protocol.Running:
		return s.start(j, e.Time, e.Millis), nil
	case protocol.Failed:
		next := j.end(protocol.Failed, s.index, e.Time, e.Millis)
		next.Error = e.Error[:min(len(e.Error), protocol.MaxText)]
		return s.put(next), nil
	}
	return nil, invalid("%v cannot change to the state %.80q", j, e.State)
}

// start makes a queued job run; a job that runs, for a new leader to take over,
// stays as it is.
func (s *State) start(j *Job, at, millis int64) *Job {
	if j.State == protocol.Running {
		return j
	}
	next := *j
	next.State, next.Since = protocol.Running, unixMillis(at, millis)
	if next.Started == 0 { // a job that was paused started before
		next.Started = at
	}
	return s.put(&next)
}

func (s *State) collected(e *protocol.CollectedEntry) (any, error) {
	j, err := s.running(e.Epoch, e.Job)
	if err != nil {
		return nil, err
	}
	if e.Round <= j.Round {
		return nil, staleRound(j, e.Round)
	}
	blob, ok := digests.Parse(e.Digest)
	if !ok || blob == (digests.Digest{}) || e.Unit >= e.Of || e.Of > protocol.MaxUnits {
		return nil, invalid("the result of a task is not valid: task %d of %d, digest %.80q", e.Unit, e.Of, e.Digest)
	}
	list, ok := j.collected.put(Part{Round: e.Round, Unit: e.Unit, Of: e.Of, Digest: blob, Bytes: e.Bytes, Compute: e.Compute})
	if !ok { // the first answer wins
		return j, nil
	}
	next := *j
	next.collected = list
	s.keep(e.Digest)
	return s.put(&next), nil
}

func staleRound(j *Job, round uint64) error {
	return fmt.Errorf("%v: %w: the entry is for round %d, but rounds up to %d are committed", j, ErrStaleRound, round, j.Round)
}

func (s *State) finish(e *protocol.FinishEntry) (any, error) {
	j, err := s.running(e.Epoch, e.Job)
	if err != nil {
		return nil, err
	}
	if len(e.Models) > MaxModels {
		return nil, invalid("want at most %[2]d models, got %[1]d", len(e.Models), MaxModels)
	}
	for i, m := range e.Models {
		if !isDigest(m.Digest) || !isDigest(m.Blob) {
			return nil, invalid("model %d needs two valid digests, got digest %.80q and blob %.80q", i, m.Digest, m.Blob)
		}
		s.keep(m.Blob)
	}
	if p := e.Predictions; p != nil {
		if !isDigest(p.Blob) {
			return nil, invalid("the digest of the predictions is not valid: %.80q", p.Blob)
		}
		s.keep(p.Blob)
	}
	for i, c := range e.Cells {
		if !isDigest(c.Blob) || c.Count < 1 || c.Count > round.MaxCells || len(e.Cells) > MaxModels {
			return nil, invalid("blob %d of %d with results of runs is not valid: %.80q with %d runs", i, len(e.Cells), c.Blob, c.Count)
		}
		s.keep(c.Blob)
	}
	if len(e.FoldCurves) > dataset.MaxFolds {
		return nil, invalid("want learning curves of at most %[2]d folds, got %[1]d", len(e.FoldCurves), dataset.MaxFolds)
	}
	next := j.end(protocol.Done, s.index, e.Time, e.Millis)
	next.Outcome, next.Models, next.Predictions, next.Seconds = e.Outcome, e.Models, e.Predictions, e.Seconds
	next.Cells = e.Cells
	if next.notRun = 0; j.Job.Cells != nil {
		next.notRun = notRunIn(e.Outcome)
	}
	next.measured = measuredBy(e.Outcome)
	next.Curve, next.FoldCurves = extended(j.Curve, e.Curve), foldCurves(e.FoldCurves)
	if len(e.Progress) > 0 {
		next.Progress = e.Progress
	}
	return s.put(next), nil
}

// foldCurves lists the curves of folds; one that is none becomes an empty one.
func foldCurves(given [][]byte) [][]byte {
	list := slices.Clone(given)
	for i, c := range list {
		if _, err := curve.Decode(c); err != nil { // also of more than protocol.MaxCurve bytes
			list[i] = nil
		}
	}
	return list
}

// cancel is not fenced: any coordinator may pass a user's wish on. To cancel twice
// is the same as once.
func (s *State) cancel(e *protocol.CancelEntry) (any, error) {
	if j := s.Job(e.Job); j != nil && j.State == protocol.Cancelled {
		return j, nil
	}
	j, err := s.live(e.Job)
	if err != nil {
		return nil, err
	}
	return s.put(j.end(protocol.Cancelled, s.index, e.Time, e.Millis)), nil
}

// compact returns JSON text without spaces as a copy, or nil for no text.
func compact(text []byte) (json.RawMessage, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return nil, invalid("the progress is not valid JSON: %v", err)
	}
	return b.Bytes(), nil
}
