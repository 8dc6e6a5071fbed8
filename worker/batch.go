package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// batch is the units of one Run message. The worker's mutex guards it, but for
// what is said below.
type batch struct {
	job   *job
	run   protocol.Run // its memory is the batch's own
	reply string       // subject for answers
	vars  round.Vars
	held  []*value
	units []*collected // of a collected round: one for each of run.Units

	next      int  // position of the next unit to start
	left      int  // units not finished
	preparing bool // waits for the job or for shards
	dropped   bool // superseded: nothing is sent any more
	ending    bool // its last unit is computed: the lane that did so retires it

	mu   sync.Mutex // guards what follows, between the lanes of this batch
	tree engine.Tree
	took []time.Duration // by position

	part protocol.Part // scratch of the lane that ends the batch
	buf  []byte
}

func (b *batch) size() int { return len(b.run.Units) }

// begin makes b the batch of a Run message whose units are settled.
func (b *batch) begin(reply string) {
	b.reply = reply
	b.next, b.left, b.preparing, b.dropped, b.ending = 0, b.size(), false, false, false
	b.vars, b.held = b.job.values.hold(b.run.Refs, b.vars[:0], b.held[:0])
	b.took = slices.Grow(b.took[:0], b.size())[:b.size()]
	clear(b.took)
	if b.run.How == round.Sum {
		b.tree.Reset(int(b.run.Of), b.run.Shape)
	}
}

// keep drops the units for which f reports false, with what belongs to them.
func (b *batch) keep(f func(i int, unit uint32) bool) {
	n, units, payload := 0, b.units, b.run.Payload
	for i, u := range b.run.Units {
		if !f(i, u) {
			continue
		}
		b.run.Units[n] = u
		if len(payload) > i {
			payload[n] = payload[i]
		}
		if len(units) > i {
			units[n] = units[i]
		}
		n++
	}
	b.run.Units = b.run.Units[:n]
	b.run.Payload = payload[:min(n, len(payload))]
	if units != nil {
		b.units = units[:n]
	}
}

// shards returns the range [lo, hi) of shards that the i-th unit needs.
func (b *batch) shards(i int) (lo, hi int) {
	s := len(b.job.manifest.Shards)
	if b.run.Child {
		return 0, s
	}
	u := round.Unit{ID: int(b.run.Units[i]), Of: int(b.run.Of), Scope: b.run.Scope}
	return u.Shards(s)
}

// computed sums the time that the units below node (level, index) took; the
// units of a summed batch ascend.
func (b *batch) computed(level, index int) (sum time.Duration) {
	from, _ := slices.BinarySearch(b.run.Units, uint32(index<<level))
	for i := from; i < b.size() && int(b.run.Units[i])>>level == index; i++ {
		sum += b.took[i]
	}
	return sum
}

// maxIdle bounds the batches whose memory a job keeps for the next rounds.
const maxIdle = 4

// blank returns a batch for a Run message: one whose tree was of as many units,
// if there is one, so that a steady job does not allocate. The message's memory
// and the batch's change places.
func (j *job) blank(run *protocol.Run) *batch {
	at := slices.IndexFunc(j.idle, func(b *batch) bool { return b.run.Of == run.Of && b.run.How == run.How })
	var b *batch
	if at >= 0 {
		b = j.idle[at]
		j.idle = slices.Delete(j.idle, at, at+1)
	} else {
		b = &batch{job: j}
	}
	b.run, *run = *run, b.run
	return b
}

// retire gives up what a batch holds and keeps its memory.
func (j *job) retire(b *batch) {
	release(b.held)
	clear(b.vars)
	clear(b.held)
	b.vars, b.held, b.units = b.vars[:0], b.held[:0], nil
	clear(b.run.Payload)
	j.live = slices.DeleteFunc(j.live, func(x *batch) bool { return x == b })
	if len(j.idle) == maxIdle {
		j.idle = slices.Delete(j.idle, 0, 1)
	}
	j.idle = append(j.idle, b)
}
