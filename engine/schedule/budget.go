package schedule

import (
	"math"
	"time"

	"github.com/coppice-ldl/coppice/internal/budget"
)

// Budgets bound the computing time of the runs of an experiment. The jobs of a submission share them. Package budget has the
// rule. It decides which tasks are run, and no result depends on it. It is not safe for concurrent use.
type Budgets struct {
	byName map[string]*budget.Budget
	shares []*Share
}

// Share is the part of one job in the budgets of its submission. Its groups are the groups of the job's gather round.
type Share struct {
	all    *Budgets
	rows   []Row
	before map[string]float64 // seconds, by budget: what the log had when the share was opened
	spent  map[string]float64 // of tasks that have ended since

	group   []int32 // by task
	groups  []budget.Group
	running map[int]time.Time // tasks that have begun: since when a worker computes each; zero: it waits for a slot
}

// Row is a group of tasks that take about as long as each other.
type Row struct {
	Budget  string  // empty: it has none
	Ended   int     // tasks of earlier jobs
	Seconds float64 // that they took
}

// ShareOptions describes the share of one job.
type ShareOptions struct {
	Limits map[string]float64 // seconds, by budget
	Rows   []Row              // by group
	Before map[string]float64 // seconds, by budget: of the job's tasks that are recorded
}

// Open adds the share of a job to budgets.
func (b *Budgets) Open(o ShareOptions) *Share {
	if b.byName == nil {
		b.byName = make(map[string]*budget.Budget)
	}
	for name, limit := range o.Limits {
		if b.byName[name] == nil {
			b.byName[name] = &budget.Budget{Limit: limit}
		}
	}
	s := &Share{all: b, rows: o.Rows, before: o.Before, spent: make(map[string]float64)}
	b.shares = append(b.shares, s)
	return s
}

// Close takes the share out: what counts of it is in the log.
func (s *Share) Close() {
	for i, other := range s.all.shares {
		if other == s {
			s.all.shares = append(s.all.shares[:i:i], s.all.shares[i+1:]...)
			return
		}
	}
}

// Empty reports whether no share is open.
func (b *Budgets) Empty() bool { return len(b.shares) == 0 }

// Spend says what jobs without an open share have spent. It is called after each Open and Close.
func (b *Budgets) Spend(elsewhere map[string]float64) {
	for name, of := range b.byName {
		of.Spent = elsewhere[name]
		for _, s := range b.shares {
			of.Spent += s.before[name] + s.spent[name]
		}
	}
}

// begin begins a round: waiting is the number of tasks without a result, by group.
func (s *Share) begin(group []int32, waiting []int, known []Known) {
	s.group, s.groups, s.running = group, make([]budget.Group, len(waiting)), make(map[int]time.Time)
	for i := range s.groups {
		g := &s.groups[i]
		g.Left = waiting[i]
		if i < len(s.rows) {
			r := &s.rows[i]
			g.Begun, g.Done, g.Seconds, g.Budget = r.Ended > 0, r.Ended, r.Seconds, s.all.byName[r.Budget]
		}
	}
	for _, k := range known {
		if int(k.Task) < len(group) && (k.Digest != Known{}.Digest || k.Took > 0) {
			s.groups[group[k.Task]].End(k.Took.Seconds())
		}
	}
}

// plan returns the groups and the running tasks of all shares together, and which groups may begin a task. The groups of s
// begin at first. The order is the same for all shares: of two groups that need as much, only one may begin.
func (s *Share) plan(now time.Time) (groups []budget.Group, running []budget.Running, may []bool, first int) {
	total, done := 0.0, 0
	for _, at := range s.all.shares {
		if at == s {
			first = len(groups)
		}
		for t, since := range at.running {
			r := budget.Running{Group: len(groups) + int(at.group[t])}
			if !since.IsZero() {
				r.Seconds = now.Sub(since).Seconds()
			}
			running = append(running, r)
		}
		groups = append(groups, at.groups...)
		for i := range at.groups {
			total, done = total+at.groups[i].Seconds, done+at.groups[i].Done
		}
	}
	usual := 0.0
	if done > 0 {
		usual = total / float64(done)
	}
	return groups, running, budget.Plan(groups, running, usual), first
}

// may says which groups may begin a task now.
func (s *Share) may(now time.Time) []bool {
	_, _, may, first := s.plan(now)
	return may[first : first+len(s.groups)]
}

// over says in which groups no task will begin any more.
func (s *Share) over(now time.Time) []bool {
	groups, running, may, _ := s.plan(now)
	over := make([]bool, len(s.groups))
	for i := range over {
		b := s.groups[i].Budget
		over[i] = b != nil && budget.Over(b, groups, running, may)
	}
	return over
}

// start counts a task that leaves the queue as begun: it was leased, or the late result of a lost lease came.
func (s *Share) start(t int) {
	g := &s.groups[s.group[t]]
	g.Left--
	g.Begun = true
	s.running[t] = time.Time{}
}

// computing notes since when a worker computes a task, and returns how long it may: at least a nanosecond.
func (s *Share) computing(t int, since time.Time) time.Duration {
	s.running[t] = since
	b := s.groups[s.group[t]].Budget
	if b == nil {
		return math.MaxInt64
	}
	return max(1, time.Duration((b.Limit-b.Spent)*float64(time.Second)))
}

// again notes that a task has to begin again.
func (s *Share) again(t int) {
	g := &s.groups[s.group[t]]
	g.Left++
	if _, runs := s.running[t]; !runs {
		return
	}
	delete(s.running, t)
	g.Begun = g.Done > 0
	for other := range s.running {
		g.Begun = g.Begun || s.group[other] == s.group[t]
	}
}

// end notes that a task has ended, or was stopped, after some computing.
func (s *Share) end(t int, took time.Duration) {
	g := &s.groups[s.group[t]]
	if _, runs := s.running[t]; !runs { // it waited again when its result came
		g.Left--
	}
	delete(s.running, t)
	g.End(took.Seconds())
	if g.Budget != nil {
		g.Budget.Spent += took.Seconds()
		s.spent[s.rows[s.group[t]].Budget] += took.Seconds()
	}
}

// skip notes that tasks of a group that have not begun will not be run.
func (s *Share) skip(group, tasks int) { s.groups[group].Left -= tasks }
