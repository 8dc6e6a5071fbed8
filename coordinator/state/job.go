package state

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// Job is the record of a job. It is immutable: an entry that changes a job makes
// a new record.
type Job struct {
	ID   uint64 // index of its Submit entry
	Name string
	// Experiment is that which the job is of; empty: of none. Outline is the digest of the blob
	// with the outline of the experiment, as it was submitted last; empty: it has none.
	Experiment, Outline string
	// Outlined is the index of the log entry that brought the outline; 0: it is not known.
	Outlined uint64
	Token    string
	Dataset  string // name
	// Manifest describes the dataset; nil once the job has ended.
	Manifest *dataset.Manifest
	Spec     json.RawMessage // as the user wrote it
	Job      *round.Job
	State    protocol.JobState
	Error    string // why it failed
	Suspect  string // why its results may be wrong
	// AuditPPM is how many units of a million are computed twice.
	AuditPPM uint32
	// Pauses counts how often the job was paused: what a driver that began before a
	// pause still does is told apart by it.
	Pauses uint64
	// Since is when the job last began to run, in Unix milliseconds, and Ran how many of
	// them it ran before its last pause, or in all once it has ended, by the clocks of
	// leaders: for display.
	Since, Ran int64

	// Round is the number of rounds folded into the committed trainer state; 0:
	// the job starts from its beginning.
	Round uint64
	// Trainer is that state, or nil where Round is 0 or TrainerBlob names a blob
	// of TrainerBytes bytes. It is dropped when the job ends.
	Trainer      []byte
	TrainerBlob  string
	TrainerBytes uint64
	Progress     json.RawMessage // algorithms.Progress of that state, or nil
	// Curve is the encoded learning curve until that state, or, of a done job, to its end;
	// empty: none. FoldCurves are those of the folds of a done job.
	Curve      []byte
	FoldCurves [][]byte

	Outcome json.RawMessage // pipeline.Outcome of a done job
	Models  []protocol.ModelRef
	// ModelDeleted is when its models were deleted, in Unix seconds; 0: they were not.
	ModelDeleted int64
	// Predictions are those of held-out rows, or nil.
	Predictions *protocol.BlobRef
	// Cells are the outcomes of the cells of a done job of cells.
	Cells []protocol.CellsRef

	Submitted, Started, Ended int64 // Unix seconds, for display; 0: not yet
	// EndIndex is that of the log entry that ended the job: which of two ended first, no
	// clock decides. 0: it has not ended.
	EndIndex uint64
	Seconds  float64

	// collected lists the units recorded of rounds above Round. It is dropped when the job
	// ends, but for cells of a job that failed or was cancelled.
	collected partList
	pending   *pending
	measured  *measured // read off Outcome
	notRun    int       // cells that are not run: parts without a blob, or as Outcome says
}

// pending holds the pieces of a trainer state that is not complete yet, all of
// the current epoch.
type pending struct {
	round, total, have uint64
	pieces             [][]byte
}

// Unended returns the experiments of which a job has not ended: none of their jobs is deleted by
// age or number.
func Unended(jobs []*Job) map[string]bool {
	names := make(map[string]bool)
	for _, j := range jobs {
		if j.Experiment != "" && !j.State.Final() {
			names[j.Experiment] = true
		}
	}
	return names
}

// Info describes the job to a user.
func (j *Job) Info() protocol.JobInfo {
	info := protocol.JobInfo{
		ID: j.ID, Name: j.Name, Experiment: j.Experiment, Submission: j.Submission(), Outline: j.Outline, State: j.State, Error: j.Error, Dataset: j.Dataset, Job: j.Job, Spec: j.Spec,
		Progress: j.progress(), Rounds: j.Round, Outcome: j.Outcome, Models: j.Models, Predictions: j.Predictions,
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, Seconds: j.Seconds,
		Suspect: j.Suspect, AuditPPM: j.AuditPPM, Since: protocol.Seconds(j.Since), Ran: protocol.Seconds(j.Ran), ModelDeleted: j.ModelDeleted,
	}
	if j.State.Final() && j.State != protocol.Done {
		info.Seconds = info.Ran
	}
	if j.Job != nil && j.Job.Cells != nil {
		info.CellCount, info.CellsAgain, info.CellsNotRun = j.Job.Cells.Count(), j.Job.Cells.Again, j.notRun
	}
	info.Measures, info.EvaluatedOn = j.measured.info()
	if last, ok := j.collected.last(); ok {
		info.Collected, info.Units = j.collected.count(last.Round), int(last.Of)
	}
	return info
}

func (j *Job) progress() *round.Progress {
	if len(j.Progress) == 0 {
		return nil
	}
	p := new(round.Progress)
	if json.Unmarshal(j.Progress, p) != nil {
		return nil
	}
	return p
}

func (j *Job) String() string { return fmt.Sprintf("job %d (%s)", j.ID, j.Name) }

// ran returns the milliseconds that the job has run until the moment of an entry.
func (j *Job) ran(at, millis int64) int64 {
	if j.State != protocol.Running {
		return j.Ran
	}
	return j.Ran + max(0, unixMillis(at, millis)-j.Since)
}

func unixMillis(at, millis int64) int64 { return at*1000 + millis }

// end returns the record of the job that a log entry ended at a second and milliseconds of
// it. It
// keeps only its result and its curve, and without a result the cells that have ended.
func (j *Job) end(as protocol.JobState, index uint64, at, millis int64) *Job {
	next := *j
	next.EndIndex = index
	next.State, next.Ended, next.Ran = as, at, j.ran(at, millis)
	next.Manifest, next.Trainer, next.TrainerBlob, next.TrainerBytes = nil, nil, "", 0
	next.pending = nil
	if as == protocol.Done || j.Job.Cells == nil { // the cells that have ended stay otherwise
		next.collected = partList{}
	}
	return &next
}
