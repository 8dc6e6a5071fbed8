// Package schedule decides which worker computes which task of a round, and what happens with the results.
//
// It is a pure state machine: an event goes in, actions come out. It has no clock, no I/O, no goroutine, no lock and no
// randomness, so the same events give the same actions. Package dispatch performs the actions on a cluster.
//
// Workers is the state that all jobs share. A Job is one job's part: its Step applies one event. DESIGN.md has the states of
// a task, and testdata has traces: events, each with the actions that follow from it.
package schedule
