package main

import (
	"math"

	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/internal/units"
)

// quotaFlags bound what users may put on a cluster.
type quotaFlags struct {
	MaxQueue     int         `default:"1000" placeholder:"N" help:"Jobs that have not ended, paused ones included; a submission beyond them is refused. 0: no bound."`
	MaxJobMemory units.Bytes `default:"8GiB" placeholder:"SIZE" help:"Memory that one job may take on the leader, as estimated at its submission, such as 8GiB. 0: no bound."`
	MaxBlobBytes units.Bytes `default:"256GiB" placeholder:"SIZE" help:"Bytes of all blobs (datasets, models, trees); imports beyond them are refused. 0: no bound."`
	KeepJobs     int         `default:"0" placeholder:"N" help:"Ended jobs that are kept; those beyond that ended first are deleted, with their models. 0: all."`
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
