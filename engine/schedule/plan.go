package schedule

import (
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
)

// plan says which worker computes each task of a reduce round, and which one is its standby. It is not changed once made.
type plan struct {
	version uint64   // of the workers
	able    []string // workers that could have tasks
	target  []string // who should hold the task's shards
	owner   []string // who computes it: the target, unless another worker has the shards already
	standby []string // who has, or fetches, a copy; empty if there is one worker
}

// makePlan assigns tasks to workers (by name, at least one). It keeps what prev assigned if the balance allows it: a worker
// that joins takes over its share only, and a worker that leaves changes nothing else.
func makePlan(tasks int, shards []dataset.ShardRef, workers []*Worker, prev *plan) *plan {
	p := &planner{tasks: tasks, shards: shards, workers: workers, load: make([]int, len(workers))}
	p.limit = (tasks + len(workers) - 1) / len(workers)
	out := &plan{target: make([]string, tasks), owner: make([]string, tasks), standby: make([]string, tasks)}
	for _, w := range workers {
		out.able = append(out.able, w.Name)
	}
	load := make([]int, len(workers)) // tasks of standbys, by worker
	for t, target := range p.targets(prev) {
		out.target[t] = workers[target].Name
		out.owner[t] = workers[p.ownerNow(t, target, prev)].Name
		best := -1 // of the standbys, which are spread evenly over the other workers
		for i := 1; i < len(workers); i++ {
			w := (target + i) % len(workers)
			if best < 0 || p.held(t, w) > p.held(t, best) || p.held(t, w) == p.held(t, best) && load[w] < load[best] {
				best = w
			}
		}
		if best >= 0 {
			load[best]++
			out.standby[t] = workers[best].Name
		}
	}
	return out
}

// holdings returns the shards that each worker should hold, as target or standby.
func (p *plan) holdings(shards []dataset.ShardRef) map[string][]dataset.ShardRef {
	all := make(map[string][]dataset.ShardRef)
	for t := range p.target {
		for _, name := range []string{p.target[t], p.standby[t]} {
			if name != "" {
				all[name] = append(all[name], shards[t*len(shards)/len(p.target):(t+1)*len(shards)/len(p.target)]...)
			}
		}
	}
	return all
}

type planner struct {
	tasks, limit int
	shards       []dataset.ShardRef
	workers      []*Worker
	load         []int // tasks, by worker
}

// held counts the shards of a task that a worker has.
func (p *planner) held(t, w int) (n int) {
	for _, s := range p.of(t) {
		if p.workers[w].shards[s.Digest] {
			n++
		}
	}
	return n
}

func (p *planner) of(t int) []dataset.ShardRef {
	return p.shards[t*len(p.shards)/p.tasks : (t+1)*len(p.shards)/p.tasks]
}

func (p *planner) holdsAll(t, w int) bool { return p.held(t, w) == len(p.of(t)) }

func (p *planner) find(name string) int {
	return slices.IndexFunc(p.workers, func(w *Worker) bool { return w.Name == name })
}

// targets chooses the worker that should hold each task's shards: the worker of the plan before, or a worker below the limit.
// The worker with most of the shards is best, then the worker of the task's block, then the worker with the fewest tasks.
func (p *planner) targets(prev *plan) []int {
	at := make([]int, p.tasks)
	for t := range at {
		at[t] = -1
		if prev == nil {
			continue
		}
		if w := p.find(prev.target[t]); w >= 0 && p.load[w] < p.limit {
			at[t] = w
			p.load[w]++
		}
	}
	for t := range at {
		if at[t] >= 0 {
			continue
		}
		block := t * len(p.workers) / p.tasks
		for w := range p.workers {
			if p.load[w] < p.limit && (at[t] < 0 || p.better(t, w, at[t], block)) {
				at[t] = w
			}
		}
		p.load[at[t]]++
	}
	for t := len(at) - 1; t >= 0; t-- { // until no worker has two tasks more than another
		least := 0
		for w := range p.load {
			if p.load[w] < p.load[least] {
				least = w
			}
		}
		if p.load[at[t]] > p.load[least]+1 {
			p.load[at[t]]--
			p.load[least]++
			at[t] = least
		}
	}
	return at
}

// better reports whether a worker suits a task better than the best so far.
func (p *planner) better(t, w, best, block int) bool {
	if a, b := p.held(t, w), p.held(t, best); a != b {
		return a > b
	}
	if w == block || best == block {
		return w == block
	}
	return p.load[w] < p.load[best]
}

// ownerNow is the target if it has the task's shards or nobody has; otherwise who computed the task before; otherwise the
// first that has them.
func (p *planner) ownerNow(t, target int, prev *plan) int {
	if p.holdsAll(t, target) {
		return target
	}
	if prev != nil {
		if w := p.find(prev.owner[t]); w >= 0 && p.holdsAll(t, w) {
			return w
		}
	}
	for w := range p.workers {
		if p.holdsAll(t, w) {
			return w
		}
	}
	return target
}
