package store

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// The age is that of the oldest proposal without an outcome.
func TestPending(t *testing.T) {
	var p pending
	now := time.Now()
	first, second := new(Future), new(Future)
	if age := p.oldest(now); age != 0 {
		t.Errorf("of nothing: %v", age)
	}
	p.add(second, now.Add(-time.Second))
	p.add(first, now.Add(-3*time.Second))
	if age := p.oldest(now); age != 3*time.Second {
		t.Errorf("of two: %v", age)
	}
	p.remove(first)
	if age := p.oldest(now); age != time.Second {
		t.Errorf("of the second: %v", age)
	}
	p.remove(second)
	if age := p.oldest(now); age != 0 {
		t.Errorf("of none any more: %v", age)
	}
}

// A proposal that the disk holds up is pending until it has its outcome.
func TestPendingProposal(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	held := make(chan struct{})
	c := newCluster(t, 1, func(c *Config) {
		c.fault = func(op string) error {
			if op == "append" && slow.Load() {
				<-held
			}
			return nil
		}
	})
	s := c.leader()
	slow.Store(true)
	f := s.ProposeAsync(memberEntry(1))
	testkit.Until(t, "a pending proposal", func() bool { return s.Pending() > 10*time.Millisecond })
	close(held)
	if _, _, err := f.Result(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "no pending proposal", func() bool { return s.Pending() == 0 })
}
