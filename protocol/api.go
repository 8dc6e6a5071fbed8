package protocol

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// The HTTP API, version 1; rights.Requests lists its requests. Every coordinator answers, and a follower forwards to
// the leader. Bodies are JSON but for blobs, models and backups. An error is a Problem with status 400 (wrong request),
// 403 (a quota of jobs, or no right), 404, 409 (conflict), 503 (no leader or no majority just now: try again) or 507
// (the disk is nearly full, or the quota of blobs).

// DatasetPut names a dataset. The blobs of its manifest are on the cluster, or are sent after a check.
type DatasetPut struct {
	Name     string            `json:"name"`
	Manifest *dataset.Manifest `json:"manifest"`
	// Shared is true if all users may read the samples. If not, only the caller and admins may, if the caller has a name.
	Shared bool `json:"shared,omitempty"`
}

// DatasetCheck is what is to be sent before a dataset can be put: the digests of its blobs that
// the leader lacks, or that it does not accept from the caller: the caller has not sent them, and nothing refers to
// them that the caller may read.
type DatasetCheck struct {
	Lacking []string `json:"lacking"`
}

// Problem is the body of an error. Its keys are the keys of the error that a command prints with -o json.
type Problem struct {
	Error string `json:"error"`
	// Kind is the kind of error: see ProblemKind.
	Kind string `json:"kind,omitempty"`
	// Unknown is true if the request may have changed something all the same, or may still do so.
	Unknown bool `json:"unknown,omitempty"`
	// Mistakes lists what is wrong with the spec of an experiment and its data, each with its line.
	Mistakes []string `json:"mistakes,omitempty"`
	// Form is the error with places for options, and MistakeForms has the form of each mistake, null without one.
	Form         *errtext.Form   `json:"form,omitempty"`
	MistakeForms []*errtext.Form `json:"mistake_forms,omitempty"`
	// Plan is an ExperimentPlan if a submission of an experiment was refused because runs would be orphaned.
	Plan json.RawMessage `json:"plan,omitempty"`
}

// ProblemKind returns the kind of error that a command prints for a response with this status. mistakes is true if the
// error lists the mistakes of a spec.
func ProblemKind(status int, mistakes bool) string {
	switch {
	case status == http.StatusBadRequest && mistakes:
		return "usage"
	case status == http.StatusNotFound:
		return "not_found"
	case status == http.StatusConflict:
		return "conflict"
	case status == http.StatusServiceUnavailable:
		return "unavailable"
	case status == http.StatusInternalServerError:
		return "failed"
	}
	return "refused"
}

// StatusSendBlob answers a request that refers to a blob that its caller is to send first, perhaps again: a leader
// forgets who has sent what when another coordinator leads.
const StatusSendBlob = http.StatusFailedDependency

// ClusterLocal is the path of what any coordinator knows of the cluster. It answers at once and
// without the workers, but "/v1/cluster" waits for the leader's answer. Leader and Epoch
// belong together: Leader is empty unless the coordinator hears the leader of this epoch. With
// "&wait_ms=N" it waits until it does, for N ms at most.
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
	// Problem, if set, is why the coordinator that answers cannot lead or serve as it should:
	// see Self. If there is a leader, the leader answers.
	Problem string `json:"problem,omitempty"`
	// Warning, if set, is what does not suit, though that coordinator can lead and serve.
	Warning string `json:"warning,omitempty"`
	// Insecure is true if the coordinator that answers exchanges data with other machines in
	// the clear.
	Insecure bool `json:"insecure,omitempty"`
	// PublicURL is where people reach the coordinator that answers, as its flag --public-url says; empty: at its address.
	PublicURL string `json:"public_url,omitempty"`
	// Quarantined lists the workers that audits found to be wrong, from committed state.
	Quarantined []Quarantined `json:"quarantined,omitempty"`
}

// Listed returns c with empty lists in place of nil, so that JSON has "[]" for them and
// never null.
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
	State   string `json:"state"` // "alive", "unreachable", "refused: why", "twice: why"
	// RoundTrip is the smoothed round trip to its NATS server in ms; 0: not measured yet.
	RoundTrip float64 `json:"round_trip_ms,omitempty"`

	Host    string  `json:"host,omitempty"`    // name of its machine
	Address string  `json:"address,omitempty"` // from which it is connected to NATS
	Load    float64 `json:"load,omitempty"`    // of its machine: the load average of a minute, if it tells
	Busy    int     `json:"busy_slots"`        // tasks that it computes now
	// Jobs are the names of the running jobs that were sent to it.
	Jobs  []string `json:"jobs,omitempty"`
	Tasks uint64   `json:"tasks"` // computed for this leader
	// TaskSeconds are the recent seconds of a task, by kind of task, and MainKind is the
	// kind that most time went into.
	TaskSeconds map[string]float64 `json:"task_seconds,omitempty"`
	MainKind    string             `json:"main_kind,omitempty"`
	LastSeen    int64              `json:"last_seen_ms"` // since its last heartbeat
	// Idle, if set, says why it computes nothing, and what helps, as the leader knows; IdleReason is the same
	// for programs.
	Idle       string     `json:"idle,omitempty"`
	IdleReason IdleReason `json:"idle_reason,omitempty"`
}

// Coordinator is a coordinator as the leader sees it.
type Coordinator struct {
	MemberEntry
	Role string `json:"role"`
	// Alive is true if it answered the leader's last question. If not, Problem says why it did not.
	Alive bool `json:"alive"`
	// LastSeen is the time since it answered the leader, which asks every two seconds or
	// so; -1: not yet. Its condition is of then.
	LastSeen int64  `json:"last_seen_ms"`
	Lag      uint64 `json:"lag_entries"` // entries of the leader's log that it has not
	Condition
}

// Condition is how a coordinator is, as it says itself.
type Condition struct {
	// Contact is how long ago it heard the leader; 0 on the leader, -1: never.
	Contact int64 `json:"last_contact_ms"`
	// Missing is how many blobs its state refers to and it lacks. Lost is how many of them each
	// other coordinator says it lacks. MissingFor is for how many seconds the first has been missing.
	Missing    int     `json:"missing_blobs"`
	Lost       int     `json:"lost_blobs"`
	MissingFor float64 `json:"missing_blobs_seconds"`
	// Host is the name of its machine, and Load the load average of a minute; 0: unknown.
	Host string  `json:"host,omitempty"`
	Load float64 `json:"load,omitempty"`
	// DiskFree is how many bytes of the disk of its folder it can still write, and DiskSize the size of the disk;
	// 0: unknown.
	DiskFree uint64 `json:"disk_free_bytes,omitempty"`
	DiskSize uint64 `json:"disk_bytes,omitempty"`
	// Problem, if set, is why it cannot lead or serve as it should: its disk is
	// full, NATS is away, a part of its log is being fetched anew.
	Problem string `json:"problem,omitempty"`
	// Warning, if set, is what does not suit, though it can lead and serve: a round trip
	// that is long for the timeouts.
	Warning string `json:"warning,omitempty"`
}

// Dataset describes an imported dataset.
type Dataset struct {
	Name      string            `json:"name"`
	Digest    string            `json:"digest"`
	Manifest  *dataset.Manifest `json:"manifest"`
	Ownership                   // of the user who imported it
	Time      int64             `json:"time"`
}

// Ownership has the owner of a dataset, a job or an experiment. It says if only the owner and admins may read it.
type Ownership struct {
	Owner string `json:"owner,omitempty"` // the user who made it; empty: nobody
	// Private is true if only the owner and admins may read the samples of a dataset, or the models, predictions and
	// records of a job.
	Private bool `json:"private,omitempty"`
}

// ModelInfo describes a model in the registry.
type ModelInfo struct {
	Name      string `json:"name"`
	Job       uint64 `json:"job"`
	Algorithm string `json:"algorithm"`
	Dataset   string `json:"dataset"`
	ModelRef
	Time int64 `json:"time"`
	Ownership
	// Suspect, if set, says why the results of the job may be wrong.
	Suspect string `json:"suspect,omitempty"`
}

// Self is what a coordinator says of itself, even if another one leads.
type Self struct {
	MemberEntry
	Cluster   string `json:"cluster"` // id of the cluster; a new coordinator has it from --join-cluster
	Protocol  int    `json:"protocol"`
	Numerics  int    `json:"numerics"`
	Heartbeat int    `json:"heartbeat_ms"`
	// External is the URL of a NATS that is not the coordinators' own; empty: it is.
	External string `json:"external_nats,omitempty"`
	Leader   string `json:"leader"`  // the coordinator that it takes for the leader; empty: none
	Term     uint64 `json:"term"`    // of Raft
	Last     uint64 `json:"last"`    // index of its last log entry; 0: it has joined no cluster yet
	Applied  uint64 `json:"applied"` // index of the last entry that its state has seen
	Condition

	// Process is drawn when the process starts: two processes with one identity differ in it.
	Process string `json:"process,omitempty"`

	// What follows is for coordinators that start: see coordinator/store/DESIGN.md.
	Phase     string       `json:"phase"`              // new, opening, joining or member
	Directory string       `json:"directory"`          // the random id of its folder
	Founders  []RaftServer `json:"founders,omitempty"` // that the cluster began with
	Seeded    bool         `json:"seeded,omitempty"`   // true if a new folder was restored from a backup
	Peers     string       `json:"peers,omitempty"`    // its --peers
	// Servers are the members and Voters the voting members, if it knows them to be committed.
	Servers []RaftServer  `json:"servers,omitempty"`
	Voters  []MemberEntry `json:"voters,omitempty"`
}

// RaftServer is a coordinator with the folder that it has, as Raft knows it.
type RaftServer struct {
	ID        string `json:"id"`
	Directory string `json:"directory"` // the random id of its folder
	RaftAddr  string `json:"raft"`      // host:port, when it became a member
}

// Members is who the coordinators are, from the leader's Raft configuration.
type Members struct {
	Cluster string   `json:"cluster"`
	Leader  string   `json:"leader"`
	Applied uint64   `json:"applied"` // by the leader
	Members []Member `json:"members"` // by id
	// Warning, if set, is what is not as it should be after a change.
	Warning string `json:"warning,omitempty"`
	// Revoked lists the certificates that were revoked because a coordinator was removed.
	Revoked []Revocation `json:"revoked,omitempty"`
}

// The roles of a Member.
const (
	RoleLeader   = "leader"
	RoleVoter    = "voter"
	RoleNonvoter = "nonvoter" // it catches up, and votes once it has
)

// Member is one coordinator of the cluster.
type Member struct {
	MemberEntry
	Directory string `json:"directory"` // the random id of its folder
	Role      string `json:"role"`
	// Alive is true if it answered the leader just now. Then what follows is what it says
	// of itself. If not, Problem says why it did not answer.
	Alive   bool   `json:"alive"`
	Applied uint64 `json:"applied"`
	Condition
}

// AddRequest makes the coordinator ID, which runs and serves HTTP at that address,
// a member. It votes once it has caught up.
type AddRequest struct {
	ID   string `json:"id"`
	HTTP string `json:"http"`
}

// TransferRequest hands the leadership over to a voter; empty: any.
type TransferRequest struct {
	To string `json:"to,omitempty"`
}

// IdleReason says in a word why a worker computes nothing: a value of Worker.IdleReason.
type IdleReason string

// The reasons.
const (
	IdleNoJob       IdleReason = "no_job"      // no job is queued or running
	IdlePaused      IdleReason = "paused"      // all jobs that have not ended are paused
	IdleJobWaits    IdleReason = "job_waits"   // a job waits for something else, see JobInfo.Waiting
	IdleNextRound   IdleReason = "next_round"  // it gets tasks once the job's next round begins
	IdleFewTasks    IdleReason = "few_tasks"   // the other workers have all tasks of the round
	IdleShards      IdleReason = "shards"      // it has not all shards yet that its tasks read
	IdleStalled     IdleReason = "stalled"     // it let tasks wait, and others get them for a while
	IdleMemory      IdleReason = "memory"      // its --memory is too small for the tasks
	IdleRefused     IdleReason = "refused"     // it has another protocol or numerics
	IdleQuarantined IdleReason = "quarantined" // an audit found that it computes wrong bytes
	IdleFolder      IdleReason = "folder"      // its folder cannot be written
	IdleUnreachable IdleReason = "unreachable" // it has lost its connection
)

// IdleReasons lists the reasons.
var IdleReasons = []IdleReason{
	IdleNoJob, IdlePaused, IdleJobWaits, IdleNextRound, IdleFewTasks, IdleShards, IdleStalled, IdleMemory, IdleRefused,
	IdleQuarantined, IdleFolder, IdleUnreachable,
}

// BriefText is how many bytes of a text Brief keeps at the most, without its dots.
const BriefText = 200

// Brief shortens a text of unknown length, such as an error that another machine reports, for
// a list of many. A third of what it keeps is the beginning, which says what failed. The rest is
// the end, which says why. No character is cut in two.
func Brief(text string) string {
	if len(text) <= BriefText {
		return text
	}
	begin := text[:BriefText/3]
	end := text[len(text)-(BriefText-len(begin)):]
	return strings.ToValidUTF8(begin, "") + "..." + strings.ToValidUTF8(end, "")
}

// Product is a parameter of the content type of web pages that a coordinator makes: a client takes any other page for
// the answer of another server.
const Product = "coppice"

// Experiment says how far an experiment is, as the leader knows.
type Experiment struct {
	Name string `json:"name"`
	// Jobs is the number of its jobs, without jobs that failed or were cancelled and have a successor.
	Jobs int `json:"jobs"`
	// State is the first of running, queued, paused, failed, cancelled and done that one of its jobs has.
	State JobState `json:"state"`
	Runs  int      `json:"runs"`
	Done  int      `json:"runs_done"` // runs that have ended
	// NotRun is the number of runs that are left out because a budget is used up.
	NotRun int `json:"runs_not_run,omitempty"`
	// Running is the number of runs that are computed now. So a line of changes tells of every change of the grid.
	Running int `json:"runs_running,omitempty"`
	// Phases has a text for each running job.
	Phases []string `json:"phases,omitempty"`
	// Waiting, if set, says what a running job waits for, and the command that helps.
	Waiting string `json:"waiting,omitempty"`
	// SecondsLeft is the estimated time until all runs have ended; 0 if not known.
	SecondsLeft float64 `json:"seconds_left,omitempty"`
	// EstimatedFrom says which runs the estimate was made from, or why there is none.
	EstimatedFrom string `json:"estimated_from,omitempty"`
	// Errors says why jobs failed.
	Errors    []string `json:"errors,omitempty"`
	Submitted int64    `json:"submitted"` // Unix seconds, of the first submission
	Ownership          // of its newest job; it is private if one of its jobs is
	// Outline is the digest of the blob that lists its runs: another submission has another one.
	Outline string `json:"outline,omitempty"`
	// Newest is the number of its newest job.
	Newest uint64 `json:"newest_job"`
	// Index is the index of the log entry after which the state was read: it grows.
	Index uint64 `json:"index"`
}

// Ended reports whether no job of the experiment goes on.
func (x *Experiment) Ended() bool { return x.State.Final() }

// ExperimentList is a part of the experiments of a cluster, in the order that was asked for.
type ExperimentList struct {
	Experiments []Experiment `json:"experiments"`
	// Total is how many experiments the query is about, without its bounds Limit and After.
	Total int `json:"total"`
	// Next is the name of the last listed experiment if others follow it: ListQuery.After of the next list.
	Next string `json:"next,omitempty"`
}

// ExperimentRequest submits the runs of a spec that no job of its experiment has or will have. The leader reads the
// spec.
type ExperimentRequest struct {
	Token string `json:"token,omitempty"` // names the submission, as in a SubmitRequest; a check needs none
	File  string `json:"file"`            // the name of the spec's file, for errors and reports
	Spec  string `json:"spec"`            // the text of the spec, in YAML
	Data  string `json:"data,omitempty"`  // the folder of the data files, for reports
	// Datasets says, for each dataset of the spec that is a file, what the cluster has of it, by its name in the spec.
	Datasets map[string]ExperimentData `json:"datasets,omitempty"`
	// Record, if set, replaces the spec's key record.
	Record      []string `json:"record,omitempty"`
	RecordAgain bool     `json:"record_again,omitempty"` // repeats the runs that ended without the recorded data
	RetryFailed bool     `json:"retry_failed,omitempty"` // repeats the runs that failed
	NoBudget    bool     `json:"no_budget,omitempty"`    // ignores the budgets of the spec
	KeepModels  bool     `json:"keep_models,omitempty"`  // keeps the model of each new run
	// LeaveOut is true if runs of the last submission that the spec does not have may leave the experiment.
	LeaveOut bool `json:"leave_out,omitempty"`
	// Shared is true if all users may read the results of a new experiment, as in a SubmitRequest. An experiment that
	// exists stays private or shared.
	Shared bool `json:"shared,omitempty"`
}

// ExperimentData is what a cluster has of a dataset that is a file for its client.
type ExperimentData struct {
	Dataset string `json:"dataset,omitempty"` // the name of the dataset on the cluster
	Missing bool   `json:"missing,omitempty"` // true if the file does not exist, and the spec allows that
	// Manifest describes a dataset that is not imported. Only a check takes it.
	Manifest *dataset.Manifest `json:"manifest,omitempty"`
	Folds    *ExperimentFolds  `json:"folds,omitempty"` // of the file that the spec's key folds names
	// External is the predictions of other programs, if methods of the spec have the key external.
	External *ExperimentExternal `json:"external,omitempty"`
}

// ExperimentExternal is the predictions of other programs for a dataset.
type ExperimentExternal struct {
	Digest string          `json:"digest"` // of the blob that external.Encode makes
	Tables []ExternalTable `json:"tables"` // what each table of the blob is, in their order
}

// ExternalTable says which fold a method of another program predicted.
type ExternalTable struct {
	Method string `json:"method"` // its name in the spec
	Repeat int    `json:"repeat,omitempty"`
	Fold   int    `json:"fold"`
}

// ExperimentFolds is a list of folds, or of splits that overlap.
type ExperimentFolds struct {
	Digest  string `json:"digest"` // of the blob that dataset.EncodeFolds makes
	Folds   int    `json:"folds"`
	Overlap bool   `json:"overlap,omitempty"`
}

// ExperimentRetry repeats runs of the last submission of an experiment.
type ExperimentRetry struct {
	Token  string `json:"token"`
	Failed bool   `json:"failed,omitempty"` // true if only runs that failed are repeated
}

// ExperimentPlan says what a submission adds to an experiment, or would add.
type ExperimentPlan struct {
	Name string `json:"name"`
	Runs int    `json:"runs"`      // new runs
	Kept int    `json:"runs_kept"` // other runs of the spec, which have ended or belong to a job
	// Orphaned counts the runs of the last submission that the spec does not have. Their results are kept, and no report
	// has them. Orphans lists them by dataset and method.
	Orphaned int      `json:"runs_orphaned"`
	Orphans  []string `json:"orphans,omitempty"`
	Changes  []string `json:"changes,omitempty"` // what the spec says otherwise than the last one
	Refused  []string `json:"refused,omitempty"` // methods that do not go with a dataset, and why
	Notes    []string `json:"notes,omitempty"`
	// Jobs are the jobs that were made, one for each dataset with new runs; none: nothing was submitted.
	Jobs []JobInfo `json:"jobs"`
}

// NeedsConsent reports whether a user must agree first: the spec has changed, and runs are orphaned.
func (p *ExperimentPlan) NeedsConsent() bool { return p.Orphaned > 0 && len(p.Changes) > 0 }

// ExperimentChange is the answer to a request that cancels, pauses or resumes an experiment.
type ExperimentChange struct {
	Experiment
	Changed []string `json:"changed"` // the names of the jobs that were changed
}

// ExperimentLine is a line of the changes of an experiment. Lines of a job are JobInfo.
type ExperimentLine struct {
	Experiment
	// RunsEnded are runs that have ended, if the request asks for them. A stream tells each run of
	// a job once: the first lines after its beginning have the runs that ended before.
	RunsEnded []EndedRuns `json:"runs_ended,omitempty"`
}

// EndedRuns are runs of one job that have ended.
type EndedRuns struct {
	Job  uint64      `json:"job"`
	Runs []CellState `json:"runs"`
}

// TokenIDBytes is the length of the id of a token before it is written in hexadecimal.
const TokenIDBytes = 8

var tokenIDPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// CheckTokenID reports why text cannot be the id of a token.
func CheckTokenID(text string) error {
	if !tokenIDPattern.MatchString(text) {
		return fmt.Errorf("the id %.80q of a token is not valid: want %d hexadecimal digits", text, 2*TokenIDBytes)
	}
	return nil
}

// TokenRequest makes a token of a user valid. The client draws the token, and keeps the secret.
type TokenRequest struct {
	ID      string `json:"id"`
	SHA256  string `json:"sha256"` // of the secret
	Role    string `json:"role"`   // read, submit or admin
	Owner   string `json:"owner"`  // the user
	Quota   uint32 `json:"quota,omitempty"`
	Expires int64  `json:"expires,omitempty"`
}

// Token describes a token of a user. The secret and its hash are not among it.
type Token struct {
	ID    string `json:"id"`
	Owner string `json:"owner"`
	Role  string `json:"role"`
	// Quota is how many jobs of the owner that have not ended there may be when the token
	// submits another one; 0: no bound.
	Quota   uint32 `json:"quota,omitempty"`
	Created int64  `json:"created"`           // Unix seconds
	Expires int64  `json:"expires,omitempty"` // Unix seconds; 0: never
	Revoked int64  `json:"revoked,omitempty"` // Unix seconds; 0: it is not
}

// TokenPutEntry makes a token valid. The same token again is harmless. A token with the ID of another
// one is refused.
type TokenPutEntry struct {
	TokenRequest

	Time int64 `json:"time"` // Unix seconds of the leader
}

// TokenRevokeEntry ends a token. A token that was revoked before stays as it is.
type TokenRevokeEntry struct {
	ID   string `json:"id"`
	Time int64  `json:"time"`
}
