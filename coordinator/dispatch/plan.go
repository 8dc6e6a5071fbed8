package dispatch

// candidate is a live worker as the planner sees it.
type candidate struct {
	id    string
	holds func(shard int) bool
}

// plan says who computes each unit of a round, and who stands by for it.
type plan struct {
	target  []string // who should own the unit's shards
	owner   []string // who computes it now: the target, unless another already holds the shards
	standby []string // who has, or fetches, a copy; empty with a single worker
}

// makePlan assigns units to workers (ordered by id, at least one). It keeps what
// prev assigned as far as the balance allows, so that a worker that joins takes
// over its share only, and one that goes leaves the rest where it was. It is a
// pure function.
func makePlan(units, shards int, workers []candidate, prev *plan) *plan {
	p := &planner{units: units, shards: shards, workers: workers, load: make([]int, len(workers))}
	p.limit = (units + len(workers) - 1) / len(workers)
	out := &plan{target: make([]string, units), owner: make([]string, units), standby: make([]string, units)}
	at := p.targets(prev)
	for u, w := range at {
		out.target[u] = workers[w].id
		out.owner[u] = workers[p.ownerNow(u, w, prev)].id
	}
	p.standbys(out, at)
	return out
}

type planner struct {
	units, shards, limit int
	workers              []candidate
	load                 []int
}

// held counts the shards of unit u that worker w holds.
func (p *planner) held(u, w int) (n int) {
	for s := u * p.shards / p.units; s < (u+1)*p.shards/p.units; s++ {
		if p.workers[w].holds(s) {
			n++
		}
	}
	return n
}

func (p *planner) holdsAll(u, w int) bool {
	return p.held(u, w) == (u+1)*p.shards/p.units-u*p.shards/p.units
}

// targets chooses the worker that each unit should belong to.
func (p *planner) targets(prev *plan) []int {
	at := make([]int, p.units)
	for u := range at {
		at[u] = -1
		if prev == nil {
			continue
		}
		if w := p.find(prev.target[u]); w >= 0 && p.load[w] < p.limit {
			at[u] = w
			p.load[w]++
		}
	}
	for u := range at {
		if at[u] < 0 {
			at[u] = p.pick(u)
			p.load[at[u]]++
		}
	}
	p.level(at)
	return at
}

func (p *planner) find(id string) int {
	for w := range p.workers {
		if p.workers[w].id == id {
			return w
		}
	}
	return -1
}

// pick chooses a worker below the limit: the one that holds most of the unit's
// shards, then the one whose block of units it falls in, then the least loaded.
func (p *planner) pick(u int) int {
	block := u * len(p.workers) / p.units
	best := -1
	for w := range p.workers {
		if p.load[w] < p.limit && (best < 0 || p.better(u, w, best, block)) {
			best = w
		}
	}
	return best
}

func (p *planner) better(u, w, best, block int) bool {
	if a, b := p.held(u, w), p.held(u, best); a != b {
		return a > b
	}
	if w == block || best == block {
		return w == block
	}
	return p.load[w] < p.load[best]
}

// level moves units, highest first, until no worker has two more than another.
func (p *planner) level(at []int) {
	for u := len(at) - 1; u >= 0; u-- {
		least := 0
		for w := range p.load {
			if p.load[w] < p.load[least] {
				least = w
			}
		}
		if p.load[at[u]] > p.load[least]+1 {
			p.load[at[u]]--
			p.load[least]++
			at[u] = least
		}
	}
}

// ownerNow is the target if it holds the unit's shards or nobody does; else who
// computed the unit before; else the first that holds them.
func (p *planner) ownerNow(u, target int, prev *plan) int {
	if p.holdsAll(u, target) {
		return target
	}
	if prev != nil {
		if w := p.find(prev.owner[u]); w >= 0 && p.holdsAll(u, w) {
			return w
		}
	}
	for w := range p.workers {
		if p.holdsAll(u, w) {
			return w
		}
	}
	return target
}

// standbys gives each unit a second worker, spread evenly over the others.
func (p *planner) standbys(out *plan, at []int) {
	if len(p.workers) < 2 {
		return
	}
	load := make([]int, len(p.workers))
	for u, target := range at {
		best := -1
		for i := 1; i < len(p.workers); i++ {
			w := (target + i) % len(p.workers)
			if best < 0 || p.held(u, w) > p.held(u, best) ||
				p.held(u, w) == p.held(u, best) && load[w] < load[best] {
				best = w
			}
		}
		load[best]++
		out.standby[u] = p.workers[best].id
	}
}
