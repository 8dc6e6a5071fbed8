package dispatch

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
)

// Executor has one job's rounds computed by the crew. It implements
// engine.Executor and is used by one goroutine.
type Executor struct {
	d        *Dispatcher
	id       uint64
	start    uint64 // see protocol.Setup
	job      *round.Job
	manifest *dataset.Manifest
	options  ExecutorOptions

	mail  *mailbox
	known map[string]*acquainted // workers that have the job
	plans map[int]*cachedPlan    // by number of units
	// resume holds where the child jobs of the round would go on, by unit.
	resume map[uint32]resume
	// unable has the workers that said that they never can compute a unit of the job, and why.
	unable map[string]string // d.mu guards it
	at     underWay          // the round, for display; d.mu guards it
	tree   engine.Tree
	timer  *time.Timer // of summed rounds

	longest int // see there; of the last summed round

	round  uint64
	r      *round.Round
	units  []unitState
	redo   bool   // a worker was accused: the summed round begins anew
	checks []int  // units of the round whose two answers are compared
	crewAt uint64 // version of the crew that the round's work is spread over
	began  time.Time
	ended  time.Time // of the round before, where that was summed
	// pace is how long the slowest part of a round computes, by the round's op, as
	// workers say, smoothed. Waiting for those that do not answer is no part of
	// it: else each wait would make the next one longer.
	pace    [256]time.Duration
	slowest time.Duration
	way     way
	held    time.Time // when workers were last told which shards to have
	bench   bench

	collecting *collection   // the collected round, while there is one
	records    *records      // of its parts, and those of rounds before
	inFlight   atomic.Int64  // units of a collected round, for display
	left       atomic.Uint64 // bits of Live.Left
	shown      atomic.Pointer[shown]
	watch      Watcher
	given      int    // collected units that workers have; d.mu guards it
	sat        uint64 // seats of collected units that were given
	wants      bool   // a slot, and there was none; d.mu guards it

	msgs     [][]byte // scratch of receive
	list     []uint32 // scratch of spread
	out      parcel
	run      protocol.Run
	value    protocol.Value
	part     protocol.Part
	need     protocol.Need
	fail     protocol.Fail
	verdicts []verdict
}

// Computed returns how long the slowest part of the last summed round was computed, as
// workers say.
func (x *Executor) Computed() time.Duration { return x.slowest }

// acquainted is what a worker was sent of a job. A worker that left and came back
// is another one, by the same name.
type acquainted struct {
	of   *worker
	at   address
	refs []protocol.Ref
	// pieces: it takes values piece by piece; computed has the digests of the results that it
	// said it has.
	pieces   bool
	computed map[string]bool
	bundles  bool // it takes several messages in one
}

// there reports whether the worker that was given work under an id is still in
// the crew, and to be reached; d.mu is held.
func (x *Executor) there(id string) bool {
	w, k := x.d.crew.get(id), x.known[id]
	return w != nil && k != nil && k.of == w
}

// forgetGone forgets what was sent to workers that are gone. One that cannot be
// reached just now may be the same process when it is back; d.mu is held.
func (x *Executor) forgetGone() {
	for id, k := range x.known {
		if w := x.d.crew.workers[id]; w == nil || w != k.of {
			delete(x.known, id)
			delete(x.unable, id) // it may have more memory when it is back
		}
	}
}

// resume is where a child job would go on, and who said so.
type resume struct {
	worker string
	bytes  []byte
}

type cachedPlan struct {
	crewAt uint64
	plan   *spreadPlan
}

// unitState is where a unit of the current round stands. A round may have a million units, of which few are with
// workers.
type unitState struct {
	*attempt       // see own
	state    uint8 // of a collected unit
	check    uint8 // why two answers are compared
}

// attempt is what is kept of a unit from when it is first given out, or fails, until its result is at hand.
type attempt struct {
	// seats are who computes it: the first, and the second where it is checked,
	// or where the first takes too long.
	seats [2]seat

	copies  uint8     // how often it was given to another for taking too long
	tries   int       // passing failures
	failing time.Time // since when there are some
	avoid   string    // the worker that failed last
	after   time.Time // it is not given out again before
	judged  bool      // the referee is asked
}

// untried is the attempt of all units of which nothing is kept. It is never written.
var untried attempt

// newUnits returns so many units of which nothing is kept.
func newUnits(n int) []unitState {
	units := make([]unitState, n)
	for u := range units {
		units[u].attempt = &untried
	}
	return units
}

// clearUnits forgets all that is kept of units. The memory of attempts stays theirs: units of summed rounds are given
// out each time.
func clearUnits(units []unitState) {
	for u := range units {
		s := &units[u]
		if s.state, s.check = waiting, unchecked; s.attempt != &untried {
			*s.attempt = attempt{}
		}
	}
}

// own returns a unit's attempt that may be written.
func (s *unitState) own() *attempt {
	if s.attempt == &untried {
		s.attempt = new(attempt)
	}
	return s.attempt
}

// forget forgets the attempt of a unit, unless a worker's slot is with it still.
func (s *unitState) forget() {
	if s.seats[0].of == nil && s.seats[1].of == nil {
		s.attempt = &untried
	}
}

// seat is one worker's part in a unit.
type seat struct {
	worker string  // empty: nobody; theReferee: the leader itself
	of     *worker // of a collected unit: whose slot it has
	sent   time.Time
	order  uint64    // of a collected unit: seats given later have more
	told   time.Time // of a collected unit, last
	answer *answer   // of a unit whose answers are compared
}

// The states of a collected unit.
const (
	waiting = iota
	running
	fetching // its bytes are on their way here
	atHand   // its bytes are here; see records
)

// Why a unit's answers are compared.
const (
	unchecked = iota
	audited   // it is in the audit's sample
	doubted   // the first answer was not finite
)

// seatOf returns the seat that a worker has, or nil.
func (s *unitState) seatOf(worker string) *seat {
	for i := range s.seats {
		if s.seats[i].worker == worker && worker != "" {
			return &s.seats[i]
		}
	}
	return nil
}

// Do implements engine.Executor.
func (x *Executor) Do(ctx context.Context, n uint64, r *round.Round, res *round.Result) error {
	x.round, x.r, x.crewAt, x.redo = n, r, 0, false
	if cap(x.units) < r.Units {
		x.units = newUnits(r.Units)
	}
	x.units = x.units[:r.Units]
	clearUnits(x.units)
	x.sample()
	defer x.bench.end()
	if r.How == round.Collect {
		return x.collect(ctx, res)
	}
	return x.sum(ctx, res)
}

// every is the time between two looks at what takes too long.
func (x *Executor) every() time.Duration { return min(x.d.cfg.Heartbeat/2, lookAgain) }

// lookAgain bounds the time between two looks.
const lookAgain = 50 * time.Millisecond

func (x *Executor) drop(reason string) {
	x.d.cfg.Metrics.PartsDropped.WithLabelValues(reason).Inc()
}

// onNeed gives a worker what it lacks and sends its units again.
func (x *Executor) onNeed(msg []byte) {
	if x.need.Decode(msg) != nil {
		x.drop(metrics.DropMisshapen)
		return
	}
	if x.need.Round != x.round {
		x.drop(metrics.DropStale)
		return
	}
	k := x.known[x.need.Worker]
	if x.need.Setup || k == nil {
		delete(x.known, x.need.Worker)
	} else {
		for _, ref := range x.need.Refs {
			k.forget(ref.ID)
			if x.inPieces(ref) {
				k.computed = nil // it has not all of it any more
			}
		}
	}
	x.sendOwn(x.need.Worker)
}

func (k *acquainted) forget(id uint16) {
	for i := range k.refs {
		if k.refs[i].ID == id {
			k.refs[i].Version = ^uint64(0)
		}
	}
}

// sendOwn sends a worker all units that it has and has not answered: those whose
// answers are compared one by one, so that each is answered alone.
func (x *Executor) sendOwn(id string) {
	now := time.Now()
	x.list = x.list[:0]
	x.seatsOf(id, func(u int, at *seat) {
		if at.answer == nil && x.units[u].check == unchecked && x.open(u) {
			x.list = append(x.list, uint32(u))
		}
	})
	x.send(id, x.list, now)
	x.seatsOf(id, func(u int, at *seat) {
		if at.answer == nil && x.units[u].check != unchecked && x.open(u) {
			x.sendOne(id, u, now)
		}
	})
}

// seatsOf calls do for each seat that a worker has, by unit; of a collected round those that take
// a slot.
func (x *Executor) seatsOf(id string, do func(u int, at *seat)) {
	if x.collecting != nil {
		for _, p := range x.collecting.seated.of(id) {
			do(p.unit, p.at)
		}
		return
	}
	for u := range x.units {
		if at := x.units[u].seatOf(id); at != nil {
			do(u, at)
		}
	}
}

// open reports whether a unit's result is still needed from a worker.
func (x *Executor) open(u int) bool {
	if x.r.How == round.Collect {
		return x.units[u].state == running
	}
	return !x.tree.Covered(0, u)
}

// Close ends the job on the workers: they stop its units and drop what they keep.
// Short parts that are not recorded yet are lost with it.
func (x *Executor) Close() {
	x.records.end()
	x.d.mu.Lock()
	delete(x.d.jobs, x.id)
	x.d.mu.Unlock()
	x.mail.close()
	if x.longest >= lentFrom {
		x.d.cfg.Conn.Room().Release()
	}
	forget := (&protocol.Forget{Epoch: x.d.cfg.Epoch, Job: x.id}).Append(nil)
	for _, k := range x.known {
		x.d.send(&k.at, forget)
	}
	x.d.wakeAll() // its slots are free
}

// bench is the goroutines of a round in which the referee computes.
type bench struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// end stops the referee and waits for it.
func (b *bench) end() {
	if b.cancel != nil {
		b.cancel()
		b.work.Wait()
		b.cancel = nil
	}
}
