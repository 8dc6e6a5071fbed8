// Package engine runs a job's rounds: it drives a Trainer, computes tasks with an
// Executor and adds their partials along the pinned tree. The local executor is in this
// package, the cluster's in coordinator/dispatch. The engine knows no algorithm.
package engine

import (
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Tree is the pinned reduction tree of one reduce round (design section 8.4): node
// (level, i) covers tasks i·2^level to (i+1)·2^level - 1, a node without a right
// child is its left child, and each node is filled once, from a message or from
// its two children. It is not safe for concurrent use.
type Tree struct {
	// Free takes the memory of a lent partial (Partial.Message) that nobody reads any more; nil: it is dropped.
	Free func(message []byte)

	tasks  int
	shape  round.Shape
	levels [][]*round.Partial // levels[l][i], nil until filled
	rows   []float32          // working memory of sums
	spare  []*round.Partial
	sums   []*round.Partial // spare ones that held sums: they have room for more rows than a task's
}

// Reset prepares the tree for a round, reusing the memory of the one before.
func (t *Tree) Reset(tasks int, shape round.Shape) {
	for level, nodes := range t.levels {
		for i, p := range nodes {
			if p != nil {
				t.release(level, p)
				nodes[i] = nil
			}
		}
	}
	if t.tasks != tasks {
		t.levels = t.levels[:0]
		for n := tasks; ; n = (n + 1) / 2 {
			t.levels = append(t.levels, make([]*round.Partial, n))
			if n == 1 {
				break
			}
		}
	}
	t.tasks, t.shape = tasks, shape
}

// Partial returns a partial shaped and zeroed for the round: fill it and Put it.
func (t *Tree) Partial() *round.Partial {
	if len(t.spare) == 0 {
		return t.take(&t.sums)
	}
	return t.take(&t.spare)
}

// take takes the last partial of a list, or makes one. Sums take theirs from t.sums, and never the partial of a task:
// each partial would come to have room for a sum, and there are many more tasks than sums.
func (t *Tree) take(list *[]*round.Partial) *round.Partial {
	if len(*list) == 0 {
		*list = append(*list, new(round.Partial))
	}
	n := len(*list) - 1
	p := (*list)[n]
	*list = (*list)[:n]
	p.Reset(t.shape)
	return p
}

// Release returns a partial that was not Put, for reuse.
func (t *Tree) Release(p *round.Partial) { t.release(0, p) }

// release keeps the partial of a node of a level for reuse; one of lent memory is dropped, and that given back.
func (t *Tree) release(level int, p *round.Partial) {
	if p.Lent {
		if p.Message != nil && t.Free != nil {
			t.Free(p.Message)
			*p = round.Partial{Lent: true}
		}
		return
	}
	if level == 0 {
		t.spare = append(t.spare, p)
	} else {
		t.sums = append(t.sums, p)
	}
}

// Put fills node (level, i) and every ancestor that it completes. It reports
// false when the node was filled or covered already: p is then ignored. The tree
// owns p from here on.
func (t *Tree) Put(level, i int, p *round.Partial) (bool, error) {
	if err := t.Check(level, i, p); err != nil {
		t.Release(p)
		return false, err
	}
	for l, j := level, i; l < len(t.levels); l, j = l+1, j/2 { // the node and its ancestors
		if t.levels[l][j] != nil {
			t.Release(p)
			return false, nil
		}
	}
	t.levels[level][i] = p
	t.climb(level, i)
	return true, nil
}

// Check returns an error if there is no node (level, i), or if p has not the round's shape.
func (t *Tree) Check(level, i int, p *round.Partial) error {
	if level < 0 || level >= len(t.levels) || i < 0 || i >= len(t.levels[level]) {
		return fmt.Errorf("node (%d, %d) is not in a reduce tree of %d tasks", level, i, t.tasks)
	}
	return p.Check(t.shape)
}

// groupLevel is the level of the nodes whose tasks' rows are summed at once.
const groupLevel = 4

// PutTask is Put of a task's node, whose rows may be computed later where there are more
// tasks. Rows wait until all tasks under the same node of
// groupLevel are there, or under the root: then they are summed at once, to the same bits.
// A round puts tasks by PutTask or by Put, not by both.
func (t *Tree) PutTask(i int, p *round.Partial) error {
	if t.shape.Rows == 0 || t.tasks == 1 {
		_, err := t.Put(0, i, p)
		return err
	}
	if err := t.Check(0, i, p); err != nil {
		t.Release(p)
		return err
	}
	level := min(groupLevel, len(t.levels)-1)
	group := i >> level
	units := t.levels[0][group<<level : min((group+1)<<level, t.tasks)]
	units[i-group<<level] = p
	if slices.Contains(units, nil) {
		return nil
	}
	t.levels[level][group] = t.addAll(units)
	clear(units)
	t.climb(level, group)
	return nil
}

// addAll returns the sum of up to 1<<groupLevel tasks, along the tree, and reuses the
// memory of all.
func (t *Tree) addAll(units []*round.Partial) *round.Partial {
	for step := 1; step < len(units); step *= 2 {
		for i := 0; i+step < len(units); i += 2 * step {
			num.Add64(units[i].F64, units[i+step].F64)
			num.Add32(units[i].F32, units[i+step].F32)
			num.AddInt32(units[i].I32, units[i+step].I32)
		}
	}
	var lists [1 << groupLevel]num.Rows
	most := 0
	for i, p := range units {
		lists[i] = num.Rows{Values: p.Values, Index: p.Index, Later: p.Later}
		most += len(p.Index)
	}
	sum := t.sumOf(units[0], most)
	var n int
	n, t.rows = num.SumRows(sum.Values, sum.Index, lists[:len(units)], t.shape.Width, t.rows)
	sum.Index, sum.Values = sum.Index[:n], sum.Values[:n*t.shape.Width]
	t.spare = append(t.spare, units...)
	return sum
}

// climb adds the node to its sibling, and so on up the tree, while both are filled.
func (t *Tree) climb(level, i int) {
	for ; level+1 < len(t.levels); level, i = level+1, i/2 {
		left := t.levels[level][i&^1]
		if t.levels[level+1][i/2] != nil || left == nil {
			return
		}
		if i|1 == len(t.levels[level]) { // no right child: the node is its left child
			t.levels[level+1][i/2] = left
			t.levels[level][i&^1] = nil
			continue
		}
		right := t.levels[level][i|1]
		if right == nil {
			return
		}
		t.levels[level+1][i/2] = t.add(level, left, right)
		t.levels[level][i&^1], t.levels[level][i|1] = nil, nil
	}
}

// add returns left + right, two nodes of a level, and reuses the memory of both. An absent row is +0.
func (t *Tree) add(level int, left, right *round.Partial) *round.Partial {
	num.Add64(left.F64, right.F64)
	num.Add32(left.F32, right.F32)
	num.AddInt32(left.I32, right.I32)
	if t.shape.Rows == 0 {
		t.release(level, right)
		return left
	}
	sum := t.sumOf(left, len(left.Index)+len(right.Index))
	sum.Lent, sum.Message, left.Message = left.Lent, left.Message, nil
	n := num.MergeRows(sum.Values, sum.Index, left.Values, right.Values, left.Index, right.Index, t.shape.Width)
	sum.Index, sum.Values = sum.Index[:n], sum.Values[:n*t.shape.Width]
	t.release(level, left)
	t.release(level, right)
	return sum
}

// sumOf returns a partial with the dense values of p, which gets other memory for them, and with room for most rows.
func (t *Tree) sumOf(p *round.Partial, most int) *round.Partial {
	sum := t.take(&t.sums)
	sum.F64, p.F64 = p.F64, sum.F64
	sum.F32, p.F32 = p.F32, sum.F32
	sum.I32, p.I32 = p.I32, sum.I32
	most = min(most, t.shape.Rows)
	sum.Index = slices.Grow(sum.Index, most)[:most]
	sum.Values = slices.Grow(sum.Values, most*t.shape.Width)[:most*t.shape.Width]
	return sum
}

// Root returns the sum of all tasks, or nil while some are missing.
func (t *Tree) Root() *round.Partial {
	if len(t.levels) == 0 {
		return nil
	}
	return t.levels[len(t.levels)-1][0]
}

// Nodes calls f with every filled node: what a worker that computed some of the
// tasks sends to the leader (design section 8.4).
func (t *Tree) Nodes(f func(level, i int, p *round.Partial)) {
	for level, nodes := range t.levels {
		for i, p := range nodes {
			if p != nil {
				f(level, i, p)
			}
		}
	}
}
