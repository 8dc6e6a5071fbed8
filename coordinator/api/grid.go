package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/state"
	experiments "github.com/coppice-ldl/coppice/experiment/submission"
	"github.com/coppice-ldl/coppice/protocol"
)

// gridHandlers answer with the grids of experiments. They keep what the grids of a submission have in common, and how
// the runs of each job have ended, so that an answer reads no outcome, but for the reasons of some failed runs.
type gridHandlers struct {
	jobView
	results  *resultHandlers
	source   experiments.Source
	building *places
	most     int // runs that known may have, unless one grid alone has more

	mu      sync.Mutex
	known   map[string]*knownGrid // by name of the experiment
	used    uint64                // grows with each use of a known grid
	reasons map[failedRun]string  // of failed runs
}

// The most that gridHandlers keep. A run takes some ten bytes.
const (
	maxKnownRuns = 4_000_000
	maxReasons   = 10_000
)

// knownGrid is what is known of the grid of an experiment. It is not changed.
type knownGrid struct {
	*experiments.Grid
	outline string
	ends    map[uint64]knownEnds // by job
	used    uint64               // gridHandlers.used of the last use
}

// knownEnds says how the runs of a record of a job have ended.
type knownEnds struct {
	of *state.Job
	by []experiments.End // by task
}

type failedRun struct {
	job  uint64
	task int
}

// get answers with the grid of an experiment.
func (h *gridHandlers) get(r *http.Request) (any, error) {
	var q protocol.GridQuery
	if err := protocol.ReadQuery(r.URL.Query(), "a grid", q.Params()); err != nil {
		return nil, bad{err}
	}
	ctx, name, st := r.Context(), r.PathValue("name"), h.store.State()
	of, err := jobsOf(st, name)
	if err != nil {
		return nil, err
	}
	k, err := h.upToDate(ctx, name, of)
	if err != nil {
		return nil, err
	}
	g := k.Counted(q, func(job uint64) experiments.Ends {
		known := k.ends[job]
		if known.of == nil { // it is new
			return experiments.Ends{}
		}
		ends := experiments.Ends{By: known.by, Live: !known.of.State.Final()}
		if known.of.State == protocol.Running {
			live, _ := h.running.Live(job)
			for _, task := range live.Running {
				ends.Running = append(ends.Running, task.Task)
			}
		}
		return ends
	}, func(job uint64, task int) string { return h.reason(ctx, k.ends[job].of, task) })
	g.Index = st.Index()
	return g, ctx.Err()
}

// upToDate returns the grid of the jobs of an experiment, the newest first, as they are. What may take long is done
// once for all requests.
func (h *gridHandlers) upToDate(ctx context.Context, name string, of []*state.Job) (*knownGrid, error) {
	k := h.find(name)
	if !k.isOf(of) || slices.ContainsFunc(of, func(j *state.Job) bool {
		return j.State == protocol.Done && k.ends[j.ID].of != j // perhaps its outcomes must be read
	}) {
		leave, err := h.building.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		if k = h.find(name); !k.isOf(of) {
			if k, err = h.build(ctx, name, of); err != nil {
				return nil, err
			}
		}
	}
	next := &knownGrid{Grid: k.Grid, outline: k.outline, ends: maps.Clone(k.ends)}
	for _, j := range of {
		if j.Job.Cells == nil || next.ends[j.ID].of == j {
			continue
		}
		by, err := h.endsOf(ctx, j, next.ends[j.ID].by)
		if err != nil {
			return nil, err
		}
		next.ends[j.ID] = knownEnds{j, by}
	}
	h.remember(name, next)
	return next, nil
}

// isOf reports whether the grid is of these jobs of an experiment and of its newest outline. k may be nil.
func (k *knownGrid) isOf(of []*state.Job) bool {
	return k != nil && k.outline == of[0].Outline && len(k.ends) == len(of) &&
		!slices.ContainsFunc(of, func(j *state.Job) bool { _, has := k.ends[j.ID]; return !has })
}

// find returns what is known of the grid of an experiment, or nil.
func (h *gridHandlers) find(name string) *knownGrid {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known[name]
}

// remember keeps what is known of a grid. If there is too much, it drops the grids that were not used for longest.
func (h *gridHandlers) remember(name string, k *knownGrid) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known = make(map[string]*knownGrid)
	}
	h.used++
	k.used, h.known[name] = h.used, k
	runs := 0
	for _, other := range h.known {
		runs += other.Size()
	}
	for runs > h.most && len(h.known) > 1 {
		oldest := name
		for other, has := range h.known {
			if has.used < h.known[oldest].used {
				oldest = other
			}
		}
		runs -= h.known[oldest].Size()
		delete(h.known, oldest)
	}
}

// build reads the outline of an experiment.
func (h *gridHandlers) build(ctx context.Context, name string, of []*state.Job) (*knownGrid, error) {
	e, err := experiments.Read(ctx, h.source, name)
	if err != nil {
		return nil, err
	}
	grid, err := e.Grid(ctx)
	if err != nil {
		return nil, err
	}
	k := &knownGrid{Grid: grid, outline: of[0].Outline, ends: make(map[uint64]knownEnds)}
	for _, j := range of {
		k.ends[j.ID] = knownEnds{}
	}
	return k, nil
}

// endsOf returns how the runs of a job have ended. before says how the runs of an earlier record have.
func (h *gridHandlers) endsOf(ctx context.Context, j *state.Job, before []experiments.End) ([]experiments.End, error) {
	by := make([]experiments.End, j.Job.Cells.Count())
	copy(by, before)
	known := make([]bool, len(by))
	for task := range by {
		known[task] = by[task] != experiments.Open
	}
	for more := true; more; {
		var err error
		more, err = h.results.newStates(ctx, j, known, func(c protocol.CellState) {
			known[c.Task], by[c.Task] = true, experiments.Well
			switch {
			case c.NotRun:
				by[c.Task] = experiments.LeftOut
			case c.Failed:
				by[c.Task] = experiments.Failed
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return by, nil
}

// reason returns why a run failed, or an empty text if its outcome cannot be read now.
func (h *gridHandlers) reason(ctx context.Context, j *state.Job, task int) string {
	run := failedRun{j.ID, task}
	h.mu.Lock()
	why, ok := h.reasons[run]
	h.mu.Unlock()
	if ok {
		return why
	}
	page, err := h.results.statesOf(ctx, &runRange{job: j, from: task, until: task + 1})
	if err != nil || len(page.States) != 1 {
		return ""
	}
	why = page.States[0].Error
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reasons == nil || len(h.reasons) == maxReasons {
		h.reasons = make(map[failedRun]string)
	}
	h.reasons[run] = why
	return why
}
