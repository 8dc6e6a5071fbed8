package report

import (
	"fmt"

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
		budget := ""
		if b := t.Methods[c.Method].Budget; b != "" && c.State == result.Missing {
			budget = "; the budget is " + b
		}
		if len(n.Gaps) < mostNamed {
			n.Gaps = append(n.Gaps, t.RunName(c)+" ("+c.State+budget+")")
		}
	}
	return n
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

// addTimes adds the seconds of computing by row.
func (d *document) addTimes(s *Summary) {
	if s.Times == nil {
		return
	}
	d.add(heading("Times"))
	t := table{caption: "Computing time in seconds: the sum over all runs, and the mean of a run by dataset", header: []string{"method", "all runs"}}
	for _, set := range s.Datasets {
		t.header = append(t.header, set.Name)
	}
	for _, row := range s.listed() {
		l, total := line{cells: plain(s.title(row), "")}, number(0)
		for _, own := range s.Times[row*len(s.Datasets) : (row+1)*len(s.Datasets)] {
			total += own.Total
			l.cells = append(l.cells, cell{text: fixed(own.Total/number(own.Runs), 2)})
		}
		l.cells[1].text = fixed(total, 1)
		t.lines = append(t.lines, l)
	}
	d.addWide(t)
}

// addProblems names the runs without measures.
func (d *document) addProblems(c *Runs) {
	if c.Failed > 0 {
		var names list
		for _, f := range c.Failures {
			names = append(names, f.Run+": "+f.Error)
		}
		d.add(heading("Failed runs"), further(names, c.Failed))
	}
	if n := c.Missing + c.Running; n > 0 {
		d.add(heading("Missing and running runs"), further(c.Gaps, n))
	}
}

// further says how many of n are not in a list.
func further(names list, n int) list {
	if n > len(names) {
		return append(names, fmt.Sprintf("and %d more", n-len(names)))
	}
	return names
}
