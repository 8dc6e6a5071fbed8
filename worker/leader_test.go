package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// leader speaks the leader's half of the protocol.
type leader struct {
	*cluster
	id    string
	epoch uint64
	beats chan protocol.Heartbeat

	parts    chan *protocol.Partial
	gathered chan *protocol.Result
	needs    chan *protocol.Need
	fails    chan *protocol.Fail
	progress chan *protocol.Progress

	mu   sync.Mutex
	jobs map[uint64]chan bus.Message // results that a job's executor takes
}

// lead makes a leader and announces it.
func (c *cluster) lead(id string, epoch uint64) *leader {
	c.t.Helper()
	l := c.unannounced(id, epoch)
	l.announce()
	return l
}

// unannounced is lead for a leader of which no worker knows yet.
func (c *cluster) unannounced(id string, epoch uint64) *leader {
	c.t.Helper()
	l := &leader{
		cluster: c, id: id, epoch: epoch,
		beats: make(chan protocol.Heartbeat, 10000), parts: make(chan *protocol.Partial, 1000),
		gathered: make(chan *protocol.Result, 100), needs: make(chan *protocol.Need, 100),
		fails: make(chan *protocol.Fail, 1000), progress: make(chan *protocol.Progress, 1000),
		jobs: make(map[uint64]chan bus.Message),
	}
	must[*bus.Subscription](c.t)(c.conn.Subscribe(c.subjects.Heartbeats("*"), l.onBeat))
	must[*bus.Subscription](c.t)(c.conn.Subscribe(l.results(), l.onResult))
	return l
}

func (l *leader) announce() {
	m := protocol.Lead{Epoch: l.epoch, Coordinator: l.id}
	l.publish(l.subjects.Lead(), m.Append(nil))
}

func (l *leader) results() string { return l.subjects.Results(l.id, l.epoch) }

func (l *leader) publish(subject string, m []byte) {
	l.t.Helper()
	if err := l.conn.Send(subject, l.results(), m); err != nil {
		l.t.Error(err)
	}
}

func (l *leader) onBeat(m bus.Message) {
	var b protocol.Heartbeat
	if err := b.Decode(m.Data); err != nil {
		l.t.Error(err)
	}
	select {
	case l.beats <- b:
	default: // nobody looks
	}
}

func (l *leader) onResult(m bus.Message) {
	stamp, _, err := protocol.PeekStamp(m.Data)
	if err != nil {
		l.t.Error(err)
		return
	}
	l.mu.Lock()
	ch := l.jobs[stamp.Job]
	l.mu.Unlock()
	if ch != nil {
		ch <- m
		return
	}
	l.sort(m.Data)
}

func (l *leader) sort(b []byte) {
	kind, _ := protocol.KindOf(b)
	var err error
	switch kind {
	case protocol.KindPartial:
		m := &protocol.Partial{Partial: new(round.Partial)}
		err = m.Decode(b)
		l.parts <- m
	case protocol.KindResult:
		m := new(protocol.Result)
		err = m.Decode(b)
		l.gathered <- m
	case protocol.KindNeed:
		m := new(protocol.Need)
		err = m.Decode(b)
		l.needs <- m
	case protocol.KindFail:
		m := new(protocol.Fail)
		err = m.Decode(b)
		l.fails <- m
	case protocol.KindCheckpoint:
		err = new(protocol.Checkpoint).Decode(b)
	case protocol.KindProgress:
		m := new(protocol.Progress)
		err = m.Decode(b)
		select {
		case l.progress <- m:
		default: // nobody looks
		}
	default:
		err = fmt.Errorf("a result of kind %d", kind)
	}
	if err != nil {
		l.t.Error(err)
	}
}

// to sends any message to a worker.
func (l *leader) to(w *running, m interface{ Append([]byte) []byte }) {
	l.t.Helper()
	l.publish(l.subjects.Work(w.id), m.Append(nil))
}

func (l *leader) setup(w *running, id uint64, j *round.Job, m *dataset.Manifest) {
	l.t.Helper()
	l.to(w, &protocol.Setup{Epoch: l.epoch, ID: id, Job: j, Manifest: m})
}

func (l *leader) values(w *running, id uint64, r *round.Round) {
	l.t.Helper()
	for _, v := range r.Vars {
		l.to(w, &protocol.Value{Epoch: l.epoch, Job: id, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Data: v.Data})
	}
}

// message is the Run message of some tasks of a round.
func (l *leader) message(id, n uint64, r *round.Round, units []uint32) *protocol.Run {
	m := &protocol.Run{
		Stamp: protocol.Stamp{Epoch: l.epoch, Job: id, Round: n},
		Kind:  r.Kind, Op: r.Op, Of: uint32(r.Tasks), Scope: r.Scope, Roles: r.Roles, Tasks: units,
	}
	switch how := r.How.(type) {
	case *round.Reduce:
		m.Steps, m.Keep, m.Shape = how.Steps, how.DerivedVersion, how.Shape
	case *round.Gather:
		m.Gather, m.SubJob = true, how.SubJob != nil
	}
	for _, v := range r.Vars {
		m.Refs = append(m.Refs, protocol.Ref{ID: v.ID, Version: v.Version})
	}
	return m
}

func allTasks(n int) []uint32 {
	units := make([]uint32, n)
	for i := range units {
		units[i] = uint32(i)
	}
	return units
}

// remote runs a job's rounds on workers, task u on worker u mod n, and sends
// each everything, so that only the workers' answers matter.
type remote struct {
	l       *leader
	id      uint64
	job     *round.Job
	data    *data
	workers []*running
	mail    chan bus.Message
	tree    engine.Tree
	known   bool
	check   *engine.Local // where set, every sum must be the same
}

func (l *leader) executor(id uint64, j *round.Job, d *data, workers ...*running) *remote {
	x := &remote{l: l, id: id, job: j, data: d, workers: workers, mail: make(chan bus.Message, 1000)}
	l.mu.Lock()
	l.jobs[id] = x.mail
	l.mu.Unlock()
	return x
}

// Do implements engine.Executor.
func (x *remote) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if r.Reduce() == nil {
		return fmt.Errorf("this test sums")
	}
	x.tree.Reset(r.Tasks, r.Reduce().Shape)
	for i, w := range x.workers {
		var units []uint32
		for u := i; u < r.Tasks; u += len(x.workers) {
			units = append(units, uint32(u))
		}
		if !x.known {
			x.l.setup(w, x.id, x.job, x.data.manifest)
		}
		if len(units) > 0 {
			x.l.values(w, x.id, r)
			x.l.to(w, x.l.message(x.id, n, r, units))
		}
	}
	x.known = true
	for x.tree.Root() == nil {
		if err := x.receive(ctx, n); err != nil {
			return err
		}
	}
	res.Sum, res.Gathered = x.tree.Root(), nil
	return x.compare(ctx, n, r, res)
}

func (x *remote) receive(ctx context.Context, n uint64) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(timeout):
		return fmt.Errorf("round %d is not answered", n)
	case m := <-x.mail:
		part := protocol.Partial{Partial: x.tree.Partial()}
		if err := part.Decode(m.Data); err != nil {
			return err
		}
		if part.Round != n {
			return fmt.Errorf("a part of round %d in round %d", part.Round, n)
		}
		_, err := x.tree.Put(int(part.Level), int(part.Index), part.Partial)
		return err
	}
}

func (x *remote) compare(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	if x.check == nil {
		return nil
	}
	var want round.Result
	if err := x.check.Do(ctx, n, r, &want); err != nil {
		return err
	}
	return samePartial(res.Sum, want.Sum)
}

var _ engine.Executor = (*remote)(nil)
