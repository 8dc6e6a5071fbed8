package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// garbagePercent is how much garbage there may be for what is in use, where data and
// models are: Go's default of 100 would double the memory of every dataset. What is
// in use are a few large arrays of numbers, which the collector need not look into,
// so collecting ten times as often costs little.
const garbagePercent = 10

// garbageFloor is how many bytes of garbage there may be however little is in use.
// Without it a worker with a small dataset would collect every twenty messages (and
// a step of LDLF take a fifth longer).
const garbageFloor = 8 << 20

// frugal keeps the process's garbage low until the function that it returns is
// called: garbageFloor, and garbagePercent of what is in use. The environment's GOGC
// has precedence.
func frugal() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(garbagePercent)
	// The collector counts this as in use. It is never written, so that the system
	// has no memory for it.
	unused := make([]byte, garbageFloor*100/garbagePercent)
	return func() {
		runtime.KeepAlive(unused)
		debug.SetGCPercent(before)
	}
}

// leanPercent is how much garbage there may be on a coordinator for what is in use while it trains large networks: their
// parameters, which nobody looks into.
const leanPercent = 5

// lean keeps a coordinator's garbage at leanPercent of what is in use while jobs with large messages
// run, which make as much garbage in a step as they have in use. Otherwise what is in use
// are many small things, and a collection looks into all of them.
type lean struct {
	mu     sync.Mutex
	jobs   int // that run
	before int // per cent
}

// begin says that such a job runs, until end. The environment's GOGC has precedence.
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
