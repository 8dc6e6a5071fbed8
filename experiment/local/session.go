package local

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// runAll computes the runs until all have ended, or their budgets are over, or ctx is done: what is being computed then
// is dropped.
func runAll(ctx context.Context, works []*work, o sessionOptions) error {
	kept := engine.NewDerivedMemory(engine.DerivedLimit)
	parents := make(map[*work]*open.Job)
	for _, w := range works {
		parent, err := local.Open(w.planned.Job, w.Data)
		if err != nil {
			return err
		}
		parents[w] = parent
	}
	s := newSession(works, o, func(ctx context.Context, r *run) (*pipeline.Outcome, error) {
		child, err := pipeline.Cell(r.work.planned.Job, r.planned.Unit)
		if err != nil {
			return nil, err
		}
		part, err := local.SubJob(ctx, parents[r.work], child, local.Options{Kept: kept})
		if err != nil {
			return nil, err
		}
		return pipeline.DecodeOutcome(part)
	})
	return s.run(ctx)
}

// session computes runs as the tasks of one gather round, which has one worker: this process. It performs the actions
// of package schedule, and decides nothing. One goroutine uses it; others compute runs and put records, and send
// events.
type session struct {
	sessionOptions
	compute func(context.Context, *run) (*pipeline.Outcome, error)
	job     *schedule.Job
	runs    []*run // by task
	groups  []*group

	ctx    context.Context // of the runs
	cancel context.CancelFunc
	events chan event
	// records are to be put, in this order. room has a token for each: a run that has ended keeps its lane until there is
	// room.
	records chan *run
	room    chan struct{}

	leased    []int  // tasks that wait for a run to stop
	computing []*run // Invariant: at most Lanes
	unwritten int    // records that are to be put
	over      bool   // true if all runs have ended, or the session is to end
	failure   error
	status    Status
	changed   bool // true if a run has ended that Show was not told of
}

// group is the runs of one method on one dataset.
type group struct {
	work   *work
	method int
	begun  bool       // true if one of them has begun, also in earlier runs
	runs   state.Runs // without All and Running
}

// run is a run of the experiment that is to be computed.
type run struct {
	work    *work
	planned *experiment.Run
	group   int
	task    int
	turn    int // it is the run of its group with this number, which counts earlier runs

	began   time.Time // zero: it has not begun
	stop    context.CancelFunc
	stopped bool               // true if its budget has ended it
	record  *experiment.Record // from the end of computing until it is put
}

// event is the end of what a goroutine did with a run: of computing, or, if put is true, of putting its record.
type event struct {
	run *run
	put bool
	err error
}

const (
	worker    = "here"                 // name of the only worker
	theRound  = 1                      // number of the only round
	tickEvery = 100 * time.Millisecond // a run outlasts its budget by about so long
	showEvery = 10                     // ticks after which Show is called though no run has ended
)

// newSession returns the session that computes runs by a function.
func newSession(works []*work, o sessionOptions,
	compute func(context.Context, *run) (*pipeline.Outcome, error)) *session {
	o.Lanes = max(1, o.Lanes)
	s := &session{
		sessionOptions: o, compute: compute, events: make(chan event), records: make(chan *run, o.Lanes),
		room: make(chan struct{}, o.Lanes),
	}
	for _, w := range works {
		number := make(map[int]int) // of the group, by method
		count := make(map[int]int)  // runs, by method
		for i := range w.Runs {
			c := &w.Runs[i]
			if _, is := number[c.Method]; !is {
				e := w.Ended[c.Method]
				g := &group{work: w, method: c.Method}
				g.runs = state.Runs{Method: s.Methods[c.Method], Dataset: w.planned.Dataset.Name,
					Size: float64(w.planned.Manifest.Rows) * float64(w.planned.Manifest.Features)}
				if e.Seconds > 0 {
					g.begun = e.Runs > 0
					g.runs.Ended, g.runs.Timed, g.runs.Seconds = e.Runs, e.Well, e.WellSeconds
				}
				number[c.Method], count[c.Method] = len(s.groups), e.Runs
				s.groups = append(s.groups, g)
			}
			s.runs = append(s.runs, &run{work: w, planned: c, group: number[c.Method], turn: count[c.Method]})
			count[c.Method]++
		}
	}
	// As on a cluster: by fold, then by dataset and method. So the time of each method on each dataset is known early.
	slices.SortStableFunc(s.runs, func(a, b *run) int { return cmp.Compare(a.turn, b.turn) })
	for t, r := range s.runs {
		r.task = t
	}
	s.status.Runs = len(s.runs)
	// The worker is never silent, and gets its messages.
	workers := schedule.NewWorkers(schedule.Limits{Remind: math.MaxInt64}, nil)
	workers.Hear(schedule.Report{Name: worker, Slots: o.Lanes}, time.Now())
	s.job = workers.NewJob(1, nil, schedule.Options{Budget: share(s.groups, o.Budgets)})
	return s
}

// share says what the scheduler needs to know of groups: their budgets, and what earlier runs took.
func share(groups []*group, budgets []*budget) *schedule.Share {
	o := schedule.ShareOptions{Limits: make(map[string]float64)}
	names, spent := make(map[*budget]string), make(map[string]float64)
	for _, g := range groups {
		var method schedule.Row
		if e := g.work.Ended[g.method]; e.Seconds > 0 {
			method.Ended, method.Seconds = e.Runs, e.Seconds
		}
		if g.method < len(budgets) && budgets[g.method] != nil {
			b := budgets[g.method]
			if names[b] == "" {
				names[b] = strconv.Itoa(len(names) + 1)
			}
			method.Budget = names[b]
			o.Limits[method.Budget], spent[method.Budget] = b.Limit, b.Spent
		}
		o.Rows = append(o.Rows, method)
	}
	all := new(schedule.Budgets)
	s := all.Open(o)
	all.Spend(spent)
	return s
}

// run computes the runs.
func (s *session) run(ctx context.Context) error {
	s.ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	go s.put()
	defer close(s.records)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	how := &round.Gather{Apart: true}
	for _, r := range s.runs {
		how.Groups = append(how.Groups, int32(r.group))
	}
	all := &round.Round{Tasks: len(s.runs), How: how}
	s.perform(s.job.Begin(nil, time.Now(), theRound, all, nil, nil))
	ticks := 0
	for done := ctx.Done(); !s.over || len(s.computing)+s.unwritten > 0; {
		select {
		case e := <-s.events:
			s.take(&e)
		case <-tick.C:
			s.step(&schedule.Tick{})
			if ticks++; s.changed || ticks%showEvery == 0 {
				s.show()
			}
		case <-done:
			s.end(ctx.Err())
			done = nil
		}
	}
	s.show()
	return s.failure
}

// end ends the session, unless it is over: nothing more begins, and what is computed stops.
func (s *session) end(why error) {
	if !s.over {
		s.over, s.failure = true, why
	}
	s.cancel()
}

// step tells the scheduler of an event, and performs the actions that follow from it.
func (s *session) step(e schedule.Event) {
	if s.over {
		return
	}
	s.perform(s.job.Step(nil, time.Now(), e))
}

// perform performs actions. Only some of them mean anything in one process: it has the job and the data, and its
// results are on their way to Put when the scheduler wants them stored.
func (s *session) perform(actions []schedule.Action) {
	var then []schedule.Event // actions are valid until the next step
	for _, a := range actions {
		switch a := a.(type) {
		case *schedule.SendRun:
			for _, t := range a.Tasks {
				s.leased = append(s.leased, int(t))
				s.groups[s.runs[t].group].begun = true
			}
		case *schedule.SendStop:
			s.stop(a.Task)
		case *schedule.Record: // Put has done that
			then = append(then, &schedule.ResultRecorded{Round: theRound, Task: a.Task, Result: a.Result})
		case *schedule.RecordSkips: // a run without a record was not run
			then = append(then, &schedule.SkipsRecorded{Round: theRound, Tasks: slices.Clone(a.Tasks)})
		case *schedule.Finish:
			s.over = true
		case *schedule.Fail:
			s.end(a.Err)
		}
	}
	for _, e := range then {
		s.step(e)
	}
	for !s.over && len(s.leased) > 0 && len(s.computing) < s.Lanes {
		t := s.leased[0]
		s.leased = s.leased[1:]
		s.start(s.runs[t])
	}
}

// start has a run computed.
func (s *session) start(r *run) {
	ctx, stop := context.WithCancel(s.ctx)
	r.began, r.stop = time.Now(), stop
	s.computing = append(s.computing, r)
	s.Begin(r.work, r.planned)
	go func() {
		defer stop()
		o, err := s.compute(ctx, r)
		if err == nil {
			r.record = &experiment.Record{Key: r.planned.Key, Seconds: time.Since(r.began).Seconds(), Outcome: o}
			s.room <- struct{}{}
		}
		s.events <- event{run: r, err: err}
	}()
}

// stop stops the run of a task: its budget is over.
func (s *session) stop(task int) {
	r := s.runs[task]
	if r.stop == nil { // it waits for a lane
		s.leased = slices.DeleteFunc(s.leased, func(t int) bool { return t == task })
		s.groups[r.group].runs.Ended++
		return
	}
	r.stopped = true
	r.stop()
}

// put puts the records of runs, in the order in which they ended, until Put returns an error.
func (s *session) put() {
	var failed error
	for r := range s.records {
		if failed == nil {
			failed = s.Put(r.work, r.planned, r.record)
		}
		<-s.room
		s.events <- event{run: r, put: true, err: failed}
	}
}

// take takes in an event.
func (s *session) take(e *event) {
	r := e.run
	if e.put {
		s.unwritten--
		switch {
		case e.err != nil:
			s.end(e.err)
			return
		case r.record.Outcome.Error != "":
			s.status.Failed++
		default:
			s.status.Done++
		}
		s.step(&schedule.ResultStored{Round: theRound, Task: r.task, Result: r.result()})
		r.record = nil // there may be very many
		s.changed = true
		return
	}
	s.computing = slices.DeleteFunc(s.computing, func(other *run) bool { return other == r })
	of := &s.groups[r.group].runs
	switch {
	case r.stopped:
		if of.Ended++; e.err == nil {
			<-s.room
		}
		s.Drop(r.work, r.planned)
		s.changed = true
		s.step(&schedule.Woken{}) // another run may begin
	case e.err != nil: // the run has not ended, and its time is not known
		s.end(e.err)
	default:
		if of.Ended++; r.record.Outcome.Error == "" {
			of.Timed, of.Seconds = of.Timed+1, of.Seconds+r.record.Seconds
		}
		s.step(&schedule.ResultAnnounced{Round: theRound, Worker: worker, Task: r.task, Result: r.result()})
		s.unwritten++
		s.records <- r
	}
}

// result is what the scheduler is told of the result of a run that has ended.
func (r *run) result() schedule.Result {
	return schedule.Result{Took: time.Duration(r.record.Seconds * float64(time.Second))}
}

// show tells Show how far the run is. It takes a time that grows with the number of groups.
func (s *session) show() {
	s.changed = false
	runs, firsts := s.count(time.Now())
	s.status.Running = len(s.computing)
	s.status.Estimate = state.EstimateOf(runs, s.Lanes)
	s.status.Firsts = s.status.Firsts || firsts
	s.Show(s.status)
}

// count counts the runs of each group that have ended, are computed or may begin. firsts is true if the first run of
// each group has ended, or may not begin.
func (s *session) count(now time.Time) (list []state.Runs, firsts bool) {
	list, firsts = make([]state.Runs, 0, len(s.groups)), true
	waits := s.job.View(now).Waits
	for i, g := range s.groups {
		r := g.runs
		r.All = r.Ended + waits[i]
		list = append(list, r)
		if g.begun && r.Ended == 0 || !g.begun && waits[i] > 0 {
			firsts = false
		}
	}
	for _, r := range s.computing {
		of := &list[r.group]
		of.All, of.Running = of.All+1, append(of.Running, now.Sub(r.began).Seconds())
	}
	for _, t := range s.leased {
		list[s.runs[t].group].All++
	}
	return list, firsts
}

// work is what there is to do of one dataset.
type work struct {
	planned *experiment.Plan
	Data    *local.Data
	Runs    []experiment.Run         // of Plan, to be run
	Ended   map[int]experiment.Ended // what earlier runs have of each method of the spec
}

// Status is how far the runs are.
type Status struct {
	Done, Failed, Running, Runs int
	Estimate                    state.Estimate
	// Firsts is true if the first run of each method on each dataset has ended, or is not to be run: the estimate is no
	// guess.
	Firsts bool
}

// Line describes in one line how far the runs are.
func (s Status) Line() string {
	ended := s.Done + s.Failed
	text := fmt.Sprintf("%3.0f %%  %s of %s runs, %s running", 100*float64(ended)/float64(max(1, s.Runs)),
		units.Count(ended), units.Count(s.Runs), units.Count(s.Running))
	if s.Failed > 0 {
		text += fmt.Sprintf(", %s failed", units.Count(s.Failed))
	}
	return text + s.Estimate.Text()
}

// sessionOptions says how runs are run; none of them changes a result.
type sessionOptions struct {
	Lanes   int      // runs at a time
	Methods []string // names of the methods of the spec
	// Budgets has the budget of each method of the spec; nil: the method has none. A run does not begin if nothing is left
	// of its budget, and is stopped soon after it has taken all of it.
	Budgets []*budget
	// Begin is told of each run that begins, one at a time.
	Begin func(w *work, c *experiment.Run)
	// Drop is told of each run that its budget ended, as Begin is.
	Drop func(w *work, c *experiment.Run)
	// Put is given the record of each run that ended, one at a time, while others are computed. An error of Put ends the
	// run. A run counts once Put has returned.
	Put func(w *work, c *experiment.Run, r *experiment.Record) error
	// Show is told how far the runs are soon after a run ends, each second, and at the end.
	Show func(Status)
}

// budget bounds the computing time of the runs of some methods together.
type budget struct {
	Limit float64 // seconds
	Spent float64 // seconds, in earlier runs
}

// budgetsOf lists the budget of each method of a spec; earlier runs have spent so many seconds of each method's budget.
func budgetsOf(s *experiment.Spec, spent []float64) []*budget {
	list, of := make([]*budget, len(s.Methods)), make(map[*experiment.Budget]*budget)
	for i := range s.Methods {
		b := s.Methods[i].Budget
		if b == nil {
			continue
		}
		if of[b] == nil {
			of[b] = &budget{Limit: b.Limit.Seconds()}
		}
		of[b].Spent += spent[i]
		list[i] = of[b]
	}
	return list
}
