// Package runner computes the cells of experiments in this process.
package runner

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/state"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Work is what there is to do of one dataset.
type Work struct {
	Plan  *experiment.Plan
	Data  *local.Data
	Cells []experiment.Cell // of Plan: those that are run
	// Ended is what earlier runs have of each row of the spec, and Kept are their records.
	Ended map[int]experiment.Ended
	Kept  []*experiment.Record
}

// NewWork returns what there is to do of a dataset: the cells without a record. A record does not count if again returns true
// for it.
func NewWork(p *experiment.Plan, data *local.Data, records map[string]*experiment.Record, again func(*experiment.Record) bool) (*Work, error) {
	cells, err := p.Cells()
	if err != nil {
		return nil, err
	}
	w := &Work{Plan: p, Data: data, Ended: make(map[int]experiment.Ended)}
	for _, cell := range cells {
		if r := records[cell.Key]; r != nil && !again(r) {
			w.Kept = append(w.Kept, r)
			w.Ended[cell.Row] = w.Ended[cell.Row].Plus(r)
		} else {
			w.Cells = append(w.Cells, cell)
		}
	}
	return w, nil
}

// Status is how far the cells are.
type Status struct {
	Done, Failed, Running, Cells int
	Estimate                     state.Estimate
	// Firsts says that the first cell of each row on each dataset has ended, so that Left is no
	// longer a guess.
	Firsts bool
}

// Options says how cells are run; none of them changes a result.
type Options struct {
	Lanes int // cells at a time
	// Methods, if set, names the rows of the spec in the estimate.
	Methods []string
	// Budgets are those of the rows of the spec, nil where there is none: cells for which nothing is
	// left are not begun, and one that takes all of it is ended.
	Budgets []*Budget
	// Begin, where set, is told of each cell that is begun, one at a time.
	Begin func(w *Work, c *experiment.Cell)
	// Drop, where set, is told of each cell that its budget ended, as Begin is.
	Drop func(w *Work, c *experiment.Cell)
	// Put is given the record of each cell that ended, one at a time, while others compute; its
	// error ends the run. A cell counts once Put has returned.
	Put func(w *Work, c *experiment.Cell, r *experiment.Record) error
	// Show, where set, is told how far the run is when a cell ends, and each second.
	Show func(Status)
}

// Run runs the cells until all have ended, or ctx is done: what is computing then is dropped.
func Run(ctx context.Context, works []*Work, o Options) error {
	s := &session{Options: o, kept: engine.NewDerivedMemory(engine.DerivedLimit), ended: make(chan endedCell, max(1, o.Lanes))}
	s.turn = sync.NewCond(&s.mu)
	for _, w := range works {
		parent, err := local.Open(w.Plan.Job, w.Data)
		if err != nil {
			return err
		}
		s.add(w, parent)
	}
	s.fillQueue()
	return s.run(ctx)
}

// group is the cells of one row on one dataset, as of a Queue.
type group struct {
	work   *Work
	parent *open.Job
	row    int
	cells  []*experiment.Cell // that nobody has begun
}

type session struct {
	Options
	kept   *engine.DerivedMemory
	groups []*group
	ended  chan endedCell // cells whose records are to be put, in order

	turn    *sync.Cond // a cell has ended, or the run
	mu      sync.Mutex // of what follows, and held during Begin, Drop and Show
	queue   *Queue
	status  Status
	failure error
}

// fillQueue makes the queue of all groups.
func (s *session) fillQueue() {
	var counts []int
	for _, g := range s.groups {
		counts = append(counts, len(g.cells))
		s.status.Cells += len(g.cells)
	}
	s.queue = NewQueue(counts)
	for i, g := range s.groups {
		if e := g.work.Ended[g.row]; e.Seconds > 0 {
			s.queue.Earlier(i, e)
		}
		if b := s.budget(g.row); b != nil {
			s.queue.Within(i, b)
		}
	}
}

// budget returns that of a row of the spec.
func (s *session) budget(row int) *Budget {
	if row < 0 || row >= len(s.Budgets) {
		return nil
	}
	return s.Budgets[row]
}

// endedCell is a cell that has ended, with its record.
type endedCell struct {
	work   *Work
	cell   *experiment.Cell
	record *experiment.Record
}

// add makes groups of a dataset's cells.
func (s *session) add(w *Work, parent *open.Job) {
	groups := make(map[int]*group) // by row
	for i := range w.Cells {
		c := &w.Cells[i]
		g := groups[c.Row]
		if g == nil {
			g = &group{work: w, parent: parent, row: c.Row}
			groups[c.Row] = g
			s.groups = append(s.groups, g)
		}
		g.cells = append(g.cells, c)
	}
}

func (s *session) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn.Broadcast()
	})()
	ticks := make(chan struct{})
	go s.tick(ctx, ticks)
	written := make(chan struct{})
	go s.write(stop, written)
	var lanes sync.WaitGroup
	for range max(1, s.Lanes) {
		lanes.Go(func() {
			for s.runNext(ctx, stop) {
			}
		})
	}
	lanes.Wait()
	close(s.ended)
	<-written
	err := ctx.Err()
	stop()
	<-ticks
	s.mu.Lock()
	defer s.mu.Unlock()
	s.show()
	if s.failure != nil {
		return s.failure
	}
	return err
}

// tick shows how far the run is each second.
func (s *session) tick(ctx context.Context, ended chan<- struct{}) {
	defer close(ended)
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			s.mu.Lock()
			s.show()
			s.mu.Unlock()
		}
	}
}

func (s *session) show() {
	if s.Show == nil {
		return
	}
	s.status.Running = s.queue.Running()
	now := time.Now()
	runs := s.queue.Runs(now)
	for i, g := range s.groups {
		plan := g.work.Plan
		runs[i].Method, runs[i].Dataset = strconv.Itoa(g.row), plan.Dataset.Name
		if s.Methods != nil {
			runs[i].Method = s.Methods[g.row]
		}
		runs[i].Size = float64(plan.Manifest.Rows) * float64(plan.Manifest.Features)
	}
	s.status.Estimate = state.EstimateOf(runs, s.Lanes)
	s.status.Firsts = s.status.Firsts || s.queue.Firsts(now)
	s.Show(s.status)
}

// runNext runs the next cell; false: there is none, or the run has ended.
func (s *session) runNext(ctx context.Context, stop context.CancelFunc) bool {
	g, c, number := s.begin(ctx)
	if c == nil {
		return false
	}
	began := time.Now()
	o, err := s.computeWithin(ctx, g, c, number)
	end := time.Now()
	if err == nil && o != nil { // nil: its budget is used
		s.ended <- endedCell{g.work, c, &experiment.Record{Key: c.Key, Seconds: end.Sub(began).Seconds(), Outcome: o}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.turn.Broadcast()
	if err != nil { // the cell has not ended, and its time is not known
		s.fail(ctx.Err(), err, stop)
		return false
	}
	s.queue.End(number, end, o != nil && o.Error == "")
	if o == nil {
		if s.Drop != nil {
			s.Drop(g.work, c)
		}
		s.show()
	}
	return true
}

// fail ends the run; cause is why it ended before, if it did. mu is held.
func (s *session) fail(cause, err error, stop context.CancelFunc) {
	if s.failure == nil && cause == nil {
		s.failure = err
	}
	stop()
}

// write puts the records of cells as they end, and counts them; after an error it puts no more.
func (s *session) write(stop context.CancelFunc, written chan<- struct{}) {
	defer close(written)
	var failed error
	for e := range s.ended {
		if failed == nil {
			failed = s.Put(e.work, e.cell, e.record)
			s.count(e.record.Outcome, failed, stop)
		}
	}
}

// count counts a cell whose record was put, or could not be.
func (s *session) count(o *pipeline.Outcome, err error, stop context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.fail(nil, err, stop)
		return
	case o.Error != "":
		s.status.Failed++
	default:
		s.status.Done++
	}
	s.show()
}

// begin takes the next cell and its number in the queue, and waits while one may come; nil: none will.
func (s *session) begin(ctx context.Context) (*group, *experiment.Cell, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, number, ok := 0, 0, false
	for ctx.Err() == nil {
		if of, number, ok = s.queue.Next(time.Now()); ok || !s.queue.Waits() {
			break
		}
		s.turn.Wait()
	}
	if !ok {
		return nil, nil, 0
	}
	g := s.groups[of]
	c := g.cells[0]
	g.cells = g.cells[1:]
	if s.Begin != nil {
		s.Begin(g.work, c)
	}
	return g, c, number
}

// computeWithin computes a cell as long as its budget lasts; nil: it was ended.
func (s *session) computeWithin(ctx context.Context, g *group, c *experiment.Cell, number int) (*pipeline.Outcome, error) {
	s.mu.Lock()
	limit := s.queue.limit(number)
	s.mu.Unlock()
	own, stop := context.WithTimeout(ctx, limit)
	defer stop()
	o, err := s.compute(own, g, c)
	if err != nil && ctx.Err() == nil && errors.Is(own.Err(), context.DeadlineExceeded) {
		return nil, nil
	}
	return o, err
}

func (s *session) compute(ctx context.Context, g *group, c *experiment.Cell) (*pipeline.Outcome, error) {
	child, err := pipeline.Cell(g.work.Plan.Job, c.Unit)
	if err != nil {
		return nil, err
	}
	part, err := local.SubJob(ctx, g.parent, child, local.Options{Kept: s.kept})
	if err != nil {
		return nil, err
	}
	return pipeline.DecodeOutcome(part)
}
