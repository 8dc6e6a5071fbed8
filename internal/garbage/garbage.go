// Package garbage bounds the garbage of a process, so that large arrays of numbers do not take their memory twice.
package garbage

import (
	"os"
	"runtime/debug"
	"sync"
)

// Limit bounds the garbage of the process while somebody wants the bound. Its methods may be called concurrently.
type Limit struct {
	percent int // of the memory in use
	floor   int // bytes that are always allowed

	mu     sync.Mutex
	users  int
	before int // the percentage before
	unused []byte
}

// Frugal is the bound of a process with data and models. The default of Go, 100 percent, would double the memory of
// every dataset. The memory in use is a few large arrays of numbers, which the collector does not scan, so frequent
// collections cost little. Without the floor, a worker with a small dataset would collect every twenty messages, and a
// step of LDLF would take a fifth longer.
var Frugal = &Limit{percent: 10, floor: 8 << 20}

// Lean is the bound of a coordinator while jobs with large messages run, because their garbage of a step is as large as
// the memory in use. The parameters of large networks are not scanned by the collector. At other times, the memory in
// use is many small objects, and each collection scans them all. With 10 percent, a leader of ldlboost spent a sixth of
// its processor time on collections. There is no floor: the array of a later job would come from memory that was in
// use.
var Lean = &Limit{percent: 25}

// Begin bounds the garbage until end is called. GOGC in the environment has precedence.
func (g *Limit) Begin() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users++; g.users == 1 {
		g.before = debug.SetGCPercent(g.percent)
		// The collector counts this as in use. Because it is never written, it takes no memory.
		g.unused = make([]byte, g.floor*100/g.percent)
	}
	return sync.OnceFunc(g.end)
}

func (g *Limit) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users == 0 {
		debug.SetGCPercent(g.before)
		g.unused = nil
	}
}
