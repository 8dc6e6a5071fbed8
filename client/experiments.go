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

// Experiments asks a cluster about experiments.
type Experiments struct{ client *Client }

// Experiments returns the requests about experiments.
func (c *Client) Experiments() Experiments { return Experiments{c} }

// List lists the experiments and how far they are.
func (e Experiments) List(ctx context.Context) ([]protocol.Experiment, error) {
	var v protocol.ExperimentList
	err := e.client.json(ctx, http.MethodGet, at("experiments"), nil, &v)
	return v.Experiments, err
}

// Show says how far an experiment is.
func (e Experiments) Show(ctx context.Context, name string) (*protocol.Experiment, error) {
	var v protocol.Experiment
	return &v, e.client.json(ctx, http.MethodGet, at("experiments", name), nil, &v)
}

// Submit queues the runs of a spec that no job of its experiment has or will have, all of them or none. A submission that is
// sent again because its answer was lost makes no other jobs. If the spec or its data have mistakes, the error is an Error
// with Mistakes; if runs would be orphaned and r does not allow that, it is an Error with Plan.
func (e Experiments) Submit(ctx context.Context, r protocol.ExperimentRequest) (*protocol.ExperimentPlan, error) {
	r.Token = cmp.Or(r.Token, rand.Text())
	var v protocol.ExperimentPlan
	return &v, e.plan(ctx, at("experiments"), r, &v)
}

// Check says what Submit would do. Datasets need not be on the cluster: r may have their manifests.
func (e Experiments) Check(ctx context.Context, r protocol.ExperimentRequest) (*protocol.ExperimentPlan, error) {
	var v protocol.ExperimentPlan
	return &v, e.plan(ctx, at("experiments")+"?check=true", r, &v)
}

// Retry queues runs of the last submission of an experiment again: the runs that failed and, unless onlyFailed is true, the
// runs without a result that no job will do.
func (e Experiments) Retry(ctx context.Context, name string, onlyFailed bool) (*protocol.ExperimentPlan, error) {
	var v protocol.ExperimentPlan
	return &v, e.plan(ctx, at("experiments", name, "retry"), protocol.ExperimentRetry{Token: rand.Text(), Failed: onlyFailed}, &v)
}

// plan sends a request for which the leader plans runs.
func (e Experiments) plan(ctx context.Context, path string, in, out any) error {
	return e.client.do(ctx, &call{method: http.MethodPost, path: path, in: in, out: out, timeout: planTimeout, ponders: true})
}

// Delete deletes an experiment that has ended, with its jobs.
func (e Experiments) Delete(ctx context.Context, name string) (*protocol.Deletion, error) {
	var v protocol.Deletion
	return &v, e.client.json(ctx, http.MethodDelete, at("experiments", name), nil, &v)
}

// Report returns the report of the runs that have ended. The keys of options are format, no_times, sample, all_tests and
// level; see GET /v1/experiments/{name}/report.
func (e Experiments) Report(ctx context.Context, name string, options url.Values) ([]byte, error) {
	return e.client.bytes(ctx, at("experiments", name, "report")+"?"+options.Encode())
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
	var v protocol.ExperimentChange
	return &v, e.client.json(ctx, http.MethodPost, at("experiments", name, what), nil, &v)
}

// Outcomes calls take with the outcome of each run of a job that has ended. With records,
// the outcomes have the learning curves and predictions that the job keeps.
func (e Experiments) Outcomes(ctx context.Context, job uint64, records bool, take func(protocol.CellOutcome) error) error {
	for from := 0; ; {
		var page protocol.JobCells
		if err := e.client.json(ctx, http.MethodGet, at("jobs", strconv.FormatUint(job, 10), "runs")+"?from="+strconv.Itoa(from)+"&records="+strconv.FormatBool(records), nil, &page); err != nil {
			return err
		}
		for _, run := range page.Cells {
			if err := take(run); err != nil {
				return err
			}
		}
		if page.Next <= from {
			return nil
		}
		from = page.Next
	}
}

// States calls take with how each run of a job has ended, from one run on and below
// another.
func (e Experiments) States(ctx context.Context, job uint64, from, until int, take func(protocol.CellState) error) error {
	for {
		var page protocol.JobCellStates
		if err := e.client.json(ctx, http.MethodGet, at("jobs", strconv.FormatUint(job, 10), "runs", "states")+fmt.Sprintf("?from=%d&until=%d", from, until), nil, &page); err != nil {
			return err
		}
		for _, run := range page.States {
			if err := take(run); err != nil {
				return err
			}
		}
		if page.Next <= from {
			return nil
		}
		from = page.Next
	}
}

// maxLine bounds a line of a stream of changes in bytes.
const maxLine = 64 << 20

// errEnded says why a stream is opened again.
var errEnded = errors.New("the coordinator has ended the stream of changes")

// follow reads the lines of a stream of changes until the stream ends and see has reported that
// the last line tells the end. It calls see with nil about every second while nothing changes. It opens the stream by the
// rules of all requests. Once a line has come, it opens the stream again until ctx is done,
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

// Watch calls f with the state of a job at each change, and about every second, until the job
// ends, and returns its last state. Once the cluster has told the state, Watch survives
// changes of leader and even the loss of all coordinators: it goes on until ctx is done, and
// calls Waiting meanwhile. What f sees never goes back, and is always about one job, even if
// another job gets its name. A job that does not exist is an error at once.
func (c *Client) Watch(ctx context.Context, job string, f func(*protocol.JobInfo)) (last *protocol.JobInfo, err error) {
	k := &call{path: at("jobs", job, "changes")}
	err = follow(ctx, c, k, func(j *protocol.JobInfo) bool {
		switch {
		case last != nil && last.State.Final():
			return true
		case j == nil && last == nil:
			return false
		case j == nil:
			j = last
		case last != nil && !j.State.Final():
			// A state that is older than the last one is left out, but never the end of the job, since
			// nothing follows. Only one leader knows how far the present tasks are. If the next leader
			// knows of fewer steps, the last progress stays until it is passed.
			if j.Index < last.Index || j.Rounds < last.Rounds {
				return false
			}
			if last.Progress != nil && (j.Progress == nil || j.Progress.Step < last.Progress.Step) {
				j.Progress = last.Progress
			}
		}
		last, k.path = j, at("jobs", strconv.FormatUint(j.ID, 10), "changes") // another job may get the name
		f(j)
		return j.State.Final()
	})
	return last, err
}

// Watch calls f with how far an experiment is at each change, and about every second, until all
// of its jobs have ended, and returns its last state. It goes on as Client.Watch does. With
// runs, f learns which runs have ended, each run at least once.
func (e Experiments) Watch(ctx context.Context, name string, runs bool, f func(*protocol.ExperimentLine)) (last *protocol.Experiment, err error) {
	k := &call{path: at("experiments", name, "changes") + "?runs=" + strconv.FormatBool(runs)}
	err = follow(ctx, e.client, k, func(x *protocol.ExperimentLine) bool {
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
