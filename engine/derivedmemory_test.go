package engine

import (
	"sync"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// asker asks for room before it derives, as a kernel with large values does.
type asker struct {
	zeroKernel
	bytes int
	mu    sync.Mutex
	most  int // values made at once
}

func (a *asker) Derive(u round.Task, _ *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	if !u.TryReserve(a.bytes) {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most++
	return sized(a.bytes), nil
}

// TestJobsShareDerivedMemory: two jobs together store no more than the limit, however many
// slots derive at once; memory that one releases the other can reserve.
func TestJobsShareDerivedMemory(t *testing.T) {
	m := NewDerivedMemory(100)
	a, b, k := m.NewCache(), m.NewCache(), &asker{bytes: 30}
	var lanes sync.WaitGroup
	for lane := range 8 {
		lanes.Go(func() {
			for range 50 {
				for _, c := range []*DerivedCache{a, b} {
					if _, err := c.get(k, round.Task{ID: lane, Of: 8, DerivedVersion: 1}, nil, nil, nil); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	lanes.Wait()
	if n := len(a.values) + len(b.values); m.Used() != 90 || n != 3 || k.most != 3 {
		t.Errorf("%d bytes are taken for %d values, %d made; want 90 for 3", m.Used(), n, k.most)
	}
	a.Close()
	b.get(k, round.Task{ID: 1, Of: 8}, nil, nil, nil) // a step: the leaf update is over
	if m.Used() != 0 || len(a.values)+len(b.values) != 0 {
		t.Errorf("%d bytes are taken once all is given back", m.Used())
	}
}

// panicking takes room and panics.
type panicking struct{ zeroKernel }

func (panicking) Derive(u round.Task, _ *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	u.TryReserve(10)
	panic("planted")
}

// TestDerivedMemoryIsReleased if a value is not stored: it is smaller than
// reserved, another version begins meanwhile, or the kernel panics.
func TestDerivedMemoryIsReleased(t *testing.T) {
	m := NewDerivedMemory(100)
	c := m.NewCache()
	func() {
		defer func() { _ = recover() }()
		c.get(panicking{}, round.Task{Of: 1, DerivedVersion: 1}, nil, nil, nil)
	}()
	if m.Used() != 0 {
		t.Errorf("%d bytes are taken after a panic", m.Used())
	}
	c.reset(1)
	taken := 50
	if !m.reserve(taken) || !c.store(1, derivedKey{0, 0, 1}, sized(20), &taken) || m.Used() != 20 {
		t.Errorf("%d bytes are taken for a value of 20", m.Used())
	}
	taken = 20
	if !m.reserve(taken) || !c.store(1, derivedKey{0, 1, 2}, sized(50), &taken) || m.Used() != 20+50 || taken != 50 {
		t.Errorf("%d bytes are taken for values of 20 and of 50, for which 20 were reserved", m.Used())
	}
	taken = 10
	if !m.reserve(taken) || c.store(1, derivedKey{0, 2, 3}, sized(41), &taken) || m.Used() != 70+10 || taken != 10 {
		t.Errorf("%d bytes are taken, of which %d stay reserved for a value that does not fit", m.Used(), taken)
	}
	if !c.store(1, derivedKey{0, 2, 3}, sized(10), &taken) || m.Used() != 70+10 {
		t.Errorf("%d bytes are taken with a value of as many bytes as were reserved", m.Used())
	}
	c.get(zeroKernel{}, round.Task{Of: 1, DerivedVersion: 2}, nil, nil, nil)
	if m.Used() != 0 {
		t.Errorf("%d bytes are taken in another version", m.Used())
	}
	if taken = 20; !m.reserve(taken) || !m.reserve(0) {
		t.Error("there is no room for nothing")
	}
	if m.reserve(81) || m.reserve(-1) || !m.reserve(80) {
		t.Error("the room of 100 bytes is not what is left of it")
	}
}

// late forgets the cache while it derives, as a worker does that refuses another task's sums.
type late struct {
	zeroKernel
	cache *DerivedCache
}

func (l *late) Derive(u round.Task, _ *dataset.Data, _ round.Vars, _ any) (round.Derived, error) {
	u.TryReserve(10)
	l.cache.Close()
	return sized(10), nil
}

// TestClosedStoresNothing: a task that began before Close does not keep memory
// reserved, whether it derives before Close or after.
func TestClosedStoresNothing(t *testing.T) {
	m := NewDerivedMemory(100)
	c := m.NewCache()
	for keep := range uint64(3) {
		if _, err := c.get(&late{cache: c}, round.Task{Of: 1, DerivedVersion: 1 + keep}, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		if m.Used() != 0 || len(c.values) != 0 {
			t.Errorf("%d bytes are taken for %d values of a closed cache", m.Used(), len(c.values))
		}
	}
	c = m.NewCache()
	c.Close()
	if _, err := c.get(&asker{bytes: 10}, round.Task{Of: 1, DerivedVersion: 1}, nil, nil, nil); err != nil ||
		m.Used() != 0 {
		t.Errorf("%d bytes are taken after Close, %v", m.Used(), err)
	}
}
