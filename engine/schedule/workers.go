package schedule

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Limits are the durations that decisions depend on. They derive from the heartbeat interval.
type Limits struct {
	Heartbeat time.Duration
	Dead      time.Duration // silence after which a worker is forgotten
	Slow      time.Duration // least time before a task of a reduce round that the others wait for goes to another worker
	Lost      time.Duration // least time before any task of a reduce round does
	Remind    time.Duration // time between two reminders of a task of a gather round
	Hold      time.Duration // time between two requests to hold shards
	Avoided   time.Duration // a slow worker gets no tasks of reduce rounds for so long, or until it answers
	GiveUp    time.Duration // the job fails if a task has only failed for so long
	Short     time.Duration // a result that was computed in less is recorded asynchronously
	Ahead     int           // leases that a worker may have beyond its slots, so that it finds its next task at once
}

const (
	// MaxWorkers bounds the workers that a leader knows.
	MaxWorkers = 4096
	// maxShards bounds the digests that a leader keeps of all workers' shards, about 150 bytes each.
	maxShards = 1 << 18
	// slowBeats is the length, in heartbeats, of a worker's second slow period in a row. Each further one is twice as
	// long.
	slowBeats = 5
)

// Workers is the state that the jobs of one leadership share: which workers there are, what each has, and which slots
// are free. It is not safe for concurrent use.
type Workers struct {
	limits  Limits
	byName  map[string]*Worker
	claims  map[uint64]*claim // by job
	version uint64            // grows whenever the usable workers, or their shards, change
	shards  int               // digests of all workers. Invariant: at most maxShards
	orders  uint64            // leases given so far

	quarantined map[string]string          // why, by name
	recorded    map[string]string          // the part of quarantined that the log has
	served      map[string]map[uint64]bool // jobs that a worker was sent, by name

	usable, prompt []*Worker // by name, as of listed
	listed         uint64
}

// Worker is one process of a worker, as decisions see it. A process that left and came back is another Worker.
type Worker struct {
	Report
	heard       time.Time
	refused     string // why it is not used, quarantine included; empty: it is used
	unreachable bool   // true if NATS said that nobody listens to its subject
	gone        string // why it was removed; empty: it is there
	shards      map[string]bool

	// leases are the tasks of gather rounds that it has, of all jobs, in the order in which they were given.
	// Invariant: at most Slots+Limits.Ahead, and none has a result.
	leases []*Lease

	slowUntil time.Time // it gets no tasks of reduce rounds before; zero: it is not slow
	slowSince time.Time // beginning of the last slow period
	slowTimes int       // slow periods lately
}

// Report is what a worker says of itself in a heartbeat.
type Report struct {
	Name  string
	Slots int
	// Late is how late an answer is for its way through the network alone.
	Late time.Duration
	// Refusal says why the worker cannot be used; empty: it can.
	Refusal string
	// Full is true if Shards, the digests of the shards on its disk, are part of the report.
	Full   bool
	Shards []string
	// Leaving is true if the worker ends.
	Leaving bool
}

// NewWorkers returns the state of a leadership that begins. quarantined are the workers that the log does not trust.
func NewWorkers(limits Limits, quarantined map[string]string) *Workers {
	w := &Workers{
		limits: limits, byName: make(map[string]*Worker), claims: make(map[uint64]*claim), version: 1,
		quarantined: make(map[string]string), served: make(map[string]map[uint64]bool),
	}
	w.SetQuarantined(quarantined)
	return w
}

// Hear takes in a worker's report. changed is true if the workers are others now, joined if the worker is new, or is
// used or refused now and was not before.
func (w *Workers) Hear(r Report, now time.Time) (changed, joined bool) {
	if r.Leaving {
		return w.remove(r.Name, "left"), false
	}
	at := w.byName[r.Name]
	if at == nil {
		if len(w.byName) >= MaxWorkers {
			return false, false
		}
		at = &Worker{shards: make(map[string]bool)}
		w.byName[r.Name] = at
		changed, joined = true, true
	}
	at.heard, at.Report = now, r
	at.start(now) // a process with more slots may have been started in its place
	at.Shards = nil
	if refused := w.refusal(at); refused != at.refused { // a process of another version was started meanwhile
		at.refused = refused
		changed, joined = true, true
	}
	if at.unreachable { // it only lost its connection, and has all that it had
		at.unreachable = false
		changed = true
	}
	same := len(r.Shards) == len(at.shards) && !slices.ContainsFunc(r.Shards, func(digest string) bool {
		return !at.shards[digest]
	})
	if r.Full && !same && w.shards+len(r.Shards)-len(at.shards) <= maxShards {
		w.shards += len(r.Shards) - len(at.shards)
		clear(at.shards)
		for _, digest := range r.Shards {
			at.shards[digest] = true
		}
		w.shards += len(at.shards) - len(r.Shards) // a digest may be repeated
		changed = true
	}
	if changed {
		w.version++
	}
	return changed, joined
}

func (w *Workers) refusal(at *Worker) string {
	if reason, is := w.quarantined[at.Name]; is {
		return "the worker is quarantined: " + reason
	}
	return at.Refusal
}

// Heard notes a sign of life that is not a report: over a slow link heartbeats wait behind results.
func (w *Workers) Heard(name string, now time.Time) {
	if at := w.byName[name]; at != nil {
		at.heard = now
	}
}

// HeardAll forgives the silence of all workers: it was the leader that had no connection.
func (w *Workers) HeardAll(now time.Time) {
	for _, at := range w.byName {
		at.heard = now
	}
}

func (w *Workers) remove(name, why string) bool {
	at := w.byName[name]
	if at == nil {
		return false
	}
	at.gone = why
	w.shards -= len(at.shards)
	delete(w.byName, name)
	w.version++
	return true
}

// Expire removes the workers that were silent for too long, returns their names, and ends slow periods.
func (w *Workers) Expire(now time.Time) (gone []string) {
	for name, at := range w.byName {
		if now.Sub(at.heard) > w.limits.Dead+at.Late {
			gone = append(gone, name)
		}
		if !at.slowUntil.IsZero() && now.After(at.slowUntil) {
			at.slowUntil = time.Time{}
			w.version++
		}
	}
	for _, name := range gone {
		w.remove(name, "did not answer any more")
	}
	slices.Sort(gone)
	return gone
}

// Unreachable puts a worker out of use until its next report, since nobody listens to its subject. It may be the same
// process then, and keeps what it was sent.
func (w *Workers) Unreachable(name string) bool {
	at := w.byName[name]
	if at == nil || at.unreachable {
		return false
	}
	at.unreachable = true
	w.version++
	return true
}

// Quarantine puts a worker out of use because its results are wrong. It reports whether it was in use.
func (w *Workers) Quarantine(name, reason string) bool {
	_, already := w.quarantined[name]
	w.quarantined[name] = reason
	w.refuse()
	return !already
}

// SetQuarantined says which workers the log does not trust, and why. A worker that the log trusts again is used again.
// It reports whether that is news.
func (w *Workers) SetQuarantined(recorded map[string]string) bool {
	if maps.Equal(w.recorded, recorded) {
		return false
	}
	for name := range w.recorded {
		delete(w.quarantined, name)
	}
	w.recorded = maps.Clone(recorded)
	maps.Copy(w.quarantined, recorded)
	w.refuse()
	return true
}

func (w *Workers) refuse() {
	for _, at := range w.byName {
		at.refused = w.refusal(at)
	}
	w.version++
}

// whyLost says, after the name of a worker, why it cannot be used any longer.
func (w *Worker) whyLost() string {
	switch {
	case w.gone != "":
		return w.gone
	case w.refused != "":
		return "was refused: " + w.refused
	}
	return "lost its connection"
}

// Trusts reports whether a worker's messages count. The leader is no worker.
func (w *Workers) Trusts(name string) bool {
	_, is := w.quarantined[name]
	return !is && name != Verifier
}

// Get returns a worker that may be given tasks, or nil.
func (w *Workers) Get(name string) *Worker {
	if at := w.byName[name]; at != nil && at.refused == "" && !at.unreachable {
		return at
	}
	return nil
}

// WorkersOf lists the usable workers that were sent a job.
func (w *Workers) WorkersOf(job uint64) (names []string) {
	for name, jobs := range w.served {
		if jobs[job] && w.Get(name) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// list returns the workers that may be given tasks, by name. For a reduce round slow workers are left out, unless all
// are slow.
func (w *Workers) list(reduce bool) []*Worker {
	if w.listed != w.version {
		w.listed, w.usable, w.prompt = w.version, nil, nil
		for _, at := range w.byName {
			if at.refused == "" && !at.unreachable {
				w.usable = append(w.usable, at)
			}
		}
		slices.SortFunc(w.usable, func(a, b *Worker) int { return cmp.Compare(a.Name, b.Name) })
		for _, at := range w.usable {
			if at.slowUntil.IsZero() {
				w.prompt = append(w.prompt, at)
			}
		}
	}
	if reduce && len(w.prompt) > 0 {
		return w.prompt
	}
	return w.usable
}

// slow begins a slow period of a worker: it sends heartbeats and does not answer.
func (w *Workers) slow(name string, now time.Time) {
	at := w.Get(name)
	if at == nil || !at.slowUntil.IsZero() {
		return
	}
	if now.Sub(at.slowSince) > w.limits.Avoided {
		at.slowTimes = 0
	}
	at.slowTimes++
	at.slowSince, at.slowUntil = now, now.Add(w.limits.Avoided)
	w.version++
}

// answered notes that a worker answered: its slow period ends. From the second period in a row on it ends only after
// some time; otherwise a slow worker would cost each round a wait.
func (w *Workers) answered(name string, now time.Time) {
	at := w.Get(name)
	if at == nil || at.slowUntil.IsZero() {
		return
	}
	if at.slowTimes >= 2 {
		least := time.Duration(slowBeats<<min(at.slowTimes-2, 10)) * w.limits.Heartbeat
		if end := at.slowSince.Add(min(w.limits.Avoided, least)); now.Before(end) {
			at.slowUntil = end
			return
		}
	}
	at.slowUntil = time.Time{}
	w.version++
}

// claim is what a job has of the workers' slots.
type claim struct {
	job    uint64
	leased []*Lease          // with slots, in the order in which they were given. Invariant: each is one of its worker's
	wants  bool              // true if a task waits that no worker had a slot for
	unable map[string]string // workers that never can compute a task of the job, and why
}

// Lease is one worker's right to compute a task, and its result if two are compared.
type Lease struct {
	worker   string  // empty: there is no lease; Verifier: the leader itself
	on       *Worker // nil: it takes no slot
	task     int
	order    uint64 // leases with slots that were given later have more
	since    time.Time
	reminded time.Time
	started  time.Time     // when its worker got a slot for it; zero: it waits for one
	limit    time.Duration // of computing from then on; 0: not known yet
	answered bool
	result   Result // if answered
}

// start notes that the worker computes the tasks from now on that it has a slot for, of all jobs.
func (w *Worker) start(now time.Time) {
	for _, l := range w.leases[:min(len(w.leases), w.Slots)] {
		if l.started.IsZero() {
			l.started = now
		}
	}
}

// isBehind reports whether a lease waits for a slot: its worker has as many earlier ones as slots.
func (l *Lease) isBehind() bool { return slices.Index(l.on.leases, l) >= l.on.Slots }

// lease finds a slot for a job, on the worker with the most free slots, or returns nil. It leaves out the worker to
// avoid, unless it is the only one. waiting is the number of the job's tasks that wait for a lease; 0 asks for a second
// lease of a task.
//
// A worker gets more leases than it has slots (Limits.Ahead) while more tasks wait than there are slots. A job that
// wants a slot and has fewer leases goes first; next is that job.
func (w *Workers) lease(c *claim, avoid string, waiting int) (on *Worker, next *claim) {
	able, slots, most := 0, 0, 0
	var avoided *Worker
	for _, at := range w.list(false) {
		if len(c.unable) > 0 && c.unable[at.Name] != "" {
			continue
		}
		able++
		slots += at.Slots
		if at.Name == avoid {
			avoided = at
		} else if free := at.Slots - len(at.leases); on == nil || free > most {
			on, most = at, free
		}
	}
	if able == 1 && avoided != nil {
		on, most = avoided, avoided.Slots-len(avoided.leases)
	}
	more := 0
	if waiting > 0 && (able == 1 || waiting > slots) {
		more = w.limits.Ahead
	}
	if most+more <= 0 {
		on = nil
	}
	if waiting > 0 {
		c.wants = avoid == "" // until it is given one
	}
	if on == nil {
		return nil, nil
	}
	for _, other := range w.claims {
		if other != c && other.wants && len(other.leased) < len(c.leased) && other.unable[on.Name] == "" &&
			(next == nil || other.job < next.job) {
			next = other
		}
	}
	if next != nil {
		return nil, next
	}
	if avoid == "" {
		c.wants = false
	}
	return on, nil
}

// WorkerView describes a worker for people.
type WorkerView struct {
	Name        string
	Slots       int
	Shards      int
	Leases      int    // tasks of gather rounds
	Refused     string // why it is not used; empty: it is
	Quarantined bool
	Unreachable bool
	Heard       time.Time
	SlowFor     time.Duration // it gets no tasks of reduce rounds for so long; 0: it is not slow
}

// View describes the workers, by name.
func (w *Workers) View(now time.Time) []WorkerView {
	list := make([]WorkerView, 0, len(w.byName))
	for _, name := range slices.Sorted(maps.Keys(w.byName)) {
		at := w.byName[name]
		_, quarantined := w.quarantined[name]
		list = append(list, WorkerView{
			Name: name, Slots: at.Slots, Shards: len(at.shards), Leases: len(at.leases), Refused: at.refused,
			Quarantined: quarantined,
			Unreachable: at.unreachable, Heard: at.heard, SlowFor: max(0, at.slowUntil.Sub(now)),
		})
	}
	return list
}

// Count counts the usable workers, the refused workers, and the shards on the disks of usable workers.
func (w *Workers) Count() (usable, refused, shards int) {
	for _, at := range w.byName {
		switch {
		case at.refused != "":
			refused++
		case !at.unreachable:
			usable++
			shards += len(at.shards)
		}
	}
	return usable, refused, shards
}

// Has reports whether a worker is known, usable or not.
func (w *Workers) Has(name string) bool { return w.byName[name] != nil }

// Refused says why a worker is not used; empty: it is, or is not known.
func (w *Workers) Refused(name string) string {
	if at := w.byName[name]; at != nil {
		return at.refused
	}
	return ""
}

// RunningTask is a task that a worker computes.
type RunningTask struct {
	Task  int
	Since time.Time // when its worker got a slot for it
}

// JobView describes the round of a job for people.
type JobView struct {
	Job    uint64
	Unable map[string]string // workers that never can compute a task of the job, and why
	// Tasks is 0 if no round is under way, or if no worker can compute it.
	Tasks  int
	Gather bool

	// Of a reduce round: by task, the worker that has it and the worker that should hold its shards; and all workers that
	// could have tasks.
	Owner, Target, Able []string

	// Of a gather round: tasks without a result; tasks that may be given out, that rest after a failure, that a budget
	// holds back; and tasks that workers compute now.
	Left, Ready, Resting, Held int
	Running                    []RunningTask
	// Waits counts, by group, the tasks that have no lease and that no budget holds back.
	Waits []int
}

// View describes the round under way.
func (j *Job) View(now time.Time) JobView {
	v := JobView{Job: j.job, Unable: maps.Clone(j.unable)}
	if j.kind != kind(j.gather) { // also between two reduce rounds
		if p := j.reduce.plans[len(j.tasks)]; p != nil && len(j.able()) > 0 {
			v.Tasks, v.Owner, v.Target, v.Able = len(j.tasks), p.owner, p.target, p.able
		}
		return v
	}
	if j.spec == nil {
		return v
	}
	v.Tasks = len(j.tasks)
	q := j.gather.queue
	v.Gather, v.Left, v.Resting = true, j.open, len(q.rests)
	var may []bool
	if j.budget != nil {
		may = j.budget.may(now)
	}
	v.Waits = slices.Clone(q.waiting)
	for g, n := range q.readied {
		if may == nil || may[g] {
			v.Ready += n
		} else {
			v.Held += n
			v.Waits[g] = 0
		}
	}
	for _, l := range j.gather.leased {
		if !l.started.IsZero() {
			v.Running = append(v.Running, RunningTask{l.task, l.started})
		}
	}
	return v
}
