package api

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/spec"
)

// Quotas bound what users may put on a cluster; 0: no bound. They are checked when
// something is submitted or sent, never for what the cluster has accepted already.
type Quotas struct {
	Queue     int   // jobs that have not ended
	JobMemory int64 // bytes that one job is expected to take on the leader: spec.Estimate
	BlobBytes int64 // bytes of all blobs of a coordinator
	Message   int64 // bytes of the largest message between leader and workers
}

// errQuota says that a quota does not allow what was asked for.
var errQuota = errors.New("over quota")

// checkMemory refuses a job that is expected to take more than one may.
func (q *Quotas) checkMemory(j *round.Job, m *dataset.Manifest) error {
	if q.JobMemory <= 0 && q.Message <= 0 {
		return nil
	}
	need, err := spec.Estimate(j, m)
	if err != nil {
		return bad{err}
	}
	if q.Message > 0 && need.Message > q.Message {
		return fmt.Errorf("%w: messages between the leader and workers take about %s for this job, want at most %s (--message-memory)",
			errQuota, units.Format(need.Message), units.Format(q.Message))
	}
	if q.JobMemory <= 0 || need.Total() <= q.JobMemory {
		return nil
	}
	return fmt.Errorf("%w: the job takes about %s of memory on the leader (%s of training state, %s of sums), want at most %s (--max-job-memory)",
		errQuota, units.Format(need.Total()), units.Format(need.State), units.Format(need.Tree), units.Format(q.JobMemory))
}

// meterEvery is how old the measured use of a blob folder may be.
const meterEvery = time.Second

// meter keeps imports within the quota of blobs. It measures the folder now and
// then and counts what is on its way since.
type meter struct {
	limit int64
	usage func() (int64, error)

	mu       sync.Mutex
	measured time.Time
	used     int64 // when measured
	since    int64 // put since then
	flight   int64 // being put
}

// reserve takes room for n bytes of blobs; done says whether they were stored or
// gives the room back.
func (m *meter) reserve(n int64) (done func(stored bool), err error) {
	if m.limit <= 0 {
		return func(bool) {}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.measured) > meterEvery {
		used, err := m.usage()
		if err != nil {
			return nil, err
		}
		m.used, m.since, m.measured = used, 0, time.Now()
	}
	used := m.used + m.since + m.flight
	if n > m.limit-used {
		return nil, fmt.Errorf("%w: no room for blobs of %s: blobs already take %s of at most %s (--max-blob-bytes)",
			errBlobQuota, units.Format(n), units.Format(used), units.Format(m.limit))
	}
	m.flight += n
	return func(stored bool) { m.release(n, stored) }, nil
}

// errBlobQuota is errQuota for want of room.
var errBlobQuota = fmt.Errorf("%w for blobs", errQuota)

func (m *meter) release(n int64, stored bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flight -= n
	if stored {
		m.since += n
	}
}
