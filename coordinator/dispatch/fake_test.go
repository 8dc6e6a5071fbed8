package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// fake is a worker that does nothing by itself: the test reads its orders and sends its answers.
type fake struct {
	l      *lab
	id     string
	conn   *bus.Conn
	work   *bus.Subscription
	orders chan order
}

// order is a message from the leader.
type order struct {
	// bundle is the kinds of the messages that came as one with it; nil if it came alone.
	bundle []protocol.Kind
	kind   protocol.Kind
	run    *protocol.Run
	value  *protocol.Value
	chunk  *protocol.Chunk
	setup  *protocol.Setup
	hold   *protocol.Hold
	forget *protocol.Forget
	reply  string
}

// join connects a worker that has the given shards, and waits until the leader knows it.
func (l *lab) join(id string, slots int, shards ...int) *fake {
	l.t.Helper()
	f := &fake{l: l, id: id, conn: l.connect(), orders: make(chan order, 1000)}
	f.listen()
	polls := 0
	l.until("worker "+id, func() bool {
		if polls++; polls%100 == 1 { // the first heartbeat across a route may be lost
			f.beat(func(b *protocol.Heartbeat) {
				b.Slots, b.Full = slots, true
				for _, s := range shards {
					b.Holds = append(b.Holds, manifest().Shards[s].Digest)
				}
			})
		}
		w, known := l.view(id)
		return known && w.Shards == len(shards)
	})
	return f
}

// withOne returns a lab in which nothing is overdue, a worker with so many slots, and the executor of a job, which is
// closed at the end of the test.
func withOne(t *testing.T, slots int) (l *lab, w *fake, x *Executor) {
	t.Helper()
	l = newLab(t, never)
	w, x = l.join("w", slots), l.executor(jobID)
	t.Cleanup(x.Close)
	return l, w, x
}

// withTwo is withOne with two workers that have one slot each.
func withTwo(t *testing.T) (l *lab, w1, w2 *fake, x *Executor) {
	t.Helper()
	l = newLab(t, never)
	w1, w2, x = l.join("w1", 1), l.join("w2", 1), l.executor(jobID)
	t.Cleanup(x.Close)
	return l, w1, w2, x
}

// listen takes orders from now on.
func (f *fake) listen() {
	f.l.t.Helper()
	var err error
	if f.work, err = f.conn.Subscribe(subjects.Work(f.id), f.take); err != nil {
		f.l.t.Fatal(err)
	}
}

// beat sends a heartbeat with what change adds.
func (f *fake) beat(change func(*protocol.Heartbeat)) {
	f.l.t.Helper()
	b := protocol.Heartbeat{Worker: f.id, Version: "test", Protocol: protocol.Version, Numerics: round.Numerics, Slots: 1}
	change(&b)
	if err := f.conn.Send(subjects.Heartbeats(f.id), "", b.Append(nil)); err != nil {
		f.l.t.Fatal(err)
	}
}

// take takes a message, or the messages of a bundle.
func (f *fake) take(m bus.Message) {
	if kind, _ := protocol.KindOf(m.Data); kind != protocol.KindBundle {
		f.takeOne(m.Data, order{kind: kind, reply: m.Reply})
		return
	}
	var b protocol.Bundle
	if err := b.Decode(m.Data); err != nil {
		f.l.t.Errorf("worker %s: %v", f.id, err)
	}
	var kinds []protocol.Kind
	for _, one := range b.Messages {
		kind, _ := protocol.KindOf(one)
		kinds = append(kinds, kind)
	}
	for i, one := range b.Messages {
		f.takeOne(one, order{kind: kinds[i], bundle: kinds, reply: m.Reply})
	}
}

// takeOne decodes a message for the test.
func (f *fake) takeOne(message []byte, o order) {
	var err error
	switch o.kind {
	case protocol.KindRun:
		o.run = new(protocol.Run)
		err = o.run.Decode(message)
		o.run.Payload = cloned(o.run.Payload)
	case protocol.KindValue:
		o.value = new(protocol.Value)
		err = o.value.Decode(message)
	case protocol.KindChunk:
		o.chunk = new(protocol.Chunk)
		err = o.chunk.Decode(message)
	case protocol.KindSetup:
		o.setup = new(protocol.Setup)
		err = o.setup.Decode(message)
	case protocol.KindHold:
		o.hold = new(protocol.Hold)
		err = o.hold.Decode(message)
	case protocol.KindForget:
		o.forget = new(protocol.Forget)
		err = o.forget.Decode(message)
	}
	if err != nil {
		f.l.t.Errorf("worker %s: %v", f.id, err)
	}
	if o.kind == protocol.KindProbe {
		return
	}
	select {
	case f.orders <- o:
	case <-f.l.t.Context().Done(): // nobody reads orders any longer
	}
}

// next returns the next order of a kind. It passes over Holds unless they are asked for. Another order fails the test.
func (f *fake) next(kind protocol.Kind) order {
	f.l.t.Helper()
	for {
		select {
		case o := <-f.orders:
			if o.kind == kind {
				return o
			}
			if o.kind != protocol.KindHold {
				f.l.t.Fatalf("worker %s has an order of kind %d, want kind %d", f.id, o.kind, kind)
			}
		case <-time.After(testkit.Limit):
			f.l.t.Fatalf("worker %s has no order of kind %d in %v", f.id, kind, testkit.Limit)
		}
	}
}

// run returns the next Run, which must be for these tasks if any are given.
func (f *fake) run(tasks ...uint32) *assignment {
	f.l.t.Helper()
	o := f.next(protocol.KindRun)
	if tasks != nil && !slices.Equal(o.run.Tasks, tasks) {
		f.l.t.Fatalf("worker %s is to compute tasks %v, want %v", f.id, o.run.Tasks, tasks)
	}
	return &assignment{f, o.run, o.reply}
}

// first returns the first Run of a job, which follows the Setup and so many Values.
func (f *fake) first(values int) *assignment {
	f.l.t.Helper()
	f.next(protocol.KindSetup)
	for range values {
		f.next(protocol.KindValue)
	}
	return f.run()
}

// stops checks that the worker is told to stop a task.
func (f *fake) stops(task uint32) {
	f.l.t.Helper()
	if stop := f.next(protocol.KindForget).forget; stop.Epoch != epoch || !slices.Equal(stop.Tasks, []uint32{task}) {
		f.l.t.Errorf("worker %s is told to forget %+v, want task %d", f.id, stop, task)
	}
}

// idle fails the test if the leader asked for anything other than Holds. What was sent before a message that has come
// is here by now.
func (f *fake) idle() {
	f.l.t.Helper()
	if err := f.l.conn.Flush(f.l.ctx()); err != nil {
		f.l.t.Fatal(err)
	}
	if err := f.conn.Flush(f.l.ctx()); err != nil {
		f.l.t.Fatal(err)
	}
	for {
		select {
		case o := <-f.orders:
			if o.kind != protocol.KindHold {
				f.l.t.Fatalf("worker %s has an order of kind %d: %+v", f.id, o.kind, o.run)
			}
		default:
			return
		}
	}
}

// assignment is a Run that a worker is to answer.
type assignment struct {
	f     *fake
	run   *protocol.Run
	reply string
}

func (a *assignment) send(b []byte) {
	a.f.l.t.Helper()
	if err := a.f.conn.Send(a.reply, "", b); err != nil {
		a.f.l.t.Fatal(err)
	}
}

// partial sends the partial of one task, after changing the message.
func (a *assignment) partial(task uint32, change func(*protocol.Partial)) {
	a.f.l.t.Helper()
	p := new(round.Partial)
	p.Reset(a.run.Shape)
	fill(p, a.run.Round, int(task))
	m := protocol.Partial{Stamp: a.run.Stamp, Worker: a.f.id, Index: task, Compute: 1000, Partial: p}
	if change != nil {
		change(&m)
	}
	a.send(m.Append(nil))
}

// partials sends the partials of all tasks, one by one, the last first.
func (a *assignment) partials() {
	a.f.l.t.Helper()
	for i := len(a.run.Tasks) - 1; i >= 0; i-- {
		a.partial(a.run.Tasks[i], nil)
	}
}

// nodes sends the nodes of the tree that the tasks fill, as workers do.
func (a *assignment) nodes() (sent int) {
	a.f.l.t.Helper()
	var tree engine.Tree
	tree.Reset(int(a.run.Of), a.run.Shape)
	for _, task := range a.run.Tasks {
		p := tree.Partial()
		fill(p, a.run.Round, int(task))
		tree.Put(0, int(task), p)
	}
	tree.Nodes(func(level, i int, p *round.Partial) {
		m := protocol.Partial{Stamp: a.run.Stamp, Worker: a.f.id, Level: uint8(level), Index: uint32(i), Partial: p}
		a.send(m.Append(nil))
		sent++
	})
	return sent
}

func (a *assignment) need(m protocol.Need) {
	a.f.l.t.Helper()
	m.Stamp, m.Worker = a.run.Stamp, a.f.id
	a.send(m.Append(nil))
}

func (a *assignment) fail(task uint32, permanent bool) {
	a.f.l.t.Helper()
	m := protocol.Fail{Stamp: a.run.Stamp, Worker: a.f.id, Task: task, Permanent: permanent,
		Reason: fmt.Sprintf("task %d is bad on %s", task, a.f.id)}
	a.send(m.Append(nil))
}

// announce says that a task's result is there, and not how long it took to compute.
func (a *assignment) announce(task uint32) {
	a.f.l.t.Helper()
	a.announceAfter(task, 0)
}

// brief says that a task's result is there, and that it took little time to compute.
func (a *assignment) brief(task uint32) {
	a.f.l.t.Helper()
	a.announceAfter(task, time.Microsecond)
}

func (a *assignment) announceAfter(task uint32, took time.Duration) {
	a.f.l.t.Helper()
	m := protocol.Result{Stamp: a.run.Stamp, Worker: a.f.id, Task: task, Digest: digestOf(task), Bytes: 10,
		Compute: uint64(took)}
	a.send(m.Append(nil))
}

// task returns the one task of a Run of a gather round.
func (a *assignment) task() uint32 {
	a.f.l.t.Helper()
	if len(a.run.Tasks) != 1 {
		a.f.l.t.Fatalf("worker %s is to compute tasks %v", a.f.id, a.run.Tasks)
	}
	return a.run.Tasks[0]
}
