package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

func aBeat(id string) *protocol.Beat {
	return &protocol.Beat{Worker: id, Protocol: protocol.Version, Numerics: round.Numerics, Slots: 1}
}

// TestCrewChangesWhenItShould: plans are made anew for a worker that comes, goes,
// or holds other shards, and for nothing else.
func TestCrewChangesWhenItShould(t *testing.T) {
	c := newCrew(time.Second, nil)
	now := time.Now()
	full := func(holds ...string) *protocol.Beat {
		b := aBeat("w1")
		b.Full, b.Holds = true, holds
		return b
	}
	leaving := aBeat("w1")
	leaving.Leaving = true
	for i, step := range []struct {
		beat            *protocol.Beat
		changed, joined bool
	}{
		{aBeat("w1"), true, true},
		{aBeat("w1"), false, false},
		{full("s1", "s2"), true, false},
		{full("s2", "s1"), false, false},
		{aBeat("w1"), false, false}, // not full: what was said before is in force
		{full("s1", "s3"), true, false},
		{full("s1"), true, false},
		{leaving, true, false},
		{leaving, false, false},
		{full("s1"), true, true},
	} {
		before := c.version
		changed, joined := c.hear(step.beat, now)
		if changed != step.changed || joined != step.joined || changed != (c.version > before) {
			t.Errorf("step %d: changed %v, joined %v, version %d after %d", i, changed, joined, c.version, before)
		}
	}
	if w := c.get("w1"); w == nil || len(w.holds) != 1 || !w.holds["s1"] {
		t.Errorf("w1 is known as %+v", w)
	}
}

// TestCrewKeepsWhatFullBeatsSay until the next full one, of bounded length.
func TestCrewKeepsWhatFullBeatsSay(t *testing.T) {
	c, now := newCrew(time.Second, nil), time.Now()
	b := aBeat("w1")
	b.Full, b.Holds, b.Host, b.Address, b.Load = true, []string{"s1"}, strings.Repeat("h", 1000), "10.0.0.1:9", 2.5
	c.hear(b, now)
	b = aBeat("w1")
	b.Busy = 3
	c.hear(b, now)
	if w := c.workers["w1"].beat; len(w.Host) != maxShown || w.Address != "10.0.0.1:9" || w.Load != 2.5 || w.Busy != 3 || len(w.Holds) != 1 {
		t.Errorf("known is %+v", w)
	}
}

// TestCrewExpires who missed five beats, not who missed less.
func TestCrewExpires(t *testing.T) {
	c := newCrew(time.Second, nil)
	began := time.Now()
	for _, id := range []string{"w3", "w1", "w2"} {
		c.hear(aBeat(id), began)
	}
	c.hear(aBeat("w2"), began.Add(3*time.Second))
	if gone := c.expire(began.Add(missedBeats * time.Second)); gone != nil {
		t.Errorf("%v were given up too early", gone)
	}
	version := c.version
	if gone := c.expire(began.Add(missedBeats*time.Second + 1)); !slices.Equal(gone, []string{"w1", "w3"}) || c.version == version {
		t.Errorf("%v were given up", gone)
	}
	if list := c.usable(); len(list) != 1 || list[0].id != "w2" {
		t.Errorf("%d workers are left", len(list))
	}
}

// TestCrewPassesOverTheStalled while there are others, until they answer or some
// time has passed.
func TestCrewPassesOverTheStalled(t *testing.T) {
	c := newCrew(time.Second, nil)
	began := time.Now()
	for _, id := range []string{"w1", "w2"} {
		c.hear(aBeat(id), began)
	}
	prompt := func() (ids []string) {
		for _, w := range c.prompt() {
			ids = append(ids, w.id)
		}
		return ids
	}
	version := c.version
	c.stall("w1", began)
	c.stall("none", began)
	if got := prompt(); !slices.Equal(got, []string{"w2"}) || c.version != version+1 {
		t.Errorf("prompt are %v, version %d after %d", got, c.version, version)
	}
	c.stall("w2", began)
	if got := prompt(); len(got) != 2 {
		t.Errorf("where all are stalled, prompt are %v", got)
	}
	if !c.revive(c.get("w1"), began) || c.revive(c.get("w1"), began) || c.revive(nil, began) {
		t.Error("a stall ends once")
	}
	if got := prompt(); !slices.Equal(got, []string{"w1"}) {
		t.Errorf("prompt are %v", got)
	}
	for _, wait := range []time.Duration{time.Second, (stalledBeats + 1) * time.Second} {
		now := began.Add(wait)
		c.hear(aBeat("w1"), now)
		c.hear(aBeat("w2"), now)
		c.expire(now)
		if want := wait > stalledBeats*time.Second; (len(prompt()) == 2) != want {
			t.Errorf("after %v prompt are %v", wait, prompt())
		}
	}
}

// TestRefusedWorkers get no work, and hear why: both sides' numbers.
func TestRefusedWorkers(t *testing.T) {
	l := newLab(t, quick)
	leads := make(chan protocol.Lead, 1000)
	sub, err := l.connect().Subscribe(subjects.Lead(), func(m bus.Message) {
		var lead protocol.Lead
		if err := lead.Decode(m.Data); err != nil {
			t.Error(err)
		}
		leads <- lead
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	good := l.join("good", 1)
	alien := &fake{l: l, id: "alien", conn: l.connect(), orders: make(chan order, 10)}
	if _, err := alien.conn.Subscribe(subjects.Work("alien"), alien.take); err != nil {
		t.Fatal(err)
	}
	alien.beat(func(b *protocol.Beat) { b.Protocol = 9 })
	old := &fake{l: l, id: "old", conn: alien.conn}
	old.beat(func(b *protocol.Beat) { b.Numerics = 77 })
	var last protocol.Lead
	l.until("two refusals", func() bool {
		last = <-leads
		return len(last.Refused) == 2
	})
	if last.Epoch != epoch || last.Coordinator != "a" || !strings.Contains(last.Refused["alien"], fmt.Sprintf("protocol version 9, this coordinator has %d", protocol.Version)) || !strings.Contains(last.Refused["old"], "arithmetic version 77, this coordinator has 1") {
		t.Errorf("lead %+v", last)
	}
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(8))
	good.first(0).parts()
	d.sums()
	alien.idle()
	workers := l.d.Workers()
	if len(workers) != 3 || workers[0].ID != "alien" || !strings.HasPrefix(workers[0].State, "refused: ") || workers[1].State != "alive" {
		t.Errorf("workers %+v", workers)
	}
	l.counted("workers", "alive", 1)
	l.counted("workers", "refused", 2)
}

// TestHold: each shard is to be on the disks of two workers, and a worker computes
// the units whose shards it has.
func TestHold(t *testing.T) {
	l := newLab(t, never)
	w1, w2 := l.join("w1", 1, 4, 5, 6, 7), l.join("w2", 1, 0, 1, 2, 3)
	l.counted("shard_copies", "", labShards)
	x := l.executor(jobID)
	defer x.Close()
	d := l.do(x, 1, summed(8))
	w1.next(protocol.KindSetup)
	w2.next(protocol.KindSetup)
	w1.run(4, 5, 6, 7).parts()
	w2.run(0, 1, 2, 3).parts()
	d.sums()
	copies := make(map[string]int)
	for _, w := range []*fake{w1, w2} {
		h := w.next(protocol.KindHold).hold
		if h.Epoch != epoch {
			t.Errorf("epoch %d", h.Epoch)
		}
		for _, s := range h.Shards {
			copies[s.Digest]++
		}
	}
	if len(copies) != labShards {
		t.Errorf("%d shards are held", len(copies))
	}
	for digest, n := range copies {
		if n != 2 {
			t.Errorf("shard %s is held %d times", digest, n)
		}
	}
}

// TestDamagedBeatsAreCounted and change nothing.
func TestDamagedBeatsAreCounted(t *testing.T) {
	l := newLab(t, never)
	conn := l.connect()
	for _, b := range [][]byte{{}, {protocol.Version, 1, '{'}, (&protocol.Lead{}).Append(nil)} {
		if err := conn.Send(subjects.Beats(), "", b); err != nil {
			t.Fatal(err)
		}
	}
	l.dropped("malformed", 2) // the bus drops the first
	if w := l.d.Workers(); len(w) != 0 {
		t.Errorf("workers %+v", w)
	}
}

// TestWorkerOfAnotherVersion that was started anew under the same name before its
// silence told: what holds is what it says now.
func TestWorkerOfAnotherVersion(t *testing.T) {
	c := newCrew(time.Second, nil)
	old := aBeat("w1")
	old.Numerics++
	for i, b := range []*protocol.Beat{aBeat("w1"), old, aBeat("w1")} {
		changed, _ := c.hear(b, time.Now())
		if want := b != old; !changed || (c.get("w1") != nil) != want {
			t.Errorf("beat %d: changed %v, usable %v, want %v", i, changed, c.get("w1") != nil, want)
		}
	}
}

// TestStalls: a worker that stalls is passed over while others are there, for a
// bounded time.
func TestStalls(t *testing.T) {
	c := newCrew(time.Second, nil)
	now := time.Now()
	c.hear(aBeat("w1"), now)
	c.hear(aBeat("w2"), now)
	c.stall("w1", now)
	if list := c.prompt(); len(list) != 1 || list[0].id != "w2" {
		t.Errorf("%d workers are prompt", len(list))
	}
	c.stall("w2", now)
	if list := c.prompt(); len(list) != 2 {
		t.Errorf("%d workers are left where all stall", len(list))
	}
	later := now.Add((stalledBeats + 1) * time.Second)
	for _, id := range []string{"w1", "w2"} {
		c.hear(aBeat(id), later)
	}
	before := c.version
	if gone := c.expire(later); len(gone) > 0 || c.version == before || !c.get("w1").stalled.IsZero() {
		t.Errorf("a stall does not end: gone %v, %v", gone, c.get("w1").stalled)
	}
}

// What all workers say that they hold is bounded together, and what one says that
// leaves makes room again.
func TestHoldsAreBounded(t *testing.T) {
	c := newCrew(time.Second, nil)
	digests := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	say := func(id string, n int, leaving bool) int {
		c.hear(&protocol.Beat{Worker: id, Protocol: protocol.Version, Numerics: round.Numerics, Full: true, Holds: digests(n), Leaving: leaving}, time.Unix(1, 0))
		if w := c.workers[id]; w != nil {
			return len(w.holds)
		}
		return 0
	}
	if n := say("a", maxHeld-10, false); n != maxHeld-10 {
		t.Fatalf("%d are known", n)
	}
	if n := say("b", 10, false); n != 10 || c.held != maxHeld {
		t.Errorf("%d are known of the second, %d in all", n, c.held)
	}
	if n := say("b", 11, false); n != 10 || len(c.workers["b"].beat.Holds) != 10 {
		t.Errorf("%d are known of one that says too many", n)
	}
	if n := say("a", maxHeld-11, false); n != maxHeld-11 || c.held != maxHeld-1 {
		t.Errorf("%d are known, %d in all", n, c.held)
	}
	say("a", 0, true)
	if n := say("b", 11, false); n != 11 || c.held != 11 {
		t.Errorf("%d are known once there is room, %d in all", n, c.held)
	}
}
