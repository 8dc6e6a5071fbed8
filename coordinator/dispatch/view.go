package dispatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/engine/schedule"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// The bounds of what a worker says of itself for people.
const (
	maxKinds = 16 // kinds of tasks
	maxLate  = 10 * time.Second
	// speedKept is how long the speed of a worker is kept that left, and maxLeft of how many.
	speedKept = 10 * time.Minute
	maxLeft   = 1000
)

// speed is how fast a worker computes.
type speed struct {
	tasks uint64             // that it computed during this leadership
	mean  map[string]float64 // recent seconds of a task, by kind, smoothed
	total map[string]float64 // seconds of all tasks, by kind
}

// left is the speed of a worker that left. A worker that lost its connection is back soon, and its first tasks would
// say little: it also fetches data.
type left struct {
	speed
	at time.Time
}

// speeds are the speeds of workers that left, by name.
type speeds map[string]left

// keep keeps the speed of a worker that leaves now, which may be nil.
func (k speeds) keep(name string, s *said, now time.Time) {
	maps.DeleteFunc(k, func(_ string, l left) bool { return now.Sub(l.at) > speedKept })
	if s != nil && len(s.mean) > 0 && len(k) < maxLeft {
		k[name] = left{s.speed, now}
	}
}

// take returns the speed of a worker that is back, if it is still kept.
func (k speeds) take(name string, now time.Time) (s speed) {
	if l, known := k[name]; known && now.Sub(l.at) <= speedKept {
		s = l.speed
	}
	delete(k, name)
	return s
}

// said is what a worker says of itself, for people.
type said struct {
	speed
	beat    protocol.Heartbeat
	lastOne time.Time // when it computed the last task

	before  string    // the process that sent full heartbeats before the last one did
	returns int       // how often these two took turns again
	twins   string    // addresses of two processes that send heartbeats in turns: both have this name
	seen    time.Time // when twins was found last
}

// twinsFor is how long after the last sign of it two processes are said to have one name.
const twinsFor = time.Minute

// findTwins reports whether the full heartbeat b shows that two processes have the name of this worker, if this was not
// known. Two processes send heartbeats in turns. A process that starts again takes one turn, and a second turn if a
// heartbeat of the ended process arrives late.
func (s *said) findTwins(last, b *protocol.Heartbeat, now time.Time) (isNew bool) {
	switch {
	case last.Process == "" || b.Process == "" || b.Process == last.Process:
		return false
	case b.Process != s.before:
		s.returns = 0
	default:
		if s.returns++; s.returns > 2 {
			isNew = now.Sub(s.seen) >= twinsFor
			s.twins, s.seen = min(last.Address, b.Address)+" and "+max(last.Address, b.Address), now
		}
	}
	s.before = last.Process
	return isNew
}

// twinsAt returns the addresses of two processes that have one name now, or nothing.
func (s *said) twinsAt(now time.Time) string {
	if s == nil || now.Sub(s.seen) >= twinsFor {
		return ""
	}
	return s.twins
}

// hear takes in a heartbeat; d.mu is held.
func (d *Dispatcher) hear(b *protocol.Heartbeat, now time.Time) (changed, joined bool) {
	b.RoundTrip, b.Late = min(b.RoundTrip, maxLate.Microseconds()), min(b.Late, maxLate.Microseconds())
	_, refusal := refusal(b)
	changed, joined = d.workers.Hear(schedule.Report{
		Name: b.Worker, Slots: b.Slots, Late: time.Duration(b.Late) * time.Microsecond,
		Refusal: refusal, Full: b.Full, Shards: b.Holds, Leaving: b.Leaving,
	}, now)
	if !d.workers.Has(b.Worker) {
		d.left.keep(b.Worker, d.said[b.Worker], now)
		delete(d.said, b.Worker)
		return changed, joined
	}
	s := d.said[b.Worker]
	if s == nil {
		s = &said{speed: d.left.take(b.Worker, now)}
		d.said[b.Worker] = s
	}
	was := s.beat
	s.beat = *b
	if s.beat.Holds = nil; !b.Full {
		s.beat.Host, s.beat.Address, s.beat.Process, s.beat.Load = was.Host, was.Address, was.Process, was.Load
	} else if s.findTwins(&was, b, now) {
		d.cfg.Log.Warn("two workers have the same id; give one of them another --id, and a folder of its own", "worker",
			b.Worker, "addresses", s.twins)
	}
	return changed, joined
}

// refusal says why a worker cannot be used, apart from quarantine, and names both sides; empty: it can.
func refusal(b *protocol.Heartbeat) (protocol.IdleReason, string) {
	switch {
	case b.Protocol != protocol.Version:
		return protocol.IdleRefused, fmt.Sprintf("the worker has protocol version %d, this coordinator has %d", b.Protocol,
			protocol.Version)
	case b.Numerics != round.Numerics:
		return protocol.IdleRefused, fmt.Sprintf("the worker has arithmetic version %d, this coordinator has %d", b.Numerics,
			round.Numerics)
	case b.Problem != "":
		return protocol.IdleFolder, protocol.Brief(b.Problem)
	}
	return "", ""
}

// workersChanged sets the gauges of workers and shards; d.mu is held.
func (d *Dispatcher) workersChanged() {
	alive, refused, copies := d.workers.Count()
	d.cfg.Metrics.Workers.WithLabelValues("alive").Set(float64(alive))
	d.cfg.Metrics.Workers.WithLabelValues("refused").Set(float64(refused))
	d.cfg.Metrics.ShardCopies.Set(float64(copies))
}

// taskWeight is the weight of a new time in the mean of a worker's tasks.
const taskWeight = 0.125

// computed counts tasks that a worker says it has computed.
func (d *Dispatcher) computed(a *schedule.Computed, kind string, now time.Time) {
	tasks := max(1, a.N)
	mean := a.Took.Seconds() / float64(tasks)
	d.cfg.Metrics.Compute.Observe(a.Took.Seconds())
	d.cfg.Metrics.TaskSeconds.Observe(kind, mean)
	name := a.Worker
	d.mu.Lock()
	if s := d.said[name]; s == nil {
		name = metrics.Other
	} else {
		s.tasks += uint64(tasks)
		s.lastOne = now
		s.add(cmp.Or(kind, metrics.Other), tasks, mean)
	}
	d.mu.Unlock()
	d.cfg.Metrics.Shares.Add(name, tasks, a.Took, now)
}

// add takes in that tasks took so many seconds each, on average.
func (s *speed) add(kind string, tasks int, seconds float64) {
	if s.mean == nil {
		s.mean, s.total = make(map[string]float64), make(map[string]float64)
	}
	if was, known := s.mean[kind]; known {
		s.mean[kind] = was + taskWeight*(seconds-was)
	} else if len(s.mean) < maxKinds {
		s.mean[kind] = seconds
	} else {
		return
	}
	s.total[kind] += float64(tasks) * seconds
}

// mainKind returns the kind of tasks that took most time; empty: there is none.
func (s *speed) mainKind() (kind string) {
	for k, seconds := range s.total {
		if kind == "" || seconds > s.total[kind] || seconds == s.total[kind] && k < kind {
			kind = k
		}
	}
	return kind
}

// WorkersOf lists the usable workers that were sent a job during this leadership, while an executor of it is open. A
// nil dispatcher has none.
func (d *Dispatcher) WorkersOf(job uint64) []string {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs[job] == nil {
		return nil
	}
	return d.workers.WorkersOf(job)
}

// Workers lists the workers for people.
func (d *Dispatcher) Workers() (list []protocol.Worker) {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.workers.View(now) {
		state, s := "alive", d.said[w.Name]
		if w.Refused != "" {
			state = "refused: " + w.Refused
		} else if w.Unreachable {
			state = "unreachable"
		} else if both := s.twinsAt(now); both != "" {
			state = "twice: two workers, at " + both + ", have this id; give one of them another --id, and a folder of its own"
		}
		b := &s.beat
		list = append(list, protocol.Worker{
			ID: w.Name, Version: b.Version, Slots: b.Slots, Shards: w.Shards, Metrics: b.Metrics, State: state,
			RoundTrip: float64(b.RoundTrip) / 1000, Host: b.Host, Address: b.Address, Load: b.Load, Busy: b.Busy,
			Tasks: s.tasks, TaskSeconds: maps.Clone(s.mean), MainKind: s.mainKind(),
			LastSeen: max(0, now.Sub(w.Heard).Milliseconds()),
		})
	}
	return list
}

// Live is how far a job is that this leader drives, beyond what is committed.
type Live struct {
	Tasks    int // tasks of the gather round under way, or of the last one
	InFlight int // tasks that workers compute now
	// Running are these tasks if the round is a gather round.
	Running []schedule.RunningTask
	// Progress is nil if the committed progress is all there is to tell.
	Progress *round.Progress
}

// shown is the argument of the last Show.
type shown struct {
	tasks    int
	progress round.Progress
}

// Show makes known how far the job is. tasks is the number of tasks of its round.
func (x *Executor) Show(tasks int, p round.Progress) { x.shown.Store(&shown{tasks, p}) }

// Live tells how far a job is, if this leader drives it. A nil dispatcher drives none.
func (d *Dispatcher) Live(job uint64) (live Live, ok bool) {
	if d == nil {
		return Live{}, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.jobs[job]
	if x == nil {
		return Live{}, false
	}
	v := x.schedule.View(time.Now())
	live.InFlight, live.Running = len(v.Running), v.Running
	if s := x.shown.Load(); s != nil {
		p := s.progress
		live.Tasks, live.Progress = s.tasks, &p
	}
	return live, true
}

// Availability is which workers could compute tasks of a job now.
type Availability struct {
	// Unknown is true if this leadership is so young that it may not have heard of all workers.
	Unknown bool
	Usable  int // workers that can be given tasks
	// Stops, if set, is why the job stopped more than once lately.
	Stops string
	// The names of the other workers, by reason, each in order.
	Unable      []string // they said that they lack the memory
	Unreachable []string
	Quarantined []string
	Refused     []string // of another protocol or arithmetic version, each with why
}

// Availability describes the workers as one job can use them.
func (d *Dispatcher) Availability(job uint64) Availability {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	var unable map[string]string
	if x := d.jobs[job]; x != nil {
		unable = x.schedule.View(now).Unable
	}
	a := availability(d.workers.View(now), unable)
	a.Stops = d.stops[job].why(now)
	// Workers of a leader that is gone ask for the next one after some silence.
	a.Unknown = now.Sub(d.began) < protocol.LeastLost+protocol.DeadBeats*d.cfg.Heartbeat
	return a
}

func availability(workers []schedule.WorkerView, unable map[string]string) (a Availability) {
	for _, w := range workers {
		switch {
		case w.Quarantined:
			a.Quarantined = append(a.Quarantined, w.Name)
		case w.Refused != "":
			a.Refused = append(a.Refused, w.Name+": "+w.Refused)
		case w.Unreachable:
			a.Unreachable = append(a.Unreachable, w.Name)
		case unable[w.Name] != "":
			a.Unable = append(a.Unable, w.Name)
		default:
			a.Usable++
		}
	}
	return a
}

// stop is why a job, or a task that it needs, stopped last, and how often that was in a row.
type stop struct {
	reason string
	at     time.Time
	times  int
}

// soon is less than the time between two stops that have nothing to do with each other, and more than a job or a task
// waits before it is tried again.
const soon = schedule.LongestPause + 3*protocol.RetryPassing

// why returns the reason if a job has stopped more than once lately.
func (s stop) why(now time.Time) string {
	if s.times < 2 || now.Sub(s.at) > soon {
		return ""
	}
	return s.reason
}

// Stopped notes that a job, or a task that it needs, stopped for a reason that may pass; it is tried again. The
// beginning of a long reason is kept.
func (d *Dispatcher) Stopped(job uint64, why error, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stops[job]
	if now.Sub(s.at) > soon {
		s.times = 0
	}
	d.stops[job] = stop{protocol.Brief(why.Error()), now, s.times + 1}
}

// Idle is why a worker computes nothing. The zero value says that no job is open.
type Idle struct {
	Reason protocol.IdleReason
	Job    uint64 // id; 0: the reason has to do with no job
	Text   string
}

// standing is what counts of a worker for why it computes nothing.
type standing struct {
	name   string
	out    protocol.IdleReason // why it is not used; empty: it is
	why    string              // the same as text
	slow   time.Duration       // it gets no tasks of reduce rounds for so long
	recent bool                // true if a result of it came less than shortly ago
}

// shortly bounds the time between two results of a worker that computes in each round. Heartbeats, which say whether it
// computes, hardly ever meet tasks that take less than a millisecond.
const shortly = 2 * time.Second

// Idle tells of each worker that computes nothing why.
func (d *Dispatcher) Idle() map[string]Idle {
	now := time.Now()
	d.mu.Lock()
	var workers []standing
	for _, w := range d.workers.View(now) {
		if s := d.said[w.Name]; s.beat.Busy == 0 && w.Leases == 0 || w.Refused != "" || w.Unreachable {
			workers = append(workers, s.standing(&w, now))
		}
	}
	var jobs []schedule.JobView
	for _, x := range d.jobs {
		jobs = append(jobs, x.schedule.View(now))
	}
	d.mu.Unlock()
	slices.SortFunc(jobs, func(a, b schedule.JobView) int { return cmp.Compare(a.Job, b.Job) })
	idle := make(map[string]Idle)
	for i := range workers {
		if why, is := idleReason(&workers[i], jobs); is {
			idle[workers[i].name] = why
		}
	}
	return idle
}

func (s *said) standing(w *schedule.WorkerView, now time.Time) standing {
	at := standing{name: w.Name, slow: w.SlowFor, recent: now.Sub(s.lastOne) < shortly, why: w.Refused}
	at.out, _ = refusal(&s.beat)
	switch {
	case w.Quarantined:
		at.out = protocol.IdleQuarantined
		at.why += "; to use the worker again: coppice cluster trust " + w.Name
	case at.out == protocol.IdleRefused:
		at.why += "; run the same version of Coppice everywhere"
	case at.out == "" && w.Unreachable:
		at.out, at.why = protocol.IdleUnreachable, "the connection to the worker is lost; its log says why"
	}
	return at
}

// ranks orders the reasons why jobs give a worker no tasks: reasons that somebody can change come first.
var ranks = []protocol.IdleReason{
	protocol.IdleMemory, protocol.IdleStalled, protocol.IdleShards, protocol.IdleJobWaits, protocol.IdleFewTasks,
	protocol.IdleNextRound,
}

// idleReason says why a worker computes nothing while these jobs are open; false: it computes. A job that it has tasks
// of decides, otherwise the first reason of ranks that any of the jobs has. It is a pure function.
func idleReason(w *standing, jobs []schedule.JobView) (idle Idle, is bool) {
	if w.out != "" {
		return Idle{Reason: w.out, Text: w.why}, true
	}
	for i := range jobs {
		j := &jobs[i]
		if slices.Contains(j.Owner, w.name) {
			return Idle{protocol.IdleNextRound, j.Job, "the worker has finished its tasks of this round and waits for the " +
				"next round"}, !w.recent
		}
		reason, text := noTasks(j, w)
		if idle.Reason == "" || slices.Index(ranks, reason) < slices.Index(ranks, idle.Reason) {
			idle = Idle{reason, j.Job, text}
		}
	}
	return idle, true
}

// noTasks says why a job has no task for a worker.
func noTasks(j *schedule.JobView, w *standing) (protocol.IdleReason, string) {
	switch why := j.Unable[w.name]; {
	case why != "":
		return protocol.IdleMemory, protocol.Brief(why) + "; start the worker with a larger --memory"
	case j.Owner != nil && w.slow > 0:
		return protocol.IdleStalled, fmt.Sprintf("the worker was too slow with its tasks; other workers get them for %v, "+
			"or until it answers", w.slow.Round(100*time.Millisecond))
	case slices.Contains(j.Target, w.name):
		return protocol.IdleShards, "the worker is still fetching shards of its tasks; it gets the tasks in the round " +
			"after it has them"
	case slices.Contains(j.Able, w.name):
		return protocol.IdleFewTasks, fmt.Sprintf("the worker has no task, because the round has only %s for %s",
			counted(j.Tasks, "task"), counted(len(j.Able), "worker"))
	case j.Ready > 0 || j.Tasks == 0 || !j.Gather:
		return protocol.IdleNextRound, "the worker gets tasks when the leader next distributes tasks"
	case j.Held > 0:
		return protocol.IdleJobWaits, counted(j.Held, "task") +
			" cannot start yet: a time budget is used up, or other tasks with the same budget are running"
	case j.Resting > 0:
		return protocol.IdleJobWaits, counted(j.Resting, "task") + " failed and will be retried after a pause"
	}
	return protocol.IdleFewTasks, fmt.Sprintf("the round has %d of %s left, all on other workers", j.Left,
		counted(j.Tasks, "task"))
}

func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
