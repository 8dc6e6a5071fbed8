package batch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// MaxJobs bounds the jobs of a worker, because Forget messages may get lost. Beyond it the job
	// that has been idle for longest is forgotten. The leader sets it up again if it is needed.
	MaxJobs = 64
	// MaxBusyJobs bounds the jobs of a worker if none is idle. Beyond it no job is opened.
	MaxBusyJobs = 16 * MaxJobs
)

// New returns a machine without jobs.
func New(c Config) *Machine { return &Machine{config: c, jobs: make(map[uint64]*Job)} }

// Epoch returns the highest leader epoch seen.
func (m *Machine) Epoch() uint64 { return m.epoch }

// Jobs returns the jobs by ID. The caller must not change the map.
func (m *Machine) Jobs() map[uint64]*Job { return m.jobs }

// Step applies an event, and appends to dst the actions that follow from it, in order.
func (m *Machine) Step(dst []Action, e Event) []Action {
	m.out = dst
	switch e := e.(type) {
	case *Heard:
		m.obey(e.Epoch)
	case *Setup:
		m.setup(e.Setup, e.Spec)
	case *Value:
		if j := m.addressed(e.Epoch, e.Job); j != nil {
			j.keep(e)
		}
	case *Chunk:
		if j := m.addressed(e.Epoch, e.Job); j != nil {
			j.keepChunk(e)
		}
	case *Run:
		m.run(e.Run, Request{e.Stamp, e.Reply})
	case *Forget:
		if j := m.addressed(e.Epoch, e.Job); j != nil && len(e.Tasks) == 0 {
			m.forget(j)
		} else if j != nil {
			for _, unit := range e.Tasks {
				if t := j.Task(e.Round, unit); t != nil {
					j.giveUp(t)
				}
			}
		}
	case *Opened:
		e.Job.opened(e)
	case *Fetched:
		e.Job.fetched(e.Index, e.Err)
	case *Free:
		m.begin(e.Executor)
	case *Ended:
		b := e.Batch
		if b.ended(e); b.state != answering { // otherwise the executor sends first
			m.begin(b.Executor)
		}
	case *Helped:
		e.Job.used[e.Executor] += e.Took
	case *Answered:
		e.Batch.retire()
		m.begin(e.Batch.Executor)
	case *Stored:
		e.Job.stored(e)
	case *ChunkLost:
		if v := e.Version; v.chunks[e.Index] {
			v.chunks[e.Index] = false
			v.here--
		}
	case *Damaged:
		if !e.Job.forgotten {
			m.forget(e.Job)
		}
	case *Reset:
		for _, j := range m.sorted() {
			m.forget(j)
		}
		m.epoch = e.Epoch
	}
	dst, m.out = m.out, nil
	return dst
}

// sorted returns the jobs in the order of their IDs, so that the order of a map decides nothing.
func (m *Machine) sorted() []*Job {
	return slices.SortedFunc(maps.Values(m.jobs), func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
}

// obey reports whether messages of an epoch count. They do if it is the highest epoch seen. A
// higher one than before ends the reduce rounds of earlier leaders. Tasks of gather rounds go on,
// because the next leader will ask for the same bytes.
func (m *Machine) obey(epoch uint64) bool {
	if epoch < m.epoch {
		m.do(CountStale)
		return false
	}
	if epoch > m.epoch {
		m.epoch = epoch
		for _, j := range m.sorted() {
			j.drop(func(b *Batch) bool { return b.Executor == Reduce })
		}
		m.do(Report)
	}
	return true
}

// addressed returns the job of a message, or nil if the message does not count. If the worker does
// not have the job, the next Run will ask for it.
func (m *Machine) addressed(epoch, id uint64) *Job {
	if !m.obey(epoch) {
		return nil
	}
	return m.jobs[id]
}

// setup opens a job, unless it is here already.
func (m *Machine) setup(s *protocol.Setup, spec string) {
	if !m.obey(s.Epoch) {
		return
	}
	if old := m.jobs[s.ID]; old != nil {
		same := spec != "" && spec == old.spec // it is another job if the cluster began a new log
		again := s.Epoch == old.epoch && s.Start > old.start
		if same && !again && !old.lost() {
			if s.Epoch != old.epoch {
				old.epoch, old.start = s.Epoch, s.Start
			}
			return
		}
		m.forget(old)
	}
	if len(m.jobs) >= MaxJobs {
		var idle *Job // unused for longest
		for _, j := range m.jobs {
			if !j.InUse() && (idle == nil || j.touched < idle.touched) {
				idle = j
			}
		}
		if idle != nil {
			m.forget(idle)
		}
	}
	if len(m.jobs) >= MaxBusyJobs {
		m.do(RefuseJob{s.ID})
		return
	}
	m.orders++
	n := len(s.Manifest.Shards)
	j := &Job{
		ID: s.ID, machine: m, epoch: s.Epoch, start: s.Start, spec: spec, touched: m.orders,
		shards: shards{list: make([]shard, n), absent: n}, values: make(values), tasks: make(map[uint32]*Task),
	}
	for _, ref := range s.Manifest.Shards {
		j.demand.shards += ref.Bytes
	}
	m.jobs[j.ID] = j
	m.do(Open{j, s})
}

// run makes a batch of a Run message, or asks for what it needs.
func (m *Machine) run(run *protocol.Run, from Request) {
	if !m.obey(run.Epoch) {
		return
	}
	j := m.jobs[run.Job]
	if j != nil && j.lost() {
		m.forget(j)
		j = nil
	}
	if j == nil {
		m.do(Need{Request: from})
		return
	}
	m.orders++
	j.touched = m.orders
	switch now := j.round; {
	case now == (protocol.Stamp{}), run.Epoch > now.Epoch, run.Epoch == now.Epoch && run.Round > now.Round:
		j.supersede(run.Stamp)
	case run.Stamp != now:
		// The leader knows whether the message was late, or whether it drives the job again from an
		// earlier round.
		m.do(CountLate)
		m.do(Need{Request: from})
		return
	}
	var lacks []protocol.Ref // values that are not here, or not whole
	for _, ref := range run.Refs {
		if v := j.values.find(ref); v == nil || !v.Whole() {
			lacks = append(lacks, ref)
		}
	}
	if lacks != nil {
		m.do(Need{from, lacks})
		return
	}
	j.accept(run, from)
}

// forget ends a job and all that it has in work. It is closed when nothing uses it.
func (m *Machine) forget(j *Job) {
	delete(m.jobs, j.ID)
	m.do(Cancel{j})
	j.drop(func(*Batch) bool { return true })
	for _, unit := range slices.Sorted(maps.Keys(j.tasks)) {
		j.giveUp(j.tasks[unit])
	}
	if len(m.jobs) == 0 {
		m.do(NoJobs)
	}
	j.forgotten = true
	j.closeUnused()
}

// begin gives the next task to an executor that has nothing to do. It is a task of the job that has
// used the least time. So jobs share the executors evenly, whatever the length of their tasks.
func (m *Machine) begin(x Executor) {
	for len(m.ready[x]) > 0 {
		b := m.ready[x][0]
		for _, other := range m.ready[x][1:] {
			if other.Job.used[x] < b.Job.used[x] {
				b = other
			}
		}
		m.clock[x] = max(m.clock[x], b.Job.used[x])
		t := &b.tasks[b.next]
		b.next++
		if b.next == len(b.tasks) {
			b.unready()
		}
		if t.Task == nil || !t.Task.stopped {
			m.do(Compute{t})
			return
		}
		b.left--
		b.finish()
	}
}
