package batch

import (
	"fmt"
	"slices"
	"testing"
)

// check returns an error if an invariant that stands at a field does not hold. all has every job that was ever opened.
func check(m *Machine, all []*Job) error {
	past := 0
	for _, j := range all {
		if err := checkJob(m, j); err != nil {
			return fmt.Errorf("job %d: %w", j.ID, err)
		}
		for _, r := range j.past {
			past += r.bytes
		}
	}
	if m.past != past || past > MaxPast {
		return fmt.Errorf("results of earlier rounds have %d bytes, counted are %d", past, m.past)
	}
	for x, list := range m.ready {
		for _, b := range list {
			if b.executor != Executor(x) || b.state != Running || b.next >= len(b.tasks) {
				return fmt.Errorf("a ready batch has state %d and no task to begin", b.state)
			}
		}
	}
	return nil
}

func checkJob(m *Machine, j *Job) error {
	at, listed := m.jobs[j.ID]
	absentShards, fetched, waits := 0, 0, make(map[*Batch]int)
	for _, s := range j.shards.list {
		if s.state != here {
			absentShards++
		}
		if s.state == fetching {
			fetched++
		}
		for _, b := range s.waiting {
			waits[b]++
		}
	}
	switch {
	case j.forgotten == (listed && at == j):
		return fmt.Errorf("forgotten: %v, but it is in the list: %v", j.forgotten, listed)
	case (j.failure != nil) != (j.state == Failed):
		return fmt.Errorf("state %d with failure %v", j.state, j.failure)
	case absentShards != j.shards.absent || fetched != j.shards.fetching:
		return fmt.Errorf("%d shards are missing and %d are fetched, counted are %d and %d", absentShards, fetched, j.shards.absent, j.shards.fetching)
	case j.forgotten && len(j.tasks) > 0:
		return fmt.Errorf("it is forgotten and has %d tasks", len(j.tasks))
	case len(j.idle) > maxIdle:
		return fmt.Errorf("%d batches are kept for their memory", len(j.idle))
	}
	pending := make([]bool, len(j.pending))
	users := make(map[*Version]int)
	for _, b := range j.live {
		if err := checkBatch(m, b, waits[b]); err != nil {
			return fmt.Errorf("batch of round %d: %w", b.Stamp.Round, err)
		}
		for _, v := range b.Values {
			users[v]++
		}
		for _, t := range b.tasks {
			if b.executor == Reduce && b.Stamp == j.round {
				if pending[t.unit] {
					return fmt.Errorf("two batches have task %d", t.unit)
				}
				pending[t.unit] = true
			}
		}
	}
	if !slices.Equal(pending, j.pending) {
		return fmt.Errorf("pending are %v, want %v", j.pending, pending)
	}
	for key, t := range j.tasks {
		if t.stopped || t.key != key || key.round != j.round.Round {
			return fmt.Errorf("task %v is of another round, or stopped: %v", key, t.stopped)
		}
	}
	return checkValues(j, users)
}

func checkBatch(m *Machine, b *Batch, waits int) error {
	ready := slices.Contains(m.ready[b.executor], b)
	switch {
	case b.state == Retired:
		return fmt.Errorf("it is retired and live")
	case b.job.forgotten && !b.dropped:
		return fmt.Errorf("its job is forgotten")
	case b.executor == Reduce && !b.dropped && b.Stamp.Epoch != m.epoch:
		return fmt.Errorf("it is of leader epoch %d, and the highest is %d", b.Stamp.Epoch, m.epoch)
	case b.waits != waits || b.waits > 0 && b.state != Waiting:
		return fmt.Errorf("state %d: it waits for %d shards, counted are %d", b.state, waits, b.waits)
	case ready != (b.state == Running && b.next < len(b.tasks)):
		return fmt.Errorf("state %d, %d of %d tasks have begun, ready: %v", b.state, b.next, len(b.tasks), ready)
	case b.state == Running && b.left == 0 || b.state == Running && b.left < len(b.tasks)-b.next:
		return fmt.Errorf("%d tasks are left, and %d have not begun", b.left, len(b.tasks)-b.next)
	case b.state == Waiting && b.waits == 0 && b.job.state != Opening:
		return fmt.Errorf("it waits for nothing")
	case b.dropped && b.state == Waiting:
		return fmt.Errorf("it is dropped and waits")
	}
	return nil
}

func checkValues(j *Job, users map[*Version]int) error {
	for id, x := range j.values {
		if len(x.versions) > keptVersions {
			return fmt.Errorf("value %d has %d versions", id, len(x.versions))
		}
		for _, v := range x.versions {
			has := 0
			for _, ok := range v.chunks {
				if ok {
					has++
				}
			}
			if !v.listed || v.ID != id || has != v.here || v.here > v.total {
				return fmt.Errorf("value %d, version %d: %d of %d chunks, counted are %d", id, v.Number, has, v.total, v.here)
			}
		}
		if s := x.spare; s != nil && (s.listed || s.users > 0 || s.lent || s.chunks != nil) {
			return fmt.Errorf("the memory of value %d is spare and in use", id)
		}
	}
	for v, n := range users {
		if v.users != n {
			return fmt.Errorf("value %d, version %d: %d batches read it, counted are %d", v.ID, v.Number, n, v.users)
		}
	}
	return nil
}

func TestFailureOf(t *testing.T) {
	base := fmt.Errorf("x")
	for _, x := range []struct {
		err  error
		want bool
	}{
		{base, true}, {Permanent(base), true}, {Passing(base), false},
		{fmt.Errorf("unit 3: %w", Passing(base)), false},
	} {
		if f := FailureOf(x.err); f.Permanent != x.want || f.Error() != x.err.Error() {
			t.Errorf("%v became %+v", x.err, f)
		}
	}
}
