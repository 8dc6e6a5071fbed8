package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// series reads the metrics of a coordinator by name with labels.
func (c *cluster) series(id string) map[string]float64 {
	c.t.Helper()
	for _, p := range c.peers {
		if p.ID != id {
			continue
		}
		r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", p.Port))
		if err != nil {
			c.t.Fatal(err)
		}
		defer r.Body.Close()
		page, err := io.ReadAll(r.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		return parsed(string(page))
	}
	c.t.Fatalf("no coordinator %s", id)
	return nil
}

func parsed(page string) map[string]float64 {
	series := make(map[string]float64)
	for line := range strings.Lines(page) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			if v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64); err == nil {
				series[line[:i]] = v
			}
		}
	}
	return series
}

// moving waits until a running job has all of these series above 0, and returns them.
func (c *cluster) moving(ctx context.Context, names ...string) map[string]float64 {
	c.t.Helper()
	for {
		s := c.series(c.leader(ctx))
		missing := slices.IndexFunc(names, func(name string) bool { return !(s[name] > 0) })
		if missing < 0 {
			return s
		}
		select {
		case <-ctx.Done():
			c.t.Fatalf("%s does not move", names[missing])
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// training are the series that a running job moves.
func training(job string) []string {
	return []string{
		"coppice_steps_total", "coppice_samples_total", "coppice_rounds_total",
		`coppice_job_progress_ratio{name="` + job + `"}`, `coppice_job_loss{name="` + job + `"}`, `coppice_job_steps{name="` +
			job + `"}`,
		`coppice_job_last_progress_timestamp_seconds{name="` + job + `"}`,
	}
}

func outcomeOf(t *testing.T, j *protocol.JobInfo) *pipeline.Outcome {
	t.Helper()
	o := new(pipeline.Outcome)
	if err := json.Unmarshal(j.Outcome, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// longFolds is a job of two folds that take more than a second each.
func longFolds() protocol.Spec {
	s := testSpec(map[string]string{
		"steps": lasting(40000), "patience": "1000", "refit": "false", "trees": "1", "depth": "3", "batch_size": "64",
		"leaf_iterations": "2",
		"leaf_batches":    "50",
	})
	s.TestFraction, s.Folds, s.Name = 0, 2, "folds"
	return s
}

// TestFoldsMoveTheMetrics: steps, samples, rounds and progress move while folds run, and
// what a fold did counts once though its worker goes away.
func TestFoldsMoveTheMetrics(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	job, err := c.client.Jobs().Submit(ctx, longFolds())
	if err != nil {
		t.Fatal(err)
	}
	early := c.moving(ctx, training("folds")...)
	now, err := c.client.Jobs().Get(ctx, "folds")
	if err != nil {
		t.Fatal(err)
	}
	if now.State != protocol.Running {
		t.Fatalf("the job is %s: nothing to see", now.State)
	}
	if p := now.Progress; p == nil || p.Step == 0 || p.Samples == 0 || p.Step >= p.Steps || p.Loss < 0 || now.Tasks != 2 ||
		!strings.Contains(p.Phase, "of 2 folds done") {
		t.Errorf("job shown with %+v", now.Progress)
	}
	if r := early[`coppice_job_progress_ratio{name="folds"}`]; r <= 0 || r >= 1 {
		t.Errorf("progress %v while the folds run", r)
	}
	c.stop("w0")
	c.startWorker("w1")
	end, err := c.client.Jobs().Watch(ctx, job.Name, func(j *protocol.JobInfo) {
		if p := j.Progress; p != nil && p.Steps > 0 && p.Step > p.Steps {
			t.Errorf("step %d of %d", p.Step, p.Steps)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	o, s := outcomeOf(t, end), c.series("a")
	if first := early["coppice_steps_total"]; first >= float64(min(o.Folds[0].Steps, o.Folds[1].Steps)) {
		t.Errorf("%v steps were seen first, as if a fold had to end before", first)
	}
	if s["coppice_steps_total"] != float64(o.Steps) || s["coppice_samples_total"] != float64(o.Samples) {
		t.Errorf("counted %v steps and %v samples; the job had %d and %d", s["coppice_steps_total"],
			s["coppice_samples_total"], o.Steps, o.Samples)
	}
	if end.Progress == nil || end.Progress.Step != o.Steps || end.Progress.Samples != o.Samples {
		t.Errorf("at the end %+v, and %d steps", end.Progress, o.Steps)
	}
	// On a busy machine, w0 may have completed a fold before it went away.
	first, second := s[`coppice_leader_worker_tasks_total{worker="w0"}`], s[`coppice_leader_worker_tasks_total{worker="w1"}`]
	if first+second != 2 || second < 1 || s[`coppice_leader_worker_task_seconds_total{worker="w1"}`] <= 0 {
		t.Errorf("of w0 there is %v, of w1 %v", first, second)
	}
	if s[`coppice_task_seconds_count{kind="fold"}`] != 2 {
		t.Errorf("%v folds were timed", s[`coppice_task_seconds_count{kind="fold"}`])
	}
	testkit.Until(t, "the end of the job's series", func() bool { // the client may know of it before the driver has ended
		s := c.series("a")
		return !slices.ContainsFunc(training("folds")[3:], func(name string) bool { _, there := s[name]; return there })
	})
}

// TestFoldsUnderAnotherLeader: after a transfer of the leadership, the folds are
// computed again. They move the metrics of the new leader too, and progress never
// passes the end.
func TestFoldsUnderAnotherLeader(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Jobs().Submit(ctx, longFolds()); err != nil {
		t.Fatal(err)
	}
	before := c.moving(ctx, training("folds")...)["coppice_steps_total"]
	if err := c.client.Members().Transfer(ctx, ""); err != nil {
		t.Fatal(err)
	}
	end, err := c.client.Jobs().Watch(ctx, "folds", func(j *protocol.JobInfo) {
		if p := j.Progress; p != nil && p.Steps > 0 && p.Step > p.Steps {
			t.Errorf("step %d of %d", p.Step, p.Steps)
		}
	})
	if err != nil || end.State != protocol.Done {
		t.Fatalf("%+v, %v", end, err)
	}
	sum := 0.0
	for _, p := range c.peers {
		sum += c.series(p.ID)["coppice_steps_total"]
	}
	if sum <= before {
		t.Errorf("%v steps were counted, %v of them before", sum, before)
	}
}

// TestForestsMoveTheMetrics: trees count as they come, each as a step, and of a forest
// that another leader began each tree counts in progress.
func TestForestsMoveTheMetrics(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 1, 1)
	if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	const trees = 400
	s := protocol.Spec{
		Algorithm: "structrf", Dataset: "art", TestFraction: 0.1, Name: "forest",
		Set: map[string]string{"trees": fmt.Sprint(trees), "min_samples": "2"},
	}
	if _, err := c.client.Jobs().Submit(ctx, s); err != nil {
		t.Fatal(err)
	}
	early := c.moving(ctx, append(training("forest")[:2], training("forest")[3:]...)...)
	if n := early[`coppice_job_steps{name="forest"}`]; n >= trees ||
		early[`coppice_job_progress_ratio{name="forest"}`] >= 1 {
		t.Fatalf("%v trees at the first look: nothing to see", n)
	}
	c.stop("a") // the part of the trees that is recorded by now is there again
	c.startCoordinator("a")
	end, err := c.client.Jobs().Watch(ctx, "forest", func(*protocol.JobInfo) {})
	if err != nil || end.State != protocol.Done {
		t.Fatalf("%+v, %v", end, err)
	}
	o := outcomeOf(t, end)
	if end.Progress == nil || end.Progress.Step != trees || end.Progress.Samples != o.Samples {
		t.Errorf("at the end %+v", end.Progress)
	}
	after := c.series("a")
	if n := after["coppice_steps_total"]; n > trees || n == 0 || after[`coppice_task_seconds_count{kind="tree"}`] < n {
		t.Errorf("%v trees were counted after the restart, and %v timed", n, after[`coppice_task_seconds_count{kind="tree"}`])
	}
}

// TestMetricsOfTheHouse: Raft, the disk, HTTP and backups.
func TestMetricsOfTheHouse(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	c := start(t, 3, 0)
	leader := c.leader(ctx)
	var others []string
	for _, p := range c.peers {
		if p.ID != leader {
			others = append(others, p.ID)
		}
	}
	if _, err := c.client.Backup(ctx, io.Discard, nil); err != nil {
		t.Fatal(err)
	}
	s := c.moving(ctx, "coppice_raft_voters", "coppice_raft_log_bytes", "coppice_disk_free_bytes",
		"coppice_disk_size_bytes",
		"coppice_backup_last_success_timestamp_seconds", `coppice_http_requests_total{code="200",route="GET /v1/backup"}`,
		`coppice_http_request_seconds_count{route="GET /v1/cluster"}`)
	if s["coppice_raft_voters"] != 3 || s["coppice_disk_free_bytes"] > s["coppice_disk_size_bytes"] {
		t.Errorf("%v voters, %v of %v bytes free", s["coppice_raft_voters"], s["coppice_disk_free_bytes"],
			s["coppice_disk_size_bytes"])
	}
	if age := float64(time.Now().Unix()) - s["coppice_backup_last_success_timestamp_seconds"]; age < -1 || age > 120 {
		t.Errorf("the backup is %v s old", age)
	}
	lag := func(id string) string { return `coppice_raft_peer_lag_entries{coordinator="` + id + `"}` }
	testkit.Until(t, "followers that have all there is", func() bool {
		s = c.series(leader)
		a, ok := s[lag(others[0])]
		return ok && a == 0 && s[lag(others[1])] == 0
	})
	if _, ok := s[lag(leader)]; ok {
		t.Error("the leader lags behind itself")
	}
	c.stop(others[0])
	for i := range 5 {
		if _, err := c.client.Datasets().Import(ctx, protocol.DatasetPut{Name: fmt.Sprint("set-", i)},
			generate.Artificial(50, uint64(i)), importer.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	c.moving(ctx, lag(others[0]))
	info, err := c.client.Cluster(ctx)
	if err != nil || len(info.Members) != 3 {
		t.Fatalf("members %+v, %v", info, err)
	}
	for _, m := range info.Members {
		switch {
		case m.ID == leader && m.Role != protocol.RoleLeader, m.ID != leader && m.Role != protocol.RoleVoter, m.Host == "",
			m.HTTP == "",
			m.ID == others[0] && m.Lag == 0:
			t.Errorf("member %+v", m)
		}
	}
}
