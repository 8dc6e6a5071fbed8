package schedule

import (
	"container/heap"
	"slices"
	"time"
)

// queue is the tasks of a gather round that wait for a lease. What it does takes a time that grows with the logarithm
// of their number, and with the number of groups. It does not know workers.
type queue struct {
	group   []int32 // by task; nil: all are of group 0
	waiting []int   // tasks, by group, also tasks that rest
	ready   map[queueKey]*taskHeap
	readied []int // tasks that may be given out, by group
	resting restHeap
	// turns has the turn of each task's entry in a heap; 0: the task does not wait. An entry with another turn is void.
	turns []uint32
	rests map[uint32]bool // tasks that may not be given out yet
	last  uint32          // turn that was given
}

type queueKey struct {
	group int32
	avoid string // worker
}

// entry is a task in a heap.
type entry struct{ task, turn uint32 }

// rest is the entry of a task that may not be given out before some time.
type rest struct {
	entry
	until time.Time
	avoid string
}

// newQueue returns the queue of the tasks for which waits is true.
func newQueue(tasks int, group []int32, waits func(t int) bool) *queue {
	groups := 1
	for _, g := range group {
		groups = max(groups, int(g)+1)
	}
	q := &queue{
		group: group, waiting: make([]int, groups), readied: make([]int, groups), turns: make([]uint32, tasks), last: 1,
		ready: make(map[queueKey]*taskHeap), rests: make(map[uint32]bool),
	}
	heaps := make([]taskHeap, groups)
	for t := range tasks {
		if waits(t) {
			q.turns[t] = 1
			g := q.groupOf(t)
			heaps[g] = append(heaps[g], entry{uint32(t), 1}) // ascending: it is a heap
		}
	}
	for g := range heaps {
		if n := len(heaps[g]); n > 0 {
			q.waiting[g], q.readied[g], q.ready[queueKey{int32(g), ""}] = n, n, &heaps[g]
		}
	}
	return q
}

func (q *queue) groupOf(t int) int32 {
	if q.group == nil {
		return 0
	}
	return q.group[t]
}

// add queues a task. It avoids a worker, unless that is empty, and is not given out before a time.
func (q *queue) add(t int, avoid string, notBefore, now time.Time) {
	q.remove(t)
	q.last++
	e := entry{uint32(t), q.last}
	q.turns[t] = e.turn
	q.waiting[q.groupOf(t)]++
	if now.Before(notBefore) {
		heap.Push(&q.resting, rest{e, notBefore, avoid})
		q.rests[e.task] = true
	} else {
		q.push(e, avoid)
	}
}

func (q *queue) push(e entry, avoid string) {
	key := queueKey{q.groupOf(int(e.task)), avoid}
	h := q.ready[key]
	if h == nil {
		h = new(taskHeap)
		q.ready[key] = h
	}
	heap.Push(h, e)
	q.readied[key.group]++
}

// remove takes a task out of the queue, if it is there.
func (q *queue) remove(t int) {
	if q.turns[t] == 0 {
		return
	}
	q.turns[t] = 0
	q.waiting[q.groupOf(t)]--
	if q.rests[uint32(t)] {
		delete(q.rests, uint32(t))
	} else {
		q.readied[q.groupOf(t)]--
	}
}

// removeGroup takes all tasks of a group out of the queue and returns them, ascending.
func (q *queue) removeGroup(group int32) (tasks []uint32) {
	for t, turn := range q.turns {
		if turn != 0 && q.groupOf(t) == group {
			tasks = append(tasks, uint32(t))
			q.remove(t)
		}
	}
	return tasks
}

// count returns how many tasks may be given out now, of the groups for which may is true; nil: of all.
func (q *queue) count(now time.Time, may []bool) (n int) {
	for len(q.resting) > 0 && !now.Before(q.resting[0].until) {
		r := heap.Pop(&q.resting).(rest)
		if q.turns[r.task] == r.turn {
			delete(q.rests, r.task)
			q.push(r.entry, r.avoid)
		}
	}
	for g, tasks := range q.readied {
		if may == nil || may[g] {
			n += tasks
		}
	}
	return n
}

// first returns the task that is given out next, and the worker that it avoids. It is the lowest ready task, or, near
// the end of the round, the lowest of the group with the longest tasks. Tasks that avoid a worker in closed are passed
// over.
func (q *queue) first(may []bool, closed map[string]bool, by *lengths) (t int, avoid string, ok bool) {
	best, longest := uint32(0), 0.0
	for key, h := range q.ready {
		for len(*h) > 0 && q.turns[(*h)[0].task] != (*h)[0].turn {
			heap.Pop(h)
		}
		if len(*h) == 0 {
			delete(q.ready, key)
			continue
		}
		if closed[key.avoid] || may != nil && !may[key.group] {
			continue
		}
		top, length := (*h)[0].task, by.rank(key.group)
		if !ok || length > longest || length == longest && top < best {
			best, longest, avoid, ok = top, length, key.avoid, true
		}
	}
	return int(best), avoid, ok
}

// taskHeap implements heap.Interface: the lowest task comes first.
type taskHeap []entry

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].task < h[j].task }
func (h taskHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *taskHeap) Push(x any)        { *h = append(*h, x.(entry)) }
func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

// restHeap implements heap.Interface: the task that may be given out first comes first.
type restHeap []rest

func (h restHeap) Len() int           { return len(h) }
func (h restHeap) Less(i, j int) bool { return h[i].until.Before(h[j].until) }
func (h restHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *restHeap) Push(x any)        { *h = append(*h, x.(rest)) }
func (h *restHeap) Pop() any {
	r := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = rest{}
	*h = slices.Delete(*h, len(*h)-1, len(*h))
	return r
}

// nearEnd is how many times as long as its longest task all waiting tasks take, on all slots, when the end of a round
// begins.
const nearEnd = 2

// estimateEvery is the time between two estimates of how long a round takes.
const estimateEvery = time.Second

// lengths is how long the tasks of each group of a gather round take. Near the end of the round long tasks are given
// out first. nil: the round has no groups.
type lengths struct {
	group     []int32 // by task
	ended     []int   // tasks, by group
	seconds   []float64
	working   []float64 // the longest that a task has been leased, by group
	all       int       // tasks that have ended
	total     float64   // their seconds
	estimated time.Time
	near      bool // true near the end of the round
}

func newLengths(group []int32) *lengths {
	if len(group) == 0 {
		return nil
	}
	groups := int(slices.Max(group)) + 1
	return &lengths{group: group, ended: make([]int, groups), seconds: make([]float64, groups),
		working: make([]float64, groups)}
}

// earlier takes in how long tasks of earlier jobs took, by group.
func (l *lengths) earlier(rows []Row) {
	if l == nil {
		return
	}
	for i := range min(len(rows), len(l.ended)) {
		if r := &rows[i]; r.Seconds > 0 {
			l.ended[i], l.seconds[i] = l.ended[i]+r.Ended, l.seconds[i]+r.Seconds
			l.all, l.total = l.all+r.Ended, l.total+r.Seconds
		}
	}
}

// end takes in how long a task took.
func (l *lengths) end(t int, took time.Duration) {
	if l == nil || took <= 0 {
		return
	}
	l.ended[l.group[t]]++
	l.seconds[l.group[t]] += took.Seconds()
	l.all++
	l.total += took.Seconds()
}

// of estimates how many seconds a task of a group takes: the mean of its tasks that have ended, otherwise of all, but
// twice as long as one of the group has been leased; 0: no task has ended.
func (l *lengths) of(group int32) float64 {
	switch {
	case l.ended[group] > 0:
		return l.seconds[group] / float64(l.ended[group])
	case l.all > 0:
		return max(l.total/float64(l.all), 2*l.working[group])
	}
	return 0
}

// rank orders groups: tasks of the greatest are given out first.
func (l *lengths) rank(group int32) float64 {
	if l == nil || !l.near {
		return 0
	}
	return l.of(group)
}
