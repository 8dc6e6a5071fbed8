package schedule

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// slowQueue is a queue that goes through all tasks each time.
type slowQueue struct {
	group     []int32
	waits     []bool
	notBefore []time.Time
	avoid     []string
	rank      []float64 // by group; nil: the lowest task is first
}

func (s *slowQueue) count(now time.Time, may []bool) (n int) {
	for t := range s.waits {
		if s.waits[t] && !now.Before(s.notBefore[t]) && (may == nil || may[s.group[t]]) {
			n++
		}
	}
	return n
}

// feed lists the tasks that are given out, in order, to workers with so much room each.
func (s *slowQueue) feed(now time.Time, may []bool, room map[string]int) (given []int) {
	for _, t := range s.order() {
		if !s.waits[t] || now.Before(s.notBefore[t]) || may != nil && !may[s.group[t]] {
			continue
		}
		w := takeRoom(room, s.avoid[t])
		if w == "" && s.avoid[t] != "" {
			continue
		}
		if w == "" {
			break
		}
		s.waits[t] = false
		given = append(given, t)
	}
	return given
}

// order lists all tasks in the order in which they are given out.
func (s *slowQueue) order() (list []int) {
	for t := range s.waits {
		list = append(list, t)
	}
	if s.rank != nil {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(s.rank[s.group[b]], s.rank[s.group[a]]) })
	}
	return list
}

// takeRoom takes room of the worker with most of it, other than the one to avoid if there is another.
func takeRoom(room map[string]int, avoid string) (best string) {
	for _, name := range []string{"a", "b", "c"} {
		n, there := room[name]
		if !there || name == avoid && len(room) > 1 {
			continue
		}
		if n > 0 && (best == "" || n > room[best]) {
			best = name
		}
	}
	if best != "" {
		room[best]--
	}
	return best
}

// ranked returns lengths near the end of a round in which a task of each group takes so many seconds.
func ranked(rank []float64) *lengths {
	if rank == nil {
		return nil
	}
	l := &lengths{ended: make([]int, len(rank)), seconds: rank, near: true}
	for g := range rank {
		l.ended[g] = 1
	}
	return l
}

// TestQueue: tasks are given out in the same order, and as many, as by a search through all of them. The group that
// takes longest is first, then the lowest task. No task is given out before its time, to the worker that it avoids, or
// if its group may not begin.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "tasks")
		groups := rapid.IntRange(1, 3).Draw(t, "groups")
		slow := &slowQueue{group: make([]int32, n), waits: make([]bool, n), notBefore: make([]time.Time, n),
			avoid: make([]string, n), rank: nil}
		for i := range n {
			slow.waits[i] = rapid.Bool().Draw(t, "waits")
			slow.group[i] = rapid.Int32Range(0, int32(groups-1)).Draw(t, "group")
		}
		slow.group[0] = int32(groups - 1)
		q := newQueue(n, slow.group, func(i int) bool { return slow.waits[i] })
		var may []bool
		now := time.Unix(100, 0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			i := rapid.IntRange(0, n-1).Draw(t, "task")
			switch rapid.IntRange(0, 7).Draw(t, "event") {
			case 0:
				slow.waits[i] = false
				q.remove(i)
			case 1, 2:
				slow.waits[i], slow.avoid[i] = true, rapid.SampledFrom([]string{"", "a", "b", "gone"}).Draw(t, "avoids")
				slow.notBefore[i] = now.Add(time.Duration(rapid.IntRange(-1, 3).Draw(t, "rests")) * time.Second)
				q.add(i, slow.avoid[i], slow.notBefore[i], now)
			case 3:
				now = now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "pass")) * time.Second)
			case 4:
				checkFeed(t, q, slow, now, may)
			case 5:
				slow.rank = nil
				if rapid.Bool().Draw(t, "ranked") {
					slow.rank = rapid.SliceOfN(rapid.Float64Range(0, 3), groups, groups).Draw(t, "ranks")
				}
			case 6:
				may = nil
				if rapid.Bool().Draw(t, "bounded") {
					may = rapid.SliceOfN(rapid.Bool(), groups, groups).Draw(t, "may begin")
				}
			case 7:
				checkRemoveGroup(t, q, slow, slow.group[i])
			}
			if got, want := q.count(now, may), slow.count(now, may); got != want {
				t.Fatalf("%d tasks wait, want %d", got, want)
			}
			checkWaiting(t, q, slow, now)
		}
	})
}

// checkFeed gives tasks out to workers with room.
func checkFeed(t *rapid.T, q *queue, slow *slowQueue, now time.Time, may []bool) {
	room, other := make(map[string]int), make(map[string]int)
	for _, name := range []string{"a", "b", "c"}[:rapid.IntRange(0, 3).Draw(t, "workers")] {
		room[name] = rapid.IntRange(0, 8).Draw(t, "room")
		other[name] = room[name]
	}
	var given []int
	closed := make(map[string]bool)
	for q.count(now, may); ; {
		i, avoid, ok := q.first(may, closed, ranked(slow.rank))
		if !ok {
			break
		}
		if takeRoom(room, avoid) != "" {
			q.remove(i)
			given = append(given, i)
		} else if closed[avoid] = true; avoid == "" {
			break
		}
	}
	if want := slow.feed(now, may, other); !slices.Equal(given, want) {
		t.Fatalf("%v were given out, want %v", given, want)
	}
}

// checkRemoveGroup takes a group out of the queue.
func checkRemoveGroup(t *rapid.T, q *queue, slow *slowQueue, group int32) {
	var want []uint32
	for i := range slow.waits {
		if slow.waits[i] && slow.group[i] == group {
			slow.waits[i] = false
			want = append(want, uint32(i))
		}
	}
	if got := q.removeGroup(group); !slices.Equal(got, want) {
		t.Fatalf("%v were removed, want %v", got, want)
	}
}

// checkWaiting compares the counts by group.
func checkWaiting(t *rapid.T, q *queue, slow *slowQueue, now time.Time) {
	waiting, rests := make([]int, len(q.waiting)), 0
	for i := range slow.waits {
		if slow.waits[i] {
			waiting[slow.group[i]]++
			if now.Before(slow.notBefore[i]) {
				rests++
			}
		}
	}
	if !slices.Equal(q.waiting, waiting) || len(q.rests) != rests {
		t.Fatalf("%v wait, and %d rest; want %v and %d", q.waiting, len(q.rests), waiting, rests)
	}
}

// lengthsOf begins a gather round of tasks in these groups without workers. A worker with so many slots joins after
// that, and has no task.
func lengthsOf(t *testing.T, slots int, groups ...int32) *scene {
	s := newStage(t).job(1, Options{})
	r := gatherRound(len(groups))
	r.Gather().Groups = groups
	s.begin(r)
	if slots > 0 {
		s.join("w", slots)
	}
	return s
}

// lease has a worker compute a task for so long already.
func (s *scene) lease(task int, since time.Duration) {
	s.job.gather.queue.remove(task)
	l := &s.job.at(task).leases[0]
	*l = Lease{worker: "w", on: s.workers.Get("w"), task: task, since: s.now.Add(-since)}
	s.job.leased = append(s.job.leased, l)
}

// estimate estimates a second later whether the end of the round is near.
func (s *scene) estimate() *lengths {
	s.now = s.now.Add(estimateEvery)
	s.job.now = s.now
	s.job.gather.estimate()
	return s.job.gather.lengths
}

// TestLengths: a task takes as long as the others of its group, otherwise as all, on average. The end of a round is
// near if all slots would wait for the longest task.
func TestLengths(t *testing.T) {
	fill := func(slots int) *scene {
		s := lengthsOf(t, slots, 0, 1, 2, 0, 1, 2, 0, 1, 2)
		l := s.job.gather.lengths
		l.end(0, 2*time.Second)
		l.end(3, 4*time.Second)
		l.end(1, 30*time.Second)
		l.end(4, 0) // not known
		return s
	}
	s := fill(1)
	for group, want := range []float64{3, 30, 12} {
		if got := s.job.gather.lengths.of(int32(group)); got != want {
			t.Errorf("a task of group %d is to take %v s, want %v", group, got, want)
		}
	}
	if s.estimate().near || !fill(3).estimate().near {
		t.Error("the end is elsewhere while all tasks wait")
	}
	for task := range 6 {
		s.job.gather.queue.remove(task)
	}
	if !s.estimate().near {
		t.Error("the end is elsewhere while one task of each group waits")
	}
	if newLengths(nil) != nil {
		t.Error("lengths without groups")
	}
	var none *lengths
	none.end(0, time.Second)
}

// TestLengthsOfLeased: a group without a task that has ended takes twice as long as one of its tasks has been computed.
func TestLengthsOfLeased(t *testing.T) {
	s := lengthsOf(t, 9, 0, 1, 2, 1, 1)
	s.job.gather.lengths.end(0, 4*time.Second)
	s.lease(1, 19*time.Second)
	s.lease(3, 2*time.Second)
	s.lease(2, 0)
	l := s.estimate()
	for group, want := range map[int32]float64{1: 40, 2: 4} {
		if got := l.of(group); got != want {
			t.Errorf("a task of group %d is to take %v s, want %v", group, got, want)
		}
	}
}

// TestLongTasksFirst: near the end of a round the tasks of the group that takes longest are given out first. A task
// that waits again has its place. Far from the end the lowest task is first.
func TestLongTasksFirst(t *testing.T) {
	s := lengthsOf(t, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2)
	g := s.job.gather
	g.queue.remove(0)
	order := func() (list []int) {
		s.estimate()
		for g.queue.count(s.now, nil) > 0 {
			i, _, _ := g.queue.first(nil, nil, g.lengths)
			g.queue.remove(i)
			list = append(list, i)
		}
		for _, i := range list {
			g.queue.add(i, "", time.Time{}, s.now)
		}
		return list
	}
	g.lengths.end(0, 2*time.Second)
	if got := order(); !slices.Equal(got, []int{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("far from the end: %v", got)
	}
	g.lengths.end(1, time.Second)
	g.lengths.end(2, 9*time.Second)
	g.queue.remove(2)
	g.queue.remove(5)
	if got := order(); !slices.Equal(got, []int{8, 3, 6, 1, 4, 7}) {
		t.Errorf("near the end: %v", got)
	}
	g.queue.remove(8)
	near := g.lengths.near
	g.lengths = newLengths(g.lengths.group)
	g.lengths.near = near
	g.lengths.end(0, time.Second)
	if got := order(); !slices.Equal(got, []int{1, 3, 4, 6, 7}) {
		t.Errorf("of about the same length: %v", got)
	}
}
