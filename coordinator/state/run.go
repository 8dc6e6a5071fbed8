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

// running returns the running job of an entry of the current leader.
func (s *State) running(epoch, id uint64) (*Job, error) {
	if err := s.fence(epoch, fmt.Sprintf("job %d", id)); err != nil {
		return nil, err
	}
	j, err := s.live(id)
	if err == nil && j.State != protocol.Running {
		return nil, fmt.Errorf("%v: %w: it is %s", j, ErrNotRunning, j.State)
	}
	return j, err
}

// runningRound is running for an entry about a round, which must not be committed.
func (s *State) runningRound(epoch, id, round uint64) (*Job, error) {
	j, err := s.running(epoch, id)
	if err == nil && round <= j.Round {
		return nil, fmt.Errorf("%v: %w: the entry is for round %d, but rounds up to %d are committed", j, ErrStaleRound,
			round, j.Round)
	}
	return j, err
}

// setJobState starts a queued job or ends a job that failed. A running job stays as it is
// if a new leader takes over.
func setJobState(s *State, e *protocol.JobStateEntry) (any, error) {
	if err := s.fence(e.Epoch, fmt.Sprintf("job %d", e.Job)); err != nil {
		return nil, err
	}
	j, err := s.live(e.Job)
	switch {
	case err != nil:
		return nil, err
	case j.State == protocol.Paused:
		return nil, fmt.Errorf("%v: %w: it is %s", j, ErrNotRunning, j.State)
	case e.State == protocol.Running && j.State == protocol.Running:
		return j, nil
	case e.State == protocol.Running:
		next := *j
		next.State, next.Since = protocol.Running, e.Time*1000+e.Millis
		if next.Started == 0 { // a job that was paused started before
			next.Started = e.Time
		}
		next.events = j.events.noted(e.Epoch, e.Events)
		return s.put(&next), nil
	case e.State == protocol.Failed:
		next := j.end(protocol.Failed, s.index, e.Time, e.Millis)
		next.Error = e.Error[:min(len(e.Error), protocol.MaxText)]
		next.events = j.events.noted(e.Epoch, e.Events)
		return s.put(next), nil
	}
	return nil, invalid("%v cannot change to the state %.80q", j, e.State)
}

// commit accepts a chunk of a training state, or the digest of a blob that has it. With the
// last chunk the state is the committed one, and the tasks that were recorded for its
// rounds are dropped. The body of this entry is not JSON.
func commit(s *State, entry []byte) (any, error) {
	var e protocol.CommitEntry
	if err := e.Decode(entry); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	j, err := s.runningRound(e.Epoch, e.Job, e.Round)
	if err != nil {
		return nil, err
	}
	next := *j
	var progress bytes.Buffer
	if len(e.Progress) > 0 {
		if err := json.Compact(&progress, e.Progress); err != nil {
			return nil, invalid("the progress is not valid JSON: %v", err)
		}
	}
	next.Progress = progress.Bytes() // nil for no text
	if e.Blob != "" {
		if !isDigest(e.Blob) || e.Offset != 0 || len(e.Data) > 0 {
			return nil, invalid("a training state in a blob needs a valid digest and no bytes of its own, got blob %q and %d "+
				"bytes at offset %d", e.Blob, len(e.Data), e.Offset)
		}
		next.Trainer, next.TrainerBlob, next.TrainerBytes = nil, e.Blob, e.Total
		s.keep(e.Blob)
	} else {
		p, err := j.pending.add(j, &e)
		if err != nil {
			return nil, err
		}
		if p.have < p.total {
			if len(e.Curve) > 0 || len(e.Events) > 0 {
				return nil, invalid("%v: the learning curve and events must come with the last chunk of a training state", j)
			}
			next.Progress, next.pending = j.Progress, p
			return s.put(&next), nil
		}
		next.Trainer, next.TrainerBlob, next.TrainerBytes = p.join(), "", p.total
	}
	if j.TrainerBlob != "" && j.TrainerBlob != next.TrainerBlob {
		s.replaced = s.replaced.with(j.TrainerBlob)
	}
	next.Curve, next.events = extended(j.Curve, e.Curve), j.events.noted(e.Epoch, e.Events)
	next.Round, next.pending = e.Round, nil
	next.gathered = j.gathered.after(e.Round)
	return s.put(&next), nil
}

// add returns the chunks with the chunk of e after them. A chunk at offset 0 begins again.
func (p *pending) add(j *Job, e *protocol.CommitEntry) (*pending, error) {
	if len(e.Data) == 0 {
		return nil, invalid("%v: the entry has an empty chunk of a training state of %d bytes", j, e.Total)
	}
	next := &pending{round: e.Round, total: e.Total}
	if e.Offset > 0 {
		if p == nil || p.round != e.Round || p.total != e.Total || p.have != e.Offset {
			return nil, fmt.Errorf("%v: %w of round %d: a chunk at byte %d of %d does not follow the chunk before it", j, ErrGap,
				e.Round, e.Offset, e.Total)
		}
		next.have, next.chunks = p.have, p.chunks
	}
	next.have += uint64(len(e.Data))
	next.chunks = append(slices.Clone(next.chunks), bytes.Clone(e.Data))
	return next, nil
}

// extended returns a curve with the points that an entry adds. Points that do not continue
// the curve change nothing: a curve is for display, and no job may fail because of it.
func extended(line, rest []byte) []byte {
	next, err := curve.Extend(line, bytes.Clone(rest))
	if err != nil {
		return line
	}
	return next
}

// gather records the result of a task of a gather round. The first result of a task stays.
func gather(s *State, e *protocol.ResultEntry) (any, error) {
	j, err := s.runningRound(e.Epoch, e.Job, e.Round)
	if err != nil {
		return nil, err
	}
	blob, ok := digests.Parse(e.Digest)
	if !ok || blob == (digests.Digest{}) || e.Task >= e.Of || e.Of > protocol.MaxTasks {
		return nil, invalid("the result of a task is not valid: task %d of %d, digest %.80q", e.Task, e.Of, e.Digest)
	}
	list, added := j.gathered.put(RecordedResult{Round: e.Round, Task: e.Task, Of: e.Of, Digest: blob, Bytes: e.Bytes,
		Compute: e.Compute, Failed: e.Failed})
	next := *j
	next.events = j.events.noted(e.Epoch, e.Events)
	if !added {
		if len(e.Events) == 0 {
			return j, nil
		}
		return s.put(&next), nil
	}
	took := e.Compute
	if e.Failed {
		took = 0
	}
	next.gathered, next.methods = list, j.counted(e.Task, took)
	s.keep(e.Digest)
	return s.put(&next), nil
}

// withhold records tasks that are not run: results without a digest.
func withhold(s *State, e *protocol.WithholdEntry) (any, error) {
	j, err := s.runningRound(e.Epoch, e.Job, e.Round)
	switch {
	case err != nil:
		return nil, err
	case j.Job.Cells == nil || len(e.Tasks) == 0 || len(e.Tasks) > protocol.MaxWithheld:
		return nil, invalid("the list of tasks that are not run is not valid: %d tasks of %v", len(e.Tasks), j)
	}
	of := uint32(min(j.Job.Cells.Count(), protocol.MaxTasks))
	if most := slices.Max(e.Tasks); most >= of {
		return nil, invalid("a task that is not run does not exist: task %d, counted from 0, of %d", most, of)
	}
	next := *j
	for _, u := range e.Tasks {
		list, added := next.gathered.put(RecordedResult{Round: e.Round, Task: u, Of: of, Compute: e.Compute})
		if next.gathered = list; added {
			next.methods = next.counted(u, 0)
		}
	}
	return s.put(&next), nil
}

// finish ends a job with its results. Only this entry references models, so a cancelled job
// has none.
func finish(s *State, e *protocol.FinishEntry) (any, error) {
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
			return nil, invalid("blob %d of %d with results of runs is not valid: %.80q with %d runs", i, len(e.Cells),
				c.Blob, c.Count)
		}
		s.keep(c.Blob)
	}
	if len(e.FoldCurves) > dataset.MaxFolds {
		return nil, invalid("want learning curves of at most %[2]d folds, got %[1]d", len(e.FoldCurves), dataset.MaxFolds)
	}
	methods, err := j.finished(e.Methods)
	if err != nil {
		return nil, err
	}
	next := j.end(protocol.Done, s.index, e.Time, e.Millis)
	next.methods = methods
	next.Results = Results{
		Outcome: e.Outcome, Models: e.Models, Predictions: e.Predictions, Cells: e.Cells,
		FoldCurves: slices.Clone(e.FoldCurves), Seconds: e.Seconds,
		summary: summarize(e.Outcome),
	}
	next.Curve, next.events = extended(j.Curve, e.Curve), j.events.noted(e.Epoch, e.Events)
	for i, c := range next.FoldCurves {
		if _, err := curve.Decode(c); err != nil { // also of more than protocol.MaxCurve bytes
			next.FoldCurves[i] = nil
		}
	}
	if len(e.Progress) > 0 {
		next.Progress = e.Progress
	}
	return s.put(next), nil
}

// cancel ends a job without a result. It is not fenced: a user's wish stays valid under
// another leader. To cancel twice is the same as once.
func cancel(s *State, e *protocol.JobEntry) (any, error) {
	if j := s.Job(e.Job); j != nil && j.State == protocol.Cancelled {
		return j, nil
	}
	j, err := s.live(e.Job)
	if err != nil {
		return nil, err
	}
	next := j.end(protocol.Cancelled, s.index, e.Time, e.Millis)
	next.events = j.events.noted(e.EventsEpoch, e.Events)
	return s.put(next), nil
}

// pause is not fenced, like cancel. An incomplete training state is dropped: only the
// driver that stops now could complete it.
func pause(s *State, e *protocol.JobEntry) (any, error) {
	j, err := s.live(e.Job)
	if err != nil {
		return nil, err
	}
	if j.State == protocol.Paused {
		return j, nil
	}
	next := *j
	next.events = j.events.noted(e.EventsEpoch, e.Events).
		with(j.event(protocol.EventPaused, e.Time, e.Millis, "the job was paused"))
	next.Ran = j.ran(e.Time, e.Millis)
	next.State, next.pending = protocol.Paused, nil
	next.Pauses++
	return s.put(&next), nil
}

// resume queues a paused job. It keeps its place in the queue, which is in the order of
// submission.
func resume(s *State, e *protocol.JobEntry) (any, error) {
	j, err := s.live(e.Job)
	if err != nil {
		return nil, err
	}
	if j.State != protocol.Paused {
		return j, nil
	}
	next := *j
	next.events = j.events.noted(e.EventsEpoch, e.Events).
		with(j.event(protocol.EventResumed, e.Time, e.Millis, "the job was resumed"))
	next.State = protocol.Queued
	return s.put(&next), nil
}
