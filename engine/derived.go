package engine

import (
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// KeptLimit bounds the bytes of derived values that a process keeps, where nothing else
// is said.
const DerivedLimit = 256 << 20

// KeptMemory is the room that all jobs of a process share for their derived values. It is
// safe for concurrent use.
type DerivedMemory struct {
	limit int

	mu   sync.Mutex
	used int
}

// NewKeptMemory returns a room of limit bytes.
func NewDerivedMemory(limit int) *DerivedMemory { return &DerivedMemory{limit: limit} }

// NewKept returns an empty cache for one job.
func (m *DerivedMemory) NewCache() *DerivedCache {
	return &DerivedCache{memory: m, values: make(map[derivedKey]any)}
}

// Used returns how many bytes are taken.
func (m *DerivedMemory) Used() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// take takes n bytes if there are as many.
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

// Kept caches the derived values of one job: those of the newest Keep only,
// since older ones are never asked for again. A miss derives the value again, so
// dropping it is always right. It holds what it keeps, where that is counted. It is safe
// for concurrent use.
type DerivedCache struct {
	memory *DerivedMemory

	mu      sync.Mutex
	closed  bool
	version uint64
	bytes   int // taken of memory for values
	values  map[derivedKey]any
}

type derivedKey struct {
	op       uint8
	unit, of int
}

// NewKept returns an empty cache of at most limit bytes that shares them with no other.
func NewDerivedCache(limit int) *DerivedCache { return NewDerivedMemory(limit).NewCache() }

// Forget drops all values and gives their memory back, for good: a unit that is still at
// work keeps nothing here any more, since nobody would ever give that back.
func (c *DerivedCache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reset(0)
	c.closed = true
}

// turn drops the values of another Keep; 0 keeps none.
func (c *DerivedCache) setVersion(version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != version && !c.closed {
		c.reset(version)
	}
}

// begin drops all values for those of a Keep. mu is held.
func (c *DerivedCache) reset(version uint64) {
	c.memory.release(c.bytes)
	c.version, c.bytes = version, 0
	for _, old := range c.values {
		release(old)
	}
	clear(c.values)
}

// get returns the unit's derived value, held for the caller, who drops it.
func (c *DerivedCache) get(k algorithms.Kernel, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, scratch any) (any, error) {
	c.setVersion(u.DerivedVersion)
	if u.DerivedVersion == 0 {
		return nil, nil
	}
	key := derivedKey{u.Op, u.ID, u.Of}
	c.mu.Lock()
	value, ok := c.values[key]
	if ok {
		retain(value)
	}
	c.mu.Unlock()
	if ok {
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

// put keeps a value, for which taken bytes of memory are taken, and returns whether it
// does: then they are as many as the value has.
func (c *DerivedCache) store(version uint64, key derivedKey, value any, reserved *int) bool {
	size := 0
	if s, ok := value.(algorithms.Sized); ok {
		size = s.Bytes()
	}
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
	retain(value)
	return true
}

func retain(value any) {
	if h, ok := value.(algorithms.RefCounted); ok {
		h.Retain()
	}
}

func release(value any) {
	if h, ok := value.(algorithms.RefCounted); ok {
		h.Release()
	}
}
