package coordinator_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
	"github.com/prometheus/client_golang/prometheus"
)

// TestWhatIsWaitedForIsTold: a job says what it waits for; so do a metric of the leader
// and the text of /readyz, and the status of /readyz stays 200. The job goes on once it
// has what it needs.
func TestWhatIsWaitedForIsTold(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	c.put(ctx, "art")
	job, err := c.client.Jobs().Submit(ctx, testSpec(map[string]string{"steps": "50", "trees": "2"}))
	if err != nil {
		t.Fatal(err)
	}
	// The leader may change between two requests, and a new one has to read the job first.
	testkit.Until(t, "the job, and the list of jobs, to wait for a worker", func() bool {
		j, err := c.client.Jobs().Get(ctx, job.Name)
		if err != nil || j.WaitingFor != protocol.WaitNoWorker ||
			!strings.Contains(j.Waiting, fmt.Sprintf(":%d", c.peers[1].Port)) {
			return false
		}
		list, err := c.client.Jobs().All(ctx)
		return err == nil && len(list) == 1 && list[0].WaitingFor == protocol.WaitNoWorker &&
			list[0].State == protocol.Running
	})
	for _, r := range protocol.WaitReasons() {
		testkit.Until(t, string(r)+" as a metric", func() bool {
			want := 0.0
			if r == protocol.WaitNoWorker {
				want = 1
			}
			return c.gauge(c.leader(ctx), `coppice_jobs_waiting{reason="`+string(r)+`"}`) == want
		})
	}
	leader := c.leader(ctx)
	if status, text := c.get(leader, "/readyz"); status != http.StatusOK || !strings.HasPrefix(text, "ready; ") ||
		!strings.Contains(text, "coppice worker --join") {
		t.Errorf("/readyz of the leader: %d %s", status, text)
	}
	other := c.followers(leader)[0]
	if status, text := c.get(other, "/readyz"); status != http.StatusOK || !strings.Contains(text, leader+" leads") {
		t.Errorf("/readyz of another: %d %s", status, text)
	}
	c.startWorker("w0")
	end, err := c.client.Jobs().Watch(ctx, job.Name, func(*protocol.JobInfo) {})
	if err != nil || end.State != protocol.Done || end.Waiting != "" || end.WaitingFor != "" {
		t.Errorf("%+v, %v", end, err)
	}
	testkit.Until(t, "the worker to be told", func() bool {
		_, text := c.get(c.leader(ctx), "/readyz")
		return strings.Contains(text, "; 1 worker can be used\n")
	})
	if n := c.gauge(c.leader(ctx), "coppice_leader_known"); n != 1 {
		t.Errorf("coppice_leader_known is %v at the leader", n)
	}
}

// TestNoMajorityIsTold: without a majority, the remaining coordinator says so. It names
// the coordinators that do not answer, and how many are needed.
func TestNoMajorityIsTold(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	last := c.leader(ctx)
	away := c.followers(last)
	for _, id := range away {
		c.stop(id)
	}
	testkit.Until(t, "the lost majority to be told", func() bool {
		status, text := c.get(last, "/readyz")
		if status != http.StatusServiceUnavailable ||
			!strings.Contains(text, "1 of 3 coordinators answer, but 2 are needed") {
			return false
		}
		return strings.Contains(text, away[0]+" (127") && strings.Contains(text, away[1]+" (127")
	})
	testkit.Until(t, "the lost leader as a metric", func() bool { return c.gauge(last, "coppice_leader_known") == 0 })
	if status, _ := c.get(last, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: %d", status)
	}
}

// gauge reads a series of a coordinator. It returns -1 if there is none.
func (c *cluster) gauge(id, series string) float64 {
	c.t.Helper()
	_, page := c.get(id, "/metrics")
	for line := range strings.Lines(page) {
		var v float64
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			if _, err := fmt.Sscan(text, &v); err != nil {
				c.t.Fatal(err)
			}
			return v
		}
	}
	return -1
}

// A leader's metrics have the reasons that the protocol has, before any job waits.
func TestMetricsHaveTheReasons(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	metrics.NewCoordinator(r)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range families {
		if f.GetName() == "coppice_jobs_waiting" {
			for _, m := range f.GetMetric() {
				got = append(got, m.GetLabel()[0].GetValue())
			}
		}
	}
	for _, r := range protocol.WaitReasons() {
		want = append(want, string(r))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the metric has %v, want %v", got, want)
	}
}

// The cluster says why a worker computes nothing: because no job runs, because its memory is too small for the
// tasks of the job that runs, or because the job is paused.
func TestTheClusterSaysWhyAWorkerIsIdle(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := prepare(t, 1)
	c.equip = func(cfg *worker.Config) {
		if cfg.ID == "w1" {
			cfg.MemoryBytes = 1 << 10
		}
	}
	c.startAll(2)
	// idle waits until each worker that is named is idle for a reason, and returns their texts.
	idle := func(reasons map[string]protocol.IdleReason) map[string]string {
		t.Helper()
		texts := make(map[string]string)
		testkit.Until(t, "the workers to be idle", func() bool {
			info, err := c.client.Cluster(ctx)
			if err != nil {
				return false
			}
			n := 0
			for _, w := range info.Workers {
				if want, named := reasons[w.ID]; named && w.IdleReason == want {
					texts[w.ID] = w.Idle
					n++
				}
			}
			return n == len(reasons)
		})
		return texts
	}
	both := func(r protocol.IdleReason) map[string]protocol.IdleReason {
		return map[string]protocol.IdleReason{"w0": r, "w1": r}
	}
	if texts := idle(both(protocol.IdleNoJob)); texts["w0"] != "no job is running" {
		t.Errorf("without a job: %q", texts)
	}
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	job, err := c.client.Jobs().Submit(ctx, protocol.Spec{
		Algorithm: "structrf", Dataset: "art", Name: "forest", Set: map[string]string{"trees": "5000", "min_samples": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := idle(map[string]protocol.IdleReason{"w0": "", "w1": protocol.IdleMemory})
	for _, part := range []string{"job forest: ", "needs up to ", "but worker w1 has 1.0 KiB (coppice worker --memory)",
		"larger --memory"} {
		if !strings.Contains(texts["w1"], part) {
			t.Errorf("%q is missing in %q", part, texts["w1"])
		}
	}
	if _, err := c.client.Jobs().Pause(ctx, job.Name); err != nil {
		t.Fatal(err)
	}
	if texts := idle(both(protocol.IdlePaused)); !strings.Contains(texts["w1"], "coppice job resume") {
		t.Errorf("paused: %q", texts)
	}
	if _, err := c.client.Jobs().Cancel(ctx, job.Name); err != nil {
		t.Fatal(err)
	}
	idle(both(protocol.IdleNoJob))
}

// A client that asks for a blob and names the subject of a worker, or of all, for the answer
// has none sent there.
func TestAnswersGoToWhoAsks(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 0)
	c.leader(ctx)
	info, err := c.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := c.client.Blobs().Put(ctx, []byte("a blob"))
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Subjects{Cluster: info.ID}
	conn, err := bus.Connect(ctx, bus.Options{URLs: info.NATS, Name: "w", Answers: s.Answers("w")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	var answers, others atomic.Int64
	for subject, n := range map[string]*atomic.Int64{s.Answers("w") + ".x": &answers, s.Work("w"): &others,
		s.Lead(): &others} {
		sub, err := conn.Subscribe(subject, func(m bus.Message) {
			if k, err := protocol.KindOf(m.Data); err == nil && k == protocol.KindBlobData {
				n.Add(1)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sub.Close)
	}
	get := (&protocol.BlobGet{Digest: digest, Length: 6}).Append(nil)
	testkit.Until(t, "answers", func() bool { // each turn asks for all three
		for _, reply := range []string{s.Work("w"), s.Lead(), s.Answers("w") + ".x"} {
			if err := conn.Send(s.Fetch("w"), reply, get); err != nil {
				t.Fatal(err)
			}
		}
		return answers.Load() > 2
	})
	if n := others.Load(); n > 0 {
		t.Errorf("%d answers went to others", n)
	}
}
