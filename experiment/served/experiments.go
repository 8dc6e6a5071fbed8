package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of what is kept in memory: experiments, and runs of their plans. A run takes about 300 bytes.
const (
	maxReadings = 20_000
	maxKept     = 500_000
)

// experimentHandlers answer requests about experiments, and keep what was read of them.
type experimentHandlers struct {
	*shelf

	reading sync.Mutex          // guards the fields below
	all     map[string]*reading // by path
	used    uint64              // counts uses
	kept    int                 // the sum of the runs that are kept
}

// reading is what was read of an experiment.
type reading struct {
	path string
	turn chan struct{} // has a value while nobody reads

	// The turn guards the fields below.
	plan, runs stamp // of the files that were read
	skeleton   *skeleton
	ends       experiment.Ends
	broken     bool // true if the files cannot be read
	described  *described

	kept int    // the runs of the skeleton that is kept; guarded by the lock of the handlers, as is used
	used uint64 // when it was used last
}

// skeleton is a plan without all that only reports need.
type skeleton struct {
	methods, datasets []string
	sizes             []float64 // of datasets: samples times features
	limited           []bool    // by method: true if it has a budget
	cells             []cell
	keys              []string       // of runs, or empty
	refused           map[int]string // why runs without a key are refused
	distinct          int            // keys
	recorded          bool           // true if runs have learning curves or predictions
}

// cell is the place of a run in the plan.
type cell struct{ method, dataset, repeat, fold int32 }

func newSkeleton(l *experiment.Layout) *skeleton {
	s := &skeleton{keys: l.Keys, cells: make([]cell, len(l.Keys)), refused: make(map[int]string)}
	for i := range l.Table.Methods {
		m := &l.Table.Methods[i]
		s.methods, s.limited = append(s.methods, m.Name), append(s.limited, m.Budget != "")
	}
	for i := range l.Table.Datasets {
		d := &l.Table.Datasets[i]
		s.datasets = append(s.datasets, d.Name)
		s.sizes = append(s.sizes, float64(d.Rows)*float64(d.Features))
	}
	for i := range l.Table.Runs {
		r := &l.Table.Runs[i]
		s.cells[i] = cell{method: int32(r.Method), dataset: int32(r.Dataset), repeat: int32(r.Repeat), fold: int32(r.Fold)}
		if l.Keys[i] == "" {
			s.refused[i] = r.Error
		}
	}
	s.distinct, s.recorded = len(l.Has()), l.Record.Any()
	return s
}

// described is an experiment with the counts of its runs, by method and dataset.
type described struct {
	protocol.Experiment
	methods, datasets []string
	counts            [][]protocol.RunCounts
	recorded          bool // as in a skeleton
}

// describe says how far an experiment is. Only what has changed since the last call is read. look, if not nil, is
// called with what was read, if that is possible.
func (e *experimentHandlers) describe(ctx context.Context, p *place,
	look func(*skeleton, *experiment.Ends)) (*described, error) {
	r, err := e.enter(ctx, p.path)
	if err != nil {
		return nil, err
	}
	defer e.leave(r)
	plan, runs := e.stamp(path.Join(p.path, planFile)), e.stamp(path.Join(p.path, runsFile))
	if plan.of == nil && runs.of == nil {
		return nil, errNone(p.name)
	}
	running, works := map[string]float64(nil), false
	if e.stamp(path.Join(p.path, lockFile)).size > 0 {
		running, works = experiment.Working(e.path(p.path), time.Now())
	}
	same := r.described != nil && r.plan.is(plan) && r.runs.is(runs)
	if !same || r.skeleton == nil && look != nil && !r.broken {
		err := r.update(ctx, e.path(p.path), plan, runs)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if r.broken = err != nil; r.broken {
			if !errors.Is(err, experiment.ErrFolder) { // it may pass
				r.plan = stamp{}
			}
			r.described = &described{Experiment: protocol.Experiment{State: protocol.Failed,
				Errors: []string{files.Message(err)}}}
		}
	}
	if !r.broken && (!same || works || r.described.State == protocol.Running) {
		if r.skeleton == nil { // it was dropped, and the process works or has just ended
			if err := r.update(ctx, e.path(p.path), plan, runs); err != nil {
				return nil, err
			}
		}
		r.described = r.skeleton.describe(&r.ends, running, works)
	}
	if r.described.Name == "" {
		d := r.described
		d.Name, d.Submitted, d.Index = p.name, begun(plan, runs), index(plan, runs)
	}
	if look != nil && !r.broken {
		look(r.skeleton, &r.ends)
	}
	return r.described, nil
}

// update reads what has changed in the folder of an experiment. plan and runs are the stamps of its files now.
func (r *reading) update(ctx context.Context, dir string, plan, runs stamp) error {
	defer func() { r.plan, r.runs = plan, runs }()
	if r.skeleton == nil || !r.plan.is(plan) {
		r.skeleton = nil
		l, err := experiment.FolderLayout(dir)
		if err != nil {
			return err
		}
		r.skeleton = newSkeleton(l)
	}
	return r.ends.Update(ctx, dir)
}

// news returns the runs that have ended and that told does not have, and adds them to told.
func (s *skeleton) news(ends *experiment.Ends, told map[int]bool) (list []protocol.CellState) {
	for i, key := range s.keys {
		if end, ended := ends.ByKey[key]; ended && !told[i] {
			told[i] = true
			list = append(list, protocol.CellState{Task: i, Failed: end.Error != ""})
		}
	}
	return list
}

// describe counts the runs of a plan. running are the runs that a process computes, if works is true.
func (s *skeleton) describe(ends *experiment.Ends, running map[string]float64, works bool) *described {
	d := &described{methods: s.methods, datasets: s.datasets, recorded: s.recorded}
	of := make([]state.Runs, len(s.methods)*len(s.datasets)) // for the estimate
	for m := range s.methods {
		d.counts = append(d.counts, make([]protocol.RunCounts, len(s.datasets)))
		for k := range s.datasets {
			of[m*len(s.datasets)+k] = state.Runs{Method: s.methods[m], Dataset: s.datasets[k], Size: s.sizes[k]}
		}
	}
	counted := make(map[string]bool, s.distinct)
	now := float64(time.Now().UnixMilli()) / 1000
	missing, limited := 0, 0 // runs without a result; of these, runs of a method with a budget
	for i, key := range s.keys {
		at := s.cells[i]
		end, ended := ends.ByKey[key]
		since, runs := running[key]
		n := &d.counts[at.method][at.dataset]
		n.All++
		switch {
		case key != "" && runs:
			n.Running++
		case key == "" || end.Error != "":
			n.Failed++
		case ended:
			n.Done++
		}
		if key == "" || counted[key] {
			continue
		}
		counted[key] = true
		same := &of[int(at.method)*len(s.datasets)+int(at.dataset)]
		same.All++
		switch {
		case runs:
			d.Running++
			same.Running = append(same.Running, max(0, now-since))
		case !ended:
			missing++
			if s.limited[at.method] {
				limited++
			}
		default:
			d.Done++
			same.Ended++
			if end.Error == "" {
				same.Timed, same.Seconds = same.Timed+1, same.Seconds+end.Seconds
			}
		}
	}
	d.Runs = s.distinct
	d.setState(missing, limited, works, len(running))
	if d.State == protocol.Running && len(running) > 0 {
		e := state.EstimateOf(of, len(running))
		d.SecondsLeft, d.EstimatedFrom = e.Seconds, e.From
	}
	if n := len(ends.Damaged); n > 0 {
		d.Errors = append(d.Errors, fmt.Sprintf("%s of cells.log cannot be read; coppice experiment run repeats the runs",
			units.Plural(n, "line")))
	}
	return d
}

// setState sets the state of an experiment. Runs of methods with a budget may be left out on purpose.
func (d *described) setState(missing, limited int, works bool, running int) {
	switch {
	case works:
		d.State = protocol.Running
		d.Phases = []string{units.Plural(running, "run") + " at work"}
	case missing == limited:
		d.State, d.NotRun = protocol.Done, limited
		for _, datasets := range d.counts { // what is missing is of methods with a budget
			for k := range datasets {
				n := &datasets[k]
				n.NotRun = n.All - n.Done - n.Failed
			}
		}
	default:
		d.State = protocol.Paused
		d.Waiting = fmt.Sprintf("no process computes its other %s; the same coppice experiment run computes them",
			units.Plural(missing, "run"))
	}
}

// enter waits until nobody reads an experiment. The caller calls leave.
func (e *experimentHandlers) enter(ctx context.Context, path string) (*reading, error) {
	e.reading.Lock()
	if e.all == nil {
		e.all = make(map[string]*reading)
	}
	r := e.all[path]
	if r == nil {
		r = &reading{path: path, turn: make(chan struct{}, 1)}
		r.turn <- struct{}{}
		e.all[path] = r
	}
	e.reading.Unlock()
	select {
	case <-r.turn:
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leave lets others read. If too much is kept, what was used longest ago is dropped.
func (e *experimentHandlers) leave(r *reading) {
	defer func() { r.turn <- struct{}{} }()
	e.reading.Lock()
	defer e.reading.Unlock()
	if e.all[r.path] != r { // it was dropped
		return
	}
	e.used++
	e.kept -= r.kept
	r.used, r.kept = e.used, 0
	if r.skeleton != nil {
		r.kept = len(r.skeleton.keys)
	}
	if e.kept += r.kept; e.kept <= maxKept && len(e.all) <= maxReadings {
		return
	}
	paths := slices.SortedFunc(maps.Keys(e.all), func(a, b string) int {
		return cmp.Compare(e.all[a].used, e.all[b].used)
	})
	for _, path := range paths {
		if e.kept <= maxKept/2 && len(e.all) <= maxReadings/2 {
			return
		}
		old := e.all[path]
		if old != r {
			delete(e.all, path)
		} else {
			r.skeleton, r.ends = nil, experiment.Ends{}
		}
		e.kept -= old.kept
		old.kept = 0
	}
}

// errNone says that a folder lacks an experiment.
func errNone(name string) error { return notFound("the folder has no experiment %.200q", name) }

// find returns the experiment that a request names.
func (e *experimentHandlers) find(r *http.Request) (*place, error) {
	c, err := e.contents(r.Context())
	if err != nil {
		return nil, err
	}
	if p := c.byExperiment[r.PathValue("name")]; p != nil {
		return p, nil
	}
	return nil, errNone(r.PathValue("name"))
}

func (e *experimentHandlers) get(r *http.Request) (any, error) {
	p, err := e.find(r)
	if err != nil {
		return nil, err
	}
	d, err := e.describe(r.Context(), p, nil)
	if err != nil {
		return nil, err
	}
	return d.Experiment, nil
}

// list lists experiments, the newest first. Only what the answer has is read, unless the states are needed for
// the choice.
func (e *experimentHandlers) list(r *http.Request) (any, error) {
	var q protocol.ExperimentQuery
	if err := readList(r, "a list of experiments", q.Params(), &q.ListQuery); err != nil {
		return nil, err
	}
	c, err := e.contents(r.Context())
	if err != nil {
		return nil, err
	}
	states := make(map[*place]protocol.JobState)
	if order, _ := q.Order(""); order == "state" || len(q.States) > 0 {
		for _, p := range c.experiments {
			d, err := e.describe(r.Context(), p, nil)
			if err != nil {
				return nil, err
			}
			states[p] = d.State
		}
	}
	some, total, next, err := protocol.Part(c.experiments, &q.ListQuery, "-newest", func(p **place) protocol.Element {
		at := *p
		time := begun(at.plan, at.file)
		return protocol.Element{Name: at.name, Chosen: q.Has(at.name, "", time) && (len(q.States) == 0 ||
			slices.Contains(q.States, states[at])), Keys: map[string]any{"newest": float64(at.newest()),
			"submitted": float64(time), "name": at.name, "state": string(states[at])}}
	})
	if err != nil {
		return nil, noElement(q.After)
	}
	list := protocol.ExperimentList{Experiments: []protocol.Experiment{}, Total: total, Next: next}
	for _, p := range some {
		d, err := e.describe(r.Context(), p, nil)
		if err != nil {
			return nil, err
		}
		list.Experiments = append(list.Experiments, d.Experiment)
	}
	return list, nil
}

// changes streams an experiment; with runs=true also the runs that have ended.
func (e *experimentHandlers) changes(w http.ResponseWriter, r *http.Request) {
	runs := false
	if err := protocol.ReadQuery(r.URL.Query(), "a stream", protocol.Flag("runs", &runs)); err != nil {
		respond(w, nil, wrong(err))
		return
	}
	p, err := e.find(r)
	if err != nil {
		respond(w, nil, err)
		return
	}
	var last *protocol.Experiment
	told := make(map[int]bool)
	stream(w, r, func() (any, bool, error) {
		var news []protocol.CellState
		var look func(*skeleton, *experiment.Ends)
		if runs {
			look = func(s *skeleton, ends *experiment.Ends) { news = s.news(ends, told) }
		}
		d, err := e.describe(r.Context(), p, look)
		if err != nil {
			return nil, false, err
		}
		if last != nil && news == nil && reflect.DeepEqual(*last, d.Experiment) {
			return nil, d.Ended(), nil
		}
		line := protocol.ExperimentLine{Experiment: d.Experiment}
		if last = &d.Experiment; news != nil {
			line.RunsEnded = []protocol.EndedRuns{{Runs: news}}
		}
		return line, d.Ended(), nil
	})
}

// grid counts the runs of an experiment by method and dataset.
func (e *experimentHandlers) grid(r *http.Request) (any, error) {
	var q protocol.GridQuery
	if err := protocol.ReadQuery(r.URL.Query(), "a grid", q.Params()); err != nil {
		return nil, wrong(err)
	}
	p, err := e.find(r)
	if err != nil {
		return nil, err
	}
	var why map[[2]int32][]protocol.FailedRun
	d, err := e.describe(r.Context(), p, func(s *skeleton, ends *experiment.Ends) { why = s.failures(ends, q) })
	if err != nil {
		return nil, err
	}
	if why == nil { // the files cannot be read
		return nil, errors.New(cmp.Or(d.Errors...))
	}
	g := protocol.ExperimentGrid{Name: d.Name, Datasets: append([]string{}, d.datasets...),
		Methods: []protocol.GridMethod{}, Total: len(d.methods), Index: d.Index}
	for m, datasets := range d.counts {
		method := protocol.GridMethod{Name: d.methods[m]}
		for k, n := range datasets {
			g.Runs = g.Runs.Plus(n)
			method.Runs = append(method.Runs, protocol.GridElement{RunCounts: n, Failures: why[[2]int32{int32(m), int32(k)}]})
		}
		g.Methods = append(g.Methods, method)
	}
	return g.Part(q), nil
}

// failures describes some of the runs that failed, by method and dataset, for the part of a grid.
func (s *skeleton) failures(ends *experiment.Ends, q protocol.GridQuery) map[[2]int32][]protocol.FailedRun {
	why, sum := make(map[[2]int32][]protocol.FailedRun), 0
	for i, key := range s.keys {
		at, text := s.cells[i], s.refused[i]
		if key != "" {
			text = ends.ByKey[key].Error
		}
		asked := int(at.method) >= q.From && (q.Limit == 0 || int(at.method)-q.From < q.Limit)
		list := why[[2]int32{at.method, at.dataset}]
		if text != "" && asked && sum < protocol.MaxGridFailures && len(list) < protocol.MaxElementFailures {
			sum++
			why[[2]int32{at.method, at.dataset}] = append(list, protocol.FailedRun{Repeat: int(at.repeat),
				Fold: int(at.fold), Error: text})
		}
	}
	return why
}
