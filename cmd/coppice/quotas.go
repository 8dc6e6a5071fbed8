package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/coordinator"
)

// quotaFlags bound what users may put on a cluster.
type quotaFlags struct {
	MaxQueue     int      `default:"1000" placeholder:"N" help:"Jobs that have not ended, paused ones included; a submission beyond them is refused. 0: no bound."`
	MaxJobMemory byteSize `default:"8GiB" placeholder:"SIZE" help:"Memory that one job may take on the leader, as estimated at its submission, such as 8GiB. 0: no bound."`
	MaxBlobBytes byteSize `default:"256GiB" placeholder:"SIZE" help:"Bytes of all blobs (datasets, models, trees); imports beyond them are refused. 0: no bound."`
}

// quotas returns the flags as a coordinator takes them.
func (q *quotaFlags) quotas() (coordinator.Quotas, error) {
	if q.MaxQueue < 0 || q.MaxQueue > math.MaxInt32 {
		return coordinator.Quotas{}, usagef("--max-queue %d: want 0 to %d", q.MaxQueue, math.MaxInt32)
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

// byteSize is a number of bytes: 1000000, 512MiB, 8GiB.
type byteSize int64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *byteSize) UnmarshalText(text []byte) error {
	number, factor := string(text), int64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if n, ok := strings.CutSuffix(number, unit); ok {
			number, factor = strings.TrimSpace(n), int64(1)<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return fmt.Errorf("%q is no size: want bytes or a unit, such as 1000000, 512MiB or 8GiB", text)
	}
	*s = byteSize(n * factor)
	return nil
}
