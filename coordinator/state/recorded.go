package state

import (
	"cmp"
	"iter"
	"slices"

	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
)

// RecordedResult is the recorded result of one task of a gather round. A job may have 100,000 of
// them, so it has no text.
type RecordedResult struct {
	Round   uint64 // the committed round that the task will be part of
	Task    uint32 // the task
	Of      uint32 // tasks in the round, for display
	Digest  digests.Digest
	Bytes   uint64
	Compute uint64 // nanoseconds, as the worker says, or 0
	Failed  bool   // true if the result says that the task, a run of an experiment, failed
}

// WasRun reports whether the task has a result. A task that is not run, since its budget is
// used up, has no digest.
func (p *RecordedResult) WasRun() bool { return p.Digest != digests.Digest{} }

func compareRecorded(a, b RecordedResult) int {
	return cmp.Or(cmp.Compare(a.Round, b.Round), cmp.Compare(a.Task, b.Task))
}

// maxBlock bounds the length of a block. To put one result copies its block and the list of
// blocks: of 100,000 results about 40 KB rather than 6 MB.
const maxBlock = 256

// recordedList is an immutable list of results by round and task, each task once.
type recordedList struct {
	blocks [][]RecordedResult // none is empty
	n      int                // of all results
	notRun int                // of tasks that are not run
}

// find returns the block that has or would have p, its place there, and whether it is
// there.
func (l recordedList) find(p RecordedResult) (block, at int, ok bool) {
	block, _ = slices.BinarySearchFunc(l.blocks, p, func(b []RecordedResult, p RecordedResult) int {
		return compareRecorded(b[len(b)-1], p)
	})
	if block == len(l.blocks) && block > 0 {
		block-- // after all results
	}
	if block < len(l.blocks) {
		at, ok = slices.BinarySearchFunc(l.blocks[block], p, compareRecorded)
	}
	return block, at, ok
}

// put returns the list with p, and true. If the list has the task already, it returns the
// same list and false.
func (l recordedList) put(p RecordedResult) (recordedList, bool) {
	block, at, ok := l.find(p)
	if ok {
		return l, false
	}
	l.add(p)
	if len(l.blocks) == 0 {
		l.blocks = [][]RecordedResult{{p}}
		return l, true
	}
	switch b := l.blocks[block]; {
	case len(b) < maxBlock:
		l.blocks = replaced(l.blocks, block, inserted(b, at, p))
	case at == len(b): // results mostly come in order: full blocks stay full
		l.blocks = inserted(l.blocks, block+1, []RecordedResult{p})
	default:
		b = inserted(b, at, p)
		half := len(b) / 2
		l.blocks = inserted(replaced(l.blocks, block, slices.Clone(b[:half])), block+1, slices.Clone(b[half:]))
	}
	return l, true
}

// push adds a result after all others to a list that has no other user.
func (l *recordedList) push(p RecordedResult) {
	if n := len(l.blocks); n == 0 || len(l.blocks[n-1]) == maxBlock {
		l.blocks = append(l.blocks, nil)
	}
	b := &l.blocks[len(l.blocks)-1]
	*b = append(*b, p)
	l.add(p)
}

// add counts a result that is added.
func (l *recordedList) add(p RecordedResult) {
	l.n++
	if !p.WasRun() {
		l.notRun++
	}
}

// after returns the list without the results of rounds up to round.
func (l recordedList) after(round uint64) recordedList {
	block, at, _ := l.find(RecordedResult{Round: round + 1})
	if block == len(l.blocks) {
		return l
	}
	rest := recordedList{blocks: slices.Clone(l.blocks[block:])}
	if rest.blocks[0] = rest.blocks[0][at:]; len(rest.blocks[0]) == 0 {
		rest.blocks = rest.blocks[1:]
	}
	for p := range rest.all {
		rest.add(p)
	}
	return rest
}

// from calls yield for the results of a round from a task on.
func (l recordedList) from(round uint64, task uint32) iter.Seq[RecordedResult] {
	return func(yield func(RecordedResult) bool) {
		block, at, _ := l.find(RecordedResult{Round: round, Task: task})
		for ; block < len(l.blocks); block, at = block+1, 0 {
			for _, p := range l.blocks[block][at:] {
				if p.Round != round || !yield(p) {
					return
				}
			}
		}
	}
}

// all calls yield for each result, in order.
func (l recordedList) all(yield func(RecordedResult) bool) {
	for _, b := range l.blocks {
		for _, p := range b {
			if !yield(p) {
				return
			}
		}
	}
}

// count returns the number of results of a round, in a time that grows with the number of
// blocks.
func (l recordedList) count(round uint64) (n int) {
	for _, b := range l.blocks {
		lo, _ := slices.BinarySearchFunc(b, RecordedResult{Round: round}, compareRecorded)
		hi, _ := slices.BinarySearchFunc(b, RecordedResult{Round: round + 1}, compareRecorded)
		n += hi - lo
	}
	return n
}

// last returns the last result. ok is false if there is none.
func (l recordedList) last() (p RecordedResult, ok bool) {
	if len(l.blocks) == 0 {
		return RecordedResult{}, false
	}
	b := l.blocks[len(l.blocks)-1]
	return b[len(b)-1], true
}

// Equal reports whether two lists have the same results, however they are divided into
// blocks.
func (l recordedList) Equal(other recordedList) bool {
	return slices.Equal(slices.Collect(l.all), slices.Collect(other.all))
}

// maxRecorded bounds the results of one job.
const maxRecorded = 1 << 24

// fields codes the list in a snapshot.
func (l *recordedList) fields(c *wire.Coder) {
	n := l.n
	wire.Number(c, "number of recorded tasks", &n, maxRecorded)
	if !c.Reads() {
		for p := range l.all {
			p.fields(c)
		}
		return
	}
	for range n {
		var p RecordedResult
		if p.fields(c); c.Failed() {
			return
		}
		if last, ok := l.last(); ok && compareRecorded(last, p) >= 0 {
			c.Failf("the recorded results are not sorted by task")
			return
		}
		l.push(p)
	}
}

func (p *RecordedResult) fields(c *wire.Coder) {
	wire.Numbers(c, "round of a task", &p.Round)
	wire.Number(c, "recorded task", &p.Task, protocol.MaxTasks-1)
	wire.Number(c, "tasks of a round", &p.Of, protocol.MaxTasks)
	wire.Numbers(c, "recorded task", &p.Bytes, &p.Compute)
	c.Fixed("recorded task", p.Digest[:])
	p.Failed = c.Flag("failed task", p.Failed)
}
