package protocol

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
)

// JobState is the state of a job.
type JobState string

// The states of a job. Done, Failed and Cancelled are final.
const (
	Queued    JobState = "queued"
	Paused    JobState = "paused" // its driver has stopped; resuming queues it again
	Running   JobState = "running"
	Done      JobState = "done"
	Failed    JobState = "failed"
	Cancelled JobState = "cancelled"
)

// Final reports whether a job in this state never changes again.
func (s JobState) Final() bool { return s == Done || s == Failed || s == Cancelled }

// SubmitRequest submits a job. Spec is checked and resolved by the leader.
type SubmitRequest struct {
	Token string `json:"token"` // drawn by the client: a retry makes no second job
	Spec  Spec   `json:"spec"`
	// Audit is the share of the job's tasks, 0 to 1, that are computed twice, on
	// different workers, and compared.
	Audit float64 `json:"audit,omitempty"`
	// Shared is true if all users may read the models and predictions of the job. If not, only the caller and admins
	// may, if the caller has a name.
	Shared bool `json:"shared,omitempty"`
}

// Spec is a job spec as a user gives it, in YAML or by flags.
type Spec struct {
	Algorithm    string  `json:"algorithm"`
	Dataset      string  `json:"dataset,omitempty"`
	Name         string  `json:"name,omitempty"`
	Seed         *uint64 `json:"seed,omitempty"` // default 1
	TestFraction float64 `json:"test_fraction,omitempty"`
	// TrainFraction is the fraction of the other samples that the model is trained on; 0: all.
	TrainFraction float64 `json:"train_fraction,omitempty"`
	Folds         int     `json:"folds,omitempty"`
	// Fold is the only fold to train, counted from 0; nil: all folds.
	Fold *int `json:"fold,omitempty"`
	// Assigned is the digest of a blob that gives each row's fold (see
	// dataset.Split); Folds is then the number of folds.
	Assigned string `json:"assigned,omitempty"`
	// Overlap is true if the blob has Folds splits that may test the same rows.
	Overlap bool `json:"overlap,omitempty"`
	// GroupFolds makes a fold of each group of the dataset.
	GroupFolds bool `json:"group_folds,omitempty"`
	// KeepPredictions is how many bytes the predictions of held-out rows may take to be
	// kept with the job; nil: the default, 0: none are.
	KeepPredictions *int64 `json:"keep_predictions,omitempty"`
	// Measures is "all" for more measures than the ten, Clip is "pyldl" to clip degrees as
	// PyLDL does before they are compared; else they are empty.
	Measures string `json:"measures,omitempty"`
	Clip     string `json:"clip,omitempty"`
	// WeightedMeasures is true if measures are weighted by the weights of the samples.
	WeightedMeasures bool `json:"weighted_measures,omitempty"`
	// Enhance is the method of a label enhancement of the training samples, empty if there is none. Normalise and
	// Binarise are its settings; empty and nil are their defaults.
	Enhance   string   `json:"enhance,omitempty"`
	Normalise string   `json:"normalise,omitempty"`
	Binarise  *float64 `json:"binarise,omitempty"`
	// Mask is dataset.Mask.String of the degrees that training does not see; empty: it sees all.
	Mask string `json:"mask,omitempty"`
	// Screen is true to compare the model with small models of other algorithms on the validation samples, if there are
	// any. It changes no model.
	Screen bool `json:"screen,omitempty"`
	// Set holds the algorithm's settings as text, by name.
	Set map[string]string `json:"settings,omitempty"`
}

// JobInfo describes a job, from committed state, and of a round of trees or folds that
// is under way what the leader knows beside.
type JobInfo struct {
	ID    uint64 `json:"id"`
	Index uint64 `json:"index"` // of the log entry that the job was read after: it grows
	Name  string `json:"name"`
	// Experiment is the name of the experiment that the job is of; empty: of none.
	Experiment string `json:"experiment,omitempty"`
	// Submission names the submission of its experiment that it came with. Jobs that came together have the same.
	Submission string `json:"submission,omitempty"`
	Ownership
	// Outline is the digest of the blob with the outline of its experiment.
	Outline  string          `json:"outline,omitempty"`
	State    JobState        `json:"state"`
	Error    string          `json:"error,omitempty"`
	Dataset  string          `json:"dataset"`
	Job      *round.Job      `json:"job"`
	Spec     json.RawMessage `json:"spec,omitempty"`
	Progress *round.Progress `json:"progress,omitempty"`
	Rounds   uint64          `json:"rounds"` // committed
	// CellCount is the number of runs of a job of runs.
	CellCount int `json:"run_count,omitempty"`
	// CellsAgain is how many of them failed in earlier jobs of the experiment.
	CellsAgain int `json:"runs_again,omitempty"`
	// CellsNotRun is how many are not run, since their budget is used up; Collected has them too.
	CellsNotRun int `json:"runs_not_run,omitempty"`
	// Gathered is the number of finished tasks of a gather round, and Tasks the number of all.
	// InFlight is how many tasks workers compute just now, as the leader knows.
	Gathered int `json:"collected,omitempty"`
	InFlight int `json:"in_flight,omitempty"`
	Tasks    int `json:"tasks,omitempty"`
	// Workers compute a running job just now, as the leader knows. They are listed only if one
	// job is asked for.
	Workers []string        `json:"workers,omitempty"`
	Outcome json.RawMessage `json:"result,omitempty"` // pipeline.Outcome of a done job
	// Waiting, if set, says what a job that has not ended waits for, and the command
	// that helps, as the leader knows; WaitingFor is the same for programs.
	Waiting    string     `json:"waiting,omitempty"`
	WaitingFor WaitReason `json:"waiting_for,omitempty"`
	// Suspect, if set, says why the job's results may be wrong: a worker that
	// served it was found to compute other bytes.
	Suspect  string     `json:"suspect,omitempty"`
	AuditPPM uint32     `json:"audit_ppm,omitempty"` // tasks of a million that are computed twice
	Models   []ModelRef `json:"models,omitempty"`
	// ModelDeleted is when the job's models were deleted, in Unix seconds; 0: they were not.
	ModelDeleted int64 `json:"model_deleted,omitempty"`
	// Predictions is the blob of a done job's predictions of held-out rows, if it kept
	// them: a predictions.Set.
	Predictions *BlobRef `json:"predictions,omitempty"`
	Submitted   int64    `json:"submitted"` // Unix seconds
	Started     int64    `json:"started,omitempty"`
	// Since is when it last began to run, in Unix seconds, Ran the seconds before its last
	// pause, or all of them once it has ended, by the clocks of leaders.
	Since   float64 `json:"running_since,omitempty"`
	Ran     float64 `json:"ran_seconds,omitempty"`
	Ended   int64   `json:"ended,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // of running
	// Events are the first and the newest events of the job, by time. Lists of jobs leave them out.
	Events        []JobEvent `json:"events,omitempty"`
	EventsDropped uint64     `json:"events_dropped,omitempty"` // events between the first and the newest ones
	Evaluation
}

// Evaluation has the means of a done job's measures; Outcome has more of them.
type Evaluation struct {
	Measures    map[string]float64 `json:"measures,omitempty"`     // by name
	EvaluatedOn string             `json:"evaluated_on,omitempty"` // "test samples" or "training samples"
}

// CellsPage is the greatest number of outcomes in one answer, and in one blob of outcomes. A leader has a page in
// memory several times.
const CellsPage = 250

// CellStatesPage is the number of states of runs after which an answer ends. An answer may have the rest of a blob too.
const CellStatesPage = 10_000

// MaxCellModels bounds the runs of a job that keeps their models.
const MaxCellModels = 10_000

// The bounds of what runs have beside their outcomes, in bytes: of one run, and of all of a job.
const (
	MaxCellRecord  = 16 << 10
	MaxCellRecords = 256 << 20
)

// JobCells are the outcomes of some runs of a job that have ended.
type JobCells struct {
	Cells []CellOutcome `json:"runs"`
	// Next is the task to ask for next; 0: there is none.
	Next int `json:"next"`
}

// CellOutcome is what a run ended with.
type CellOutcome struct {
	Task    int             `json:"task"`
	Outcome json.RawMessage `json:"result"` // pipeline.Outcome
	// Seconds is how long its worker computed it; 0: not known.
	Seconds float64 `json:"seconds,omitempty"`
	// Curve and Predictions are the encoded learning curve and predictions of some test rows,
	// if the job keeps them and the request asks for records.
	Curve       []byte `json:"curve,omitempty"`
	Predictions []byte `json:"predictions,omitempty"`
}

// JobCellStates are how some runs of a job have ended, without their outcomes.
type JobCellStates struct {
	States []CellState `json:"states"`
	// Next is the task to ask for next; 0: there is none.
	Next int `json:"next"`
}

// CellState is how a run ended: well, unless it says otherwise.
type CellState struct {
	Task   int  `json:"task"`
	Failed bool `json:"failed,omitempty"`
	NotRun bool `json:"not_run,omitempty"` // its budget is used up
	// Error says why a run failed.
	Error string `json:"error,omitempty"`
}

// JobCurve is the committed part of the learning curve of a job. A job of folds has no Points,
// but a curve for each fold, which is empty until the fold's result is recorded.
type JobCurve struct {
	ID     uint64          `json:"id"`
	Name   string          `json:"name"`
	State  JobState        `json:"state"`
	Points []curve.Point   `json:"points"`
	Folds  [][]curve.Point `json:"folds,omitempty"`
}

// JobList is a part of the jobs of a cluster, in the order that was asked for.
type JobList struct {
	Jobs []JobInfo `json:"jobs"`
	// Total is how many jobs the query is about, without its bounds Limit and After.
	Total int `json:"total"`
	// States is how many jobs of each state the query would be about if it asked for any state.
	States map[JobState]int `json:"states,omitempty"`
	// Next is the number of the last listed job if others follow it: JobQuery.After of the next list. 0: none follow.
	Next uint64 `json:"next,omitempty"`
}

// JobsDeleteEntry deletes jobs that have ended, with their models and predictions.
// It is refused, and deletes none, if one of them has not ended. It passes over numbers of
// deleted jobs, and of no job.
type JobsDeleteEntry struct {
	Jobs []uint64 `json:"jobs"` // at least one, at most MaxDelete
	Time int64    `json:"time"` // Unix seconds of the leader, for display
}

// MaxDelete bounds the jobs that one entry deletes: with it an entry stays below
// 128 KiB.
const MaxDelete = 4096

// DeleteRequest deletes jobs by number: all of them, or none if a job has not ended or
// never was.
type DeleteRequest struct {
	Jobs []uint64 `json:"jobs"` // at least one, at most MaxDelete
}

// PruneRequest deletes the jobs that ended so long ago, by the clock of the leader.
type PruneRequest struct {
	OlderThan int64 `json:"older_than_seconds"` // since their end
	// States are the states that the jobs ended in; empty: any.
	States []JobState `json:"states,omitempty"`
	DryRun bool       `json:"dry_run,omitempty"` // only say which
}

// Check says what is wrong with a request.
func (r *PruneRequest) Check() error {
	if r.OlderThan < 0 {
		return fmt.Errorf("the age of the jobs to delete is negative: %d seconds", r.OlderThan)
	}
	if r.OlderThan > math.MaxInt64/2 {
		return fmt.Errorf("the age of the jobs to delete is too great: %d seconds, at most %d are allowed", r.OlderThan,
			int64(math.MaxInt64/2))
	}
	for _, s := range r.States {
		if !s.Final() {
			return fmt.Errorf("jobs in the state %.80q cannot be pruned: want done, failed or cancelled", s)
		}
	}
	return nil
}

// Deletion says which jobs were deleted.
type Deletion struct {
	Jobs   []DeletedJob `json:"jobs"` // by number
	DryRun bool         `json:"dry_run,omitempty"`
	// Frees is the bytes of the blobs that nothing refers to any more. Each coordinator deletes
	// such a blob when it is of the age BlobGrace or older.
	Frees uint64 `json:"frees_bytes"`
}

// BlobGrace is how old a blob that nothing refers to must be before coordinators delete it: a
// younger one may belong to an import that has just begun.
const BlobGrace = time.Hour

// DeletedJob is a job that was deleted.
type DeletedJob struct {
	ID   uint64 `json:"id"`
	Name string `json:"name"`
	// State, Ended and Bytes, of its models and predictions, are not known of a job
	// that had been deleted before.
	State  JobState `json:"state,omitempty"`
	Ended  int64    `json:"ended,omitempty"`
	Bytes  uint64   `json:"bytes,omitempty"`
	Before bool     `json:"deleted_before,omitempty"`
}

// WaitReason says in a word for what a job waits: a value of JobInfo.WaitingFor, and of
// the label reason of coppice_jobs_waiting.
type WaitReason string

// The reasons.
const (
	WaitNoWorker    WaitReason = "no_worker"           // there is none
	WaitUnreachable WaitReason = "workers_unreachable" // all workers have lost their connection
	WaitRefused     WaitReason = "workers_refused"     // they have another protocol or arithmetic version
	WaitQuarantined WaitReason = "workers_quarantined" // audits showed that they compute wrong bytes
	WaitMemory      WaitReason = "memory"              // no worker has as much as a task takes
	WaitQueue       WaitReason = "queue"               // other jobs come first
	WaitCommit      WaitReason = "commit"              // nothing can be recorded just now
	WaitNATS        WaitReason = "nats"                // the leader cannot reach the workers
	WaitNumerics    WaitReason = "numerics"            // a leader of another version has to run it
	WaitBlobs       WaitReason = "blobs"               // no coordinator that answers has blobs that it needs
	WaitRetry       WaitReason = "retry"               // it stops again and again for a reason that may pass
)

// WaitReasons lists the reasons.
func WaitReasons() []WaitReason {
	return []WaitReason{
		WaitBlobs, WaitCommit, WaitMemory, WaitNATS, WaitNoWorker, WaitNumerics, WaitQueue, WaitRetry, WaitQuarantined,
		WaitRefused, WaitUnreachable,
	}
}

// JoinList lists the HTTP addresses of coordinators as the flag --join takes them.
func JoinList(members []MemberEntry) string {
	var all []string
	for i := range members {
		if h := members[i].HTTP; h != "" {
			all = append(all, h)
		}
	}
	return strings.Join(all, ",")
}

// SecurityFlags are the flags about TLS that a process of a cluster needs. exposed is true if connections between
// machines are in the clear. Processes on one machine without TLS need no flag.
func SecurityFlags(tls, exposed bool) string {
	switch {
	case tls:
		return " --tls-dir CERTS"
	case exposed:
		return " --insecure"
	}
	return ""
}

// StartWorker is the command that starts a worker of the coordinators of a JoinList, with SecurityFlags.
func StartWorker(join, security string) string {
	return "coppice worker --join " + join + " --dir DIR" + security
}

// NoWorker says that there is no worker, and with which command to start one.
func NoWorker(start string) string { return "no worker is connected; start a worker: " + start }

// Short is the reason in a few words, for tables.
func (r WaitReason) Short() string {
	switch r {
	case WaitNoWorker:
		return "no worker"
	case WaitUnreachable:
		return "workers unreachable"
	case WaitRefused:
		return "workers refused"
	case WaitQuarantined:
		return "workers quarantined"
	case WaitMemory:
		return "no worker with enough memory"
	case WaitQueue:
		return "behind other jobs"
	case WaitCommit:
		return "nothing can be recorded"
	case WaitNATS:
		return "no NATS"
	case WaitNumerics:
		return "other arithmetic version"
	case WaitBlobs:
		return "blobs missing"
	case WaitRetry:
		return "will be retried"
	}
	return string(r)
}
