// Package round is the contract between algorithms and what runs them. An algorithm is a
// Trainer, the leader's half, which asks for one Round after another, and a Kernel, the
// workers' half, which computes the tasks of a round. engine, protocol, worker and
// coordinator know nothing else of an algorithm; engine/DESIGN.md says how a round is run.
package round
