package engine

import (
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// KeptLimit bounds the bytes of derived values that a process keeps, where nothing else
// is said.
const KeptLimit = 256 << 20

// KeptMemory is the room that all jobs of a process share for their derived values. It is
// safe for concurrent use.
type KeptMemory struct {
	limit int

	mu   sync.Mutex
	used int
}

// NewKeptMemory returns a room of limit bytes.
func NewKeptMemory(limit int) *KeptMemory { return &KeptMemory{limit: limit} }

// NewKept returns an empty cache for one job.
func (m *KeptMemory) NewKept() *Kept {
	return &Kept{memory: m, values: make(map[keptKey]any)}
}

// Used returns how many bytes are taken.
func (m *KeptMemory) Used() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// take takes n bytes if there are as many.
func (m *KeptMemory) take(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < 0 || n > m.limit-m.used {
		return false
	}
	m.used += n
	return true
}

func (m *KeptMemory) give(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
}

// Kept caches the derived values of one job: those of the newest Keep only,
// since older ones are never asked for again. A miss derives the value again, so
// dropping it is always right. It holds what it keeps, where that is counted. It is safe
// for concurrent use.
type Kept struct {
	memory *KeptMemory

	mu     sync.Mutex
	closed bool
	keep   uint64
	bytes  int // taken of memory for values
	values map[keptKey]any
}

type keptKey struct {
	op       uint8
	unit, of int
}

// NewKept returns an empty cache of at most limit bytes that shares them with no other.
func NewKept(limit int) *Kept { return NewKeptMemory(limit).NewKept() }

// Forget drops all values and gives their memory back, for good: a unit that is still at
// work keeps nothing here any more, since nobody would ever give that back.
func (c *Kept) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin(0)
	c.closed = true
}

// turn drops the values of another Keep; 0 keeps none.
func (c *Kept) turn(keep uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.keep != keep && !c.closed {
		c.begin(keep)
	}
}

// begin drops all values for those of a Keep. mu is held.
func (c *Kept) begin(keep uint64) {
	c.memory.give(c.bytes)
	c.keep, c.bytes = keep, 0
	for _, old := range c.values {
		drop(old)
	}
	clear(c.values)
}

// get returns the unit's derived value, held for the caller, who drops it.
func (c *Kept) get(k algorithms.Kernel, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, scratch any) (any, error) {
	c.turn(u.Keep)
	if u.Keep == 0 {
		return nil, nil
	}
	key := keptKey{u.Op, u.ID, u.Of}
	c.mu.Lock()
	value, ok := c.values[key]
	if ok {
		hold(value)
	}
	c.mu.Unlock()
	if ok {
		return value, nil
	}
	taken := 0
	u.Room = func(n int) bool {
		ok := c.memory.take(n)
		if ok {
			taken += n
		}
		return ok
	}
	kept := false
	defer func() { // also where the kernel panics
		if !kept {
			c.memory.give(taken)
		}
	}()
	value, err := k.Derive(u, d, v, scratch)
	if err != nil || value == nil {
		return nil, err
	}
	kept = c.put(u.Keep, key, value, &taken)
	return value, nil
}

// put keeps a value, for which taken bytes of memory are taken, and returns whether it
// does: then they are as many as the value has.
func (c *Kept) put(keep uint64, key keptKey, value any, taken *int) bool {
	size := 0
	if s, ok := value.(algorithms.Sized); ok {
		size = s.Bytes()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.values[key]; have || c.closed || c.keep != keep {
		return false
	}
	if size > *taken && !c.memory.take(size-*taken) {
		return false
	}
	if size < *taken {
		c.memory.give(*taken - size)
	}
	*taken = size
	c.bytes += size
	c.values[key] = value
	hold(value)
	return true
}

func hold(value any) {
	if h, ok := value.(algorithms.Held); ok {
		h.Hold()
	}
}

func drop(value any) {
	if h, ok := value.(algorithms.Held); ok {
		h.Drop()
	}
}
