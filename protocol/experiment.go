package protocol

import "github.com/coppice-ldl/coppice/dataset"

// Product is a parameter of the content type of web pages that a coordinator makes: a client takes any other page for the
// answer of another server.
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

// ExperimentList is the answer to a list of experiments, the newest first.
type ExperimentList struct {
	Experiments []Experiment `json:"experiments"`
}

// ExperimentRequest submits the runs of a spec that no job of its experiment has or will have. The leader reads the spec.
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
	// Shared is true if all users may read the results of a new experiment, as in a SubmitRequest. An experiment that exists
	// stays private or shared.
	Shared bool `json:"shared,omitempty"`
}

// ExperimentData is what a cluster has of a dataset that is a file for its client.
type ExperimentData struct {
	Dataset string `json:"dataset,omitempty"` // the name of the dataset on the cluster
	Missing bool   `json:"missing,omitempty"` // true if the file does not exist, and the spec allows that
	// Manifest describes a dataset that is not imported. Only a check takes it.
	Manifest *dataset.Manifest `json:"manifest,omitempty"`
	Folds    *ExperimentFolds  `json:"folds,omitempty"` // of the file that the spec's key folds names
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
