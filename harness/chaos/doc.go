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
// with an external NATS behind proxies (package proxy), each process having its own,
// so that one can be cut off without the others; one with a small disk for each
// process; and one with proxies before each port of each coordinator, which tell by the
// process that dialled whose bytes to hold back.
//
// With Config.Network each process of a cluster has a host of its own (package netlab), and
// cuts of that network take the place of the last leg's proxies. This process is then a
// host with two addresses: clients have the links that all have, and what measures has none.
//
// With Config.TLS each process of a cluster has a certificate, also the external NATS. The
// proxies pass the encrypted bytes.
package chaos
