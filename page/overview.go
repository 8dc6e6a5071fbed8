package page

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/coppice-ldl/coppice/protocol"
)

// How many elements the lists of the overview have.
const (
	overviewRunning = 20
	overviewFailed  = 5
)

// overviewPage is what the first page shows of a cluster.
type overviewPage struct {
	Verdict     verdict
	Problems    []string
	Leader      string
	Workers     int
	Busy, Slots int
	Experiments protocol.ExperimentList
	Running     protocol.JobList
	Waiting     protocol.JobList // queued and paused
	Failed      protocol.JobList
	Trouble     string // why the lists are missing; empty: they are there
}

// Nothing reports whether the cluster has no job that runs, waits or has failed.
func (p *overviewPage) Nothing() bool {
	return p.Trouble == "" && p.Running.Total+p.Waiting.Total+p.Failed.Total+p.Experiments.Total == 0
}

// More returns how many running jobs are not listed.
func (p *overviewPage) More() int { return p.Running.Total - len(p.Running.Jobs) }

// overviewView shows what runs, what failed, and how the cluster is.
func overviewView(v *visit) (*view, error) {
	var c protocol.Cluster
	if err := v.get("/v1/cluster", nil, &c); err != nil {
		return nil, err
	}
	p := overviewPage{Verdict: survival(&c), Problems: problems(&c), Leader: c.Leader, Workers: len(c.Workers)}
	for i := range c.Workers {
		p.Busy += c.Workers[i].Busy
		p.Slots += c.Workers[i].Slots
	}
	for _, ask := range []struct {
		path  string
		query url.Values
		into  any
	}{
		{"/v1/experiments", url.Values{"state": {"running,queued,paused"}, "limit": {strconv.Itoa(overviewRunning)}},
			&p.Experiments},
		{"/v1/jobs", url.Values{"state": {"running"}, "limit": {strconv.Itoa(overviewRunning)}}, &p.Running},
		{"/v1/jobs", url.Values{"state": {"queued,paused"}, "limit": {strconv.Itoa(overviewFailed)}}, &p.Waiting},
		{"/v1/jobs", url.Values{"state": {"failed"}, "sort": {"-ended"}, "limit": {strconv.Itoa(overviewFailed)}},
			&p.Failed},
	} {
		// Without a leader the cluster still says how it is.
		if err := v.get(ask.path, ask.query, ask.into); err != nil {
			p.Trouble = asError(err).Text
			break
		}
	}
	return &view{Title: "Overview", Template: "overview", Data: &p}, nil
}

// problems says in sentences what is wrong with the coordinators and workers of a cluster.
func problems(c *protocol.Cluster) (all []string) {
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(c.Members) == 0 && c.Problem != "" {
		add("This coordinator: %s.", c.Problem)
	}
	lost := 0
	for i := range c.Members {
		m := &c.Members[i]
		lost = max(lost, m.Lost)
		switch state, detail := coordinatorState(m); state {
		case "unreachable":
			add("Coordinator %s does not answer: %s.", m.ID, detail)
		case "problem", "warning":
			add("Coordinator %s: %s.", m.ID, detail)
		}
	}
	if lost > 0 {
		add("No coordinator has %s that jobs or models need.", counted(lost, "blob"))
	}
	for _, q := range c.Quarantined {
		add("Worker %s is quarantined: %s.", q.Worker, q.Reason)
	}
	for _, l := range workerLines(c) {
		switch {
		case l.State == string(protocol.IdleQuarantined):
		case l.State != "alive" && l.Detail != "":
			add("Worker %s is %s: %s.", l.ID, l.State, l.Detail)
		case l.State != "alive":
			add("Worker %s is %s.", l.ID, l.State)
		case l.Slow():
			add("Worker %s is %s.", l.ID, l.Speed())
		}
	}
	return all
}
