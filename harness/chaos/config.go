// Package chaos is the suite behind `coppice chaos`: it starts a real cluster of
// processes on loopback, keeps it busy with jobs of both kinds, injects faults
// from a seeded schedule, and holds every model against the digest that the same
// job has undisturbed, in this process. What a coordinator acknowledged is kept in
// a ledger and must still be there after each fault.
//
// The schedule (which fault when, which process, which pauses) follows from the
// seed. Who leads, and how far a job is at that moment, does not: real processes
// share a clock with nobody. A failure names the seed, which gives the same
// faults in the same order again.
//
// Four legs follow each other: a cluster with the NATS that coordinators embed; one
// with an external NATS; one with a small disk for each process; and one whose network is
// parted between coordinators.
//
// In the second and in the last leg each process has a host of its own on a network that can
// be cut (package netlab), if this machine can have one. With Config.Network all legs have such
// a network, with delays and losses. This process is then a host with two addresses: clients
// have the links that all have, and what measures has none.
//
// With Config.TLS each process of a cluster has a certificate, also the external NATS.
package chaos

import (
	"errors"
	"io"
	"time"

	"github.com/coppice-ldl/coppice/harness/netlab"
)

// ErrUsage is wrapped by errors about what a user asked for.
var ErrUsage = errors.New("wrong usage")

// ErrFailed is wrapped by the error of a suite that found something.
var ErrFailed = errors.New("the chaos test failed")

// Config says what the suite does.
type Config struct {
	Exe string // the coppice executable
	Dir string // holds disks and logs; must exist

	Seed   uint64
	Rounds int
	// Faults lists the faults to inject, each in every round. Empty: all that this
	// machine can have, each at least once: faults with a measured recovery in two rounds of five,
	// faults that last or wait for several recoveries in one of twenty, others in one of ten.
	Faults []string
	// Algorithm restricts the jobs to those of one of Algorithms; empty: both, and short ones of all others and of
	// networks.
	Algorithm string
	Workers   int
	// Hold is how long a partition lasts; 0: DefaultHold.
	Hold time.Duration
	// Stall is how long training may stand still during a partition, beyond the commit
	// interval and what a network and a heartbeat add; 0: DefaultStall.
	Stall time.Duration
	// Network, if set, gives each process of every leg a host of its own on a network of these
	// settings. netlab.Enter must be called first if this machine can have a network.
	Network *netlab.Settings
	// Heartbeat of the coordinators; 0: theirs.
	Heartbeat time.Duration
	// TLS is true if all connections are encrypted, and each process has a certificate.
	TLS bool
	// Small takes smaller jobs, for a short run.
	Small bool
	// Progress takes a line for each fault; nil: none.
	Progress io.Writer
}

// mostRecovery is how long a recovery may take.
const mostRecovery = 30 * time.Second

// The bounds of Config.Rounds and Config.Workers.
const (
	MaxRounds  = 10_000
	MaxWorkers = 16
)

// The algorithms that the suite has long jobs for.
const (
	ldlf     = "ldlf"
	structRF = "structrf"
)

// Algorithms lists what Config.Algorithm may name.
var Algorithms = []string{ldlf, structRF}
