package report

import (
	"github.com/coppice-ldl/coppice/experiment/result"
)

// mostNamed bounds the runs that a report names one by one; it counts the others.
const mostNamed = 100

// Runs counts the runs by their state, and names those without measures.
type Runs struct {
	All     int `json:"all"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Missing int `json:"missing"`
	Running int `json:"running"`
	// Failures are the first failed runs, and Gaps the first that are missing or running.
	Failures []Failure `json:"failures,omitempty"`
	Gaps     []string  `json:"gaps,omitempty"`
}

// Failure is a failed run with its error.
type Failure struct {
	Run       string `json:"run"`
	Error     string `json:"error"`
	Attempts  int    `json:"attempts,omitempty"`
	Command   string `json:"command,omitempty"`
	NoCommand string `json:"no_command,omitempty"`
}

// runsOf counts the runs. Without history, failures have no attempts and commands: these differ between two runs of one
// experiment.
func runsOf(t *result.Table, history bool) Runs {
	n := Runs{All: len(t.Runs)}
	for i := range t.Runs {
		c := &t.Runs[i]
		switch c.State {
		case result.Done:
			n.Done++
			continue
		case result.Failed:
			n.Failed++
			if len(n.Failures) < mostNamed {
				f := Failure{Run: t.RunName(c), Error: c.Error}
				if history {
					f.Attempts, f.Command, f.NoCommand = c.Attempts, c.Command, c.NoCommand
				}
				n.Failures = append(n.Failures, f)
			}
			continue
		case result.Missing:
			n.Missing++
		case result.Running:
			n.Running++
		}
		if len(n.Gaps) < mostNamed {
			n.Gaps = append(n.Gaps, t.RunName(c)+" ("+c.State+budgetOf(t, c)+")")
		}
	}
	return n
}

// budgetOf says the budget that a missing run was left out for, if its method has one.
func budgetOf(t *result.Table, c *result.Run) string {
	if b := t.Methods[c.Method].Budget; b != "" && c.State == result.Missing {
		return "; the budget is " + b
	}
	return ""
}

// Time is how long the done runs of a method took on a dataset, in seconds of computing.
type Time struct {
	Method  string `json:"method"`
	Dataset string `json:"dataset"`
	Runs    int    `json:"runs"`
	Total   number `json:"total_seconds"`
}

// timesOf adds up times by method and dataset.
func timesOf(t *result.Table) []Time {
	times := make([]Time, 0, len(t.Methods)*len(t.Datasets))
	for r := range t.Methods {
		for d := range t.Datasets {
			times = append(times, Time{Method: t.Methods[r].Name, Dataset: t.Datasets[d].Name})
		}
	}
	for i := range t.Runs {
		if c := &t.Runs[i]; c.State == result.Done {
			own := &times[c.Method*len(t.Datasets)+c.Dataset]
			own.Runs++
			own.Total += number(c.Seconds)
		}
	}
	return times
}
