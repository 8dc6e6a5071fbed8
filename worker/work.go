package worker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/open"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// job is what computes a job's tasks. All of it can be fetched again.
type job struct {
	*batch.Job
	spec     *round.Job
	manifest *dataset.Manifest
	ctx      context.Context // ends when the job is forgotten
	cancel   context.CancelFunc
	open     *open.Job                           // set before Opened; nil if the job cannot be opened
	kept     atomic.Pointer[engine.DerivedCache] // derived values; may be replaced
	scratch  []any                               // by executor, which is the only one to use it

	shards  []*shard     // added to open; jobs.mu guards it
	fetches backlog[int] // shards to fetch
}

// work is the memory of a batch, also after it has retired.
type work struct {
	job  *job
	run  protocol.Run
	vars round.Vars

	mu   sync.Mutex // guards what follows between executors
	tree engine.Tree
	took []time.Duration  // by index in the message
	part protocol.Partial // scratch of answer
}

// beginBatch prepares the memory of a batch. The message and the batch exchange their memory.
func beginBatch(j *job, b *batch.Batch, run *protocol.Run) {
	w, ok := b.Local.(*work)
	if !ok {
		w = &work{job: j}
		b.Local = w
	}
	w.run, *run = *run, w.run
	w.vars = w.vars[:0]
	for _, v := range b.Values {
		x := v.Local.(*value)
		w.vars = append(w.vars, round.Var{ID: v.ID, Version: v.Number, Data: x.data, Chunks: x.list})
	}
	if w.run.How == round.Reduce {
		w.took = slices.Grow(w.took[:0], len(w.run.Tasks))[:len(w.run.Tasks)]
		clear(w.took)
		w.tree.Reset(int(w.run.Of), w.run.Shape)
	}
}

// gathered is a task of a gather round that an executor has begun.
type gathered struct {
	ctx      context.Context // ends when nobody wants the task
	cancel   context.CancelFunc
	progress progress
}

// progress is what leaders were told of a sub-job.
type progress struct {
	mu     sync.Mutex
	last   protocol.Progress // Worker is empty if nothing was told
	before protocol.Work     // what earlier leaders were told, so that it is not counted twice
}

// tell returns a message about a sub-job, with what earlier leaders were told.
func (p *progress) tell(m protocol.Progress) protocol.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Worker != "" && p.last.Epoch != m.Epoch {
		p.before = p.last.Done
	}
	m.Counted = p.before
	p.last = m
	return m
}

// again returns the latest message, for the leader of a stamp. ok is false if there is none.
func (p *progress) again(s protocol.Stamp) (m protocol.Progress, ok bool) {
	p.mu.Lock()
	m = p.last
	p.mu.Unlock()
	if m.Worker == "" {
		return m, false
	}
	m.Stamp = s
	return p.tell(m), true
}
