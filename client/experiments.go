package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
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
