// Package sim runs a whole cluster in one process under virtual time: the
// production driver of jobs, dispatcher, state machine, blob replication and
// worker loop, over a network, a replicated log and disks that fail as a seed
// says. It is run by this package's tests, inside a bubble of testing/synctest.
// DESIGN.md says what is checked and what a replay repeats.
package sim
