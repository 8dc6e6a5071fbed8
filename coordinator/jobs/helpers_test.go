package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/harness/testkit/storetest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// office is what a leader has: a real store of one node, a folder of blobs, NATS,
// and no workers.
type office struct {
	t     *testing.T
	cfg   Config
	store *store.Store
	blobs *replica.Blobs
	m     *dataset.Manifest
}

func newOffice(t *testing.T) *office {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, epoch := storetest.Leading(t)
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := &office{t: t, store: s, blobs: &replica.Blobs{Self: "a", Folder: folder, Log: log}}
	o.cfg = Config{
		Epoch: epoch, Concurrent: 2, Store: s, Blobs: o.blobs,
		Metrics: metrics.NewCoordinator(prometheus.NewRegistry()), Log: log,
	}
	o.dataset()
	return o
}

// propose proposes an entry and returns what the state machine says.
func (o *office) propose(kind protocol.EntryKind, body any) any {
	o.t.Helper()
	_, v, err := o.cfg.Store.Propose(testkit.Context(o.t), protocol.EncodeEntry(kind, body))
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// dataset imports a small one.
func (o *office) dataset() {
	o.t.Helper()
	m, shards := datatest.Artificial(o.t, 100)
	for _, shard := range shards {
		if _, err := o.blobs.Folder.Put(dataset.EncodeShard(shard, nil)); err != nil {
			o.t.Fatal(err)
		}
	}
	o.propose(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: "art", Manifest: m})
	o.m = m
}

// submit queues a job; change may alter it after it was resolved.
func (o *office) submit(name string, change func(*round.Job)) *state.Job {
	o.t.Helper()
	job, err := spec.Resolve(protocol.Spec{Algorithm: "ldlf", Dataset: "art", Name: name}, o.m)
	if err != nil {
		o.t.Fatal(err)
	}
	if change != nil {
		change(job)
	}
	return o.propose(protocol.EntrySubmit, protocol.SubmitEntry{Token: name, Name: name, Dataset: "art", Job: job}).(*state.Job)
}

// running queues a job and makes it run.
func (o *office) running(name string) *state.Job {
	o.t.Helper()
	j := o.submit(name, nil)
	return o.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: o.cfg.Epoch, Job: j.ID, State: protocol.Running}).(*state.Job)
}

func (o *office) job(id uint64) *state.Job { return o.cfg.Store.State().Job(id) }

// committer returns the committer of a running job, of which a commit is due.
func (o *office) committer(j *state.Job) *committer {
	m := New(o.cfg)
	c := newCommitter(&driver{m: m, job: j, log: o.cfg.Log, curve: curve.NewRecorder(curve.JobPoints, nil)})
	c.due()
	return c
}

// due makes the commit interval be over.
func (c *committer) due() { c.began = time.Now().Add(-3 * c.interval / 2) }

// dispatcher gives the office NATS and a dispatcher.
func (o *office) dispatcher() {
	o.t.Helper()
	conn := natstest.Connect(o.t, natstest.Server(o.t, bus.ServerOptions{}))
	o.blobs.Conn = conn
	o.cfg.Dispatch = dispatch.New(dispatch.Config{
		ID: "a", Epoch: o.cfg.Epoch, Heartbeat: time.Second, Conn: conn, Subjects: protocol.Subjects{Cluster: "jobs"},
		Parts: &Parts{Epoch: o.cfg.Epoch, Store: o.cfg.Store, Blobs: o.cfg.Blobs}, Metrics: o.cfg.Metrics, Log: o.cfg.Log,
	})
}

// manage runs a manager until stop, which returns when it has stopped.
func (o *office) manage() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { New(o.cfg).Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); run.Wait() })
	o.t.Cleanup(stop)
	return stop
}

// states lists the states of all jobs by name.
func (o *office) states() string {
	states := make(map[string]protocol.JobState)
	for _, j := range o.cfg.Store.State().Jobs() {
		states[j.Name] = j.State
	}
	b, err := json.Marshal(states)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (o *office) become(want string) {
	o.t.Helper()
	testkit.Until(o.t, fmt.Sprintf("states %s (now %s)", want, o.states()), func() bool { return o.states() == want })
}
