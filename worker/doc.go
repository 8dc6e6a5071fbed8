// Package worker is the process that computes: it keeps verified copies of
// shards on disk, runs kernels on them in lanes, and answers the leader of the
// coordinators over NATS. It decides nothing and remembers nothing that cannot
// be fetched or computed again, so it may be killed at any moment. DESIGN.md
// says why it is built so.
package worker
