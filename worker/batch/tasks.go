package batch

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxPast bounds the results of earlier rounds that a worker keeps, in bytes. Later values may
	// consist of them.
	MaxPast = 512 << 20
	// wholeFactor is the memory that a task on the whole dataset needs at most, in sizes of the
	// dataset: the shards, and twice as much for its own arrays.
	wholeFactor = 3
	// maxPartials bounds the partials of a batch, in bytes of their dense values.
	maxPartials = 8 * protocol.MaxMessage
	// maxIdle bounds the retired batches of a job that are kept for their memory.
	maxIdle = 4
	// largePartial is the size of a partial from which on one batch at most is kept for its memory.
	largePartial = 1 << 20
	// keptVersions is how many versions of a value a job keeps: a round in work reads one, and the
	// next round another.
	keptVersions = 2
	// maxValueBytes bounds the values of a job, in bytes.
	maxValueBytes = 8 * protocol.MaxMessage
)

// lost reports whether the job could not be opened for a reason that may have passed.
func (j *Job) lost() bool { return j.state == failed && !FailureOf(j.failure).Permanent }

// InUse reports whether something outside uses the job.
func (j *Job) InUse() bool { return j.state == opening || j.shards.fetching > 0 || len(j.live) > 0 }

// Live returns the number of batches that have not retired.
func (j *Job) Live() int { return len(j.live) }

// Task returns a task of a gather round that is in work or done, or nil.
func (j *Job) Task(round uint64, unit uint32) *Task {
	if round != j.round.Round {
		return nil
	}
	return j.tasks[unit]
}

// opened lets the batches go on that waited for the job.
func (j *Job) opened(e *Opened) {
	j.state, j.demand.arrays, j.demand.purpose = isOpen, e.Demand, e.DemandFor
	if e.Err != nil {
		j.state, j.failure = failed, e.Err
	}
	for _, b := range slices.Clone(j.live) {
		b.await()
	}
	j.closeUnused()
}

// fetched lets the batches go on that waited for a shard, whether it is here or not.
func (j *Job) fetched(index int, err error) {
	s := &j.shards.list[index]
	j.shards.fetching--
	s.state, s.err = here, err
	if err != nil {
		s.state = absent
	} else {
		j.shards.absent--
	}
	waiting := s.waiting
	s.waiting = nil
	for _, b := range waiting {
		if b.waits--; b.waits == 0 {
			b.proceed()
		}
	}
	j.closeUnused()
}

// closeUnused closes a forgotten job that nothing uses.
func (j *Job) closeUnused() {
	if !j.forgotten || j.InUse() {
		return
	}
	for len(j.past) > 0 {
		j.dropPast()
	}
	for _, id := range slices.Sorted(maps.Keys(j.values)) {
		for _, v := range j.values[id].versions {
			if v.chunks != nil {
				j.machine.do(Release{v})
			}
		}
	}
	j.values = nil
	j.machine.do(Close{j})
}

// dropPast gives up the oldest result of earlier rounds.
func (j *Job) dropPast() {
	old := j.past[0]
	j.past = j.past[1:]
	j.machine.past -= old.bytes
	j.machine.do(DropResult{old.digest})
}

// supersede begins a round, and ends all that belongs to other rounds. Results of earlier rounds
// are kept while there is room.
func (j *Job) supersede(s protocol.Stamp) {
	j.drop(func(b *Batch) bool { return b.Executor == Reduce || b.Stamp.Round != s.Round })
	another := s.Round != j.round.Round
	j.round = s
	clear(j.pending)
	if !another || len(j.tasks) == 0 {
		return
	}
	m := j.machine
	for _, unit := range slices.Sorted(maps.Keys(j.tasks)) {
		t := j.tasks[unit]
		if j.stop(t); !t.done {
			continue
		}
		for len(j.past) > 0 && m.past+t.result.bytes > MaxPast {
			j.dropPast()
		}
		if m.past+t.result.bytes > MaxPast {
			m.do(DropResult{t.result.digest})
			continue
		}
		j.past = append(j.past, t.result)
		m.past += t.result.bytes
	}
}

// accept makes a batch of the tasks of a message that are neither in work nor done. The job has all
// values. Tasks of a gather round that are done are announced again, and all of them answer to this
// message from now on.
func (j *Job) accept(run *protocol.Run, from Request) {
	b := j.newBatch(run, from)
	if b.Executor == Reduce {
		slices.Sort(run.Tasks)
		if len(j.pending) != b.of {
			j.pending = make([]bool, b.of)
		}
	}
	for i, unit := range run.Tasks {
		if b.Executor == Reduce {
			if !j.pending[unit] {
				j.pending[unit] = true
				b.tasks = append(b.tasks, Assignment{Batch: b, Index: i, number: unit})
			}
			continue
		}
		t := j.tasks[unit]
		if t == nil {
			t = &Task{Number: unit}
			j.tasks[unit] = t
			b.tasks = append(b.tasks, Assignment{Batch: b, Index: i, Task: t, number: unit})
		}
		t.Request = from
		if t.done {
			j.announce(t)
		}
	}
	if len(b.tasks) == 0 {
		j.shelve(b)
		return
	}
	for _, ref := range run.Refs {
		v := j.values.find(ref)
		v.users++
		b.Values = append(b.Values, v)
	}
	b.Run, *run = *run, b.Run
	j.live = append(j.live, b)
	j.machine.do(Begin{b})
	if j.state != opening {
		b.await()
	}
}

// newBatch returns a batch without tasks. It prefers a retired one of as many tasks, because its
// memory fits.
func (j *Job) newBatch(run *protocol.Run, from Request) *Batch {
	executor, scope := Reduce, run.Scope
	if run.Gather {
		executor = Gather
	}
	if run.SubJob {
		scope = round.Whole // a sub-job needs the dataset of its job
	}
	var b *Batch
	fits := func(b *Batch) bool { return b.of == int(run.Of) && b.Executor == executor }
	if at := slices.IndexFunc(j.idle, fits); at >= 0 {
		b = j.idle[at]
		j.idle = slices.Delete(j.idle, at, at+1)
	} else {
		b = new(Batch)
	}
	*b = Batch{
		Request: from, Job: j, Executor: executor, Local: b.Local, Run: b.Run, Values: b.Values[:0],
		of: int(run.Of), scope: scope, partial: 8*run.Shape.F64 + 4*(run.Shape.F32+run.Shape.I32), tasks: b.tasks[:0],
	}
	return b
}

// shelve keeps the memory of a batch for another one.
func (j *Job) shelve(b *Batch) {
	b.state = retired
	if b.partial >= largePartial {
		j.idle = slices.DeleteFunc(j.idle, func(x *Batch) bool { return x.partial >= largePartial })
	}
	if len(j.idle) == maxIdle {
		j.idle = slices.Delete(j.idle, 0, 1)
	}
	j.idle = append(j.idle, b)
}

// await fetches the shards that a batch needs and its job has not. The batch goes on at once if
// there are none.
func (b *Batch) await() {
	j := b.Job
	err := b.tooLarge()
	once := err != nil && FailureOf(err).Permanent // a single failure says it for all tasks
	if err == nil {
		err = j.failure
	}
	if err != nil {
		for i := range b.tasks {
			if i == 0 || !once {
				b.fail(&b.tasks[i], err)
			}
		}
		b.retire()
		return
	}
	for i := 0; j.shards.absent > 0 && i < len(b.tasks); i++ {
		lo, hi := b.needs(b.tasks[i].number)
		for at := lo; at < hi; at++ {
			s := &j.shards.list[at]
			if s.state == here || len(s.waiting) > 0 && s.waiting[len(s.waiting)-1] == b {
				continue
			}
			s.waiting = append(s.waiting, b)
			b.waits++
			if s.state == absent {
				s.state = fetching
				j.shards.fetching++
				j.machine.do(Fetch{j, at})
			}
		}
	}
	if b.waits == 0 {
		b.proceed()
	}
}

// needs returns the range [lo, hi) of the shards that a task needs.
func (b *Batch) needs(unit uint32) (lo, hi int) {
	return round.Task{ID: int(unit), Of: b.of, Scope: b.scope}.Shards(len(b.Job.shards.list))
}

// tooLarge says why the batch would take more memory than this worker has, or returns nil.
func (b *Batch) tooLarge() error {
	c := &b.Job.machine.config
	if b.Executor == Reduce {
		// Partials are added as they come. So a batch holds one for each executor, and the nodes of
		// the reduction tree that wait for their siblings.
		runs := 0 // of consecutive tasks
		for i, t := range b.tasks {
			if i == 0 || t.number != b.tasks[i-1].number+1 {
				runs++
			}
		}
		if held := c.Slots + min(len(b.tasks), 2*runs*bits.Len(uint(b.of))); held*b.partial > maxPartials {
			return Permanent(fmt.Errorf("worker: the tasks need up to %d partial results of %d bytes, but a worker keeps at "+
				"most %s of them", held, b.partial, units.Format(maxPartials)))
		}
	}
	if c.Memory == 0 || b.scope != round.Whole {
		return nil
	}
	d := &b.Job.demand
	need, what := wholeFactor*d.shards, ""
	if d.arrays > c.Memory {
		need = d.arrays
	}
	if d.purpose != "" && (d.arrays > c.Memory || d.arrays == 0) {
		what = " (" + d.purpose + ")"
	}
	if need <= c.Memory {
		return nil
	}
	return Unable(fmt.Errorf("worker: a task on the whole dataset needs up to %s%s, but worker %s has %s (coppice "+
		"worker --memory)",
		units.Format(need), what, c.Worker, units.Format(c.Memory)))
}

// proceed hands a batch to the executors. Its tasks fail if their shards could not be fetched.
func (b *Batch) proceed() {
	j := b.Job
	if j.shards.absent > 0 {
		b.tasks = slices.DeleteFunc(b.tasks, func(t Assignment) bool {
			var errs []error
			lo, hi := b.needs(t.number)
			for _, s := range j.shards.list[lo:hi] {
				if s.state != here {
					errs = append(errs, s.err)
				}
			}
			if len(errs) > 0 {
				b.fail(&t, errors.Join(errs...))
			}
			return len(errs) > 0
		})
	}
	if len(b.tasks) == 0 {
		b.retire()
		return
	}
	// A job that was idle starts level with the others. It has no claim to the time that it did not
	// ask for.
	m, x := j.machine, b.Executor
	if !slices.ContainsFunc(m.ready[x], func(other *Batch) bool { return other.Job == j }) {
		j.used[x] = max(j.used[x], m.clock[x])
	}
	b.state, b.left = running, len(b.tasks)
	m.ready[x] = append(m.ready[x], b)
	m.do(Wake{b})
}

// unready takes a batch off the ready ones.
func (b *Batch) unready() {
	list := &b.Job.machine.ready[b.Executor]
	*list = slices.DeleteFunc(*list, func(x *Batch) bool { return x == b })
}

// ended notes that an executor ended a task.
func (b *Batch) ended(e *Ended) {
	b.Job.used[b.Executor] += e.Took
	if e.Err != nil {
		b.fail(e.Assignment, e.Err)
	}
	b.left--
	b.finish()
}

// finish answers or retires a batch if all its tasks have ended.
func (b *Batch) finish() {
	switch {
	case b.left > 0:
	case b.Executor == Reduce && !b.dropped:
		b.state = answering
		b.Job.machine.do(Answer{b})
	default:
		b.retire()
	}
}

// fail tells the leader that a task cannot be computed, unless nobody wants it any longer.
func (b *Batch) fail(t *Assignment, err error) {
	switch {
	case b.dropped:
	case t.Task != nil:
		b.Job.failTask(t.Task, err)
	default:
		b.Job.machine.do(Fail{b.Request, t.number, err})
	}
	b.unmark(t)
	t.failed = true
}

// unmark lets a task of a reduce round be asked for again. The mark of a task that failed may be
// another batch's.
func (b *Batch) unmark(t *Assignment) {
	if j := b.Job; b.Executor == Reduce && !t.failed && b.Stamp == j.round && int(t.number) < len(j.pending) {
		j.pending[t.number] = false
	}
}

// drop ends the live batches that which selects. Tasks that have not begun are not computed.
func (j *Job) drop(which func(*Batch) bool) {
	for i := len(j.live) - 1; i >= 0; i-- {
		b := j.live[i]
		if b.dropped || !which(b) {
			continue
		}
		b.dropped = true
		switch b.state {
		case waiting:
			b.retire()
		case running:
			b.unready()
			b.left -= len(b.tasks) - b.next
			b.next = len(b.tasks)
			if b.left == 0 {
				b.retire()
			}
		}
	}
}

// retire gives up what a batch holds, and keeps its memory for another one.
func (b *Batch) retire() {
	j := b.Job
	if b.waits > 0 {
		b.waits = 0
		for i := range j.shards.list {
			s := &j.shards.list[i]
			s.waiting = slices.DeleteFunc(s.waiting, func(x *Batch) bool { return x == b })
		}
	}
	for i := range b.tasks {
		b.unmark(&b.tasks[i])
		b.tasks[i].Task = nil
	}
	for _, v := range b.Values {
		v.users--
		j.reuse(v)
	}
	clear(b.Values)
	b.Values = b.Values[:0] // a batch that fails at once has retired when Begin is performed
	j.machine.do(Retire{b})
	j.live = slices.DeleteFunc(j.live, func(x *Batch) bool { return x == b })
	j.shelve(b)
	j.closeUnused()
}

// stored announces a stored result.
func (j *Job) stored(e *Stored) {
	t := e.Task
	switch {
	case e.Err != nil:
		j.failTask(t, e.Err)
	case t.stopped:
		j.machine.do(DropResult{e.Digest})
	default:
		t.done, t.result, t.took = true, result{e.Digest, e.Bytes}, e.Took
		j.announce(t)
	}
}

// announce tells the leader that asked last that the result of a task is stored.
func (j *Job) announce(t *Task) {
	j.machine.do(Announce{Request: t.Request, Task: t, Digest: t.result.digest, Bytes: t.result.bytes, Took: t.took})
}

// failTask forgets a task of a gather round, so that the leader can ask for it again.
func (j *Job) failTask(t *Task, err error) {
	if !t.stopped {
		j.stop(t)
		j.machine.do(Fail{t.Request, t.Number, err})
	}
}

// giveUp ends a task of a gather round that nobody wants any longer, and gives up its result.
func (j *Job) giveUp(t *Task) {
	j.stop(t)
	if t.done {
		j.machine.do(DropResult{t.result.digest})
	}
}

// stop ends a task of a gather round that nobody wants any longer.
func (j *Job) stop(t *Task) {
	t.stopped = true
	delete(j.tasks, t.Number)
	j.machine.do(Stop{t})
}

// find returns a version that is here, or nil.
func (v values) find(ref protocol.Ref) *Version {
	x := v[ref.ID]
	if x == nil {
		return nil
	}
	for _, y := range x.versions {
		if y.Number == ref.Version {
			return y
		}
	}
	return nil
}

// room reports whether a job may keep bytes more for a value.
func (v values) room(id uint16, bytes int) bool {
	if v[id] == nil && len(v) >= protocol.MaxVars {
		return false
	}
	for _, x := range v {
		if x.spare != nil {
			bytes += x.spare.bytes
		}
		for _, y := range x.versions {
			bytes += y.bytes
		}
	}
	return bytes <= maxValueBytes
}

// variable returns a value, with the versions that are here.
func (v values) variable(id uint16) *variable {
	x := v[id]
	if x == nil {
		x = &variable{versions: make([]*Version, 0, keptVersions+1)}
		v[id] = x
	}
	return x
}

// Whole reports whether nothing of the version is missing.
func (v *Version) Whole() bool { return v.here == v.total }

// list makes v the newest version, so that it is dropped last, and drops the oldest one beyond
// keptVersions.
func (j *Job) list(v *Version) {
	x := v.of
	if at := slices.Index(x.versions, v); at >= 0 {
		x.versions = slices.Delete(x.versions, at, at+1)
	}
	x.versions, v.listed = append(x.versions, v), true
	if len(x.versions) > keptVersions {
		j.unlist(x.versions[0])
	}
}

// unlist drops a version.
func (j *Job) unlist(v *Version) {
	at := slices.Index(v.of.versions, v)
	v.of.versions = slices.Delete(v.of.versions, at, at+1)
	v.listed = false
	j.reuse(v)
}

// reuse gives up a version that is neither listed nor read. Its memory, unless it is a message's,
// serves a newer one.
func (j *Job) reuse(v *Version) {
	switch {
	case v.listed || v.users > 0:
	case v.lent || v.chunks != nil:
		j.machine.do(Release{v})
	default:
		v.of.spare = v
	}
}

// keep keeps a version that came whole.
func (j *Job) keep(e *Value) {
	if v := j.values.find(e.Ref); v != nil && v.Whole() {
		j.list(v)
		return
	} else if v != nil {
		j.unlist(v)
	}
	if !j.values.room(e.Ref.ID, e.Bytes) {
		j.refuse("a value of %d bytes is larger than a worker keeps for a job", e.Bytes)
		return
	}
	x := j.values.variable(e.Ref.ID)
	v := x.spare
	x.spare = nil
	lent := e.Local != nil
	if v == nil || v.bytes < e.Bytes || lent {
		v = &Version{Local: e.Local, of: x, bytes: e.Bytes}
	}
	v.ID, v.Number, v.Bytes, v.lent = e.Ref.ID, e.Ref.Version, e.Bytes, lent
	j.list(v)
	j.machine.do(Keep{v})
}

// keepChunk keeps a chunk of a version. Its bytes came with the message, or it is a result of this
// worker.
func (j *Job) keepChunk(e *Chunk) {
	v := j.values.find(e.Ref)
	if v == nil && j.values.room(e.Ref.ID, 0) {
		v = &Version{ID: e.Ref.ID, Number: e.Ref.Version, of: j.values.variable(e.Ref.ID), total: e.Of,
			chunks: make(map[int]bool)}
	}
	if v == nil || !j.values.room(e.Ref.ID, e.Bytes) {
		j.refuse("a chunk of %d bytes is larger than a worker keeps for a job", e.Bytes)
		return
	}
	j.list(v)
	isHere, known := v.chunks[e.Index]
	switch {
	case v.chunks == nil: // another leader sent it whole
	case v.total != e.Of:
		j.refuse("a chunk says that its value has %d chunks, but the value has %d", e.Of, v.total)
	case isHere || !e.Sent && (known || !e.Found):
	default:
		v.chunks[e.Index] = true
		v.here++
		v.bytes += e.Bytes
		j.machine.do(KeepChunk{v, e.Index, e.Local})
	}
}

// refuse drops a message.
func (j *Job) refuse(format string, args ...any) {
	err := fmt.Errorf("%w: %w", protocol.ErrMessage, fmt.Errorf(format, args...))
	j.machine.do(RefuseMessage{err})
}
