package protocol

import "fmt"

// ExperimentGrid counts the runs of an experiment by method and dataset.
type ExperimentGrid struct {
	Name     string    `json:"name"`
	Runs     RunCounts `json:"runs"`     // of all methods
	Datasets []string  `json:"datasets"` // by name, in the order of the spec
	// Methods are the methods that the query asks for, in the order of the spec. Total is how many there are.
	Methods []GridMethod `json:"methods"`
	Total   int          `json:"total"`
	// Next is GridQuery.From of the methods that follow; 0: none follow.
	Next  int    `json:"next,omitempty"`
	Index uint64 `json:"index"` // of the log entry after which the state was read
}

// GridMethod is a method of a grid.
type GridMethod struct {
	Name string        `json:"name"`
	Runs []GridElement `json:"runs"` // by dataset
}

// GridElement is the runs of a method on a dataset.
type GridElement struct {
	RunCounts
	// Failures are some of the runs that failed: at most MaxElementFailures, and at most MaxGridFailures in a grid.
	Failures []FailedRun `json:"failures,omitempty"`
}

// How many failed runs a grid describes, in an element and in all.
const (
	MaxElementFailures = 3
	MaxGridFailures    = 60
)

// RunCounts counts runs by state. All others wait.
type RunCounts struct {
	All     int `json:"all"`
	Done    int `json:"done,omitempty"` // they ended well
	Failed  int `json:"failed,omitempty"`
	Running int `json:"running,omitempty"` // they are computed now, as the leader knows
	NotRun  int `json:"not_run,omitempty"` // their budget is used up
}

// Plus returns the sums of two counts.
func (n RunCounts) Plus(m RunCounts) RunCounts {
	return RunCounts{All: n.All + m.All, Done: n.Done + m.Done, Failed: n.Failed + m.Failed,
		Running: n.Running + m.Running, NotRun: n.NotRun + m.NotRun}
}

// FailedRun is a run that failed.
type FailedRun struct {
	Repeat int `json:"repeat,omitempty"`
	Fold   int `json:"fold"`
	// Error says why. It is empty if that cannot be read now.
	Error string `json:"error,omitempty"`
	// Job and Task are the number of the job and the number of the run in it. Job is 0 if the run is of no job, such as a
	// run of a method that does not go with the dataset.
	Job  uint64 `json:"job,omitempty"`
	Task int    `json:"task,omitempty"`
}

// Check returns an error if a method does not have an element for each dataset.
func (g *ExperimentGrid) Check() error {
	for i := range g.Methods {
		if n := len(g.Methods[i].Runs); n != len(g.Datasets) {
			return fmt.Errorf("the grid of experiment %.80q has %d elements of the method %.80q, want %d", g.Name, n,
				g.Methods[i].Name, len(g.Datasets))
		}
	}
	return nil
}

// Part returns the grid with the methods that a query asks for.
func (g ExperimentGrid) Part(q GridQuery) ExperimentGrid {
	from := min(q.From, len(g.Methods))
	until := len(g.Methods)
	if q.Limit > 0 && q.Limit < until-from {
		until = from + q.Limit
		g.Next = until
	}
	g.Methods = g.Methods[from:until:until]
	return g
}
