package engine

import (
	"sync"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// DerivedLimit is the default bound, in bytes, on the derived values of a process.
const DerivedLimit = 256 << 20

// DerivedMemory is the byte budget for derived values that all jobs of a process share. It
// is safe for concurrent use.
type DerivedMemory struct {
	limit int

	mu   sync.Mutex
	used int
}

// NewDerivedMemory returns a budget of limit bytes.
func NewDerivedMemory(limit int) *DerivedMemory { return &DerivedMemory{limit: limit} }

// NewCache returns an empty cache for one job, which counts against m.
func (m *DerivedMemory) NewCache() *DerivedCache {
	return &DerivedCache{memory: m, values: make(map[derivedKey]round.Derived)}
}

// Used returns the number of reserved bytes.
func (m *DerivedMemory) Used() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// reserve reserves n bytes and reports whether so many were free.
func (m *DerivedMemory) reserve(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 || n > m.limit-m.used {
		return false
	}
	m.used += n
	return true
}

func (m *DerivedMemory) release(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
}

// DerivedCache caches the derived values of the newest DerivedVersion of one job: tasks never ask for older values
// again. A miss derives the value again, so dropping a
// value never changes a result. The cache retains each value. It is safe for
// concurrent use.
type DerivedCache struct {
	memory *DerivedMemory

	mu      sync.Mutex
	closed  bool
	version uint64
	bytes   int // taken of memory for values
	values  map[derivedKey]round.Derived
}

type derivedKey struct {
	op       uint8
	task, of int
}

// NewDerivedCache returns an empty cache with a budget of its own of limit bytes.
func NewDerivedCache(limit int) *DerivedCache { return NewDerivedMemory(limit).NewCache() }

// Close drops all values and releases their memory. A task that is still running can store
// nothing afterwards: nothing would release that memory.
func (c *DerivedCache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset(0)
	c.closed = true
}

// reset drops all values and begins a version. mu is held.
func (c *DerivedCache) reset(version uint64) {
	c.memory.release(c.bytes)
	c.version, c.bytes = version, 0
	for _, old := range c.values {
		old.Release()
	}
	clear(c.values)
}

// get returns the task's derived value from the cache or from Derive; nil: the task runs
// without one. The value is retained for the caller, who releases it.
func (c *DerivedCache) get(k round.ReduceKernel, u round.Task, d *dataset.Data, v round.Vars, scratch any) (round.Derived, error) {
	key := derivedKey{u.Op, u.ID, u.Of}
	c.mu.Lock()
	if c.version != u.DerivedVersion && !c.closed {
		c.reset(u.DerivedVersion)
	}
	value, ok := c.values[key]
	if ok {
		value.Retain()
	}
	c.mu.Unlock()
	if ok || u.DerivedVersion == 0 { // version 0 has no values, so value is nil
		return value, nil
	}
	reserved := 0
	u.Reserve = func(n int) bool {
		ok := c.memory.reserve(n)
		if ok {
			reserved += n
		}
		return ok
	}
	stored := false
	defer func() { // also where the kernel panics
		if !stored {
			c.memory.release(reserved)
		}
	}()
	value, err := k.Derive(u, d, v, scratch)
	if err != nil || value == nil {
		return nil, err
	}
	stored = c.store(u.DerivedVersion, key, value, &reserved)
	return value, nil
}

// store adds a value, for which *reserved bytes are reserved already, and reports whether it
// did. It then sets *reserved to the size of the value.
func (c *DerivedCache) store(version uint64, key derivedKey, value round.Derived, reserved *int) bool {
	size := value.Bytes()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.values[key]; have || c.closed || c.version != version {
		return false
	}
	if size > *reserved && !c.memory.reserve(size-*reserved) {
		return false
	}
	if size < *reserved {
		c.memory.release(*reserved - size)
	}
	*reserved = size
	c.bytes += size
	c.values[key] = value
	value.Retain()
	return true
}
