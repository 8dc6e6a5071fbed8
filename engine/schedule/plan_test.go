package schedule

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
)

// drawWorkers draws workers and which shards they have.
func drawWorkers(t *rapid.T, least int, shards []dataset.ShardRef) []*Worker {
	workers := make([]*Worker, rapid.IntRange(least, 6).Draw(t, "workers"))
	for w := range workers {
		workers[w] = &Worker{Report: Report{Name: fmt.Sprintf("w%d", w)}, shards: make(map[string]bool)}
		for _, s := range shards {
			workers[w].shards[s.Digest] = rapid.Bool().Draw(t, fmt.Sprintf("w%d has %s", w, s.Digest))
		}
	}
	return workers
}

func shardsForPlan(n int) (list []dataset.ShardRef) {
	for s := range n {
		list = append(list, dataset.ShardRef{Digest: fmt.Sprint(s)})
	}
	return list
}

func loadsOf(names []string) map[string]int {
	n := make(map[string]int)
	for _, name := range names {
		n[name]++
	}
	return n
}

func checkPlan(t *rapid.T, p *plan, workers []*Worker) {
	least, most := len(p.target), 0
	targets := loadsOf(p.target)
	for _, w := range workers {
		least, most = min(least, targets[w.Name]), max(most, targets[w.Name])
	}
	if most-least > 1 {
		t.Fatalf("targets are not balanced: %v", targets)
	}
	for task := range p.target {
		for what, name := range map[string]string{"target": p.target[task], "owner": p.owner[task]} {
			if !named(workers, name) {
				t.Fatalf("task %d: the %s %q is not a live worker", task, what, name)
			}
		}
		if (p.standby[task] == "") != (len(workers) == 1) || p.standby[task] == p.target[task] {
			t.Fatalf("task %d: target %q, standby %q of %d workers", task, p.target[task], p.standby[task], len(workers))
		}
	}
}

// TestPlanIsBalanced, and a worker that has the shards of a task is preferred.
func TestPlanIsBalanced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := rapid.IntRange(0, 5).Draw(t, "log2 shards")
		shards := shardsForPlan(1 << log)
		tasks := 1 << rapid.IntRange(0, log).Draw(t, "log2 tasks")
		workers := drawWorkers(t, 1, shards)
		p := makePlan(tasks, shards, workers, nil)
		checkPlan(t, p, workers)
		pl := &planner{tasks: tasks, shards: shards, workers: workers}
		for task := range tasks {
			someone := slices.ContainsFunc(workers, func(w *Worker) bool { return pl.holdsAll(task, pl.find(w.Name)) })
			if someone && !pl.holdsAll(task, pl.find(p.owner[task])) {
				t.Fatalf("task %d is given to %s, which must fetch its shards, though another has them", task, p.owner[task])
			}
		}
	})
}

// TestPlanMovesLittle lets a worker join and another leave: a join moves at most the share of the new worker, a
// departure at most the share of the old one.
func TestPlanMovesLittle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := shardsForPlan(32)
		tasks := 1 << rapid.IntRange(0, 5).Draw(t, "log2 tasks")
		all := drawWorkers(t, 2, shards)
		fewer := slices.Delete(slices.Clone(all), 0, 1)
		if rapid.Bool().Draw(t, "joins last") {
			fewer = all[:len(all)-1]
		}
		before := makePlan(tasks, shards, fewer, nil)
		joined := makePlan(tasks, shards, all, before)
		checkPlan(t, joined, all)
		share := (tasks + len(all) - 1) / len(all)
		if moved := differences(before.target, joined.target); moved > share {
			t.Fatalf("a join moves %d of %d tasks among %d workers", moved, tasks, len(all))
		}
		left := makePlan(tasks, shards, fewer, joined)
		checkPlan(t, left, fewer)
		if moved := differences(joined.target, left.target); moved > 2*share {
			t.Fatalf("a departure moves %d of %d tasks among %d workers", moved, tasks, len(fewer))
		}
		again := makePlan(tasks, shards, fewer, left)
		if differences(left.target, again.target) != 0 {
			t.Fatal("a plan changes though the workers did not")
		}
	})
}

func differences(a, b []string) (n int) {
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return n
}
