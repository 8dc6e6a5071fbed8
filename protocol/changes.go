package protocol

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
