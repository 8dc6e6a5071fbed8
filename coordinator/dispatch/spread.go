package dispatch

import (
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// spread gives every unit of a summed round that nobody live computes to a
// worker. It does nothing, and returns false, while the crew is as it was.
func (x *Executor) spread(now time.Time) bool {
	p, crewAt, first := x.plan()
	if crewAt == x.crewAt {
		return false
	}
	x.crewAt = crewAt
	x.dropGone()
	if p == nil {
		return true // nobody is there: the next beat wakes us
	}
	for _, id := range p.workers {
		x.list = x.list[:0]
		for u := range x.units {
			s := &x.units[u]
			if p.owner[u] == id && s.seats[0].worker == "" && s.check == unchecked && s.avoid == "" && x.open(u) {
				s.own().seats[0] = seat{worker: id}
				x.list = append(x.list, uint32(u))
			}
		}
		x.send(id, x.list, now)
	}
	if first {
		x.hold(p.plan, now)
	}
	return true
}

// spreadPlan is a plan and the workers that it gives units to, in order.
type spreadPlan struct {
	*plan
	workers []string
}

// plan returns the plan for the round's number of units under the current crew,
// and whether it was made just now.
func (x *Executor) plan() (p *spreadPlan, crewAt uint64, first bool) {
	d := x.d
	d.mu.Lock()
	defer d.mu.Unlock()
	crewAt = d.crew.version
	c := x.plans[x.r.Units]
	if c != nil && c.crewAt == crewAt {
		x.at = underWay{units: x.r.Units, plan: c.plan}
		return c.plan, crewAt, false
	}
	workers := x.ableNow()
	if len(workers) == 0 {
		x.at = underWay{}
		return nil, crewAt, false
	}
	var prev *plan
	if c != nil {
		prev = c.plan.plan
	}
	made := &spreadPlan{plan: makePlan(x.r.Units, len(x.manifest.Shards), x.candidates(workers), prev)}
	for _, w := range workers {
		made.workers = append(made.workers, w.id)
	}
	x.plans[x.r.Units] = &cachedPlan{crewAt, made}
	x.at = underWay{units: x.r.Units, plan: made}
	return made, crewAt, true
}

func (x *Executor) candidates(workers []*worker) []candidate {
	list := make([]candidate, len(workers))
	for i, w := range workers {
		list[i] = candidate{w.id, func(s int) bool { return w.holds[x.manifest.Shards[s].Digest] }}
	}
	return list
}

// dropGone takes the units off workers that are no longer there. What they
// answered stays.
func (x *Executor) dropGone() {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	for u := range x.units {
		for i := range x.units[u].seats {
			at := &x.units[u].seats[i]
			if at.worker == "" || at.worker == theReferee || at.answer != nil || x.there(at.worker) {
				continue
			}
			*at = seat{}
			if x.open(u) {
				x.d.cfg.Metrics.UnitsRetried.Inc()
			}
		}
	}
	x.forgetGone()
}

// send gives units of the round to a worker, after whatever it lacks of the job
// and of the round's values.
func (x *Executor) send(id string, units []uint32, now time.Time) {
	if len(units) == 0 {
		return
	}
	k := x.acquaint(id)
	x.out.begin()
	for i := range x.r.Vars {
		if v := &x.r.Vars[i]; k.lacks(v) {
			x.sendValue(k, v)
		}
	}
	x.describe(units)
	x.post(k, &x.run)
	x.dispatch(k)
	for _, u := range units {
		if at := x.units[u].seatOf(id); at != nil {
			at.sent = now
		}
	}
	x.d.cfg.Metrics.UnitsDispatched.Add(float64(len(units)))
}

// longValue is from how many bytes on a value is not copied before it is sent: it may be as
// large as the parameters of a network.
const longValue = 1 << 20

// sendWhole sends a value in one message.
func (x *Executor) sendWhole(k *acquainted, v *protocol.Value) {
	if len(v.Data) < longValue {
		x.post(k, v)
		return
	}
	x.dispatch(k) // messages keep their order
	x.d.sendParts(&k.at, v.AppendHead(nil), v.Data)
}

// sendOne is send for one unit alone.
func (x *Executor) sendOne(id string, u int, now time.Time) {
	x.list = append(x.list[:0], uint32(u))
	x.send(id, x.list, now)
}

// acquaint sends a worker the job, unless it has it.
func (x *Executor) acquaint(id string) *acquainted {
	if k := x.known[id]; k != nil {
		return k
	}
	k := &acquainted{at: x.d.addressOf(id)}
	x.d.mu.Lock()
	k.of = x.d.crew.get(id)
	if k.of != nil {
		k.pieces, k.bundles = k.of.beat.Pieces, k.of.beat.Bundles
	}
	x.d.serve(id, x.id)
	x.d.mu.Unlock()
	x.known[id] = k
	setup := protocol.Setup{Epoch: x.d.cfg.Epoch, Start: x.start, ID: x.id, Job: x.job, Manifest: x.manifest}
	x.d.send(&k.at, setup.Append(nil))
	return k
}

// lacks reports whether the worker was not sent this version yet, and notes that
// it is now.
func (k *acquainted) lacks(v *round.Var) bool {
	for i := range k.refs {
		if k.refs[i].ID == v.ID {
			lacks := k.refs[i].Version != v.Version
			k.refs[i].Version = v.Version
			return lacks
		}
	}
	k.refs = append(k.refs, protocol.Ref{ID: v.ID, Version: v.Version})
	return true
}

// describe fills x.run for units of the round.
func (x *Executor) describe(units []uint32) {
	r, m := x.r, &x.run
	m.Stamp = protocol.Stamp{Epoch: x.d.cfg.Epoch, Job: x.id, Round: x.round}
	m.Kind = r.Kind
	m.Op, m.Of, m.Scope, m.How, m.Roles = r.Op, uint32(r.Units), r.Scope, r.How, r.Roles
	m.Steps, m.Keep, m.Shape = r.Steps, r.DerivedVersion, r.Shape
	m.Units = units
	m.Child = r.Child != nil
	m.Refs, m.Payload = m.Refs[:0], m.Payload[:0]
	for _, v := range r.Vars {
		m.Refs = append(m.Refs, protocol.Ref{ID: v.ID, Version: v.Version})
	}
	if r.How != round.Collect {
		return
	}
	for _, u := range units {
		m.Payload = append(m.Payload, x.payload(u))
	}
}

// payload returns the bytes that a collected unit comes with: the round's own, or
// where a child job goes on, unless who said so is not trusted any more.
func (x *Executor) payload(u uint32) []byte {
	switch r := x.r; {
	case r.Child != nil:
		if at := x.resume[u]; x.d.trusts(at.worker) {
			return at.bytes
		}
	case r.Payloads != nil:
		return r.Payloads[u]
	}
	return nil
}

// other picks who computes a unit next: its standby, or the next able worker after
// the one that has it or failed last; with a single one, that. It returns "" where
// there is none.
func (x *Executor) other(u int) string {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	s := &x.units[u]
	now := s.seats[0].worker
	if now == "" {
		now = s.avoid
	}
	able := x.ableNow()
	if c := x.plans[x.r.Units]; c != nil && c.plan.standby[u] != now && named(able, c.plan.standby[u]) {
		return c.plan.standby[u]
	}
	for i, w := range able {
		if w.id == now {
			return able[(i+1)%len(able)].id
		}
	}
	if len(able) == 0 {
		return ""
	}
	return able[u%len(able)].id
}

// named reports whether a worker of that id is in the list.
func named(list []*worker, id string) bool {
	for _, w := range list {
		if w.id == id {
			return true
		}
	}
	return false
}

// holdings lists the shards that each worker should have, as owner or standby.
func (x *Executor) holdings(p *plan) map[string][]dataset.ShardRef {
	want := make(map[string][]dataset.ShardRef)
	for u := range p.target {
		lo, hi := u*len(x.manifest.Shards)/len(p.target), (u+1)*len(x.manifest.Shards)/len(p.target)
		for _, id := range []string{p.target[u], p.standby[u]} {
			if id != "" {
				want[id] = append(want[id], x.manifest.Shards[lo:hi]...)
			}
		}
	}
	return want
}

// hold tells the workers which shards to have on disk.
func (x *Executor) hold(p *plan, now time.Time) {
	x.held = now
	for id, shards := range x.holdings(p) {
		x.sendHold(id, shards)
	}
}

func (x *Executor) sendHold(id string, shards []dataset.ShardRef) {
	to := x.d.addressOf(id)
	hold := protocol.Hold{Epoch: x.d.cfg.Epoch, Shards: shards}
	x.d.send(&to, hold.Append(nil))
}

// holdBeats is how many heartbeats pass before a worker that still lacks shards is
// told of them again: a Hold may get lost, and a fetch may fail.
const holdBeats = protocol.HoldBeats

// repeatHold tells workers again of the shards that they still lack.
func (x *Executor) repeatHold(now time.Time) {
	c := x.plans[x.r.Units]
	if c == nil || now.Sub(x.held) < holdBeats*x.d.cfg.Heartbeat {
		return
	}
	x.held = now
	for id, shards := range x.holdings(c.plan.plan) {
		if lacks := x.lacking(id, shards); len(lacks) > 0 {
			x.sendHold(id, lacks)
		}
	}
}

// lacking lists those of the shards that a worker does not say it has.
func (x *Executor) lacking(id string, shards []dataset.ShardRef) []dataset.ShardRef {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	w := x.d.crew.get(id)
	if w == nil {
		return nil
	}
	var lacks []dataset.ShardRef
	for _, ref := range shards {
		if !w.holds[ref.Digest] {
			lacks = append(lacks, ref)
		}
	}
	return lacks
}
