package batch

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// caller stands for package worker: it remembers what it was told to do, and does it in any order.
type caller struct {
	t        *rapid.T
	machine  *Machine
	jobs     []*Job
	open     []*Job
	fetches  []Fetch
	working  []Compute
	storing  []Stored // results that are on their way to the store
	sending  []Answer
	calls    [Executors]int  // executors that shall look for a task, as package worker counts them
	began    map[*Batch]bool // live batches
	closed   map[*Job]bool
	computed map[*Batch]map[int]bool
	uses     map[string]int // of stored results
	results  int
}

func (c *caller) step(e Event) {
	for _, a := range c.machine.Step(nil, e) {
		c.perform(a)
	}
	if err := check(c.machine, c.jobs); err != nil {
		c.t.Fatal(err)
	}
}

func (c *caller) perform(a Action) {
	switch a := a.(type) {
	case Open:
		c.jobs, c.open = append(c.jobs, a.Job), append(c.open, a.Job)
	case Fetch:
		c.isOpen(a.Job)
		if slices.Contains(c.fetches, a) {
			c.t.Fatal("a shard is fetched twice at a time")
		}
		c.fetches = append(c.fetches, a)
	case Cancel:
		c.isOpen(a.Job)
	case Close:
		c.isOpen(a.Job)
		c.closed[a.Job] = true
		if slices.ContainsFunc(c.fetches, func(f Fetch) bool {
			return f.Job == a.Job
		}) || slices.ContainsFunc(c.working, func(w Compute) bool { return w.Batch.Job == a.Job }) {
			c.t.Fatal("a job is closed and in use")
		}
	case Begin:
		c.isOpen(a.Batch.Job)
		if c.began[a.Batch] {
			c.t.Fatal("a batch begins and has not retired")
		}
		if slices.Contains(a.Batch.Values, nil) {
			c.t.Fatal("a batch begins without its values")
		}
		c.began[a.Batch], c.computed[a.Batch] = true, make(map[int]bool)
	case Wake:
		c.calls[a.Batch.Executor] = min(c.calls[a.Batch.Executor]+a.Batch.Tasks(), c.machine.config.Slots)
	case Compute:
		c.isOpen(a.Batch.Job)
		if !c.began[a.Batch] || c.computed[a.Batch][a.Index] {
			c.t.Fatal("a task is computed twice, or without its batch")
		}
		c.computed[a.Batch][a.Index] = true
		c.working = append(c.working, a)
		if c.busy(a.Batch.Executor) > c.machine.config.Slots {
			c.t.Fatal("there are more tasks in work than executors")
		}
	case Answer:
		c.sending = append(c.sending, a)
	case Retire:
		delete(c.began, a.Batch)
		if slices.Contains(c.sending, Answer(a)) || slices.ContainsFunc(c.working, func(w Compute) bool {
			return w.Batch == a.Batch
		}) {
			c.t.Fatal("a batch retires and is in use")
		}
	case DropResult:
		if c.uses[a.Digest]--; c.uses[a.Digest] < 0 {
			c.t.Fatal("a result is dropped twice")
		}
	case Announce:
		if c.uses[a.Digest] != 1 {
			c.t.Fatal("a result is announced that is not stored")
		}
	}
}

func (c *caller) isOpen(j *Job) {
	if c.closed[j] {
		c.t.Fatal("an action is for a job that is closed")
	}
}

// busy returns the number of executors that have a task, or send the answer of a batch.
func (c *caller) busy(x Executor) (n int) {
	for _, a := range c.working {
		if a.Batch.Executor == x {
			n++
		}
	}
	for _, a := range c.sending {
		if a.Batch.Executor == x {
			n++
		}
	}
	return n
}

// pick takes a random element of a list.
func pick[T any](c *caller, list *[]T) (x T) {
	at := rapid.IntRange(0, len(*list)-1).Draw(c.t, "which")
	x = (*list)[at]
	*list = append((*list)[:at:at], (*list)[at+1:]...)
	return x
}

func (c *caller) failure() error {
	if rapid.IntRange(0, 5).Draw(c.t, "fails") > 0 {
		return nil
	}
	return Passing(errors.New("bad luck"))
}

// work does one thing that was asked for, and reports false if nothing is left to do.
func (c *caller) work() bool {
	var ways []func()
	if len(c.open) > 0 {
		ways = append(ways, func() { c.step(&Opened{Job: pick(c, &c.open), Err: c.failure()}) })
	}
	if len(c.fetches) > 0 {
		ways = append(ways, func() {
			a := pick(c, &c.fetches)
			c.step(&Fetched{a.Job, a.Index, c.failure()})
		})
	}
	if len(c.working) > 0 {
		ways = append(ways, func() {
			a := pick(c, &c.working)
			err := c.failure()
			if a.Task != nil && err == nil {
				c.storing = append(c.storing, Stored{Job: a.Batch.Job, Task: a.Task, Bytes: MaxPast / 3})
			}
			c.step(&Ended{a.Assignment, 1, err})
		})
	}
	if len(c.storing) > 0 {
		ways = append(ways, func() {
			e := pick(c, &c.storing)
			c.results++
			e.Digest, e.Err = string(rune('a'+c.results)), c.failure()
			if e.Err == nil {
				c.uses[e.Digest] = 1
			}
			c.step(&e)
		})
	}
	if len(c.sending) > 0 {
		ways = append(ways, func() { c.step(&Answered{pick(c, &c.sending).Batch}) })
	}
	for x := range Executors {
		if c.calls[x] > 0 && c.busy(x) < c.machine.config.Slots {
			ways = append(ways, func() {
				c.calls[x]--
				c.step(&Free{x})
			})
		}
	}
	if len(ways) == 0 {
		return false
	}
	ways[rapid.IntRange(0, len(ways)-1).Draw(c.t, "work")]()
	return true
}

// order sends a random message of a leader.
func (c *caller) order() {
	t, small := c.t, rapid.IntRange(0, 2)
	stamp := protocol.Stamp{Epoch: uint64(small.Draw(t, "epoch")), Job: uint64(small.Draw(t, "job")),
		Round: uint64(small.Draw(t, "round"))}
	ref := protocol.Ref{ID: uint16(small.Draw(t, "value")), Version: uint64(rapid.IntRange(0, 4).Draw(t, "version"))}
	units := rapid.SliceOfN(rapid.Uint32Range(0, 3), 1, 5).Draw(t, "units")
	switch rapid.IntRange(0, 12).Draw(t, "message") {
	case 0, 1:
		m := &dataset.Manifest{Shards: make([]dataset.ShardRef, 3)}
		s := &protocol.Setup{Epoch: stamp.Epoch, ID: stamp.Job, Start: uint64(small.Draw(t, "start")), Manifest: m}
		c.step(&Setup{s, rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(t, "spec")})
	case 2, 3:
		e := &Value{Epoch: stamp.Epoch, Job: stamp.Job, Ref: ref}
		if rapid.Bool().Draw(t, "lent") {
			e.Local = "lent"
		}
		e.Bytes = small.Draw(t, "bytes")
		c.step(e)
	case 4:
		e := &Chunk{Epoch: stamp.Epoch, Job: stamp.Job, Ref: ref, Of: 2, Bytes: 1, Sent: rapid.Bool().Draw(t, "sent")}
		e.Found = !e.Sent && rapid.Bool().Draw(t, "found")
		e.Index = rapid.IntRange(0, 1).Draw(t, "index")
		c.step(e)
	case 5:
		c.step(&Forget{&protocol.Forget{Epoch: stamp.Epoch, Job: stamp.Job, Round: stamp.Round, Tasks: units[1:]}})
	case 7:
		if j := c.machine.jobs[stamp.Job]; j != nil {
			if v := j.values.find(ref); v != nil && v.chunks != nil {
				c.step(&ChunkLost{v, rapid.IntRange(0, 1).Draw(t, "index")})
			}
		}
	case 6:
		if j := c.machine.jobs[stamp.Job]; j != nil {
			c.step(&Damaged{j})
		}
	default:
		run := &protocol.Run{Stamp: stamp, Of: 4, Tasks: units, Gather: rapid.Bool().Draw(t, "gather")}
		if rapid.Bool().Draw(t, "reads") {
			run.Refs = []protocol.Ref{ref}
		}
		c.step(&Run{run, "r"})
	}
}

// TestRandom: whatever comes, in whatever order, the invariants hold, no task is computed twice for one order, nothing
// is used after it is given up, and in the end nothing is forgotten.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &caller{
			t: t, machine: New(Config{Worker: "w", Slots: 2}), began: make(map[*Batch]bool), closed: make(map[*Job]bool),
			computed: make(map[*Batch]map[int]bool), uses: make(map[string]int),
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "order") || !c.work() {
				c.order()
			}
		}
		for c.work() {
		}
		if len(c.began) > 0 {
			t.Fatalf("%d batches wait for ever", len(c.began))
		}
		c.step(&Reset{})
		if len(c.machine.jobs) > 0 || len(c.closed) != len(c.jobs) || c.machine.past != 0 {
			t.Fatalf("%d jobs are left, %d of %d are closed, %d bytes of results", len(c.machine.jobs), len(c.closed),
				len(c.jobs), c.machine.past)
		}
		for digest, n := range c.uses {
			if n != 0 {
				t.Fatalf("result %q is used %d times", digest, n)
			}
		}
	})
}
