package main

import (
	"runtime"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// threadsFlag bounds the processors that a command computes on.
type threadsFlag struct {
	Threads int `placeholder:"N" help:"Number of threads to compute on, which does not change the results (default: one for each processor)."`
}

// maxThreads is the greatest number of threads that can be asked for.
const maxThreads = 1024

func (t *threadsFlag) check() error {
	if t.Threads < 0 || t.Threads > maxThreads {
		return usagef("--threads %d: want 1 to %d, or 0 for one thread per processor", t.Threads, maxThreads)
	}
	return nil
}

// count returns how many threads there are to be.
func (t *threadsFlag) count() int {
	if t.Threads == 0 {
		return runtime.GOMAXPROCS(0)
	}
	return t.Threads
}

// predictor predicts blocks of rows on several threads and hands them on in their order.
type predictor struct {
	model algorithms.Model
	take  func(*predicted) error

	refs  []dataset.RowRef
	free  chan *predicted // for the next blocks
	work  chan *predicted
	order chan *predicted // in the order of the file
	lanes sync.WaitGroup
	ended chan struct{} // take will not be called again

	mu  sync.Mutex
	err error // of take
}

// newPredictor begins threads; end ends them. width is how many values are predicted of a row.
func newPredictor(m algorithms.Model, width, threads int, take func(*predicted) error) *predictor {
	n := 2 * threads
	p := &predictor{
		model: m, take: take, refs: make([]dataset.RowRef, blockRows),
		free: make(chan *predicted, n), work: make(chan *predicted, n), order: make(chan *predicted, n), ended: make(chan struct{}),
	}
	for i := range p.refs {
		p.refs[i].Pos = uint32(i)
	}
	for range n {
		p.free <- &predicted{width: width, values: make([]float32, blockRows*width), done: make(chan struct{}, 1)}
	}
	for range threads {
		p.lanes.Go(p.lane)
	}
	go p.hand()
	return p
}

// add takes over a block; the error is that of a block before.
func (p *predictor) add(rows *dataset.Rows, names []string) error {
	if err := p.failure(); err != nil {
		return err
	}
	b := <-p.free
	b.rows, b.names = rows, names
	p.order <- b
	p.work <- b
	return nil
}

func (p *predictor) lane() {
	scratch := p.model.NewScratch()
	for b := range p.work {
		rows := b.rows
		p.model.Predict(b.values[:rows.N*b.width], p.refs[:rows.N], func(uint32) *dataset.Rows { return rows }, scratch)
		b.done <- struct{}{}
	}
}

// hand hands the blocks on until take has an error.
func (p *predictor) hand() {
	defer close(p.ended)
	for b := range p.order {
		<-b.done
		if p.failure() == nil {
			if err := p.take(b); err != nil {
				p.mu.Lock()
				p.err = err
				p.mu.Unlock()
			}
		}
		p.free <- b
	}
}

func (p *predictor) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// end waits for what is under way and returns the error of take.
func (p *predictor) end() error {
	close(p.work)
	close(p.order)
	p.lanes.Wait()
	<-p.ended
	return p.err
}
