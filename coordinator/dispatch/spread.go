package dispatch

import (
	"time"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// spread gives every unit of a summed round that nobody live computes to a
// worker. It does nothing while the crew is as it was.
func (x *Executor) spread(now time.Time) {
	p, crewAt, first := x.plan()
	if crewAt == x.crewAt {
		return
	}
	x.crewAt = crewAt
	x.dropGone()
	if p == nil {
		return // nobody is there: the next beat wakes us
	}
	for _, id := range p.workers {
		x.list = x.list[:0]
		for u := range x.units {
			if x.units[u].worker == "" && p.owner[u] == id && x.open(u) {
				x.units[u].worker = id
				x.list = append(x.list, uint32(u))
			}
		}
		x.send(id, x.list, now)
	}
	if first {
		x.hold(p.plan)
	}
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
		return c.plan, crewAt, false
	}
	workers := d.crew.prompt()
	if len(workers) == 0 {
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
	return made, crewAt, true
}

func (x *Executor) candidates(workers []*worker) []candidate {
	list := make([]candidate, len(workers))
	for i, w := range workers {
		list[i] = candidate{w.id, func(s int) bool { return w.holds[x.manifest.Shards[s].Digest] }}
	}
	return list
}

// dropGone takes the units off workers that are no longer there.
func (x *Executor) dropGone() {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	for u := range x.units {
		s := &x.units[u]
		if s.worker != "" && !x.there(s.worker) {
			s.worker = ""
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
	subject := x.d.cfg.Subjects.Work(id)
	k := x.known[id]
	if k == nil {
		x.d.mu.Lock()
		k = &acquainted{of: x.d.crew.get(id)}
		x.d.mu.Unlock()
		x.known[id] = k
		setup := protocol.Setup{Epoch: x.d.cfg.Epoch, ID: x.id, Job: x.job, Manifest: x.manifest}
		x.d.send(subject, setup.Append(nil))
	}
	for i := range x.r.Vars {
		if v := &x.r.Vars[i]; k.lacks(v) {
			value := protocol.Value{Epoch: x.d.cfg.Epoch, Job: x.id, Ref: protocol.Ref{ID: v.ID, Version: v.Version}, Data: v.Data}
			x.buf = value.Append(x.buf[:0])
			x.d.send(subject, x.buf)
		}
	}
	x.describe(units)
	x.buf = x.run.Append(x.buf[:0])
	x.d.send(subject, x.buf)
	for _, u := range units {
		x.units[u].sent = now
	}
	x.d.cfg.Metrics.UnitsDispatched.Add(float64(len(units)))
}

// lacks reports whether the worker was not sent this version yet, and notes that
// it is now.
func (k *acquainted) lacks(v *algorithms.Var) bool {
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
	m.Op, m.Of, m.Scope, m.How, m.Roles = r.Op, uint32(r.Units), r.Scope, r.How, r.Roles
	m.Steps, m.Keep, m.Shape = r.Steps, r.Keep, r.Shape
	m.Units = units
	m.Child = r.Children != nil
	m.Refs, m.Payload = m.Refs[:0], m.Payload[:0]
	for _, v := range r.Vars {
		m.Refs = append(m.Refs, protocol.Ref{ID: v.ID, Version: v.Version})
	}
	if r.How != algorithms.Collect {
		return
	}
	for _, u := range units {
		m.Payload = append(m.Payload, x.payload(u))
	}
}

// payload returns the bytes that a collected unit comes with: the round's own, or
// where a child job goes on.
func (x *Executor) payload(u uint32) []byte {
	switch r := x.r; {
	case r.Children != nil:
		return x.resume[u]
	case r.Payloads != nil:
		return r.Payloads[u]
	}
	return nil
}

// overdue gives units that take too long to the standby as well: the first
// answer wins.
func (x *Executor) overdue(now time.Time) {
	patience := x.patience()
	for u := range x.units {
		if s := &x.units[u]; x.open(u) && s.worker != "" && now.Sub(s.sent) >= patience {
			x.stall(s.worker, now)
			x.giveToOther(u)
		}
	}
}

func (x *Executor) stall(id string, now time.Time) {
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
	x.d.crew.stall(id, now)
}

// giveToOther gives a unit to another worker than the one that has it; with a
// single worker, to that one again.
func (x *Executor) giveToOther(u int) {
	x.d.mu.Lock()
	next := x.other(u)
	x.d.mu.Unlock()
	if next == "" {
		return
	}
	x.units[u].worker = next
	x.d.cfg.Metrics.UnitsRetried.Inc()
	x.list = append(x.list[:0], uint32(u))
	x.send(next, x.list, time.Now())
}

// other picks the standby of a unit, or the next live worker after the one that
// has it; d.mu is held.
func (x *Executor) other(u int) string {
	now := x.units[u].worker
	if c := x.plans[x.r.Units]; c != nil && x.r.How == algorithms.Sum {
		s := c.plan.standby[u]
		if w := x.d.crew.get(s); w != nil && s != now && w.stalled.IsZero() {
			return s
		}
	}
	workers := x.d.crew.usable()
	if x.r.How == algorithms.Sum {
		workers = x.d.crew.prompt()
	}
	for i, w := range workers {
		if w.id == now {
			return workers[(i+1)%len(workers)].id
		}
	}
	if len(workers) == 0 {
		return ""
	}
	return workers[u%len(workers)].id
}

// hold tells the workers which shards to have on disk, as owner or standby.
func (x *Executor) hold(p *plan) {
	want := make(map[string][]dataset.ShardRef)
	for u := range p.target {
		lo, hi := u*len(x.manifest.Shards)/len(p.target), (u+1)*len(x.manifest.Shards)/len(p.target)
		for _, id := range []string{p.target[u], p.standby[u]} {
			if id != "" {
				want[id] = append(want[id], x.manifest.Shards[lo:hi]...)
			}
		}
	}
	for id, shards := range want {
		hold := protocol.Hold{Epoch: x.d.cfg.Epoch, Shards: shards}
		x.d.send(x.d.cfg.Subjects.Work(id), hold.Append(nil))
	}
}
