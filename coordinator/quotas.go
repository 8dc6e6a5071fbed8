package coordinator

import "github.com/coppice-ldl/coppice/coordinator/api"

// Quotas bound what users may put on a cluster; 0: the default, negative: no bound.
type Quotas struct {
	Queue     int   // jobs that have not ended
	JobMemory int64 // bytes that one job is expected to take on the leader
	BlobBytes int64 // bytes of all blobs
}

// The defaults of Quotas.
const (
	DefaultQueue     = 1000
	DefaultJobMemory = 8 << 30
	DefaultBlobBytes = 256 << 30
)

// fill puts the defaults where nothing is said.
func (q *Quotas) fill() {
	if q.Queue == 0 {
		q.Queue = DefaultQueue
	}
	if q.JobMemory == 0 {
		q.JobMemory = DefaultJobMemory
	}
	if q.BlobBytes == 0 {
		q.BlobBytes = DefaultBlobBytes
	}
}

// api returns the quotas as the API takes them, where 0 is no bound.
func (q *Quotas) api() api.Quotas {
	return api.Quotas{Queue: max(0, q.Queue), JobMemory: max(0, q.JobMemory), BlobBytes: max(0, q.BlobBytes)}
}
