package batch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// check returns an error if an invariant that stands at a field does not hold. all has every job that was ever opened.
func check(m *Machine, all []*Job) error {
	past := 0
	for _, j := range all {
		if err := checkJob(m, j); err != nil {
			return fmt.Errorf("job %d: %w", j.ID, err)
		}
		for _, r := range j.past {
			past += r.bytes
		}
	}
	if m.past != past || past > MaxPast {
		return fmt.Errorf("results of earlier rounds have %d bytes, counted are %d", past, m.past)
	}
	for x, list := range m.ready {
		for _, b := range list {
			if b.Executor != Executor(x) || b.state != running || b.next >= len(b.tasks) {
				return fmt.Errorf("a ready batch has state %d and no task to begin", b.state)
			}
		}
	}
	return nil
}

func checkJob(m *Machine, j *Job) error {
	at, listed := m.jobs[j.ID]
	absentShards, fetched, waits := 0, 0, make(map[*Batch]int)
	for _, s := range j.shards.list {
		if s.state != here {
			absentShards++
		}
		if s.state == fetching {
			fetched++
		}
		for _, b := range s.waiting {
			waits[b]++
		}
	}
	switch {
	case j.forgotten == (listed && at == j):
		return fmt.Errorf("forgotten: %v, but it is in the list: %v", j.forgotten, listed)
	case (j.failure != nil) != (j.state == failed):
		return fmt.Errorf("state %d with failure %v", j.state, j.failure)
	case absentShards != j.shards.absent || fetched != j.shards.fetching:
		return fmt.Errorf("%d shards are missing and %d are fetched, counted are %d and %d", absentShards, fetched,
			j.shards.absent, j.shards.fetching)
	case j.forgotten && len(j.tasks) > 0:
		return fmt.Errorf("it is forgotten and has %d tasks", len(j.tasks))
	case len(j.idle) > maxIdle:
		return fmt.Errorf("%d batches are kept for their memory", len(j.idle))
	}
	pending := make([]bool, len(j.pending))
	users := make(map[*Version]int)
	for _, b := range j.live {
		if err := checkBatch(m, b, waits[b]); err != nil {
			return fmt.Errorf("batch of round %d: %w", b.Stamp.Round, err)
		}
		for _, v := range b.Values {
			users[v]++
		}
		for _, t := range b.tasks {
			if b.Executor == Reduce && b.Stamp == j.round && !t.failed {
				if pending[t.number] {
					return fmt.Errorf("two batches have task %d", t.number)
				}
				pending[t.number] = true
			}
		}
	}
	if !slices.Equal(pending, j.pending) {
		return fmt.Errorf("pending are %v, want %v", j.pending, pending)
	}
	for unit, t := range j.tasks {
		if t.stopped || t.Number != unit || t.Stamp.Round != j.round.Round {
			return fmt.Errorf("task %d is of another round, or stopped: %v", unit, t.stopped)
		}
	}
	return checkValues(j, users)
}

func checkBatch(m *Machine, b *Batch, waits int) error {
	ready := slices.Contains(m.ready[b.Executor], b)
	switch {
	case b.state == retired:
		return fmt.Errorf("it is retired and live")
	case b.Job.forgotten && !b.dropped:
		return fmt.Errorf("its job is forgotten")
	case b.Executor == Reduce && !b.dropped && b.Stamp.Epoch != m.epoch:
		return fmt.Errorf("it is of leader epoch %d, and the highest is %d", b.Stamp.Epoch, m.epoch)
	case b.waits != waits || b.waits > 0 && b.state != waiting:
		return fmt.Errorf("state %d: it waits for %d shards, counted are %d", b.state, waits, b.waits)
	case ready != (b.state == running && b.next < len(b.tasks)):
		return fmt.Errorf("state %d, %d of %d tasks have begun, ready: %v", b.state, b.next, len(b.tasks), ready)
	case b.state == running && b.left == 0 || b.state == running && b.left < len(b.tasks)-b.next:
		return fmt.Errorf("%d tasks are left, and %d have not begun", b.left, len(b.tasks)-b.next)
	case b.state == waiting && b.waits == 0 && b.Job.state != opening:
		return fmt.Errorf("it waits for nothing")
	case b.dropped && b.state == waiting:
		return fmt.Errorf("it is dropped and waits")
	}
	return nil
}

func checkValues(j *Job, users map[*Version]int) error {
	for id, x := range j.values {
		if len(x.versions) > keptVersions {
			return fmt.Errorf("value %d has %d versions", id, len(x.versions))
		}
		for _, v := range x.versions {
			has := 0
			for _, ok := range v.chunks {
				if ok {
					has++
				}
			}
			if !v.listed || v.ID != id || has != v.here || v.here > v.total {
				return fmt.Errorf("value %d, version %d: %d of %d chunks, counted are %d", id, v.Number, has, v.total, v.here)
			}
		}
		if s := x.spare; s != nil && (s.listed || s.users > 0 || s.lent || s.chunks != nil) {
			return fmt.Errorf("the memory of value %d is spare and in use", id)
		}
	}
	for v, n := range users {
		if v.users != n {
			return fmt.Errorf("value %d, version %d: %d batches read it, counted are %d", v.ID, v.Number, n, v.users)
		}
	}
	return nil
}

func TestFailureOf(t *testing.T) {
	base := fmt.Errorf("x")
	for _, x := range []struct {
		err  error
		want bool
	}{
		{base, true}, {Permanent(base), true}, {Passing(base), false},
		{fmt.Errorf("unit 3: %w", Passing(base)), false},
	} {
		if f := FailureOf(x.err); f.Permanent != x.want || f.Error() != x.err.Error() {
			t.Errorf("%v became %+v", x.err, f)
		}
	}
}

// opened returns a machine with a job that has no shards to fetch.
func opened(c Config) (*Machine, *Job) {
	m := New(c)
	m.Step(nil, &Setup{&protocol.Setup{ID: 1, Manifest: &dataset.Manifest{}}, "a"})
	m.Step(nil, &Opened{Job: m.jobs[1]})
	return m, m.jobs[1]
}

// TestValueMemory: memory of an old version serves the next one, unless a batch reads it.
func TestValueMemory(t *testing.T) {
	m, j := opened(Config{Slots: 1})
	put := func(version uint64) *Version {
		a := m.Step(nil, &Value{Job: 1, Ref: protocol.Ref{ID: 3, Version: version}, Bytes: 8})
		return a[0].(Keep).Version
	}
	first := put(1)
	put(2)
	run := &protocol.Run{Stamp: protocol.Stamp{Job: 1, Round: 1}, Of: 1, Tasks: []uint32{0},
		Refs: []protocol.Ref{{ID: 3, Version: 1}}}
	m.Step(nil, &Run{run, "r"})
	third := put(3)
	for version := uint64(4); version < 6; version++ {
		if v := put(version); v == first {
			t.Fatal("memory that a batch reads serves another version")
		}
	}
	begun := m.Step(nil, &Free{})[0].(Compute)
	m.Step(nil, &Ended{Assignment: begun.Assignment})
	m.Step(nil, &Answered{j.live[0]})
	if v := put(6); v != first && v != third {
		t.Error("memory that nothing reads does not serve another version")
	}
}

// TestValuesAreBounded in number and in bytes.
func TestValuesAreBounded(t *testing.T) {
	_, j := opened(Config{})
	for id := range uint16(protocol.MaxVars) {
		if !j.values.room(id, 10) {
			t.Fatalf("value %d has no room", id)
		}
		j.keep(&Value{Ref: protocol.Ref{ID: id}, Bytes: 10})
	}
	if j.values.room(protocol.MaxVars, 1) || !j.values.room(3, 1) {
		t.Error("one value too many has room, or a newer version has not")
	}
	if j.values.room(3, maxValueBytes-10*protocol.MaxVars+1) || !j.values.room(3, maxValueBytes-10*protocol.MaxVars) {
		t.Error("the bytes of all values are not bounded")
	}
}

// TestTooLarge: a batch is refused if its partials would take more memory than those of any job, permanently and with
// the number; or if a task on the whole dataset, or a sub-job, would take more than --memory.
func TestTooLarge(t *testing.T) {
	units := func(n, step int) (list []Assignment) {
		for i := range n {
			list = append(list, Assignment{number: uint32(i * step)})
		}
		return list
	}
	for _, x := range []struct {
		b  Batch
		ok bool
	}{
		{Batch{partial: 8 << 27, of: 16, tasks: units(4, 1)}, true},
		{Batch{partial: 8 << 19, of: 1 << 12, tasks: units(1<<10, 3)}, true},
		{Batch{partial: 8 << 20, of: 1 << 12, tasks: units(1<<10, 3)}, false},
		{Batch{partial: 8 << 21, of: 1 << 12, tasks: units(1<<12, 1)}, true},
		{Batch{partial: 8 << 27, of: 16, tasks: units(16, 1)}, false},
	} {
		_, x.b.Job = opened(Config{Slots: 2})
		err := x.b.tooLarge()
		if (err == nil) != x.ok || err != nil &&
			(!FailureOf(err).Permanent || !strings.Contains(err.Error(), fmt.Sprint(x.b.partial))) {
			t.Errorf("%d tasks of %d with %d bytes: %v", len(x.b.tasks), x.b.of, x.b.partial, err)
		}
	}
	for _, x := range []struct {
		limit int64
		b     Batch
		ok    bool
	}{
		{4999, Batch{Executor: Gather, scope: round.Whole}, false},
		{4999, Batch{Executor: Gather}, true},
		{5000, Batch{Executor: Gather, scope: round.Whole}, true},
		{0, Batch{Executor: Gather, scope: round.Whole}, true},
	} {
		_, x.b.Job = opened(Config{Worker: "w", Memory: x.limit})
		x.b.Job.demand.arrays, x.b.Job.demand.purpose = 5000, "2 matrices"
		err := x.b.tooLarge()
		if (err == nil) != x.ok || err != nil &&
			(!FailureOf(err).Unable || !strings.Contains(err.Error(), "(2 matrices), but worker w has ")) {
			t.Errorf("limit %d: %v", x.limit, err)
		}
	}
	b := Batch{Executor: Gather, scope: round.Whole}
	_, b.Job = opened(Config{Worker: "w", Memory: 10})
	b.Job.demand = demand{shards: 5, purpose: "or set split: histogram"}
	if err := b.tooLarge(); err == nil || !strings.Contains(err.Error(), "(or set split: histogram), but worker w has ") {
		t.Errorf("a job that has another way: %v", err)
	}
}

// TestFairness: each task begins once, the next one always of the job that used the least time. A job that comes late
// has no claim to the past.
func TestFairness(t *testing.T) {
	m := New(Config{Slots: 1})
	cost := map[uint64]time.Duration{1: 10 * time.Millisecond, 2: time.Millisecond, 3: time.Millisecond}
	add := func(id uint64, n int) {
		m.Step(nil, &Setup{&protocol.Setup{ID: id, Manifest: &dataset.Manifest{}}, "a"})
		m.Step(nil, &Opened{Job: m.jobs[id]})
		run := &protocol.Run{Stamp: protocol.Stamp{Job: id, Round: 1}, Of: uint32(n)}
		for i := range n {
			run.Tasks = append(run.Tasks, uint32(i))
		}
		m.Step(nil, &Run{run, "r"})
	}
	count := map[uint64]int{}
	var next Action
	step := func(n int) {
		for range n {
			task, ok := next.(Compute)
			if !ok {
				t.Fatalf("there is no task: %v", count)
			}
			id := task.Batch.Job.ID
			count[id]++
			a := m.Step(nil, &Ended{Assignment: task.Assignment, Took: cost[id]})
			if len(a) > 0 {
				if sends, ok := a[0].(Answer); ok {
					a = m.Step(nil, &Answered{sends.Batch})
				}
			}
			if next = nil; len(a) > 0 {
				next = a[len(a)-1]
			}
		}
	}
	add(1, 10)
	add(2, 100)
	next = m.Step(nil, &Free{})[0]
	step(55)
	if count[1] != 5 || count[2] != 50 {
		t.Fatalf("%v tasks", count)
	}
	add(3, 100)
	step(20)
	if count[3] < 5 || count[3] > 12 {
		t.Errorf("the late job had %d of 20 tasks", count[3])
	}
	step(210 - 75)
	if count[1] != 10 || count[2] != 100 || count[3] != 100 || len(m.ready[Reduce]) > 0 {
		t.Errorf("%v tasks", count)
	}
}

// TestLargeBatches: of batches with large partials, a job keeps one for its memory, whatever their numbers of tasks.
func TestLargeBatches(t *testing.T) {
	for size, want := range map[int]int{largePartial / 8: 1, largePartial/8 - 1: 3} {
		m, j := opened(Config{Slots: 1})
		for of := uint32(1); of <= 3; of++ {
			run := &protocol.Run{Stamp: protocol.Stamp{Job: 1, Round: uint64(of)}, Of: of, Scope: round.None,
				Shape: round.Shape{F64: size}, Tasks: []uint32{0}}
			begin := m.Step(nil, &Run{run, "r"})[0].(Begin)
			m.Step(nil, &Ended{Assignment: m.Step(nil, &Free{})[0].(Compute).Assignment, Took: 1})
			m.Step(nil, &Answered{begin.Batch})
		}
		if len(j.idle) != want {
			t.Errorf("%d batches with partials of %d bytes are kept, want %d", len(j.idle), 8*size, want)
		}
	}
}

// BenchmarkRound is a reduce round of 64 tasks: its orders, and what follows from them.
func BenchmarkRound(b *testing.B) {
	m, _ := opened(Config{Slots: 2})
	run := &protocol.Run{Stamp: protocol.Stamp{Job: 1}, Of: 64, Refs: []protocol.Ref{{ID: 3}}}
	for i := range uint32(64) {
		run.Tasks = append(run.Tasks, i)
	}
	var a []Action
	var sent protocol.Run // the machine keeps its memory
	events := 0
	step := func(e Event) {
		events++
		a = m.Step(a[:0], e)
	}
	b.ReportAllocs()
	for b.Loop() {
		run.Round++
		run.Refs[0].Version++
		step(&Value{Job: 1, Ref: run.Refs[0], Bytes: 8})
		sent = *run
		step(&Run{&sent, "r"})
		batch := a[0].(Begin).Batch
		step(&Free{})
		for range 64 {
			step(&Ended{Assignment: a[0].(Compute).Assignment, Took: 1})
		}
		step(&Answered{batch})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}

// TestNoAllocations: a steady round allocates nothing, also if the worker has only some of the shards.
func TestNoAllocations(t *testing.T) {
	m := New(Config{Slots: 2})
	setup := &protocol.Setup{ID: 1, Manifest: &dataset.Manifest{Shards: make([]dataset.ShardRef, 128)}}
	m.Step(nil, &Setup{setup, "a"})
	m.Step(nil, &Opened{Job: m.jobs[1]})
	run := &protocol.Run{Stamp: protocol.Stamp{Job: 1}, Of: 64}
	for i := range uint32(32) {
		run.Tasks = append(run.Tasks, 2*i)
	}
	var a []Action
	var sent protocol.Run // the machine keeps its memory
	step := func(e Event) { a = m.Step(a[:0], e) }
	rounds := func() {
		run.Round++
		sent = *run
		step(&Run{&sent, "r"})
		batch := a[0].(Begin).Batch
		if _, ok := a[1].(Fetch); ok { // in the first round
			for _, fetch := range slices.Clone(a[1:]) {
				step(&Fetched{Job: m.jobs[1], Index: fetch.(Fetch).Index})
			}
		}
		step(&Free{})
		for range run.Tasks {
			step(&Ended{Assignment: a[0].(Compute).Assignment, Took: 1})
		}
		step(&Answered{batch})
	}
	rounds()
	rounds()
	if n := testing.AllocsPerRun(100, rounds); n > 0 {
		t.Errorf("%v allocations in a round", n)
	}
	if m.jobs[1].shards.absent != 64 {
		t.Errorf("%d shards are missing", m.jobs[1].shards.absent)
	}
}
