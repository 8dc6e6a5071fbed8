package protocol

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

// ExperimentChange is the answer to a request that cancels, pauses or resumes an experiment.
type ExperimentChange struct {
	Experiment
	Changed []string `json:"changed"` // the names of the jobs that were changed
}
