package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// stepper reports events to jobs, and sends what follows from them. One goroutine at a time uses it.
type stepper struct {
	jobs *jobs

	later []batch.Action // memory of step
	buf   []byte         // of messages
	need  protocol.Need
}

// step reports an event, and does what follows from it without the lock. The action that only the caller can do, if there
// is one, is returned: Compute, Keep, KeepChunk or RefuseMessage.
func (s *stepper) step(e batch.Event) (left batch.Action, ok bool) {
	j := s.jobs
	s.later = j.apply(s.later[:0], e)
	for i := 0; i < len(s.later); i++ { // answers append to it
		switch a := &s.later[i]; a.Kind {
		case batch.Need:
			s.need = protocol.Need{Stamp: a.Stamp, Worker: j.id, Setup: a.Refs == nil, Refs: a.Refs}
			j.metrics.Needs.Inc()
			s.buf = s.need.Append(s.buf[:0])
			j.link.send(a.Reply, s.buf)
		case batch.Fail:
			f := batch.FailureOf(a.Err)
			j.metrics.UnitsFailed.Inc()
			j.log.Warn("a task failed", "job", a.Stamp.Job, "round", a.Stamp.Round, "unit", a.Unit, "permanent", f.Permanent, "reason", f)
			m := protocol.Fail{Stamp: a.Stamp, Worker: j.id, Unit: a.Unit, Permanent: f.Permanent, NonFinite: f.NonFinite, Unable: f.Unable, Reason: f.Error()}
			j.link.send(a.Reply, m.Append(nil))
		case batch.Announce:
			if m, ok := a.Task.Local.(*gathered).progress.again(a.Stamp); ok {
				j.link.send(a.Reply, m.Append(nil))
			}
			m := protocol.Collected{
				Stamp: a.Stamp, Worker: j.id, Unit: a.Unit,
				Compute: uint64(a.Took), Digest: a.Digest, Bytes: uint64(a.Bytes),
			}
			j.link.send(a.Reply, m.Append(nil))
		case batch.Answer:
			b := a.Batch
			s.answer(b.Local.(*work), b.Reply)
			s.later = j.apply(s.later, batch.Event{Kind: batch.Answered, Batch: b})
		case batch.Report:
			j.report()
		case batch.Idle:
			j.cache.unwant()
			j.link.releaseMemory()
		case batch.CountStale:
			j.drops.epoch.Inc()
		case batch.CountLate:
			j.drops.late.Inc()
		case batch.RefuseJob:
			j.log.Warn("a job is not set up, because too many jobs are in use", "job", a.ID, "jobs", batch.MaxBusyJobs)
		default:
			left, ok = *a, true
		}
	}
	clear(s.later)
	return left, ok
}

// work is the memory of a batch, also after it has retired.
type work struct {
	job  *job
	run  protocol.Run
	vars round.Vars

	mu   sync.Mutex // guards what follows between executors
	tree engine.Tree
	took []time.Duration // by index in the message
	part protocol.Part   // scratch of answer
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
		w.vars = append(w.vars, round.Var{ID: v.ID, Version: v.Number, Data: x.data, Pieces: x.list})
	}
	for t := range b.Tasks {
		g := new(gathered)
		g.ctx, g.cancel = context.WithCancel(j.ctx)
		t.Local = g
	}
	if w.run.How == round.Sum {
		w.took = slices.Grow(w.took[:0], len(w.run.Units))[:len(w.run.Units)]
		clear(w.took)
		w.tree.Reset(int(w.run.Of), w.run.Shape)
	}
}

// retire gives up what the batch refers to, and keeps its memory.
func (w *work) retire() {
	clear(w.vars)
	clear(w.run.Payload)
}

// longPart is the number of bytes from which a partial is sent without being copied.
const longPart = 1 << 20

// answer sends the maximal nodes of the reduction tree that a batch has filled (design section 8.4).
func (s *stepper) answer(w *work, reply string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &w.part
	p.Stamp, p.Worker = w.run.Stamp, s.jobs.id
	w.tree.Nodes(func(level, index int, sum *round.Partial) {
		p.Level, p.Index, p.Partial, p.Compute = uint8(level), uint32(index), sum, 0
		first, _ := slices.BinarySearch(w.run.Units, uint32(index<<level))
		for i := first; i < len(w.run.Units) && int(w.run.Units[i])>>level == index; i++ {
			p.Compute += uint64(w.took[i])
		}
		if 4*len(sum.F32) >= longPart {
			parts := p.Parts(s.buf[:0])
			s.jobs.link.sendParts(reply, parts[:]...)
			return
		}
		s.buf = p.Append(s.buf[:0])
		s.jobs.link.send(reply, s.buf)
	})
	p.Partial = nil
}

// gathered is a task of a gather round.
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

// reportTo makes a sub-job tell the leader its progress and its checkpoints.
func (j *jobs) reportTo(t *batch.Task, o *local.Options) {
	o.Report = func(rounds uint64, p round.Progress) {
		if p.Loss-p.Loss != 0 { // not a finite number
			p.Loss = -1
		}
		stamp, reply := j.addressee(t)
		m := t.Local.(*gathered).progress.tell(protocol.Progress{
			Stamp: stamp, Worker: j.id, Unit: t.Unit, Done: protocol.Work{Rounds: rounds, Steps: p.Step, Samples: p.Samples},
			Steps: p.Steps, Most: p.MostSteps, Loss: p.Loss,
		})
		j.link.send(reply, m.Append(nil))
	}
	o.Checkpoint = func(at local.Checkpoint) {
		stamp, reply := j.addressee(t)
		m := protocol.Checkpoint{Stamp: stamp, Worker: j.id, Unit: t.Unit, Resume: protocol.Resume(at)}
		j.link.send(reply, m.Append(nil))
	}
	o.CheckpointEvery = j.cfg.CheckpointEvery
}
