package api

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/report"
	progress "github.com/coppice-ldl/coppice/experiment/state"
	experiments "github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// experimentHandlers answer requests about experiments.
type experimentHandlers struct {
	responder
	jobView
	results     *resultHandlers
	submissions *submissionHandlers
	jobs        *jobHandlers
	reporting   *places
	deciding    *places       // a large submission takes a core for seconds, and some hundred MiB of memory
	committing  chan struct{} // full while a submission is committed
}

// group is the jobs of an experiment, the newest first. The experiment is described only if that is needed.
type group struct {
	jobs      []*state.Job
	submitted int64 // Unix seconds, of the first submission
	described *protocol.Experiment
}

// list answers with experiments, the newest first.
func (h *experimentHandlers) list(r *http.Request) (any, error) {
	var q protocol.ExperimentQuery
	if err := readList(r, "a list of experiments", q.Params(), &q.ListQuery); err != nil {
		return nil, err
	}
	st := h.store.State()
	chosen, _ := choose(st.Jobs(), &protocol.JobQuery{Experiment: protocol.AnyExperiment})
	waits := h.running.Waits(st)
	of, names := make(map[string][]*state.Job), []string(nil)
	for _, j := range chosen {
		if of[j.Experiment] == nil {
			names = append(names, j.Experiment)
		}
		of[j.Experiment] = append(of[j.Experiment], j)
	}
	order, _ := q.Order("")
	all := make([]group, len(names))
	for i, name := range names {
		all[i] = group{jobs: of[name]}
		all[i].submitted = slices.MinFunc(of[name], func(a, b *state.Job) int {
			return cmp.Compare(a.Submitted,
				b.Submitted)
		}).Submitted
		if order == "state" || len(q.States) > 0 {
			all[i].described = h.progressOf(st, of[name], waits)
		}
	}
	some, total, next, err := choosePart(all, &q.ListQuery, "-newest", func(g *group) protocol.Element {
		j, is := g.jobs[0], ""
		if g.described != nil {
			is = string(g.described.State)
		}
		return protocol.Element{Name: j.Experiment, Chosen: q.Has(j.Experiment, j.Owner, g.submitted) &&
			(len(q.States) == 0 || slices.Contains(q.States, g.described.State)), Keys: map[string]any{
			"newest": float64(j.ID), "submitted": float64(g.submitted), "name": j.Experiment, "state": is}}
	})
	if err != nil {
		return nil, err
	}
	list := protocol.ExperimentList{Experiments: []protocol.Experiment{}, Total: total, Next: next}
	for _, g := range some {
		if g.described == nil {
			g.described = h.progressOf(st, g.jobs, waits)
		}
		list.Experiments = append(list.Experiments, *g.described)
	}
	return list, nil
}

// get answers with one experiment.
func (h *experimentHandlers) get(r *http.Request) (any, error) {
	return h.describeOne(r.PathValue("name"))
}

// describeOne describes an experiment.
func (h *experimentHandlers) describeOne(name string) (*protocol.Experiment, error) {
	st := h.store.State()
	chosen, err := jobsOf(st, name)
	if err != nil {
		return nil, err
	}
	return h.progressOf(st, chosen, h.running.Waits(st)), nil
}

// jobsOf returns the jobs of an experiment, the newest first. There is at least one.
func jobsOf(st *state.State, name string) ([]*state.Job, error) {
	if err := protocol.CheckName(name); err != nil {
		return nil, bad{fmt.Errorf("experiment %.80q: %w", name, err)}
	}
	chosen, _ := choose(st.Jobs(), &protocol.JobQuery{Experiment: name})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: there is no experiment %q", state.ErrNotFound, name)
	}
	return chosen, nil
}

// own returns the jobs of an experiment that the caller of a request may change.
func (h *experimentHandlers) own(r *http.Request, name string) ([]*state.Job, error) {
	list, err := jobsOf(h.store.State(), name)
	if err != nil {
		return nil, err
	}
	return list, access.Own(r.Context(), "experiment "+name, list[0].Owner)
}

// alone waits until no submission is committed. None is until end is called.
func (h *experimentHandlers) alone(ctx context.Context) (end func(), err error) {
	select {
	case h.committing <- struct{}{}:
		return func() { <-h.committing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// changeAll commits an entry about each job of an experiment that a request changes. A request that is sent again
// changes the rest.
func (h *experimentHandlers) changeAll(c change) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		name := r.PathValue("name")
		list, err := h.own(r, name)
		if err != nil {
			return nil, err
		}
		changed := []string{}
		for _, j := range list {
			if !c.from(j.State) {
				continue
			}
			_, _, err := commit(r, h.store, c.kind, h.entry(j.ID))
			if now := h.store.State().Job(j.ID); err != nil && (now == nil || now.State.Final()) {
				continue // it has ended meanwhile
			}
			if err != nil {
				return nil, err
			}
			changed = append(changed, j.Name)
		}
		x, err := h.describeOne(name)
		if err != nil {
			return nil, err
		}
		return protocol.ExperimentChange{Experiment: *x, Changed: changed}, nil
	}
}

// share lets all users read the jobs of an experiment. Later jobs of the experiment are shared, too.
func (h *experimentHandlers) share(r *http.Request) (any, error) {
	name := r.PathValue("name")
	end, err := h.alone(r.Context()) // a submission that is committed would stay private
	if err != nil {
		return nil, err
	}
	defer end()
	list, err := h.own(r, name)
	if err != nil {
		return nil, err
	}
	ids, names := []uint64(nil), []string{}
	for _, j := range list {
		if j.Private {
			ids, names = append(ids, j.ID), append(names, j.Name)
		}
	}
	for len(ids) > 0 {
		some := ids[:min(len(ids), protocol.MaxDelete)]
		if _, _, err := commit(r, h.store, protocol.EntryShare,
			protocol.ShareEntry{Jobs: some, Owner: list[0].Owner}); err != nil {
			return nil, err
		}
		ids = ids[len(some):]
	}
	x, err := h.describeOne(name)
	if err != nil {
		return nil, err
	}
	return protocol.ExperimentChange{Experiment: *x, Changed: names}, nil
}

// delete deletes an experiment that has ended, with its jobs: all of them or none.
func (h *experimentHandlers) delete(r *http.Request) (any, error) {
	end, err := h.alone(r.Context()) // a submission that is committed counts on the runs of the experiment
	if err != nil {
		return nil, err
	}
	defer end()
	st := h.store.State()
	list, err := jobsOf(st, r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	var ids []uint64
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	if len(ids) > protocol.MaxDelete {
		return nil, fmt.Errorf("%w: experiment %s has %d jobs, and one request deletes at most %d; delete some of its jobs "+
			"first", errBad, r.PathValue("name"), len(ids), protocol.MaxDelete)
	}
	slices.Sort(ids)
	return h.jobs.deleteAll(r, st, ids)
}

// progressOf describes the experiment of some jobs. Its runs are counted only if a job is running: otherwise nothing is
// estimated from them.
func (h *experimentHandlers) progressOf(st *state.State, of []*state.Job,
	waits map[uint64]jobs.Wait) *protocol.Experiment {
	running := slices.ContainsFunc(of, func(j *state.Job) bool { return j.State == protocol.Running })
	var list []progress.Job
	for _, j := range of {
		info := h.infoWaiting(j, st.Index(), waits)
		var live dispatch.Live
		if j.State == protocol.Running {
			live, _ = h.running.Live(j.ID)
		}
		var runs []progress.Runs
		if running {
			runs = runsOf(j, st.Dataset(j.Dataset), live, time.Now())
		}
		list = append(list, progress.Job{JobInfo: &info, Runs: runs})
	}
	return progress.Of(list)
}

// runsOf counts the runs of a job by method; of is the dataset that has the name of the job's, or nil. Runs that are
// being computed are known only to the leader that drives the job. If the spec of the job cannot be read, there are no
// runs. The time grows with the number of methods and of running runs, not of runs.
func runsOf(j *state.Job, of *protocol.Dataset, live dispatch.Live, now time.Time) []progress.Runs {
	spec, err := experiment.DecodeJobSpec(j.Spec)
	c := j.Job.Cells
	if err != nil || c == nil || len(spec.Methods) != len(c.Rows) {
		return nil
	}
	size := 0.0
	if of != nil && of.Digest == j.Job.Dataset { // otherwise the dataset was deleted, and its size is not known
		size = float64(of.Manifest.Rows) * float64(of.Manifest.Features)
	}
	runs, ended := make([]progress.Runs, len(c.Rows)), j.Methods()
	for i := range runs {
		r := &runs[i]
		*r = progress.Runs{Method: spec.Methods[i], Dataset: spec.Dataset, Size: size, All: c.RowCount(i)}
		if ended != nil {
			r.Ended, r.Timed, r.Seconds = int(ended[i].Ended), int(ended[i].Timed), float64(ended[i].Compute)/1e9
		}
		if j.State == protocol.Done {
			r.Ended = r.All
		}
	}
	for _, task := range live.Running {
		if cell, ok := c.At(task.Task); ok {
			r := &runs[cell.Row]
			r.Running = append(r.Running, now.Sub(task.Since).Seconds())
		}
	}
	return runs
}

// writeReport answers with the report of an experiment, of the runs that have ended. Notes about the results come first
// in it.
func (h *experimentHandlers) writeReport(w http.ResponseWriter, r *http.Request) {
	text, kind, err := h.makeReport(r)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text) // an error has no reader any more
}

func (h *experimentHandlers) makeReport(r *http.Request) (text []byte, kind string, err error) {
	q := protocol.ReportQuery{Format: "table"}
	if err := protocol.ReadQuery(r.URL.Query(), "a report", q.Params()); err != nil {
		return nil, "", bad{err}
	}
	format, o := q.Format, report.Options{NoTimes: q.NoTimes, Sample: q.Sample, AllTests: q.AllTests, Level: q.Level}
	list, err := jobsOf(h.store.State(), r.PathValue("name"))
	if err != nil {
		return nil, "", err
	}
	if err := readExperiment(r.Context(), r.PathValue("name"), list); err != nil {
		return nil, "", err
	}
	// Wrong options are refused before the runs are read, which takes time.
	if err := report.Check(format, o); err != nil {
		return nil, "", bad{err}
	}
	leave, err := h.reporting.enter(r.Context())
	if err != nil {
		return nil, "", err
	}
	defer leave()
	e, err := experiments.Read(r.Context(), h, r.PathValue("name"))
	if err != nil {
		return nil, "", err
	}
	for _, j := range e.Jobs { // they may be others than before
		if err := access.Read(r.Context(), "experiment", e.Name, j.Ownership); err != nil {
			return nil, "", err
		}
	}
	l, err := e.Layout(r.Context())
	if err != nil {
		return nil, "", err
	}
	runs := 0
	for _, j := range e.Jobs {
		runs += j.Job.Cells.Count()
	}
	if err := report.CheckSize(runs, l.Record.Any()); err != nil {
		return nil, "", bad{err}
	}
	t, leftOut, err := e.Table(r.Context(), l)
	if err != nil {
		return nil, "", err
	}
	st := h.store.State()
	// The leader does not know the folder of the spec, in which files of folds are.
	l.AddCommands(t, experiment.Sources{File: func(string) string { return "" }, Sets: e.Sets(t, func(name string) string {
		if d := st.Dataset(name); d != nil {
			return d.Digest
		}
		return ""
	})})
	o.Notes = experiment.LeftOutNote(leftOut)
	var b bytes.Buffer
	if err := report.Write(&b, t, format, o); errors.Is(err, report.ErrOptions) {
		return nil, "", bad{err}
	} else if err != nil {
		return nil, "", err
	}
	return b.Bytes(), report.ContentType(format), nil
}

// ExperimentJobs implements submission.Source.
func (h *experimentHandlers) ExperimentJobs(_ context.Context, name string) (list []protocol.JobInfo, err error) {
	st := h.store.State()
	chosen, _ := choose(st.Jobs(), &protocol.JobQuery{Experiment: name})
	for _, j := range chosen {
		info := j.Info()
		info.Index = st.Index()
		list = append(list, info)
	}
	return list, nil
}

// Outcomes implements submission.Source.
func (h *experimentHandlers) Outcomes(ctx context.Context, job uint64, records bool,
	take func(protocol.CellOutcome) error) error {
	return h.eachPage(job, func(asked *runRange) (next int, err error) {
		page := &outcomePage{records: records}
		if next, err = h.results.fill(ctx, page, asked); err != nil {
			return 0, err
		}
		return next, each(page.Cells, take)
	})
}

// RunStates implements submission.Source.
func (h *experimentHandlers) RunStates(ctx context.Context, job uint64, take func(protocol.CellState) error) error {
	return h.eachPage(job, func(asked *runRange) (next int, err error) {
		page, err := h.results.statesOf(ctx, asked)
		if err != nil {
			return 0, err
		}
		return page.Next, each(page.States, take)
	})
}

// eachPage calls page for the runs of a job from the first on. page returns the run to ask for next; 0: there is none.
func (h *experimentHandlers) eachPage(job uint64, page func(*runRange) (next int, err error)) error {
	for asked := (runRange{}); ; {
		if asked.job = h.store.State().Job(job); asked.job == nil {
			return fmt.Errorf("%w: job %d was deleted", state.ErrNotFound, job)
		}
		asked.until = asked.job.Job.Cells.Count()
		next, err := page(&asked)
		if err != nil || next <= asked.from {
			return err
		}
		asked.from = next
	}
}

// each calls take with each element of a list.
func each[T any](list []T, take func(T) error) error {
	for _, v := range list {
		if err := take(v); err != nil {
			return err
		}
	}
	return nil
}

// ReadBlob implements submission.Source.
func (h *experimentHandlers) ReadBlob(ctx context.Context, digest string) ([]byte, error) {
	return h.results.blobs.Get(ctx, digest)
}
