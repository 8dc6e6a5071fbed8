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

// fake is a worker that does nothing by itself: the test reads its orders and
// says its answers.
type fake struct {
	l      *lab
	id     string
	conn   *bus.Conn
	work   *bus.Subscription
	orders chan order
}

// order is a message from the leader.
type order struct {
	kind   protocol.Kind
	run    *protocol.Run
	value  *protocol.Value
	piece  *protocol.Piece
	bundle *protocol.Bundle
	setup  *protocol.Setup
	hold   *protocol.Hold
	forget *protocol.Forget
	reply  string
}

// join connects a worker that has the given shards, and waits until the leader
// knows it.
func (l *lab) join(id string, slots int, shards ...int) *fake {
	l.t.Helper()
	f := &fake{l: l, id: id, conn: l.connect(), orders: make(chan order, 1000)}
	f.listen()
	polls := 0
	l.until("worker "+id, func() bool {
		if polls++; polls%100 == 1 { // a first beat across a route may get lost
			f.beat(func(b *protocol.Beat) {
				b.Slots, b.Full = slots, true
				for _, s := range shards {
					b.Holds = append(b.Holds, manifest().Shards[s].Digest)
				}
			})
		}
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		w := l.d.crew.workers[id]
		return w != nil && len(w.holds) == len(shards)
	})
	return f
}

// joinAble is join for a worker that says that it is able to do something; able finds where a
// beat says so.
func (l *lab) joinAble(id string, able func(*protocol.Beat) *bool) *fake {
	l.t.Helper()
	f := l.join(id, 1)
	f.beat(func(b *protocol.Beat) { *able(b) = true })
	l.until("what worker "+id+" is able to do", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		return *able(&l.d.crew.workers[id].beat)
	})
	return f
}

// withOne is a lab in which nothing is overdue, a worker with so many slots, and the executor of a
// job, which is closed with the test.
func withOne(t *testing.T, slots int) (l *lab, w *fake, x *Executor) {
	t.Helper()
	l = newLab(t, never)
	w, x = l.join("w", slots), l.executor(jobID)
	t.Cleanup(x.Close)
	return l, w, x
}

// withTwo is withOne with two workers of a slot each.
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

// beat says that the worker is alive, and what change adds.
func (f *fake) beat(change func(*protocol.Beat)) {
	f.l.t.Helper()
	b := protocol.Beat{Worker: f.id, Version: "test", Protocol: protocol.Version, Numerics: round.Numerics, Slots: 1}
	change(&b)
	if err := f.conn.Send(subjects.Beats(), "", b.Append(nil)); err != nil {
		f.l.t.Fatal(err)
	}
}

func (f *fake) take(m bus.Message) {
	o := order{reply: m.Reply}
	o.kind, _ = protocol.KindOf(m.Data)
	var err error
	switch o.kind {
	case protocol.KindRun:
		o.run = new(protocol.Run)
		err = o.run.Decode(m.Data)
		o.run.Payload = cloned(o.run.Payload)
	case protocol.KindValue:
		o.value = new(protocol.Value)
		err = o.value.Decode(m.Data)
	case protocol.KindBundle:
		o.bundle = new(protocol.Bundle)
		err = o.bundle.Decode(m.Data)
	case protocol.KindPiece:
		o.piece = new(protocol.Piece)
		err = o.piece.Decode(m.Data)
	case protocol.KindSetup:
		o.setup = new(protocol.Setup)
		err = o.setup.Decode(m.Data)
	case protocol.KindHold:
		o.hold = new(protocol.Hold)
		err = o.hold.Decode(m.Data)
	case protocol.KindForget:
		o.forget = new(protocol.Forget)
		err = o.forget.Decode(m.Data)
	}
	if err != nil {
		f.l.t.Errorf("worker %s: %v", f.id, err)
	}
	if o.kind == protocol.KindProbe {
		return
	}
	select {
	case f.orders <- o:
	case <-f.l.t.Context().Done(): // nobody reads orders any more
	}
}

// next returns the next order of a kind; Holds are passed over unless they are
// asked for, another order fails the test.
func (f *fake) next(kind protocol.Kind) order {
	f.l.t.Helper()
	for {
		select {
		case o := <-f.orders:
			if o.kind == kind {
				return o
			}
			if o.kind != protocol.KindHold {
				f.l.t.Fatalf("worker %s has an order of kind %d, kind %d was due", f.id, o.kind, kind)
			}
		case <-time.After(testkit.Limit):
			f.l.t.Fatalf("worker %s has no order of kind %d in %v", f.id, kind, testkit.Limit)
		}
	}
}

// run returns the next Run, which must be for these units if any are given.
func (f *fake) run(units ...uint32) *task {
	f.l.t.Helper()
	o := f.next(protocol.KindRun)
	if units != nil && !slices.Equal(o.run.Units, units) {
		f.l.t.Fatalf("worker %s is to compute units %v, want %v", f.id, o.run.Units, units)
	}
	return &task{f, o.run, o.reply}
}

// first returns the first Run of a job, behind the Setup and so many Values.
func (f *fake) first(values int) *task {
	f.l.t.Helper()
	f.next(protocol.KindSetup)
	for range values {
		f.next(protocol.KindValue)
	}
	return f.run()
}

// idle fails the test if the leader asked for something beside Holds. What was
// sent before a message that has come is here by now.
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

// task is a Run that a worker is to answer.
type task struct {
	f     *fake
	run   *protocol.Run
	reply string
}

func (t *task) send(b []byte) {
	t.f.l.t.Helper()
	if err := t.f.conn.Send(t.reply, "", b); err != nil {
		t.f.l.t.Fatal(err)
	}
}

// part says one unit's partial, after changing the message.
func (t *task) part(unit uint32, change func(*protocol.Part)) {
	t.f.l.t.Helper()
	p := new(round.Partial)
	p.Reset(t.run.Shape)
	fill(p, t.run.Round, int(unit))
	m := protocol.Part{Stamp: t.run.Stamp, Worker: t.f.id, Index: unit, Compute: 1000, Partial: p}
	if change != nil {
		change(&m)
	}
	t.send(m.Append(nil))
}

// parts says the partials of all units, one by one, the last first.
func (t *task) parts() {
	t.f.l.t.Helper()
	for i := len(t.run.Units) - 1; i >= 0; i-- {
		t.part(t.run.Units[i], nil)
	}
}

// nodes says the nodes of the tree that the units fill, as workers do.
func (t *task) nodes() (sent int) {
	t.f.l.t.Helper()
	var tree engine.Tree
	tree.Reset(int(t.run.Of), t.run.Shape)
	for _, u := range t.run.Units {
		p := tree.Partial()
		fill(p, t.run.Round, int(u))
		tree.Put(0, int(u), p)
	}
	tree.Nodes(func(level, i int, p *round.Partial) {
		m := protocol.Part{Stamp: t.run.Stamp, Worker: t.f.id, Level: uint8(level), Index: uint32(i), Partial: p}
		t.send(m.Append(nil))
		sent++
	})
	return sent
}

func (t *task) need(m protocol.Need) {
	t.f.l.t.Helper()
	m.Stamp, m.Worker = t.run.Stamp, t.f.id
	t.send(m.Append(nil))
}

func (t *task) fail(unit uint32, permanent bool) {
	t.f.l.t.Helper()
	m := protocol.Fail{Stamp: t.run.Stamp, Worker: t.f.id, Unit: unit, Permanent: permanent, Reason: fmt.Sprintf("unit %d is bad on %s", unit, t.f.id)}
	t.send(m.Append(nil))
}

// collected says that a unit's bytes are there, which took long to compute for all
// that is said.
func (t *task) collected(unit uint32) {
	t.f.l.t.Helper()
	t.announce(unit, 0)
}

// brief says so of one that took little.
func (t *task) brief(unit uint32) {
	t.f.l.t.Helper()
	t.announce(unit, time.Microsecond)
}

func (t *task) announce(unit uint32, took time.Duration) {
	t.f.l.t.Helper()
	m := protocol.Collected{Stamp: t.run.Stamp, Worker: t.f.id, Unit: unit, Digest: digestOf(unit), Bytes: 10, Compute: uint64(took)}
	t.send(m.Append(nil))
}

// unit is the one unit that a collected Run is for.
func (t *task) unit() uint32 {
	t.f.l.t.Helper()
	if len(t.run.Units) != 1 {
		t.f.l.t.Fatalf("worker %s is to collect units %v", t.f.id, t.run.Units)
	}
	return t.run.Units[0]
}
