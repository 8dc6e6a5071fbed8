package main

import (
	"io"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

type jobListCmd struct {
	State []string `placeholder:"STATES" help:"List only jobs in these states: queued, paused, running, done, failed, cancelled."`
	Sort  string   `default:"-submitted" placeholder:"KEY" help:"Order of the list: submitted, ended, name, state, algorithm, dataset, or a measure such as kl. A - before the word sorts in descending order, as in --sort=-ended. Jobs without the value come last."`
	Limit int      `default:"100" placeholder:"N" help:"List only the first N jobs. 0: all jobs."`

	serverFlags
}

// query checks the flags.
func (c *jobListCmd) query() (q protocol.JobQuery, err error) {
	if q.States, err = protocol.ParseJobStates(strings.Join(c.State, ",")); err != nil {
		return q, usagef("--state: %w", err)
	}
	q.Sort, q.Limit = c.Sort, c.Limit
	if err := q.Check(); err != nil {
		return q, usageError{err}
	}
	return q, nil
}

// Run implements `coppice job list`.
func (c *jobListCmd) Run(a *app) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	cl, err := c.connect(a)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := cl.ListJobs(a.ctx, q)
	if err != nil {
		return err
	}
	jobs := list.Jobs
	if jobs == nil {
		jobs = []protocol.JobInfo{}
	}
	if len(jobs) < list.Total {
		defer a.note("the first %s of %s, sorted by %s; --limit 0 lists all", count(len(jobs)), plural(list.Total, "job"), q.Sort)
	}
	return a.print(jobs, func(w io.Writer) {
		t := newTable(w, []string{"job", "name", "state", "done", "step", "K-L", "time", "ETA", "algorithm", "dataset", "submitted"}, 1, 4, 5, 6, 7, 8)
		for i := range jobs {
			t.AppendRow(jobRow(&jobs[i], time.Now()))
		}
		t.Render()
	})
}
