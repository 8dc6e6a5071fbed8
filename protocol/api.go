package protocol

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
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
//	POST   /v1/datasets/check              DatasetPutEntry: would it be refused?
//	GET    /v1/datasets/{name}             Dataset
//	DELETE /v1/datasets/{name}
//	GET    /v1/jobs                        []JobInfo
//	POST   /v1/jobs                        SubmitRequest -> JobInfo
//	GET    /v1/jobs/{id or name}           JobInfo
//	GET    /v1/jobs/{id or name}/watch     a JobInfo a line at each change, until it is final
//	POST   /v1/jobs/{id or name}/cancel    -> JobInfo
//	POST   /v1/jobs/{id or name}/pause     -> JobInfo
//	POST   /v1/jobs/{id or name}/resume    -> JobInfo
//	POST   /v1/workers/{id}/trust          -> Cluster
//	GET    /v1/models                      []ModelInfo
//	GET    /v1/models/{name}               the model file (name: the job's, or job/fold)
//	GET    /v1/self                        Self, of the coordinator that is asked, also while it starts
//	GET    /v1/members                     Members
//	POST   /v1/members                     AddRequest -> Members
//	DELETE /v1/members/{id}                -> Members
//	POST   /v1/transfer                    TransferRequest -> Members
//	GET    /v1/backup                      a backup (BACKUP.md of internal/archive)
//	GET    /metrics, /healthz, /readyz

// Problem is the body of an error.
type Problem struct {
	Error string `json:"error"`
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
	Epoch        uint64        `json:"epoch"`
	NATS         []string      `json:"nats"` // URLs
	Heartbeat    int           `json:"heartbeat_ms"`
	Coordinators []MemberEntry `json:"coordinators"`
	Workers      []Worker      `json:"workers"` // as the leader knows them
	// Problem, where set, is why the coordinator that answers, the leader where there
	// is one, cannot lead or serve as it should: see Self.
	Problem string `json:"problem,omitempty"`
	// Distrusted lists the workers that audits found to be wrong, from committed state.
	Distrusted []Distrusted `json:"distrusted,omitempty"`
}

// Distrusted is a worker that is not used until somebody trusts it again.
type Distrusted struct {
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
	// Audit is the share of the job's units, 0 to 1, that are computed twice, on
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
	// KeepPredictions is how many bytes the predictions of held-out rows may take to be
	// kept with the job; nil: the default, 0: none are.
	KeepPredictions *int64 `json:"keep_predictions,omitempty"`
	// Set holds the algorithm's settings as text, by name.
	Set map[string]string `json:"settings,omitempty"`
}

// JobInfo describes a job, from committed state only.
type JobInfo struct {
	ID       uint64               `json:"id"`
	Index    uint64               `json:"index"` // of the log entry that the job was read after: it grows
	Name     string               `json:"name"`
	State    JobState             `json:"state"`
	Error    string               `json:"error,omitempty"`
	Dataset  string               `json:"dataset"`
	Job      *algorithms.Job      `json:"job"`
	Spec     json.RawMessage      `json:"spec,omitempty"`
	Progress *algorithms.Progress `json:"progress,omitempty"`
	Rounds   uint64               `json:"rounds"` // committed
	// Collected is the number of finished units of a collected round, Units of all,
	// InFlight of those that workers compute just now, as the leader knows.
	Collected int             `json:"collected,omitempty"`
	InFlight  int             `json:"in_flight,omitempty"`
	Units     int             `json:"units,omitempty"`
	Outcome   json.RawMessage `json:"result,omitempty"` // pipeline.Outcome of a done job
	// Waiting, where set, says what a job that has not ended waits for, and the command
	// that helps, as the leader knows; WaitingFor is the same for programs.
	Waiting    string     `json:"waiting,omitempty"`
	WaitingFor WaitReason `json:"waiting_for,omitempty"`
	// Suspect, where set, says why the job's results may be wrong: a worker that
	// served it was found to compute other bytes.
	Suspect  string     `json:"suspect,omitempty"`
	AuditPPM uint32     `json:"audit_ppm,omitempty"` // units of a million that are computed twice
	Models   []ModelRef `json:"models,omitempty"`
	// Predictions is the blob of a done job's predictions of held-out rows, if it kept
	// them: a predictions.Set.
	Predictions *BlobRef `json:"predictions,omitempty"`
	Submitted   int64    `json:"submitted"` // Unix seconds
	Started     int64    `json:"started,omitempty"`
	// Since is when it last began to run, Ran the seconds before its last pause.
	Since   int64   `json:"running_since,omitempty"`
	Ran     int64   `json:"ran_seconds,omitempty"`
	Ended   int64   `json:"ended,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // of running
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
