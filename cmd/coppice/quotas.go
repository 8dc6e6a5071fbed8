package main

import (
	"math"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/units"
)

// quotaFlags bound what users may put on a cluster.
type quotaFlags struct {
	MaxQueue     int         `default:"1000" placeholder:"N" help:"Maximum number of jobs that have not ended, including paused jobs; further submissions are refused. 0: no limit (default: 1000)."`
	MaxJobMemory units.Bytes `default:"8GiB" placeholder:"SIZE" help:"Maximum memory of one job on the leader, estimated at submission, such as 16GiB. 0: no limit (default: 8GiB)."`
	MaxBlobBytes units.Bytes `default:"256GiB" placeholder:"SIZE" help:"Maximum size of all blobs (datasets, models, trees); further imports are refused. 0: no limit (default: 256GiB)."`
	KeepJobs     int         `default:"0" placeholder:"N" help:"Number of ended jobs to keep. If there are more, the jobs that ended first are deleted with their models. 0: keep all (default: 0)."`
}

// budgetFlags bound what others take of a coordinator's process.
type budgetFlags struct {
	MessageMemory  units.Bytes `default:"512MiB" placeholder:"SIZE" help:"Memory for messages in transit: NATS, fragments and HTTP bodies. Messages beyond this limit are refused or dropped, or their connections are closed. A job whose messages are larger than 5/16 of the limit is refused (default: 512MiB)."`
	MaxConnections int         `default:"512" placeholder:"N" help:"Maximum number of HTTP connections, and of NATS clients; beyond it, idle connections are closed. The number is lower if the limit of open files is too low (default: 512)."`
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
		return coordinator.Quotas{}, usagef("--keep-jobs %d: want 0 (keep all) or more", q.KeepJobs)
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
