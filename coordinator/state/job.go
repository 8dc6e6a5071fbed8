package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxModels bounds the models of one job.
	MaxModels = 1 << 16
	million   = 1_000_000 // the highest audit: every task is computed twice
	maxField  = 1 << 27   // bytes of JSON text in a snapshot: an entry's, escaped
)

// Job is the record of a job. It is immutable: an entry that changes a job makes a new
// record.
type Job struct {
	ID       uint64
	Name     string
	Dataset  string            // name
	Manifest *dataset.Manifest // of the dataset; nil if the job has ended
	Job      *round.Job
	State    protocol.JobState
	Pauses   uint64 // how often the job was paused; a driver from before a pause compares it
	Request
	Status
	Results

	// Round counts the rounds of the committed training state. It is 0 before the first
	// commit.
	Round uint64
	// Trainer is the training state. It is nil if Round is 0, if TrainerBlob has the state,
	// or if the job has ended.
	Trainer      []byte
	TrainerBlob  string
	TrainerBytes uint64
	Progress     json.RawMessage // round.Progress of the training state, or nil
	// Curve is the encoded learning curve up to the training state; of a done job, up to
	// the end; empty if there is none.
	Curve []byte

	gathered recordedList // tasks of rounds above Round; after the end only runs of a job that is not done
	methods  []MethodRuns // by row of a job of runs; nil until a run has ended
	pending  *pending     // nil if no training state is incomplete
	events   eventList
}

// Request has what the submission of a job said besides the job.
type Request struct {
	Token string
	protocol.Ownership
	Experiment string          // the name of the experiment, or empty
	Outline    string          // the digest of the newest outline of the experiment, or empty
	Outlined   uint64          // the index of the entry with the outline, or 0
	Spec       json.RawMessage // as the user wrote it
	AuditPPM   uint32          // how many of a million tasks are computed twice
	Submitted  int64           // Unix seconds, for display
}

// Status has what became of a job. Times are by the clocks of leaders, for display.
type Status struct {
	Error          string // why the job failed
	Suspect        string // why its results may be wrong
	Started, Ended int64  // Unix seconds; 0 if not yet
	Since          int64  // when the job last began to run, in Unix milliseconds
	Ran            int64  // milliseconds that the job ran before Since; after its end, all
	// EndIndex is the index of the entry that ended the job, or 0. It tells which of two
	// jobs ended first.
	EndIndex uint64
}

// Results has what a done job leaves behind.
type Results struct {
	Outcome      json.RawMessage // pipeline.Outcome
	Models       []protocol.ModelRef
	ModelDeleted int64               // when the models were deleted, in Unix seconds, or 0
	Predictions  *protocol.BlobRef   // of held-out samples, or nil
	Cells        []protocol.CellsRef // outcomes of the runs of an experiment
	FoldCurves   [][]byte            // encoded learning curves of folds
	Seconds      float64

	summary summary // of Outcome
}

// pending has the chunks of an incomplete training state. All were sent in the current
// epoch.
type pending struct {
	round, total, have uint64
	chunks             [][]byte
}

// summary is read from an outcome once, since job lists are sorted by it.
type summary struct {
	EvaluatedOn string             `json:"evaluated_on"`
	Measures    *measures.Report   `json:"measures"`
	CellsNotRun int                `json:"runs_not_run"`
	Spent       map[string]float64 `json:"runs_spent_seconds"`
}

// heldOut is summary.EvaluatedOn of a job that has test samples.
const heldOut = "test samples"

// summarize reads an outcome. What cannot be read is left out.
func summarize(outcome json.RawMessage) (s summary) {
	if len(outcome) == 0 || json.Unmarshal(outcome, &s) != nil {
		return summary{}
	}
	return s
}

// Unended returns the experiments with a job that has not ended: none of their jobs is
// deleted by age or number.
func Unended(jobs []*Job) map[string]bool {
	names := make(map[string]bool)
	for _, j := range jobs {
		if j.Experiment != "" && !j.State.Final() {
			names[j.Experiment] = true
		}
	}
	return names
}

func (j *Job) String() string { return fmt.Sprintf("job %d (%s)", j.ID, j.Name) }

// Info describes the job to a user.
func (j *Job) Info() protocol.JobInfo {
	info := protocol.JobInfo{
		ID: j.ID, Name: j.Name, Experiment: j.Experiment, Submission: j.Submission(), Ownership: j.Ownership,
		Outline: j.Outline, State: j.State, Error: j.Error, Dataset: j.Dataset, Job: j.Job, Spec: j.Spec,
		Rounds: j.Round, Outcome: j.Outcome, Models: j.Models, Predictions: j.Predictions,
		Submitted: j.Submitted, Started: j.Started, Ended: j.Ended, Seconds: j.Seconds,
		Suspect: j.Suspect, AuditPPM: j.AuditPPM, Since: protocol.Seconds(j.Since), Ran: protocol.Seconds(j.Ran),
		ModelDeleted: j.ModelDeleted, Events: j.events.events, EventsDropped: j.events.dropped,
	}
	if p := new(round.Progress); len(j.Progress) > 0 && json.Unmarshal(j.Progress, p) == nil {
		info.Progress = p
	}
	if j.State.Final() && j.State != protocol.Done {
		info.Seconds = info.Ran
	}
	if j.Job != nil && j.Job.Cells != nil {
		info.CellCount, info.CellsAgain = j.Job.Cells.Count(), j.Job.Cells.Again
		info.CellsNotRun = j.gathered.notRun + j.summary.CellsNotRun
	}
	if report := j.summary.Measures; report != nil {
		info.Measures, info.EvaluatedOn = make(map[string]float64, measures.Count), j.summary.EvaluatedOn
		for i := range measures.All {
			if v := report[i].Mean; v-v == 0 { // finite
				info.Measures[measures.All[i].Name] = v
			}
		}
	}
	if last, ok := j.gathered.last(); ok {
		info.Gathered, info.Tasks = j.gathered.count(last.Round), int(last.Of)
	}
	return info
}

// Measure returns the mean of a measure of a done job, and whether it is over test samples.
// ok is false if there is no such measure, or if it is not finite.
func (j *Job) Measure(name string) (mean float64, held, ok bool) {
	if j.summary.Measures == nil {
		return 0, false, false
	}
	s, ok := j.summary.Measures.Get(name)
	return s.Mean, j.summary.EvaluatedOn == heldOut, ok && s.Mean-s.Mean == 0
}

// CellsSpent returns the seconds that the runs of a done job took to compute, by the name
// of their budget.
func (j *Job) CellsSpent() map[string]float64 { return j.summary.Spent }

// Submission returns a name of the submission of the job, which all jobs of one Experiment
// entry share. It is empty if the job is not part of an experiment.
func (j *Job) Submission() string {
	if j.Experiment == "" {
		return ""
	}
	return j.Token[:max(0, strings.LastIndexByte(j.Token, '/'))]
}

// Recorded returns the recorded tasks of one round, by task.
func (j *Job) Recorded(round uint64) []RecordedResult {
	return slices.Collect(j.gathered.from(round, 0))
}

// RecordedFrom calls yield for the recorded tasks of one round from a task on.
func (j *Job) RecordedFrom(round uint64, task uint32) iter.Seq[RecordedResult] {
	return j.gathered.from(round, task)
}

// Gathered calls yield for the recorded tasks of all rounds that are not committed.
func (j *Job) Gathered(yield func(RecordedResult) bool) { j.gathered.all(yield) }

// ran returns for how many milliseconds the job has run at the time of an entry, in seconds and milliseconds.
func (j *Job) ran(at, millis int64) int64 {
	if j.State != protocol.Running {
		return j.Ran
	}
	return j.Ran + max(0, at*1000+millis-j.Since)
}

// end returns the record of a job that the entry at index ended. Only results and the
// learning curve stay, and of an experiment that is not done the recorded runs.
func (j *Job) end(as protocol.JobState, index uint64, at, millis int64) *Job {
	next := *j
	next.EndIndex = index
	next.State, next.Ended, next.Ran = as, at, j.ran(at, millis)
	next.Manifest, next.Trainer, next.TrainerBlob, next.TrainerBytes = nil, nil, "", 0
	next.pending = nil
	if as == protocol.Done || j.Job.Cells == nil {
		next.gathered = recordedList{}
	}
	return &next
}

// event returns an event for an entry of some Unix time. The job is where its last commit is.
func (j *Job) event(kind protocol.EventKind, at, millis int64, text string) protocol.JobEvent {
	return protocol.JobEvent{Time: max(0, protocol.Seconds(at*1000+millis)), Kind: kind, Text: text, Round: j.Round,
		Step: j.CommittedStep(), Seconds: max(0, protocol.Seconds(j.ran(at, millis)))}
}

// CommittedStep returns the step of the last commit.
func (j *Job) CommittedStep() uint64 {
	p := new(round.Progress)
	if json.Unmarshal(j.Progress, p) != nil { // there is none
		return 0
	}
	return p.Step
}

// Events returns the events of the job, with events that the leader of an epoch knows and
// the log may not have yet, and counts those that are not kept.
func (j *Job) Events(epoch uint64, more []protocol.NumberedEvent) (events []protocol.JobEvent, dropped uint64) {
	l := j.events.noted(epoch, more)
	return l.events, l.dropped
}

// Noted returns the highest number of the events that the leader of an epoch noted and the
// log has, or 0.
func (j *Job) Noted(epoch uint64) uint64 {
	if j.events.epoch != epoch {
		return 0
	}
	return j.events.number
}

// quarantined returns the events of a job that has not ended with the quarantine of a worker.
// The entry may be repeated.
func (j *Job) quarantined(e *protocol.SuspectEntry) eventList {
	event := j.event(protocol.EventQuarantine, e.Time, e.Millis,
		fmt.Sprintf("worker %s was quarantined: %s", e.Worker, e.Reason))
	event.Worker = e.Worker
	event.Clip()
	if j.State.Final() || slices.ContainsFunc(j.events.events, func(other protocol.JobEvent) bool {
		return other.Kind == event.Kind && other.Worker == event.Worker && other.Text == event.Text
	}) {
		return j.events
	}
	return j.events.with(event)
}

// fields codes the record in a snapshot.
func (j *Job) fields(c *wire.Coder) {
	wire.Numbers(c, "number", &j.ID)
	c.Text("name", &j.Name)
	c.Text("token", &j.Token)
	c.Text("owner", &j.Owner)
	c.Text("dataset", &j.Dataset)
	c.Text("state", (*string)(&j.State))
	c.Text("error", &j.Error)
	c.Text("mark", &j.Suspect)
	c.JSON("job", &j.Job)
	wire.Bytes(c, "spec", &j.Spec, maxField)
	wire.Numbers(c, "time", &j.Submitted, &j.Started, &j.Ended, &j.Since, &j.Ran)
	wire.Number(c, "audited tasks of a million", &j.AuditPPM, million)
	secondsField(c, "seconds", &j.Seconds)
	wire.Numbers(c, "counter", &j.Pauses, &j.EndIndex, &j.Round, &j.TrainerBytes)
	c.Text("blob of the training state", &j.TrainerBlob)
	wire.Bytes(c, "training state", &j.Trainer, protocol.MaxRaftState)
	wire.Bytes(c, "progress", &j.Progress, maxField)
	curveField(c, &j.Curve)
	wire.List(c, "learning curves of folds", &j.FoldCurves, dataset.MaxFolds, func(b *[]byte) { curveField(c, b) })
	if c.Flag("incomplete training state", j.pending != nil) {
		if c.Reads() {
			j.pending = new(pending)
		}
		j.pending.fields(c)
	}
	j.gathered.fields(c)
	j.methodFields(c)
	wire.Bytes(c, "outcome", &j.Outcome, maxField)
	wire.List(c, "models", &j.Models, MaxModels, func(m *protocol.ModelRef) {
		c.Text("model", &m.Digest)
		c.Text("model", &m.Blob)
		wire.Numbers(c, "model", &m.Bytes)
	})
	wire.Numbers(c, "deletion of the model", &j.ModelDeleted)
	c.Text("experiment", &j.Experiment)
	c.Text("outline", &j.Outline)
	wire.Numbers(c, "outline", &j.Outlined)
	wire.List(c, "results of runs", &j.Cells, MaxModels, func(ref *protocol.CellsRef) {
		c.Text("results of runs", &ref.Blob)
		wire.Numbers(c, "results of runs", &ref.Bytes)
		wire.Number(c, "number of runs", &ref.Count, round.MaxCells)
	})
	if c.Flag("predictions", j.Predictions != nil) {
		if c.Reads() {
			j.Predictions = new(protocol.BlobRef)
		}
		c.Text("predictions", &j.Predictions.Blob)
		wire.Numbers(c, "predictions", &j.Predictions.Bytes)
	}
	if !c.Rest(j.Private || !j.events.isEmpty()) {
		return
	}
	if private := c.Flag("private", j.Private); c.Reads() { // readers share a job that is written
		j.Private = private
	}
	if c.Rest(!j.events.isEmpty()) {
		j.events.fields(c)
	} else if !j.Private {
		c.Failf("private: an owner who shares the job takes no byte")
	}
}

// curveField codes a learning curve, which may be empty.
func curveField(c *wire.Coder, b *[]byte) {
	if wire.Bytes(c, "learning curve", b, protocol.MaxCurve); c.Reads() && !c.Failed() && len(*b) > 0 {
		if _, err := curve.Decode(*b); err != nil {
			c.Failf("%v", err)
		}
	}
}

// join returns the chunks as one slice, which may be shared.
func (p *pending) join() []byte {
	if len(p.chunks) == 1 {
		return p.chunks[0]
	}
	return bytes.Join(p.chunks, nil)
}

func (p *pending) fields(c *wire.Coder) {
	joined := p.join()
	wire.Numbers(c, "incomplete training state", &p.round, &p.total)
	wire.Bytes(c, "incomplete training state", &joined, protocol.MaxRaftState)
	if c.Reads() {
		p.have, p.chunks = uint64(len(joined)), [][]byte{joined}
		if p.total > protocol.MaxRaftState || p.have == 0 || p.have >= p.total {
			c.Failf("an unfinished training state has %d of %d bytes", p.have, p.total)
		}
	}
}

// MethodRuns counts the runs of one method in a job of runs. The counts outlive the recorded
// tasks, so that the time of a method is known after the end of a job.
type MethodRuns struct {
	Ended   uint64 // recorded tasks: with a result, or not run; of a done job all runs
	Timed   uint64 // runs that ended well, with a known computing time
	Compute uint64 // nanoseconds of computing of these
}

// Methods returns the counts of each method of a job of runs, in the order of its rows. It is
// empty until a run has ended.
func (j *Job) Methods() []MethodRuns { return j.methods }

// counted returns the counts of a job with one more recorded task. took is 0 if the time does
// not count. The time grows with the number of methods, not of runs.
func (j *Job) counted(task uint32, took uint64) []MethodRuns {
	c := j.Job.Cells
	if c == nil || len(c.Rows) == 0 || c.Folds < 1 || c.Repeats < 1 {
		return nil
	}
	cell, ok := c.At(int(task))
	if !ok {
		return j.methods
	}
	list := slices.Clone(j.methods)
	if list == nil {
		list = make([]MethodRuns, len(c.Rows))
	}
	m := &list[cell.Row]
	m.Ended++
	if took > 0 {
		m.Timed, m.Compute = m.Timed+1, m.Compute+took
	}
	return list
}

// finished returns the counts of a job that is done. Its Finish entry has the times, since the
// last results of a round may not be recorded; if it has none, the recorded times stay.
func (j *Job) finished(times []protocol.RunTimes) ([]MethodRuns, error) {
	c := j.Job.Cells
	if len(times) == 0 {
		return j.methods, nil
	}
	if c == nil || len(times) != len(c.Rows) {
		return nil, invalid("%v: the entry has times of %d methods", j, len(times))
	}
	list := make([]MethodRuns, len(times))
	for i, t := range times {
		list[i] = MethodRuns{Ended: uint64(c.RowCount(i)), Timed: t.Runs, Compute: t.Nanoseconds}
		if t.Runs > list[i].Ended {
			return nil, invalid("%v: the entry has times of %d runs of method %d, counted from 0, which has %d", j, t.Runs, i,
				list[i].Ended)
		}
	}
	return list, nil
}

// methodFields codes the counts in a snapshot.
func (j *Job) methodFields(c *wire.Coder) {
	wire.List(c, "runs of methods", &j.methods, round.MaxCells, func(m *MethodRuns) {
		wire.Numbers(c, "runs of a method", &m.Ended, &m.Timed, &m.Compute)
	})
	if n := len(j.methods); c.Reads() && n > 0 && (j.Job == nil || j.Job.Cells == nil || len(j.Job.Cells.Rows) != n) {
		c.Failf("%v: the runs of %d methods are counted, but the job has others", j, n)
	}
}
