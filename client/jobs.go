package client

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coppice-ldl/coppice/protocol"
)

// Jobs asks a cluster about jobs. A job is named by its id or its name.
type Jobs struct{ c *Client }

// Jobs returns the requests about jobs.
func (c *Client) Jobs() Jobs { return Jobs{c} }

// Submit queues a job. A submission that is sent again because its answer was lost makes
// no second job.
func (j Jobs) Submit(ctx context.Context, s protocol.Spec) (*protocol.JobInfo, error) {
	return j.SubmitRequest(ctx, protocol.SubmitRequest{Spec: s})
}

// SubmitRequest is Submit with more than a spec. An empty token is drawn. A request with
// the same token may be sent again at any time, even by another process. It is answered
// with the job that the first one made.
func (j Jobs) SubmitRequest(ctx context.Context, r protocol.SubmitRequest) (*protocol.JobInfo, error) {
	r.Token = cmp.Or(r.Token, rand.Text())
	return send[protocol.JobInfo](ctx, j.c, http.MethodPost, at("jobs"), r)
}

// All lists all jobs of a cluster in full, the oldest first.
func (j Jobs) All(ctx context.Context) ([]protocol.JobInfo, error) {
	list, err := j.List(ctx, protocol.JobQuery{Sort: "submitted", Full: true})
	return list.Jobs, err
}

// List lists the jobs that a query asks for.
func (j Jobs) List(ctx context.Context, q protocol.JobQuery) (*protocol.JobList, error) {
	return send[protocol.JobList](ctx, j.c, http.MethodGet, withQuery(at("jobs"), q.Params()), nil)
}

// withQuery returns a path with parameters.
func withQuery(path string, params []protocol.Param) string {
	if query := protocol.WriteQuery(params); query != "" {
		path += "?" + query
	}
	return path
}

// Get describes a job.
func (j Jobs) Get(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return send[protocol.JobInfo](ctx, j.c, http.MethodGet, at("jobs", job), nil)
}

// Curve returns the learning curve of a job.
func (j Jobs) Curve(ctx context.Context, job string) (*protocol.JobCurve, error) {
	return send[protocol.JobCurve](ctx, j.c, http.MethodGet, at("jobs", job, "curve"), nil)
}

// Cancel cancels a job. Once it returns, the job will have no model, even after a change
// of leader.
func (j Jobs) Cancel(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return j.change(ctx, job, "cancel")
}

// Pause pauses a job, which keeps its last commit.
func (j Jobs) Pause(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return j.change(ctx, job, "pause")
}

// Resume lets a paused job go on.
func (j Jobs) Resume(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return j.change(ctx, job, "resume")
}

// Share lets all users read the models and predictions of a job.
func (j Jobs) Share(ctx context.Context, job string) (*protocol.JobInfo, error) {
	return j.change(ctx, job, "share")
}

// change finds the job first. So a request that is sent again is about the same job, even
// if another job gets its name meanwhile.
func (j Jobs) change(ctx context.Context, job, what string) (*protocol.JobInfo, error) {
	now, err := j.Get(ctx, job)
	if err != nil {
		return nil, err
	}
	return send[protocol.JobInfo](ctx, j.c, http.MethodPost, at("jobs", strconv.FormatUint(now.ID, 10), what), nil)
}

// id returns the id of a job. A request that is sent again names the id, as in change.
func (j Jobs) id(ctx context.Context, job string) (uint64, error) {
	if id, err := strconv.ParseUint(job, 10, 64); err == nil { // no name has digits only
		return id, nil
	}
	now, err := j.Get(ctx, job)
	if err != nil {
		return 0, err
	}
	return now.ID, nil
}

// Delete deletes jobs that have ended. It deletes none if one of them
// has not ended or does not exist. The answer says so if a job was deleted before.
func (j Jobs) Delete(ctx context.Context, jobs ...string) (*protocol.Deletion, error) {
	var r protocol.DeleteRequest
	for _, job := range jobs {
		id, err := j.id(ctx, job)
		if err != nil {
			return nil, err
		}
		r.Jobs = append(r.Jobs, id)
	}
	return send[protocol.Deletion](ctx, j.c, http.MethodPost, at("jobs", "delete"), r)
}

// Prune deletes the jobs that ended before a time. If an answer is lost and the request
// sent again, the answer is about the last try.
func (j Jobs) Prune(ctx context.Context, r protocol.PruneRequest) (*protocol.Deletion, error) {
	return send[protocol.Deletion](ctx, j.c, http.MethodPost, at("jobs", "prune"), r)
}

// Watch calls f with the state of a job at each change, and about every second, until the job
// ends, and returns its last state. Once the cluster has told the state, Watch survives
// changes of leader and even the loss of all coordinators: it goes on until ctx is done, and
// calls Waiting meanwhile. What f sees never goes back, and is always about one job, even if
// another job gets its name. A job that does not exist is an error at once.
func (j Jobs) Watch(ctx context.Context, job string, f func(*protocol.JobInfo)) (last *protocol.JobInfo, err error) {
	k := &call{path: at("jobs", job, "changes")}
	err = follow(ctx, j.c, k, func(now *protocol.JobInfo) bool {
		switch {
		case last != nil && last.State.Final():
			return true
		case now == nil && last == nil:
			return false
		case now == nil:
			now = last
		case last != nil && !now.State.Final():
			// A state that is older than the last one is left out, but never the end of the job, since
			// nothing follows. Only one leader knows how far the present tasks are. If the next leader
			// knows of fewer steps, the last progress stays until it is passed.
			if now.Index < last.Index || now.Rounds < last.Rounds {
				return false
			}
			if last.Progress != nil && (now.Progress == nil || now.Progress.Step < last.Progress.Step) {
				now.Progress = last.Progress
			}
		}
		last, k.path = now, at("jobs", strconv.FormatUint(now.ID, 10), "changes") // another job may get the name
		f(now)
		return now.State.Final()
	})
	return last, err
}

// maxLine bounds a line of a stream of changes in bytes.
const maxLine = 64 << 20

// errEnded says why a stream is opened again.
var errEnded = errors.New("the coordinator has ended the stream of changes")

// follow reads the lines of a stream of changes until the stream ends and see has reported that
// the last line tells the end. It calls see with nil about every second while nothing changes. It opens the stream by
// the rules of all requests. Once a line has come, it opens the stream again until ctx is done,
// however long no coordinator answers.
func follow[T any](ctx context.Context, c *Client, k *call, see func(line *T) (end bool)) error {
	k.method, k.stream, k.timeout = http.MethodGet, true, c.watchSilence
	k.take = func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		end := false
		for lines.Scan() {
			k.told = true
			var line *T
			if len(lines.Bytes()) > 0 {
				line = new(T)
				if err := json.Unmarshal(lines.Bytes(), line); err != nil {
					return fmt.Errorf("a line of the stream of changes cannot be read: %w", err)
				}
			}
			end = see(line)
		}
		if end {
			return nil
		}
		return cmp.Or(lines.Err(), errEnded)
	}
	return c.do(ctx, k)
}

// Experiments asks a cluster about experiments.
type Experiments struct{ c *Client }

// Experiments returns the requests about experiments.
func (c *Client) Experiments() Experiments { return Experiments{c} }

// List lists all experiments and how far they are.
func (e Experiments) List(ctx context.Context) ([]protocol.Experiment, error) {
	return e.Choose(ctx, protocol.ExperimentQuery{})
}

// Choose lists the experiments that a query asks for, and how far they are.
func (e Experiments) Choose(ctx context.Context, q protocol.ExperimentQuery) ([]protocol.Experiment, error) {
	path := withQuery(at("experiments"), q.Params())
	list, err := send[protocol.ExperimentList](ctx, e.c, http.MethodGet, path, nil)
	return list.Experiments, err
}

// Show says how far an experiment is.
func (e Experiments) Show(ctx context.Context, name string) (*protocol.Experiment, error) {
	return send[protocol.Experiment](ctx, e.c, http.MethodGet, at("experiments", name), nil)
}

// Submit queues the runs of a spec that no job of its experiment has or will have, all of them or none. A submission
// that is sent again because its answer was lost makes no other jobs. If the spec or its data have mistakes, the error
// is an Error with Mistakes; if runs would be orphaned and r does not allow that, it is an Error with Plan.
func (e Experiments) Submit(ctx context.Context, r protocol.ExperimentRequest) (*protocol.ExperimentPlan, error) {
	r.Token = cmp.Or(r.Token, rand.Text())
	return e.plan(ctx, at("experiments"), r)
}

// Check says what Submit would do. Datasets need not be on the cluster: r may have their manifests.
func (e Experiments) Check(ctx context.Context, r protocol.ExperimentRequest) (*protocol.ExperimentPlan, error) {
	return e.plan(ctx, at("experiments")+"?check=true", r)
}

// Retry queues runs of the last submission of an experiment again: the runs that failed and, unless onlyFailed is true,
// the runs without a result that no job will do.
func (e Experiments) Retry(ctx context.Context, name string, onlyFailed bool) (*protocol.ExperimentPlan, error) {
	return e.plan(ctx, at("experiments", name, "retry"), protocol.ExperimentRetry{Token: rand.Text(), Failed: onlyFailed})
}

// plan sends a request for which the leader plans runs.
func (e Experiments) plan(ctx context.Context, path string, in any) (*protocol.ExperimentPlan, error) {
	v := new(protocol.ExperimentPlan)
	return v, e.c.do(ctx, &call{method: http.MethodPost, path: path, in: in, out: v, timeout: planTimeout, ponders: true})
}

// Delete deletes an experiment that has ended, with its jobs.
func (e Experiments) Delete(ctx context.Context, name string) (*protocol.Deletion, error) {
	return send[protocol.Deletion](ctx, e.c, http.MethodDelete, at("experiments", name), nil)
}

// Grid counts the runs of an experiment by method and dataset.
func (e Experiments) Grid(ctx context.Context, name string, q protocol.GridQuery) (*protocol.ExperimentGrid, error) {
	path := withQuery(at("experiments", name, "grid"), q.Params())
	g, err := send[protocol.ExperimentGrid](ctx, e.c, http.MethodGet, path, nil)
	if err == nil {
		err = g.Check()
	}
	return g, err
}

// Report returns the report of the runs that have ended. The keys of options are format, no_times, sample, all_tests
// and level; see GET /v1/experiments/{name}/report.
func (e Experiments) Report(ctx context.Context, name string, options url.Values) ([]byte, error) {
	return e.c.bytes(ctx, at("experiments", name, "report")+"?"+options.Encode())
}

// Cancel cancels the jobs of an experiment that have not ended. Runs that have ended keep their results.
func (e Experiments) Cancel(ctx context.Context, name string) (*protocol.ExperimentChange, error) {
	return e.change(ctx, name, "cancel")
}

// Share lets all users read the results of an experiment.
func (e Experiments) Share(ctx context.Context, name string) (*protocol.ExperimentChange, error) {
	return e.change(ctx, name, "share")
}

// Pause pauses the jobs of an experiment that have not ended. Runs that are being computed begin again after Resume.
func (e Experiments) Pause(ctx context.Context, name string) (*protocol.ExperimentChange, error) {
	return e.change(ctx, name, "pause")
}

// Resume lets the paused jobs of an experiment go on.
func (e Experiments) Resume(ctx context.Context, name string) (*protocol.ExperimentChange, error) {
	return e.change(ctx, name, "resume")
}

func (e Experiments) change(ctx context.Context, name, what string) (*protocol.ExperimentChange, error) {
	return send[protocol.ExperimentChange](ctx, e.c, http.MethodPost, at("experiments", name, what), nil)
}

// Outcomes calls take with the outcome of each run of a job that has ended. With records,
// the outcomes have the learning curves and predictions that the job keeps.
func (e Experiments) Outcomes(ctx context.Context, job uint64, records bool,
	take func(protocol.CellOutcome) error) error {
	query := "&records=" + strconv.FormatBool(records)
	return eachRun(ctx, e.c, at("jobs", strconv.FormatUint(job, 10), "runs"), query, 0, take,
		func(p *protocol.JobCells) ([]protocol.CellOutcome, int) {
			return p.Cells, p.Next
		})
}

// States calls take with how each run of a job has ended, from one run on and below
// another.
func (e Experiments) States(ctx context.Context, job uint64, from, until int,
	take func(protocol.CellState) error) error {
	query := "&until=" + strconv.Itoa(until)
	return eachRun(ctx, e.c, at("jobs", strconv.FormatUint(job, 10), "runs", "states"), query, from, take,
		func(p *protocol.JobCellStates) ([]protocol.CellState, int) {
			return p.States, p.Next
		})
}

// eachRun asks for pages of runs from one run on, and calls take with each run. split returns the runs of a page, and
// which run to ask for next.
func eachRun[P, R any](ctx context.Context, c *Client, path, query string, from int, take func(R) error,
	split func(*P) ([]R, int)) error {
	for {
		page, err := send[P](ctx, c, http.MethodGet, path+"?from="+strconv.Itoa(from)+query, nil)
		if err != nil {
			return err
		}
		runs, next := split(page)
		for _, run := range runs {
			if err := take(run); err != nil {
				return err
			}
		}
		if next <= from {
			return nil
		}
		from = next
	}
}

// Watch calls f with how far an experiment is at each change, and about every second, until all
// of its jobs have ended, and returns its last state. It goes on as Jobs.Watch does. With
// runs, f learns which runs have ended, each run at least once.
func (e Experiments) Watch(ctx context.Context, name string, runs bool,
	f func(*protocol.ExperimentLine)) (last *protocol.Experiment, err error) {
	k := &call{path: at("experiments", name, "changes") + "?runs=" + strconv.FormatBool(runs)}
	err = follow(ctx, e.c, k, func(x *protocol.ExperimentLine) bool {
		if x == nil && last == nil {
			return false
		}
		if x == nil {
			x = &protocol.ExperimentLine{Experiment: *last}
		}
		last = &x.Experiment
		f(x)
		return x.Ended()
	})
	return last, err
}
