package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	progress "github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// experiments answers with all experiments, the newest first.
func (h *jobHandlers) experiments(*http.Request) (any, error) {
	st := h.store.State()
	chosen, _ := choose(st.Jobs(), &protocol.JobQuery{Experiment: protocol.AnyExperiment})
	waits := h.running.Waits(st)
	of, names := make(map[string][]progress.Job), []string(nil)
	for _, j := range chosen {
		if of[j.Experiment] == nil {
			names = append(names, j.Experiment)
		}
		of[j.Experiment] = append(of[j.Experiment], h.experimentJob(st, j, waits))
	}
	list := protocol.ExperimentList{Experiments: []protocol.Experiment{}}
	for _, name := range names {
		list.Experiments = append(list.Experiments, *progress.Of(of[name]))
	}
	return list, nil
}

// experiment answers with one experiment.
func (h *jobHandlers) experiment(r *http.Request) (any, error) {
	return h.experimentOf(r.PathValue("name"))
}

// experimentOf describes an experiment.
func (h *jobHandlers) experimentOf(name string) (*protocol.Experiment, error) {
	st := h.store.State()
	chosen, err := jobsOf(st, name)
	if err != nil {
		return nil, err
	}
	waits, list := h.running.Waits(st), []progress.Job(nil)
	for _, j := range chosen {
		list = append(list, h.experimentJob(st, j, waits))
	}
	return progress.Of(list), nil
}

// jobsOf returns the jobs of an experiment, the newest first. There is at least one.
func jobsOf(st *state.State, name string) ([]*state.Job, error) {
	if err := protocol.CheckName(name); err != nil {
		return nil, bad{fmt.Errorf("experiment %.80q: %w", name, err)}
	}
	chosen, _ := choose(st.Jobs(), &protocol.JobQuery{Experiment: name})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("experiment %s %w", name, state.ErrNotFound)
	}
	return chosen, nil
}

// changeExperiment commits an entry about each job of an experiment that a request changes. A request that is sent again
// changes the rest.
func (h *jobHandlers) changeExperiment(c change) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		name := r.PathValue("name")
		list, err := jobsOf(h.store.State(), name)
		if err != nil {
			return nil, err
		}
		changed := []string{}
		for _, j := range list {
			if !c.from(j.State) {
				continue
			}
			_, _, err := commit(r, h.store, c.kind, c.entry(j.ID, time.Now()))
			if now := h.store.State().Job(j.ID); err != nil && (now == nil || now.State.Final()) {
				continue // it has ended meanwhile
			}
			if err != nil {
				return nil, err
			}
			changed = append(changed, j.Name)
		}
		x, err := h.experimentOf(name)
		if err != nil {
			return nil, err
		}
		return protocol.ExperimentChange{Experiment: *x, Changed: changed}, nil
	}
}

// experimentJob describes a job of an experiment and its runs.
func (h *jobHandlers) experimentJob(st *state.State, j *state.Job, waits map[uint64]jobs.Wait) progress.Job {
	info := h.infoWaiting(j, st.Index(), waits)
	var live dispatch.Live
	if j.State == protocol.Running {
		live, _ = h.running.Live(j.ID)
	}
	return progress.Job{JobInfo: &info, Runs: runsOf(j, live, time.Now())}
}

// runsOf counts the runs of a job by method. Runs that are being computed are known only to the leader that drives the
// job. If the spec of the job cannot be read, there are no runs.
func runsOf(j *state.Job, live dispatch.Live, now time.Time) []progress.Runs {
	spec, err := experiment.DecodeJobSpec(j.Spec)
	c := j.Job.Cells
	if err != nil || c == nil || len(spec.Rows) != len(c.Rows) {
		return nil
	}
	runs := make([]progress.Runs, len(c.Rows))
	for i := range runs {
		r := &c.Rows[i]
		runs[i] = progress.Runs{Method: spec.Rows[i], Dataset: spec.Dataset, Timed: r.Ended, Seconds: r.EndedSeconds, Size: sizeOf(j.Manifest)}
	}
	cells := c.All()
	for _, cell := range cells {
		runs[cell.Row].All++
	}
	if j.State == protocol.Done {
		for i := range runs {
			runs[i].Ended = runs[i].All
		}
		return runs
	}
	for task := range j.RecordedFrom(j.Round+1, 0) {
		if int(task.Task) >= len(cells) {
			continue
		}
		r := &runs[cells[task.Task].Row]
		r.Ended++
		if task.WasRun() {
			r.Timed, r.Seconds = r.Timed+1, r.Seconds+float64(task.Compute)/1e9
		}
	}
	for _, task := range live.Running {
		if task.Task < len(cells) {
			r := &runs[cells[task.Task].Row]
			r.Running = append(r.Running, now.Sub(task.Since).Seconds())
		}
	}
	return runs
}

// sizeOf returns samples times features of a dataset; 0 if it is not known.
func sizeOf(m *dataset.Manifest) float64 {
	if m == nil {
		return 0
	}
	return float64(m.Rows) * float64(m.Features)
}
