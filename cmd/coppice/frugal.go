package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// garbagePercent bounds the garbage, in percent of the memory in use, in a process with data and models. The default of
// Go, 100, would double the memory of every dataset. The memory in use is a few large arrays of numbers, which the
// collector does not scan, so frequent collections cost little.
const garbagePercent = 10

// garbageFloor is the garbage in bytes that is always allowed. Without it, a worker with a small dataset would collect
// every twenty messages, and a step of LDLF would take a fifth longer.
const garbageFloor = 8 << 20

// frugal bounds the garbage of the process by garbageFloor and garbagePercent, until restore is called. GOGC in the
// environment has precedence.
func frugal() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(garbagePercent)
	// The collector counts this as in use. Because it is never written, it takes no memory.
	unused := make([]byte, garbageFloor*100/garbagePercent)
	return func() {
		runtime.KeepAlive(unused)
		debug.SetGCPercent(before)
	}
}

// leanPercent bounds the garbage of a coordinator while it trains large networks. Their parameters are not scanned by
// the collector.
const leanPercent = 5

// lean bounds the garbage of a coordinator by leanPercent while jobs with large messages run, because their garbage of
// a step is as large as the memory in use. At other times, the memory in use is many small objects, and each collection
// scans them all.
type lean struct {
	mu     sync.Mutex
	jobs   int // number of such jobs that run
	before int // the percentage before
}

// begin says that such a job runs until end. GOGC in the environment has precedence.
func (l *lean) begin() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs++; l.jobs == 1 {
		l.before = debug.SetGCPercent(leanPercent)
	}
	return sync.OnceFunc(l.end)
}

func (l *lean) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.jobs--; l.jobs == 0 {
		debug.SetGCPercent(l.before)
	}
}
