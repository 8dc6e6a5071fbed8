package main

import (
	"math"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/units"
)

// quotaFlags bound what users may put on a cluster.
type quotaFlags struct {
	MaxQueue     int         `default:"1000" placeholder:"N" help:"Jobs that have not ended, paused ones included; a submission beyond them is refused. 0: no bound (default: 1000)."`
	MaxJobMemory units.Bytes `default:"8GiB" placeholder:"SIZE" help:"Memory that one job may take on the leader, as estimated at its submission, such as 16GiB. 0: no bound (default: 8GiB)."`
	MaxBlobBytes units.Bytes `default:"256GiB" placeholder:"SIZE" help:"Bytes of all blobs (datasets, models, trees); imports beyond them are refused. 0: no bound (default: 256GiB)."`
	KeepJobs     int         `default:"0" placeholder:"N" help:"Ended jobs that are kept; those beyond that ended first are deleted, with their models. 0: all (default: 0)."`
}

// budgetFlags bound what others take of a coordinator's process.
type budgetFlags struct {
	MessageMemory  units.Bytes `default:"512MiB" placeholder:"SIZE" help:"Memory for messages on their way: NATS, fragments, HTTP bodies; what is over it is refused, dropped or closed. A job whose messages are larger than 5/16 of it is refused (default: 512MiB)."`
	MaxConnections int         `default:"512" placeholder:"N" help:"HTTP connections, and as many of NATS clients; beyond them idle ones are closed. Fewer where the limit of open files is too low (default: 512)."`
}

// budget returns the flags as a coordinator takes them.
func (b *budgetFlags) budget() (coordinator.Budget, error) {
	if b.MessageMemory < coordinator.LeastMessages || b.MessageMemory > math.MaxInt32<<8 {
		return coordinator.Budget{}, usagef("--message-memory %s: want %s to %s", units.Format(int64(b.MessageMemory)), units.Format(coordinator.LeastMessages), units.Format(math.MaxInt32<<8))
	}
	if b.MaxConnections < coordinator.LeastConnections || b.MaxConnections > 1<<20 {
		return coordinator.Budget{}, usagef("--max-connections %d: want %d to %d", b.MaxConnections, coordinator.LeastConnections, 1<<20)
	}
	return coordinator.Budget{Messages: int64(b.MessageMemory), Connections: b.MaxConnections}, nil
}

// quotas returns the flags as a coordinator takes them.
func (q *quotaFlags) quotas() (coordinator.Quotas, error) {
	if q.MaxQueue < 0 || q.MaxQueue > math.MaxInt32 {
		return coordinator.Quotas{}, usagef("--max-queue %d: want 0 to %d", q.MaxQueue, math.MaxInt32)
	}
	if q.KeepJobs < 0 {
		return coordinator.Quotas{}, usagef("--keep-jobs %d: want 0 (all) or more", q.KeepJobs)
	}
	return coordinator.Quotas{
		Queue: int(bound(int64(q.MaxQueue))), JobMemory: bound(int64(q.MaxJobMemory)), BlobBytes: bound(int64(q.MaxBlobBytes)),
	}, nil
}

// bound turns 0, which means no bound here, into what means so to a coordinator.
func bound(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}
