package protocol

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
)

// JobState is where a job stands.
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

// The HTTP API, version 1. Every coordinator answers; a follower forwards to the
// leader. Bodies are JSON but for blobs. An error is a Problem with status 400
// (wrong request), 403 (a quota of jobs), 404, 409 (conflict), 503 (no leader or no
// majority just now: try again) or 507 (the disk is nearly full, or the quota of
// blobs).
//
//	GET    /v1/cluster                     Cluster
//	PUT    /v1/blobs/{digest}              body: the bytes; returns once a majority has them
//	GET    /v1/blobs/{digest}              the bytes
//	GET    /v1/datasets                    []Dataset
//	POST   /v1/datasets                    DatasetPutEntry -> Dataset (its blobs were put before)
//	POST   /v1/datasets/check              DatasetPutEntry: would it be refused? -> DatasetCheck
//	GET    /v1/datasets/{name}             Dataset
//	DELETE /v1/datasets/{name}
//	GET    /v1/jobs?state=&sort=&limit=    JobList (JobQuery says what may be asked)
//	POST   /v1/jobs                        SubmitRequest -> JobInfo
//	GET    /v1/jobs/{id or name}           JobInfo
//	GET    /v1/jobs/{id or name}/watch     a JobInfo a line at each change, until it is final
//	GET    /v1/jobs/{id or name}/curve     JobCurve
//	POST   /v1/jobs/{id or name}/cancel    -> JobInfo
//	POST   /v1/jobs/{id or name}/pause     -> JobInfo
//	POST   /v1/jobs/{id or name}/resume    -> JobInfo
//	POST   /v1/jobs/delete                 DeleteRequest -> Deletion
//	POST   /v1/jobs/prune                  PruneRequest -> Deletion
//	POST   /v1/workers/{id}/trust          -> Cluster
//	GET    /v1/models                      []ModelInfo
//	GET    /v1/models/{name}               the model file (name: the job's, or job/fold)
//	DELETE /v1/models/{id or name}         of a job -> JobInfo
//	GET    /v1/self                        Self, of the coordinator that is asked, also while it starts
//	GET    /v1/members                     Members
//	POST   /v1/members                     AddRequest -> Members
//	DELETE /v1/members/{id}                -> Members
//	POST   /v1/transfer                    TransferRequest -> Members
//	GET    /v1/backup                      a backup (internal/archive/BACKUP.md)
//	GET    /metrics, /healthz, /readyz     /readyz?blobs=any: is it ready, whichever blobs it lacks?

// ReadyBlobs is the query of /readyz that says which blobs a coordinator needs for being ready; ReadyBlobsAny: none.
const (
	ReadyBlobs    = "blobs"
	ReadyBlobsAny = "any"
)

// DatasetCheck is what is to be sent before a dataset can be put: the digests of those of its blobs that the leader
// lacks.
type DatasetCheck struct {
	Lacking []string `json:"lacking"`
}

// Problem is the body of an error.
type Problem struct {
	Error string `json:"error"`
	// Unknown: the request may have changed something all the same, or still will.
	Unknown bool `json:"unknown,omitempty"`
}

// ClusterLocal is the path of what a coordinator knows of the cluster itself: where
// "/v1/cluster" gives the leader's answer, and waits for it, this is given at once by
// whoever is asked, without the workers. Leader and Epoch belong together: Leader is
// empty unless the coordinator hears the leader of this epoch; with "&wait_ms=N" it waits
// until it does, for N ms at most.
const ClusterLocal = "/v1/cluster?local=true"

// Cluster describes the cluster; a worker joins by it.
type Cluster struct {
	ID           string        `json:"id"` // cluster id: part of every subject
	Version      string        `json:"version"`
	Protocol     int           `json:"protocol"`
	Numerics     int           `json:"numerics"`
	Leader       string        `json:"leader"` // coordinator id; empty while there is none
	Epoch        uint64        `json:"leader_epoch"`
	NATS         []string      `json:"nats"` // URLs
	Heartbeat    int           `json:"heartbeat_ms"`
	Coordinators []MemberEntry `json:"coordinators"`
	Workers      []Worker      `json:"workers"` // as the leader knows them
	// Members are the coordinators as the leader sees them; absent while there is none.
	Members []Coordinator `json:"members,omitempty"`
	// Problem, where set, is why the coordinator that answers, the leader where there
	// is one, cannot lead or serve as it should: see Self.
	Problem string `json:"problem,omitempty"`
	// Warning, where set, is what does not suit, though that coordinator can lead and serve.
	Warning string `json:"warning,omitempty"`
	// Quarantined lists the workers that audits found to be wrong, from committed state.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
}

// Listed returns c with empty lists in place of those that are nil: JSON has "[]" for
// them and never null.
func (c Cluster) Listed() Cluster {
	c.NATS = append([]string{}, c.NATS...)
	c.Coordinators = append([]MemberEntry{}, c.Coordinators...)
	c.Workers = append([]Worker{}, c.Workers...)
	return c
}

// Quarantined is a worker that is not used until somebody trusts it again.
type Quarantined struct {
	Worker string `json:"worker"`
	Reason string `json:"reason"`
	Time   int64  `json:"time"` // Unix seconds
}

// Worker describes a worker that the leader knows.
type Worker struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Slots   int    `json:"slots"`
	Shards  int    `json:"shards"` // verified shards in its cache
	Metrics string `json:"metrics,omitempty"`
	State   string `json:"state"` // "alive", "refused: why"
	// RoundTrip is the smoothed round trip to its NATS server in ms; 0: not measured yet.
	RoundTrip float64 `json:"round_trip_ms,omitempty"`

	Host    string  `json:"host,omitempty"`    // name of its machine
	Address string  `json:"address,omitempty"` // from which it is connected to NATS
	Load    float64 `json:"load,omitempty"`    // of its machine: the load average of a minute, where it tells
	Busy    int     `json:"busy_slots"`        // tasks that it computes now
	Tasks   uint64  `json:"tasks"`             // computed for this leader
	// UnitSeconds are the recent seconds of a task, by kind of task, and MainKind is the
	// kind that most time went into.
	TaskSeconds map[string]float64 `json:"task_seconds,omitempty"`
	MainKind    string             `json:"main_kind,omitempty"`
	LastSeen    int64              `json:"last_seen_ms"` // since its last heartbeat
	// Idle, where set, says why it computes nothing, and what helps, as the leader knows; IdleReason is the same
	// for programs.
	Idle       string     `json:"idle,omitempty"`
	IdleReason IdleReason `json:"idle_reason,omitempty"`
}

// Coordinator is a coordinator as the leader sees it.
type Coordinator struct {
	MemberEntry
	Role string  `json:"role"`
	Host string  `json:"host,omitempty"` // name of its machine
	Load float64 `json:"load,omitempty"` // of its machine: the load average of a minute, where it tells
	// LastSeen is the time since it answered the leader, which asks every two seconds or
	// so; -1: not yet. What it said of itself is of then.
	LastSeen int64  `json:"last_seen_ms"`
	Lag      uint64 `json:"lag_entries"` // entries of the leader's log that it has not
	Problem  string `json:"problem,omitempty"`
}

// Dataset describes an imported dataset.
type Dataset struct {
	Name     string            `json:"name"`
	Digest   string            `json:"digest"`
	Manifest *dataset.Manifest `json:"manifest"`
	Time     int64             `json:"time"`
}

// SubmitRequest submits a job. Spec is checked and resolved by the leader.
type SubmitRequest struct {
	Token string `json:"token"` // drawn by the client: a retry makes no second job
	Spec  Spec   `json:"spec"`
	// Audit is the share of the job's tasks, 0 to 1, that are computed twice, on
	// different workers, and compared.
	Audit float64 `json:"audit,omitempty"`
}

// Spec is a job spec as a user gives it, in YAML or by flags.
type Spec struct {
	Algorithm    string  `json:"algorithm"`
	Dataset      string  `json:"dataset,omitempty"`
	Name         string  `json:"name,omitempty"`
	Seed         *uint64 `json:"seed,omitempty"` // default 1
	TestFraction float64 `json:"test_fraction,omitempty"`
	Folds        int     `json:"folds,omitempty"`
	// Assigned is the digest of a blob that gives each row's fold (see
	// dataset.Split); Folds is then the number of folds.
	Assigned string `json:"assigned,omitempty"`
	// Overlap says that the blob has Folds splits whose test rows may be the same.
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
	// Submission names the submission of its experiment that it came with: those that came together have the same.
	Submission string `json:"submission,omitempty"`
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
	// Gathered is the number of finished tasks of a gather round, Tasks of all,
	// InFlight of those that workers compute just now, as the leader knows.
	Gathered int `json:"collected,omitempty"`
	InFlight int `json:"in_flight,omitempty"`
	Tasks    int `json:"tasks,omitempty"`
	// Workers are those that compute a running job just now, as the leader knows; only of
	// one job that is asked for.
	Workers []string        `json:"workers,omitempty"`
	Outcome json.RawMessage `json:"result,omitempty"` // pipeline.Outcome of a done job
	// Waiting, where set, says what a job that has not ended waits for, and the command
	// that helps, as the leader knows; WaitingFor is the same for programs.
	Waiting    string     `json:"waiting,omitempty"`
	WaitingFor WaitReason `json:"waiting_for,omitempty"`
	// Suspect, where set, says why the job's results may be wrong: a worker that
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
	// Measures are the means of a done job's measures by name, over the rows that
	// EvaluatedOn names ("test samples" or "training samples"); Outcome has more of them.
	Measures    map[string]float64 `json:"measures,omitempty"`
	EvaluatedOn string             `json:"evaluated_on,omitempty"`
}

// ExperimentRequest submits the jobs of an experiment, all of them or none.
type ExperimentRequest struct {
	Token string          `json:"token"` // names the submission, as in a SubmitRequest
	Name  string          `json:"name"`
	Jobs  []ExperimentJob `json:"jobs"`
	// Outline is the digest of a blob that says what the experiment has from now on, for
	// reports: the cluster does not read it. With one, an experiment that is there may be
	// submitted without jobs.
	Outline string `json:"outline,omitempty"`
	// After is JobInfo.Index of the experiment's jobs as they were read before. A submission without jobs is refused
	// where another outline was submitted since then; 0: it is not.
	After uint64 `json:"after,omitempty"`
}

// ExperimentJob is a job of runs on one dataset.
type ExperimentJob struct {
	Name    string          `json:"name"`
	Dataset string          `json:"dataset"` // name
	Job     *round.Job      `json:"job"`
	Spec    json.RawMessage `json:"spec"` // what a report needs beside the results
}

// CellsPage is the greatest number of runs in one answer, and in one blob of outcomes.
const CellsPage = 1000

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
	// Next is the task to ask for next; 0: there are no more.
	Next int `json:"next"`
}

// CellOutcome is what a run ended with.
type CellOutcome struct {
	Task    int             `json:"task"`
	Outcome json.RawMessage `json:"result"` // pipeline.Outcome
	// Seconds is how long its worker computed it; 0: not known.
	Seconds float64 `json:"seconds,omitempty"`
	// Curve and Predictions are the encoded learning curve and predictions of some test rows,
	// where the job keeps them and the request asks for records.
	Curve       []byte `json:"curve,omitempty"`
	Predictions []byte `json:"predictions,omitempty"`
}

// JobCellStates are how some runs of a job have ended, without their outcomes.
type JobCellStates struct {
	States []CellState `json:"states"`
	// Next is the task to ask for next; 0: there are no more.
	Next int `json:"next"`
}

// CellState is how a run ended: well, unless it says otherwise.
type CellState struct {
	Task   int  `json:"task"`
	Failed bool `json:"failed,omitempty"`
	NotRun bool `json:"not_run,omitempty"` // its budget is used up
}

// JobCurve is the learning curve of a job, as far as it is committed: of a job of folds
// one for each fold, which is empty until the fold's result is recorded, and no Points.
type JobCurve struct {
	ID     uint64          `json:"id"`
	Name   string          `json:"name"`
	State  JobState        `json:"state"`
	Points []curve.Point   `json:"points"`
	Folds  [][]curve.Point `json:"folds,omitempty"`
}

// ModelInfo describes a model in the registry.
type ModelInfo struct {
	Name      string `json:"name"`
	Job       uint64 `json:"job"`
	Algorithm string `json:"algorithm"`
	Dataset   string `json:"dataset"`
	ModelRef
	Time int64 `json:"time"`
	// Suspect, where set, is that of the job.
	Suspect string `json:"suspect,omitempty"`
}
