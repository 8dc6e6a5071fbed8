package dispatch

import (
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// ProgressOptions says how the progress of gather rounds becomes known.
type ProgressOptions struct {
	Reporter round.TaskReporter // the job's trainer; nil: nothing becomes known
	// Count is told what tasks have done that was not counted yet.
	Count func(protocol.Work)
	// Show is told how far a round of so many tasks is, now and then.
	Show func(tasks int, p round.Progress)
}

// progress adds up how far the tasks of a gather round are. A task that is computed again counts once: by the most that was
// said of it. It is for people only. All methods but read are called by one goroutine; a nil progress does nothing.
type progress struct {
	ProgressOptions
	tasks   taskList
	of      int             // tasks
	counted []protocol.Work // by task: here, and by earlier leaders
	began   time.Time       // the round
	news    bool            // true if there is something to show
	shown   time.Time
}

func (p *progress) begin(r *round.Round) {
	if p != nil {
		p.tasks, p.of, p.news = newTaskList(p.Reporter, r.Tasks), r.Tasks, true
		p.counted, p.began = make([]protocol.Work, r.Tasks), time.Now()
	}
}

// end ends the round. Nothing of it is shown any longer.
func (p *progress) end() {
	if p != nil {
		p.tasks, p.counted, p.news = nil, nil, false
	}
}

// read returns how far a sub-job is by its result; nil: the result does not tell. It may be called concurrently.
func (p *progress) read(result []byte) *round.Progress {
	if p == nil {
		return nil
	}
	at, err := p.Reporter.ResultProgress(result)
	if err != nil { // Fold says what is wrong with it
		return nil
	}
	return &at
}

// failed reports whether a task that ended so is a run that failed.
func (p *progress) failed(at *round.Progress) bool {
	if p == nil || at == nil {
		return false
	}
	c, ok := p.Reporter.(round.TaskCounter)
	return ok && c.HasFailed(*at)
}

// have takes in that a task has a result, which a worker computed for so long; 0 if that is not known. at is how far the task
// is, if that is known; known is true if the result was recorded before the round began.
func (p *progress) have(task int, at *round.Progress, took time.Duration, known bool) {
	if p == nil {
		return
	}
	p.news = true
	p.tasks.end(task, false)
	if at != nil {
		p.tasks.set(task, *at, p.seconds())
		p.tasks.took(task, took.Seconds())
		p.add(task, protocol.Work{Steps: at.Step, Samples: at.Samples}, known)
	}
}

// notRun takes in that a task has ended without a result.
func (p *progress) notRun(task int) {
	if p != nil {
		p.news = true
		p.tasks.end(task, true)
	}
}

// report takes in what a worker says of a sub-job.
func (p *progress) report(m *protocol.Progress) {
	if p == nil {
		return
	}
	task := int(m.Task)
	p.counted[task] = p.counted[task].Or(m.Counted)
	moved := p.add(task, m.Done, false)
	at, was := m.Progress(), p.tasks.at(task)
	if !was.Done && (!was.Known || moved && at.Step >= was.Step) {
		p.news = true
		p.tasks.set(task, at, p.seconds())
	}
}

// seconds returns the time since the round began.
func (p *progress) seconds() float64 { return time.Since(p.began).Seconds() }

// add counts what a task has done beyond what is counted, and reports whether that is anything. If known is true it is
// counted already.
func (p *progress) add(task int, done protocol.Work, known bool) (moved bool) {
	more := done.Beyond(p.counted[task])
	p.counted[task] = p.counted[task].Or(done)
	moved = more != (protocol.Work{})
	if moved && !known {
		p.Count(more)
	}
	return moved
}

// show shows how far the round is, if that is news. To add a round up takes a time in proportion to its tasks, so a round with
// more tasks is shown less often.
func (p *progress) show(now time.Time) {
	if p == nil || !p.news || now.Sub(p.shown) < max(100*time.Millisecond, time.Duration(p.of)*10*time.Microsecond) {
		return
	}
	p.news, p.shown = false, now
	p.Show(p.of, p.tasks.progress())
}

// taskList is how far each task of a gather round is.
type taskList interface {
	at(task int) round.TaskProgress
	// set sets how far a task is, so many seconds after the beginning of the round. Whether it has ended stays as it is.
	set(task int, p round.Progress, at float64)
	// took sets how long a task was computed, unless its progress was heard of meanwhile.
	took(task int, seconds float64)
	// end notes that a task has ended.
	end(task int, notRun bool)
	progress() round.Progress // of the round
}

// newTaskList returns a list of tasks about which nothing is known.
func newTaskList(r round.TaskReporter, tasks int) taskList {
	if c, ok := r.(round.TaskCounter); ok {
		return &countedTasks{counter: c, tasks: make([]countedTask, tasks), counts: round.TaskCounts{Tasks: tasks}}
	}
	l := &listedTasks{r, make([]round.TaskProgress, tasks)}
	for i := range l.tasks {
		l.tasks[i].Loss = -1
	}
	return l
}

// listedTasks is the list that a TaskReporter is given.
type listedTasks struct {
	reporter round.TaskReporter
	tasks    []round.TaskProgress
}

func (l *listedTasks) at(task int) round.TaskProgress { return l.tasks[task] }

func (l *listedTasks) set(task int, p round.Progress, at float64) { l.tasks[task].Note(p, at) }

func (l *listedTasks) took(task int, seconds float64) {
	if t := &l.tasks[task]; !t.Timed() {
		t.Time.Began, t.Time.From = t.Time.Last-seconds, 0
	}
}

func (l *listedTasks) end(task int, notRun bool) {
	l.tasks[task].Done, l.tasks[task].NotRun = true, notRun
}

func (l *listedTasks) progress() round.Progress { return l.reporter.RoundProgress(l.tasks) }

// countedTasks counts tasks: there may be a million.
type countedTasks struct {
	counter round.TaskCounter
	tasks   []countedTask
	counts  round.TaskCounts
}

type countedTask struct {
	step, samples               uint64
	known, done, notRun, failed bool
}

func (l *countedTasks) at(task int) round.TaskProgress {
	t := &l.tasks[task]
	return round.TaskProgress{Progress: round.Progress{Step: t.step, Samples: t.samples, Loss: -1}, Known: t.known, Done: t.done, NotRun: t.notRun}
}

func (l *countedTasks) took(int, float64) {}

func (l *countedTasks) set(task int, p round.Progress, _ float64) {
	t := &l.tasks[task]
	l.count(t, -1)
	t.step, t.samples, t.known, t.failed = p.Step, p.Samples, true, l.counter.HasFailed(p)
	l.count(t, 1)
}

func (l *countedTasks) end(task int, notRun bool) {
	t := &l.tasks[task]
	l.count(t, -1)
	t.done, t.notRun = true, notRun
	l.count(t, 1)
}

// count counts a task in (1) or out (-1).
func (l *countedTasks) count(t *countedTask, n int) {
	c := &l.counts
	c.Samples += uint64(n) * t.samples
	switch {
	case t.done:
		c.Done += n
		if t.failed {
			c.Failed += n
		}
		if t.notRun {
			c.NotRun += n
		}
	case t.known:
		c.Running += n
	}
}

func (l *countedTasks) progress() round.Progress { return l.counter.CountedProgress(l.counts) }
