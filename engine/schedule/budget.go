package schedule

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Budgets bound the computing time of the runs of an experiment. The jobs of a submission share them; mayBegin is the
// rule. They decide which tasks are computed, and no result depends on them. They are not safe for concurrent use.
type Budgets struct {
	byName map[string]*budget
	shares []*Share
}

// Share is the part of one job in the budgets of its submission. Its groups are the groups of the job's gather round.
type Share struct {
	all    *Budgets
	rows   []Row
	before map[string]float64 // seconds, by budget: what the log had when the share was opened
	spent  map[string]float64 // of tasks that have ended since

	group   []int32 // by task
	groups  []taskGroup
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
		b.byName = make(map[string]*budget)
	}
	for name, limit := range o.Limits {
		if b.byName[name] == nil {
			b.byName[name] = &budget{limit: limit}
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
		of.spent = elsewhere[name]
		for _, s := range b.shares {
			of.spent += s.before[name] + s.spent[name]
		}
	}
}

// begin begins a round: waiting is the number of tasks without a result, by group.
func (s *Share) begin(group []int32, waiting []int, known []Known) {
	s.group, s.groups, s.running = group, make([]taskGroup, len(waiting)), make(map[int]time.Time)
	for i := range s.groups {
		g := &s.groups[i]
		g.left = waiting[i]
		if i < len(s.rows) {
			r := &s.rows[i]
			g.begun, g.done, g.seconds, g.budget = r.Ended > 0, r.Ended, r.Seconds, s.all.byName[r.Budget]
		}
	}
	for _, k := range known {
		if int(k.Task) < len(group) && (k.Digest != Known{}.Digest || k.Took > 0) {
			s.groups[group[k.Task]].end(k.Took.Seconds())
		}
	}
}

// plan returns the groups and the running tasks of all shares together, and which groups may begin a task. The groups
// of s begin at first. The order is the same for all shares: of two groups that need as much, only one may begin.
func (s *Share) plan(now time.Time) (groups []taskGroup, running []begunTask, may []bool, first int) {
	total, done := 0.0, 0
	for _, at := range s.all.shares {
		if at == s {
			first = len(groups)
		}
		for t, since := range at.running {
			r := begunTask{group: len(groups) + int(at.group[t])}
			if !since.IsZero() {
				r.seconds = now.Sub(since).Seconds()
			}
			running = append(running, r)
		}
		groups = append(groups, at.groups...)
		for i := range at.groups {
			total, done = total+at.groups[i].seconds, done+at.groups[i].done
		}
	}
	usual := 0.0
	if done > 0 {
		usual = total / float64(done)
	}
	return groups, running, mayBegin(groups, running, usual), first
}

// may says which groups may begin a task now; nil: all, since there is no budget.
func (s *Share) may(now time.Time) []bool {
	if len(s.all.byName) == 0 {
		return nil
	}
	_, _, may, first := s.plan(now)
	return may[first : first+len(s.groups)]
}

// over says in which groups no task will begin any more.
func (s *Share) over(now time.Time) []bool {
	groups, running, may, _ := s.plan(now)
	over := make([]bool, len(s.groups))
	for i := range over {
		b := s.groups[i].budget
		over[i] = b != nil && b.isOver(groups, running, may)
	}
	return over
}

// start counts a task that leaves the queue as begun: it was leased, or the late result of a lost lease came.
func (s *Share) start(t int) {
	g := &s.groups[s.group[t]]
	g.left--
	g.begun = true
	s.running[t] = time.Time{}
}

// computing notes since when a worker computes a task, and returns how long it may: at least a nanosecond.
func (s *Share) computing(t int, since time.Time) time.Duration {
	s.running[t] = since
	b := s.groups[s.group[t]].budget
	if b == nil {
		return math.MaxInt64
	}
	return max(1, time.Duration((b.limit-b.spent)*float64(time.Second)))
}

// again notes that a task has to begin again.
func (s *Share) again(t int) {
	g := &s.groups[s.group[t]]
	g.left++
	if _, runs := s.running[t]; !runs {
		return
	}
	delete(s.running, t)
	g.begun = g.done > 0
	for other := range s.running {
		g.begun = g.begun || s.group[other] == s.group[t]
	}
}

// end notes that a task has ended, or was stopped, after some computing.
func (s *Share) end(t int, took time.Duration) {
	g := &s.groups[s.group[t]]
	if _, runs := s.running[t]; !runs { // it waited again when its result came
		g.left--
	}
	delete(s.running, t)
	g.end(took.Seconds())
	if g.budget != nil {
		g.budget.spent += took.Seconds()
		s.spent[s.rows[s.group[t]].Budget] += took.Seconds()
	}
}

// skip notes that tasks of a group that have not begun will not be run.
func (s *Share) skip(group, tasks int) { s.groups[group].left -= tasks }

// budget bounds the computing time of the tasks of some groups together.
type budget struct {
	limit float64 // seconds
	spent float64 // seconds of tasks that have ended, also of earlier jobs
}

// taskGroup is tasks that take about as long as each other: the runs of one method on one dataset.
type taskGroup struct {
	budget  *budget // groups may share it; nil: none
	left    int     // tasks that have not begun
	begun   bool    // true if a task has begun
	done    int     // tasks that have ended, also of earlier jobs
	seconds float64 // that these took
}

// begunTask is a task that has begun and has not ended.
type begunTask struct {
	group   int
	seconds float64 // of computing so far
}

// estimate returns the seconds that a task of the group takes: the mean of its own, otherwise usual.
func (g *taskGroup) estimate(usual float64) float64 {
	if g.done > 0 {
		return g.seconds / float64(g.done)
	}
	return usual
}

// end notes that a task has ended.
func (g *taskGroup) end(seconds float64) {
	g.begun = true
	g.done++
	g.seconds += seconds
}

// rest returns the seconds that the tasks that have begun leave of a budget. Each of them takes at least what it has
// taken.
func (b *budget) rest(groups []taskGroup, begun []begunTask, usual float64) float64 {
	rest := b.limit - b.spent
	for _, t := range begun {
		if g := &groups[t.group]; g.budget == b {
			rest -= max(g.estimate(usual), t.seconds)
		}
	}
	return rest
}

// mayBegin says of each group whether its next task may begin. usual is the mean of the seconds of all tasks that have
// ended. The first task of a group begins while anything is left of its budget, so that its time is known. Then a group
// goes on if all its tasks fit into what is left; the group that needs least is the first. A method without all of its
// folds is not compared with others.
func mayBegin(groups []taskGroup, begun []begunTask, usual float64) []bool {
	may, need, byBudget := make([]bool, len(groups)), make([]float64, len(groups)), make(map[*budget][]int)
	for i := range groups {
		g := &groups[i]
		if may[i] = g.budget == nil && g.left > 0; g.budget != nil && g.left > 0 {
			need[i] = float64(g.left) * g.estimate(usual)
			byBudget[g.budget] = append(byBudget[g.budget], i)
		}
	}
	for b, of := range byBudget {
		slices.SortFunc(of, func(i, j int) int { return cmp.Or(cmp.Compare(need[i], need[j]), cmp.Compare(i, j)) })
		rest := b.rest(groups, begun, usual)
		first := rest > 0
		for _, i := range of {
			switch g := &groups[i]; {
			case !g.begun:
				may[i] = first
			case g.done > 0: // otherwise its first task is computed: what the others need is not known
				rest -= need[i]
				may[i] = rest >= 0
			}
		}
	}
	return may
}

// isOver reports whether no task of the budget will begin any more, as mayBegin says. While a task is computed, its end
// may leave more than is expected.
func (b *budget) isOver(groups []taskGroup, begun []begunTask, may []bool) bool {
	for i := range groups {
		if groups[i].budget == b && groups[i].left > 0 && may[i] {
			return false
		}
	}
	return !slices.ContainsFunc(begun, func(t begunTask) bool { return groups[t.group].budget == b })
}
