package round

import "github.com/coppice-ldl/coppice/dataset"

// Task is one idempotent piece of a round, as its kernel sees it.
type Task struct {
	ID             int
	Of             int // tasks in the round
	Op             uint8
	Scope          Scope
	Roles          dataset.Roles
	Steps          [2]uint64
	DerivedVersion uint64
	Payload        []byte
	SubJob         *Job
	// Reserve, if set, reserves bytes for the derived value that Derive is about to
	// make, and reports whether so many are free.
	Reserve func(bytes int) bool
	// Later permits Run to leave the partial's rows to be computed later (Partial.Later).
	Later bool
	// Lanes, if set, lends idle lanes to Derive and Run. They change no bits.
	Lanes Lanes
}

// Helpers returns how many idle lanes can help with the task.
func (u *Task) Helpers() int {
	if u.Lanes == nil {
		return 0
	}
	return u.Lanes.Idle()
}

// TryReserve reserves memory for a derived value of so many bytes. If it reports false,
// Derive returns nil.
func (u *Task) TryReserve(bytes int) bool { return u.Reserve == nil || u.Reserve(bytes) }

// Task returns task id of the round.
func (r *Round) Task(id int) Task {
	u := Task{ID: id, Of: r.Tasks, Op: r.Op, Scope: r.Scope, Roles: r.Roles, Steps: r.Steps, DerivedVersion: r.DerivedVersion}
	if r.Payloads != nil {
		u.Payload = r.Payloads[id]
	}
	if r.SubJob != nil {
		u.SubJob = r.SubJob(id)
	}
	return u
}

// Shards returns the range [lo, hi) of shards, of s in all, that the task needs.
func (u Task) Shards(s int) (lo, hi int) {
	switch u.Scope {
	case Whole:
		return 0, s
	case None:
		return 0, 0
	}
	return u.ID * s / u.Of, (u.ID + 1) * s / u.Of
}

// Rows lists the rows that the task sees.
func (u Task) Rows(d *dataset.Data) []dataset.RowRef {
	lo, hi := u.Shards(len(d.Manifest.Shards))
	return d.Select(lo, hi, u.Roles)
}
