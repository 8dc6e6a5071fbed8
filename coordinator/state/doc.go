// Package state is the coordinators' replicated state machine: what the cluster
// remembers. It is pure: the same entries at the same indices give the same state
// and the same snapshot bytes on every machine. It has no clock, randomness, I/O,
// goroutine or floating-point arithmetic, and knows neither Raft nor NATS; times
// and measures come in with the entries and are only carried.
//
// A State never changes. Apply returns the next one, which shares with its
// predecessor whatever the entry left alone, so that a pointer is a snapshot and
// any number of readers see a consistent, committed view without a lock. In
// return nobody may write to what accessors hand out.
//
// The rules of each entry stand beside its type in package protocol.
package state
