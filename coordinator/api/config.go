package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// Config is what the API serves.
type Config struct {
	ID      string
	Store   *store.Store
	Blobs   *replica.Blobs
	Members *members.Service // who the coordinators are
	Status  Status
	Running Running
	Quotas  Quotas
	Metrics http.Handler
	Log     *slog.Logger
	// Count, if set, is called after each response. The route is the pattern of its
	// path, and waits is true if the time depends on what the request waits for.
	Count func(route string, code int, took time.Duration, waits bool)
	// Backed, if set, is called after a complete backup was sent.
	Backed func()

	silence time.Duration // after which a silent leader is given up; 0: protocol.ForwardSilence
}

// Status is what this coordinator knows of itself and of the cluster.
type Status struct {
	Cluster func() protocol.Cluster // as this coordinator knows it
	Local   func() protocol.Cluster // the answer to protocol.ClusterLocal
	Heard   func() bool             // true if Local names a leader
	Ready   func() error            // nil if there is a leader and NATS answers
	// Lacks, if set, returns an error that says which blobs of the state this coordinator
	// lacks.
	Lacks func() error
	// Advice, if set, returns a sentence to add to /readyz, with the command that helps.
	// notReady is the error of Ready.
	Advice func(ctx context.Context, notReady error) string
}

// Running is what the leader knows of jobs beyond the committed state. A function that is
// nil knows nothing.
type Running struct {
	Live    func(job uint64) (dispatch.Live, bool)  // how far a job is that this coordinator drives
	Workers func(job uint64) []string               // the workers that compute a job now
	Waits   func(*state.State) map[uint64]jobs.Wait // why the jobs of a state wait, by id
}

// Quotas bound what users may put on a cluster; 0: no bound. They are checked when a
// client submits or sends something, and never for what the cluster has accepted already.
type Quotas struct {
	Queue     int   // jobs that have not ended
	JobMemory int64 // bytes that one job is expected to take on the leader: see spec.Estimate
	BlobBytes int64 // bytes of all blobs of a coordinator
	Message   int64 // bytes of the largest message between leader and workers
}

// checkMemory refuses a job that is expected to take more than one job may.
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
