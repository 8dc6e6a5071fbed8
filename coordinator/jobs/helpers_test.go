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

// lab is what a leader has: a real store of one node, a folder of blobs, NATS, and no workers.
type lab struct {
	t     *testing.T
	cfg   Config
	store *store.Store
	blobs *replica.Blobs
	m     *dataset.Manifest
}

func newLab(t *testing.T) *lab {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s, epoch := storetest.Leading(t)
	folder, err := blobs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, store: s, blobs: &replica.Blobs{Self: "a", Folder: folder, Log: log}}
	l.cfg = Config{
		Epoch: epoch, Concurrent: 2, Store: s, Blobs: l.blobs, Journal: NewJournal(epoch, s.State),
		Metrics: metrics.NewCoordinator(prometheus.NewRegistry()), Log: log,
	}
	l.dataset()
	return l
}

// propose proposes an entry and returns what the state machine says.
func (l *lab) propose(kind protocol.EntryKind, body any) any {
	l.t.Helper()
	_, v, err := l.cfg.Store.Propose(testkit.Context(l.t), protocol.EncodeEntry(kind, body))
	if err != nil {
		l.t.Fatal(err)
	}
	return v
}

// dataset imports a small dataset.
func (l *lab) dataset() {
	l.t.Helper()
	m, shards := datatest.Artificial(l.t, 100)
	for _, shard := range shards {
		if _, err := l.blobs.Folder.Put(dataset.EncodeShard(shard, nil)); err != nil {
			l.t.Fatal(err)
		}
	}
	l.propose(protocol.EntryDatasetPut, protocol.DatasetPutEntry{Name: "art", Manifest: m})
	l.m = m
}

// submit queues a job. change, if set, changes it after it was resolved.
func (l *lab) submit(name string, change func(*round.Job)) *state.Job {
	l.t.Helper()
	job, err := spec.Resolve(protocol.Spec{Algorithm: "ldlf", Dataset: "art", Name: name}, l.m)
	if err != nil {
		l.t.Fatal(err)
	}
	if change != nil {
		change(job)
	}
	return l.propose(protocol.EntrySubmit,
		protocol.SubmitEntry{Token: name, Name: name, Dataset: "art", Job: job}).(*state.Job)
}

// running queues a job and makes it run.
func (l *lab) running(name string) *state.Job {
	l.t.Helper()
	j := l.submit(name, nil)
	return l.propose(protocol.EntryJobState, protocol.JobStateEntry{Epoch: l.cfg.Epoch, Job: j.ID,
		State: protocol.Running}).(*state.Job)
}

func (l *lab) job(id uint64) *state.Job { return l.cfg.Store.State().Job(id) }

// committer returns the committer of a running job whose commit is due.
func (l *lab) committer(j *state.Job) *committer {
	m := New(l.cfg)
	c := newCommitter(&driver{m: m, job: j, log: l.cfg.Log, curve: curve.NewRecorder(curve.JobPoints, nil)})
	c.due()
	return c
}

// due lets the commit interval be over.
func (c *committer) due() { c.began = time.Now().Add(-3 * c.interval / 2) }

// dispatcher gives the lab NATS and a dispatcher.
func (l *lab) dispatcher() {
	l.t.Helper()
	conn := natstest.Connect(l.t, natstest.Server(l.t, bus.ServerOptions{}))
	l.blobs.Conn = conn
	l.cfg.Dispatch = dispatch.New(dispatch.Config{
		ID: "a", Epoch: l.cfg.Epoch, Heartbeat: time.Second, Conn: conn, Subjects: protocol.Subjects{Cluster: "jobs"},
		Results: &Results{Epoch: l.cfg.Epoch, Store: l.cfg.Store, Blobs: l.cfg.Blobs}, Metrics: l.cfg.Metrics, Log: l.cfg.Log,
	})
}

// manage runs a manager until stop, which waits for its end.
func (l *lab) manage() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { New(l.cfg).Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); run.Wait() })
	l.t.Cleanup(stop)
	return stop
}

// states lists the states of all jobs by name.
func (l *lab) states() string {
	states := make(map[string]protocol.JobState)
	for _, j := range l.cfg.Store.State().Jobs() {
		states[j.Name] = j.State
	}
	b, err := json.Marshal(states)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (l *lab) become(want string) {
	l.t.Helper()
	testkit.Until(l.t, fmt.Sprintf("states %s (now %s)", want, l.states()), func() bool { return l.states() == want })
}
