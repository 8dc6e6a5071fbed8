package main

import (
	"os"
	"runtime"
	"runtime/debug"
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
