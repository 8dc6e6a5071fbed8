package report

import (
	"github.com/coppice-ldl/coppice/experiment/result"
)

// mostNamed bounds the runs that a report names one by one; it counts the others.
const mostNamed = 100

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
