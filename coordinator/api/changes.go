package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// linesApart is the least time between two lines of a stream, except for its last lines.
	linesApart = 250 * time.Millisecond
	// looksApart is that time as a multiple of the time that a look at the jobs took.
	looksApart = 10
)

// changeHandlers answer with streams of changes. Guard bounds their number.
type changeHandlers struct {
	jobs        *jobHandlers
	experiments *experimentHandlers
	leads       func() bool // true if this coordinator leads

	mu    sync.Mutex
	ended map[string]*endedRuns // by name, of experiments that a stream with runs is open for; guarded by mu
}

// ofJob streams a job.
func (h *changeHandlers) ofJob(w http.ResponseWriter, r *http.Request) {
	key, last := r.PathValue("job"), protocol.JobInfo{}
	find := func(st *state.State) ([]*state.Job, error) {
		j, err := findJob(st, key)
		if err != nil {
			return nil, err
		}
		key = strconv.FormatUint(j.ID, 10) // another job may get the name
		return []*state.Job{j}, nil
	}
	h.stream(w, r, find, func(st *state.State, of []*state.Job) (line any, more bool) {
		info := h.jobs.describeOne(of[0], st.Index())
		if last.Index = info.Index; reflect.DeepEqual(last, info) {
			return nil, false
		}
		last = info
		return info, false
	})
}

// ofExperiment streams an experiment; with runs=true also the runs that have ended, from the
// second line on.
func (h *changeHandlers) ofExperiment(w http.ResponseWriter, r *http.Request) {
	name, runs := r.PathValue("name"), false
	if text := r.URL.Query().Get("runs"); text != "" {
		var err error
		if runs, err = strconv.ParseBool(text); err != nil {
			h.jobs.answer(w, nil, fmt.Errorf("%w: runs: want true or false, got %.80q", errBad, text))
			return
		}
	}
	ended, told := h.open(name), 0
	defer h.close(name)
	find := func(st *state.State) ([]*state.Job, error) { return jobsOf(st, name) }
	var last *protocol.Experiment
	h.stream(w, r, find, func(st *state.State, of []*state.Job) (line any, more bool) {
		x := protocol.ExperimentLine{Experiment: *h.experiments.progressOf(st, of, h.experiments.running.Waits(st))}
		first := last == nil
		if runs && !first {
			x.RunsEnded, more = ended.after(r.Context(), h.experiments.results, of, told)
			for i := range x.RunsEnded {
				told += len(x.RunsEnded[i].Runs)
			}
		}
		if !first {
			last.Index = x.Index
		}
		if !first && x.RunsEnded == nil && reflect.DeepEqual(*last, x.Experiment) {
			return nil, more
		}
		last = &x.Experiment
		return x, more || runs && first
	})
}

// stream writes what line says about the jobs that find returns: at once, then after each
// change of one of the jobs, and every protocol.WatchBeat, since only the leader knows of
// running tasks. If line returns nil, nothing has changed, and an empty line says every
// protocol.WatchBeat that the stream is alive. If more is true, line is called again at once.
//
// The stream ends after the line about jobs that have all ended. It also ends if the jobs were
// deleted, this coordinator does not lead any more, or the client has left. A reader that is
// slow gets fewer lines: a line is made when the line before is sent.
func (h *changeHandlers) stream(w http.ResponseWriter, r *http.Request, find func(*state.State) ([]*state.Job, error), line func(*state.State, []*state.Job) (v any, more bool)) {
	store := h.jobs.store
	st, changed := store.Watch()
	of, err := find(st)
	if err != nil {
		h.jobs.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	enc, conn := json.NewEncoder(w), http.NewResponseController(w)
	beat := time.NewTicker(protocol.WatchBeat)
	defer beat.Stop()
	var seen []*state.Job
	for due := true; ; {
		began, v, more := time.Now(), any(nil), false
		if due || !slices.Equal(of, seen) {
			v, more = line(st, of)
			seen = of
		}
		pause := time.NewTimer(min(max(linesApart, looksApart*time.Since(began)), protocol.WatchBeat/2))
		if v != nil {
			err = enc.Encode(v)
		} else if due {
			_, err = io.WriteString(w, "\n")
		}
		if err != nil || conn.Flush() != nil || r.Context().Err() != nil || !more && haveEnded(st, of) {
			return
		}
		due = more
		for news, rested := more, more; !news || !rested; {
			select {
			case <-r.Context().Done():
				return
			case <-pause.C:
				rested = true
			case <-beat.C:
				news, due = true, true
			case <-changed:
				st, changed = store.Watch()
				news, rested = true, rested || haveEnded(st, of)
			}
		}
		st, changed = store.Watch()
		if of, err = find(st); err != nil || !h.leads() {
			return // the client asks again, and finds the leader or hears that the job was deleted
		}
	}
}

// haveEnded reports whether no job of a list goes on in a state.
func haveEnded(st *state.State, list []*state.Job) bool {
	return !slices.ContainsFunc(list, func(j *state.Job) bool {
		now := st.Job(j.ID)
		return now != nil && !now.State.Final()
	})
}

// open returns the ended runs of an experiment, which all streams of it share. The caller
// calls close.
func (h *changeHandlers) open(name string) *endedRuns {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended == nil {
		h.ended = make(map[string]*endedRuns)
	}
	e := h.ended[name]
	if e == nil {
		e = &endedRuns{jobs: make(map[uint64]*knownRuns)}
		h.ended[name] = e
	}
	e.streams++
	return e
}

func (h *changeHandlers) close(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.ended[name]
	if e.streams--; e.streams == 0 {
		delete(h.ended, name)
	}
}

// endedRuns notes how the runs of an experiment have ended. A run is noted once, so that its
// outcome is read once for all streams.
type endedRuns struct {
	streams int // that use it; guarded by the lock of the handlers

	mu   sync.Mutex            // guards the fields below
	jobs map[uint64]*knownRuns // by job
	list []endedRun            // in the order in which they were noted
}

type endedRun struct {
	job uint64
	protocol.CellState
}

// knownRuns says which runs of a job are noted.
type knownRuns struct {
	is   []bool     // by run
	read *state.Job // all runs of this record are noted; nil: there is none
}

// after returns at most a page of the runs that were noted after the first told ones, by job.
// It first notes the runs that have ended meanwhile. more is true if there are more to tell.
func (e *endedRuns) after(ctx context.Context, results *resultHandlers, of []*state.Job, told int) (page []protocol.EndedRuns, more bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range slices.Backward(of) { // the oldest job comes first
		k := e.jobs[j.ID]
		if k == nil && j.Job.Cells != nil {
			k = &knownRuns{is: make([]bool, j.Job.Cells.Count())}
			e.jobs[j.ID] = k
		}
		if k == nil || k.read == j || more {
			continue
		}
		more = results.newStates(ctx, j, k.is, func(c protocol.CellState) {
			k.is[c.Task] = true
			e.list = append(e.list, endedRun{j.ID, protocol.CellState{Task: c.Task, Failed: c.Failed, NotRun: c.NotRun}})
		})
		if !more {
			k.read = j
		}
	}
	until := min(told+protocol.CellStatesPage, len(e.list))
	for _, run := range e.list[told:until] {
		if n := len(page); n == 0 || page[n-1].Job != run.job {
			page = append(page, protocol.EndedRuns{Job: run.job})
		}
		last := &page[len(page)-1]
		last.Runs = append(last.Runs, run.CellState)
	}
	return page, more || until < len(e.list)
}
