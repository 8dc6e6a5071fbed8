package dispatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// answers lists messages of a worker in a reduce round, right and wrong. None of them must end the job.
func answers(number uint64) [][]byte {
	stamp := protocol.Stamp{Epoch: epoch, Job: jobID, Round: number}
	p := new(round.Partial)
	p.Reset(labShape)
	fill(p, number+100, 0)
	wide := &round.Partial{F64: make([]float64, 1<<16), Index: []uint32{3, 2, math.MaxUint32},
		Values: make([]float32, 3), Width: 1}
	return [][]byte{
		(&protocol.Partial{Stamp: stamp, Worker: "ghost", Level: 255, Index: math.MaxUint32, Compute: math.MaxUint64,
			Partial: p}).Append(nil),
		(&protocol.Partial{Stamp: stamp, Worker: strings.Repeat("x", protocol.MaxText), Level: 0, Index: 1 << 31,
			Partial: p}).Append(nil),
		(&protocol.Partial{Stamp: stamp, Worker: "ghost", Level: 0, Index: 0, Partial: wide}).Append(nil),
		(&protocol.Partial{Stamp: protocol.Stamp{Epoch: epoch - 1, Job: jobID, Round: number}, Worker: "w1", Partial: p}).
			Append(nil),
		(&protocol.Partial{Stamp: protocol.Stamp{Epoch: math.MaxUint64, Job: jobID, Round: number}, Worker: "w1",
			Partial: p}).Append(nil),
		(&protocol.Partial{Stamp: protocol.Stamp{Epoch: epoch, Job: jobID, Round: number + 1}, Worker: "w1", Partial: p}).
			Append(nil),
		(&protocol.Partial{Stamp: protocol.Stamp{Epoch: epoch, Job: jobID + 1, Round: number}, Worker: "w1", Partial: p}).
			Append(nil),
		(&protocol.Need{Stamp: stamp, Worker: "a b\r\nPUB x 0\r\n", Setup: true}).Append(nil),
		(&protocol.Need{Stamp: stamp, Worker: "ghost", Refs: make([]protocol.Ref, protocol.MaxVars)}).Append(nil),
		(&protocol.Fail{Stamp: stamp, Worker: "ghost", Task: math.MaxUint32, Reason: "why"}).Append(nil),
		(&protocol.Fail{Stamp: stamp, Worker: "ghost", Task: 3, Reason: strings.Repeat("\x00", protocol.MaxText)}).
			Append(nil),
		(&protocol.Result{Stamp: stamp, Worker: "ghost", Task: 2, Digest: "../../etc/passwd", Bytes: math.MaxUint64}).
			Append(nil),
		(&protocol.Result{Stamp: stamp, Worker: "w1", Task: 2}).Append(nil),
		(&protocol.Checkpoint{Stamp: stamp, Worker: "ghost", Task: 2, Resume: protocol.Resume{State: make([]byte, 1<<10)}}).
			Append(nil),
		(&protocol.Progress{Stamp: stamp, Worker: "ghost", Task: 2, Done: protocol.Work{Rounds: protocol.MaxCount,
			Steps: protocol.MaxCount, Samples: protocol.MaxCount}}).Append(nil),
		(&protocol.Progress{Stamp: stamp, Worker: "w1", Task: math.MaxUint32, Loss: math.Inf(-1)}).Append(nil),
		(&protocol.Fragment{Sender: 1, Message: 1, Total: protocol.MaxMessage, Data: []byte{1, 6}}).Append(nil),
		(&protocol.Fragment{Sender: 2, Message: 1, Offset: 5, Total: 9, Data: []byte{1, 6}}).Append(nil),
		{}, {protocol.Version}, {protocol.Version, 200}, {9, 6},
		make([]byte, 9<<20), // more than NATS carries at once
	}
}

// harmless reports whether a changed answer must not end or spoil a job. A leader believes its workers' numbers and
// permanent failures.
func harmless(b []byte) bool {
	var fail protocol.Fail
	part := protocol.Partial{Partial: new(round.Partial)}
	switch {
	case fail.Decode(b) == nil:
		return !fail.Permanent
	case part.Decode(b) == nil:
		return part.Epoch != epoch || part.Partial.Check(labShape) != nil
	}
	return true
}

// spoiled returns a message with some bytes changed.
func spoiled(rng *rand.Rand, m []byte) []byte {
	m = bytes.Clone(m)
	for range 1 + rng.IntN(3) {
		if len(m) < 12 {
			return append(m, byte(rng.Uint32()))
		}
		at := rng.IntN(min(len(m), 200) - 8)
		switch rng.IntN(4) {
		case 0:
			m[at] ^= 1 << rng.IntN(8)
		case 1:
			binary.LittleEndian.PutUint64(m[at:], rng.Uint64()>>rng.IntN(64))
		case 2:
			m = m[:len(m)-1-rng.IntN(8)]
		default:
			m[at] = 0xff
		}
	}
	return m
}

// TestHostileMessages: the leader goes on whatever comes on its subjects, of any epoch and round. It bounds what it
// keeps, and a round has the sum that its own workers answer.
func TestHostileMessages(t *testing.T) {
	l := newLab(t, never)
	w := l.join("w1", 2)
	x := l.executor(jobID)
	defer x.Close()
	enemy := l.connect()
	send := func(subject string, m []byte) {
		t.Helper()
		if err := enemy.Send(subject, "", m); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(1, 0))
	d := l.do(x, 5, reduceRound(8, variable(1, 10)))
	task := w.first(1)
	result := func(m []byte) { // from the worker that it names, if that is a name
		t.Helper()
		_, worker, _ := protocol.PeekStamp(m)
		if protocol.CheckID(string(worker)) != nil {
			worker = []byte("ghost")
		}
		send(protocol.ResultsOf(subjects.Results("a", epoch), string(worker)), m)
	}
	list := answers(5)
	beat := (&protocol.Heartbeat{Worker: "w9", Protocol: protocol.Version, Numerics: round.Numerics, Slots: math.MaxInt,
		Full: true, Holds: make([]string, 1<<12)}).Append(nil)
	for _, m := range append(list, beat) {
		result(m)
		send(subjects.Heartbeats("w9"), m)
	}
	for i := range 3000 {
		if m := spoiled(rng, list[i%(len(list)-1)]); harmless(m) {
			result(m)
		}
		send(subjects.Heartbeats("w9"), spoiled(rng, beat))
	}
	for i := range schedule.MaxWorkers + 100 {
		b := protocol.Heartbeat{Worker: fmt.Sprintf("flood-%d", i), Protocol: protocol.Version + 1}
		send(subjects.Heartbeats(b.Worker), b.Append(nil))
	}
	for _, id := range []string{"", "a.b", "*", ">", "a b", "x\r\nPUB y 0\r\n", strings.Repeat("n", 65)} {
		b := protocol.Heartbeat{Worker: id, Protocol: protocol.Version, Numerics: round.Numerics, Slots: 1}
		send(subjects.Heartbeats("w9"), b.Append(nil))
	}
	l.until("the leader to know as many workers as it may", func() bool {
		l.d.mu.Lock()
		defer l.d.mu.Unlock()
		return len(l.d.said) >= schedule.MaxWorkers
	})
	l.d.mu.Lock()
	views := l.d.workers.View(time.Now())
	for i := range views {
		if name := views[i].Name; protocol.CheckID(name) != nil {
			t.Errorf("there is a worker called %q", name)
		} else if name != "w1" {
			l.d.workers.Heard(name, time.Now().Add(-2*never))
		}
	}
	if len(views) > schedule.MaxWorkers || len(l.d.said) != len(views) {
		t.Errorf("the leader knows %d workers, and what %d say", len(views), len(l.d.said))
	}
	l.d.mu.Unlock()
	l.d.expire(time.Now())
	l.d.mu.Lock()
	// the last of the flood may come now
	if left := len(l.d.workers.View(time.Now())); left > 101 || len(l.d.said) != left {
		t.Errorf("%d workers are left, and what %d say", left, len(l.d.said))
	}
	l.d.mu.Unlock()
	task.partials()
	d.rest(w)
	d.sums()
}

// rest answers everything else that the worker is asked to compute until the round ends: tasks of workers that are
// gone.
func (d *doing) rest(w *fake) {
	d.l.t.Helper()
	for end := time.After(testkit.Limit); ; {
		select {
		case err := <-d.done:
			d.done <- err
			return
		case o := <-w.orders:
			if o.kind == protocol.KindRun {
				(&assignment{w, o.run, o.reply}).partials()
			}
		case <-end:
			d.l.t.Fatal("the round does not end")
		}
	}
}

// TestMailboxIsBounded: the number and the size of the messages that an executor has not taken yet are bounded.
func TestMailboxIsBounded(t *testing.T) {
	room := protocol.NewRoom(0)
	m := newMailbox(room)
	half := make([]byte, room.Limit()/2) // it is never touched, and costs no memory
	first, second := m.put(half), m.put(half)
	if !first || !second || m.put([]byte{1}) {
		t.Error("the bytes of mail are not bounded")
	}
	if msgs, _ := m.take(nil, nil); len(msgs) != 2 {
		t.Errorf("%d messages were taken", len(msgs))
	}
	for range maxMail {
		if !m.put(nil) {
			t.Fatal("no room in an empty mailbox")
		}
	}
	if m.put(nil) {
		t.Error("the number of messages is not bounded")
	}
	m.take(nil, nil)
	other := newMailbox(room)
	if !other.put(half) || !m.put(half) || m.put([]byte{1}) {
		t.Error("two mailboxes do not share their room")
	}
	if other.close(); other.put([]byte{1}) || room.Held() != len(half) {
		t.Errorf("%d bytes are held once one is closed", room.Held())
	}
}

// resultSlack is what handling a message allocates apart from what follows its size: for rounds that begin again, and
// in other goroutines.
const resultSlack = 64 << 20

// FuzzResults hands a leader with a reduce and a gather round under way messages for these rounds: their drivers
// neither die nor hang.
func FuzzResults(f *testing.F) {
	conn := natstest.Connect(f, natstest.Server(f, bus.ServerOptions{}))
	d := New(Config{
		ID: "a", Epoch: epoch, Heartbeat: never, Conn: conn, Subjects: subjects, Results: newFakeResults(),
		Metrics: metrics.NewCoordinator(prometheus.NewRegistry()), Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var drivers sync.WaitGroup
	f.Cleanup(func() { cancel(); drivers.Wait() })
	gather := &round.Round{Op: 4, Tasks: 3, Scope: round.Whole, How: &round.Gather{}}
	for id, r := range map[uint64]*round.Round{jobID: reduceRound(4, variable(1, 10)), jobID + 1: gather} {
		x := d.Executor(id, &round.Job{Algorithm: "canary", Seed: id}, manifest(), ExecutorOptions{})
		drivers.Go(func() {
			defer x.Close()
			for ctx.Err() == nil { // it begins again if it failed, or was answered
				var res round.Result
				x.Do(ctx, 5, r, &res)
			}
		})
	}
	for _, m := range answers(5) {
		if len(m) < 1<<20 {
			f.Add(m, true)
		}
	}
	p := new(round.Partial)
	p.Reset(labShape)
	stamp := protocol.Stamp{Epoch: epoch, Job: jobID, Round: 5}
	f.Add((&protocol.Partial{Stamp: stamp, Worker: "w1", Level: 2, Partial: p}).Append(nil), true)
	f.Add((&protocol.Fail{Stamp: stamp, Worker: "w1", NonFinite: true}).Append(nil), false)
	beat := &protocol.Heartbeat{Worker: "w1", Protocol: protocol.Version, Numerics: round.Numerics, Slots: 2, Full: true}
	f.Add(beat.Append(nil), false)
	f.Fuzz(func(t *testing.T, b []byte, first bool) {
		b = bytes.Clone(b)
		if kind, err := protocol.KindOf(b); err == nil && kind != protocol.KindHeartbeat && len(b) >= 26 {
			binary.LittleEndian.PutUint64(b[2:], epoch)
			binary.LittleEndian.PutUint64(b[10:], jobID)
			if !first {
				b[10]++
			}
			binary.LittleEndian.PutUint64(b[18:], 5)
		}
		allocs.AtMost(t, 64*len(b)+resultSlack, "a result", func() {
			d.onBeat(bus.Message{Subject: subjects.Heartbeats("w1"), Data: beat.Append(nil)})
			var any protocol.Heartbeat
			_ = any.Decode(b) // else it has no name
			d.onBeat(bus.Message{Subject: subjects.Heartbeats(any.Worker), Data: b})
			_, worker, _ := protocol.PeekStamp(b)
			d.onResult(bus.Message{Subject: protocol.ResultsOf(d.results, string(worker)), Data: b})
		})
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, w := range d.workers.View(time.Now()) {
			if protocol.CheckID(w.Name) != nil {
				t.Fatalf("there is a worker called %q", w.Name)
			}
			if w.Name != "w1" {
				d.hear(&protocol.Heartbeat{Worker: w.Name, Leaving: true}, time.Now())
			}
		}
	})
}
