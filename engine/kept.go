package engine

import (
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
)

// Kept caches the derived values of one job: those of the newest Keep only,
// since older ones are never asked for again. A miss derives the value again, so
// dropping it is always right. It holds what it keeps, where that is counted. It is safe
// for concurrent use.
type Kept struct {
	// Limit bounds the bytes that are kept; beyond it units derive each time.
	Limit int

	mu     sync.Mutex
	keep   uint64
	bytes  int
	values map[keptKey]any
}

type keptKey struct {
	op       uint8
	unit, of int
}

// NewKept returns an empty cache of at most limit bytes.
func NewKept(limit int) *Kept {
	return &Kept{Limit: limit, values: make(map[keptKey]any)}
}

// get returns the unit's derived value, held for the caller, who drops it.
func (c *Kept) get(k algorithms.Kernel, u algorithms.Unit, d *dataset.Data, v algorithms.Vars, scratch any) (any, error) {
	if u.Keep == 0 {
		return nil, nil
	}
	key := keptKey{u.Op, u.ID, u.Of}
	c.mu.Lock()
	if c.keep != u.Keep {
		c.keep, c.bytes = u.Keep, 0
		for _, old := range c.values {
			drop(old)
		}
		clear(c.values)
	}
	value, ok := c.values[key]
	if ok {
		hold(value)
	}
	c.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := k.Derive(u, d, v, scratch)
	if err != nil || value == nil {
		return nil, err
	}
	c.put(u.Keep, key, value)
	return value, nil
}

func (c *Kept) put(keep uint64, key keptKey, value any) {
	size := 0
	if s, ok := value.(algorithms.Sized); ok {
		size = s.Bytes()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, have := c.values[key]; !have && c.keep == keep && c.bytes+size <= c.Limit {
		c.bytes += size
		c.values[key] = value
		hold(value)
	}
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
