package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

// start starts a cluster of real processes of this test binary.
func start(t *testing.T, coordinators, workers int) *proc.Cluster {
	t.Helper()
	return startWith(t, proc.Config{Coordinators: coordinators, Workers: workers})
}

// startWith is start with more of a configuration.
func startWith(t *testing.T, cfg proc.Config) *proc.Cluster {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Exe, cfg.Env = exe, append([]string{asCommand + "=1"}, cfg.Env...)
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	ctx := testkit.Context(t)
	c, err := proc.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, c)
	return c
}

// closed has a cluster closed with the test; of one that failed it shows the ends of the logs.
func closed(t *testing.T, c *proc.Cluster) {
	t.Cleanup(func() {
		if t.Failed() {
			var b strings.Builder
			c.Tail(&b, 30)
			t.Log(b.String())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// grow adds workers until there are n.
func grow(t *testing.T, c *proc.Cluster, n int) {
	t.Helper()
	for len(c.Workers) < n {
		if _, err := c.AddWorker(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := testkit.Context(t)
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// clusterJob is a job of so many steps.
func clusterJob(data string, steps int, more ...string) []string {
	return append([]string{
		"train", "--data", data, "--seed", "7", "--test-fraction", "0.1", "--steps", strconv.Itoa(steps), "-o", "json",
		"--set", "trees=3", "--set", "depth=5", "--set", "batch_size=256", "--set", "leaf_batches=50", "--set", "patience=1000",
	}, more...)
}

// midWay runs a job and calls disturb once a quarter of its steps are committed.
func midWay(t *testing.T, c *proc.Cluster, name string, args []string, disturb func()) ended {
	t.Helper()
	end := make(chan ended, 1)
	go func() { end <- coppice(t, append(args, "--name", name, "--server", c.Servers())...) }()
	testkit.Until(t, "a quarter of "+name, func() bool {
		j, err := c.Client().Job(t.Context(), name)
		if err != nil || j.Progress == nil {
			return false
		}
		if j.State.Final() {
			t.Fatalf("%s ended before it was disturbed", name)
		}
		return j.Progress.Step >= j.Progress.Steps/4
	})
	disturb()
	return <-end
}

// kill kills a node; the test goes on where that fails.
func kill(t *testing.T, n *proc.Node) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Error(err)
	}
}

// leaderOf waits until a coordinator that runs leads.
func leaderOf(t *testing.T, c *proc.Cluster) (leader *proc.Node) {
	t.Helper()
	testkit.Until(t, "a leader", func() bool {
		var err error
		leader, err = c.Leader(t.Context())
		return err == nil && leader != nil && leader.Running()
	})
	return leader
}

// killAll kills every process of a cluster, and starts all of them again.
func killAll(t *testing.T, c *proc.Cluster) {
	t.Helper()
	all := slices.Concat(c.Coordinators, c.Workers)
	for _, n := range all {
		kill(t, n)
	}
	for _, n := range all {
		if err := n.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// killLeader kills the leader and returns it.
func killLeader(t *testing.T, c *proc.Cluster) *proc.Node {
	t.Helper()
	leader := leaderOf(t, c)
	kill(t, leader)
	return leader
}

func digestOf(t *testing.T, e ended) string {
	t.Helper()
	if e.code != exitOK {
		t.Fatalf("exit code %d: %s", e.code, e.stderr)
	}
	_, rest, _ := strings.Cut(e.stdout, `"model_digest": "`)
	digest, _, _ := strings.Cut(rest, `"`)
	return digest
}

// The model is the same in this process and on one, two and five workers, and
// when a worker or the leader is killed half-way.
func TestClusterDigest(t *testing.T) {
	data := artificialFile(t, t.TempDir(), "set.csv", 2000, 1)
	const short, long = 300 / slowdown, 1200 / slowdown
	c := start(t, 3, 1)
	check := func(what, want string, e ended) {
		t.Helper()
		if got := digestOf(t, e); got != want || len(got) != 64 {
			t.Errorf("%s: digest %q, in this process %q", what, got, want)
		}
	}
	want := digestOf(t, coppice(t, clusterJob(data, short, "--local")...))
	for _, n := range []int{1, 2, 5} {
		grow(t, c, n)
		check(fmt.Sprintf("%d workers", n), want, coppice(t, clusterJob(data, short, "--server", c.Servers())...))
	}
	want = digestOf(t, coppice(t, clusterJob(data, long, "--local")...))
	check("a killed worker", want, midWay(t, c, "killed-worker", clusterJob(data, long), func() {
		kill(t, c.Workers[1])
	}))
	if err := c.Workers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	check("a killed leader", want, midWay(t, c, "killed-leader", clusterJob(data, long), func() {
		killLeader(t, c)
	}))
}

// Folds run on the cluster as child jobs with the digests of this process.
func TestClusterFolds(t *testing.T) {
	data := artificialFile(t, t.TempDir(), "set.csv", 400, 1)
	args := append([]string{"train", "--data", data, "--folds", "3", "-o", "json"}, small...)
	want := digestOf(t, coppice(t, append(args, "--local")...))
	c := start(t, 1, 2)
	out := filepath.Join(t.TempDir(), "m.coppice")
	if got := digestOf(t, coppice(t, append(args, "--server", c.Servers(), "--name", "cv", "--model-out", out)...)); got != want {
		t.Errorf("digest %s, in this process %s", got, want)
	}
	var shown modelShown
	inJSON(t, &shown, "model", "show", "cv/2", "--server", c.Servers())
	if shown.Job.Split.Fold != 2 || shown.Dataset != "set" {
		t.Errorf("fold %d of %q", shown.Job.Split.Fold, shown.Dataset)
	}
	if names := contents(t, filepath.Dir(out)); len(names) != 3 {
		t.Errorf("the models are %v", names)
	}
}

// The commands of a cluster, one after the other.
func TestClusterCommands(t *testing.T) {
	dir := t.TempDir()
	data, other := artificialFile(t, dir, "set.csv", 300, 1), artificialFile(t, dir, "other.csv", 300, 2)
	c := start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	var set datasetInfo
	inJSON(t, &set, "dataset", "import", "--data", data, "--name", "trees")
	var again datasetInfo
	inJSON(t, &again, "dataset", "import", "--data", data, "--name", "trees")
	if set.Digest != again.Digest || set.Rows != 300 {
		t.Errorf("imported %+v, then %+v", set, again)
	}
	if e := coppice(t, "dataset", "import", "--data", other, "--name", "trees"); e.code != exitFailed || !strings.Contains(e.stderr, `"trees" already exists with other content`) || strings.Count(withoutNotes(e.stderr), "\n") != 1 {
		t.Errorf("other content: exit code %d, %s", e.code, e.stderr)
	}
	var trained result
	inJSON(t, &trained, append([]string{"train", "--dataset", "trees", "--name", "first", "--test-fraction", "0.1"}, small...)...)
	if trained.Job != "first" || trained.Dataset != "trees" || trained.DatasetDigest != set.Digest || trained.Rows.Test != 30 {
		t.Errorf("trained %+v", trained)
	}
	var local result
	inJSON(t, &local, append([]string{"train", "--local", "--dataset", "trees", "--test-fraction", "0.1"}, small...)...)
	if local.ModelDigest != trained.ModelDigest {
		t.Errorf("digest %s on the cluster, %s in this process", trained.ModelDigest, local.ModelDigest)
	}
	checkListings(t, &trained)
	checkModel(t, dir, data, &trained)
	checkNames(t, dir)
	checkCancel(t)
	if e := coppice(t, "dataset", "delete", "nothing"); e.code != exitFailed || !strings.Contains(e.stderr, "nothing") {
		t.Errorf("deleting what is not there: exit code %d, %s", e.code, e.stderr)
	}
	works(t, "dataset", "import", "--data", other)
	works(t, "dataset", "delete", "other")
	if e := coppice(t, "dataset", "show", "other"); e.code != exitFailed {
		t.Errorf("the deleted dataset is shown: %s", e.stdout)
	}
}

func checkListings(t *testing.T, trained *result) {
	t.Helper()
	for _, list := range [][]string{{"dataset", "list"}, {"dataset", "show", "trees"}, {"job", "list"}, {"job", "show", "first"}, {"model", "list"}} {
		if text := works(t, list...); !strings.Contains(text, "trees") {
			t.Errorf("%v:\n%s", list, text)
		}
	}
	var jobs []protocol.JobInfo
	inJSON(t, &jobs, "job", "list")
	if len(jobs) != 1 || jobs[0].State != protocol.Done {
		t.Errorf("jobs %+v", jobs)
	}
	var watched result
	inJSON(t, &watched, "job", "watch", "first")
	if watched.ModelDigest != trained.ModelDigest {
		t.Errorf("watch says %s", watched.ModelDigest)
	}
}

func checkModel(t *testing.T, dir, data string, trained *result) {
	t.Helper()
	path := filepath.Join(dir, "first.coppice")
	works(t, "model", "download", "first", "--out", path)
	var shown, onCluster modelShown
	inJSON(t, &shown, "model", "show", path)
	inJSON(t, &onCluster, "model", "show", "first")
	if shown.Digest != trained.ModelDigest || onCluster.Digest != trained.ModelDigest || !strings.Contains(onCluster.Repeat, "--dataset trees") {
		t.Errorf("shown %s and %s, repeat %q", shown.Digest, onCluster.Digest, onCluster.Repeat)
	}
	works(t, "evaluate", "--model", path, "--data", data)
	if got := works(t, "model", "download", "first", "--out", "-"); got != read(t, path) {
		t.Errorf("%d bytes on stdout", len(got))
	}
	refused(t, nil, "model download first --out /dev/full", exitFailed, []string{"/dev/full: cannot be written"})
	refused(t, nil, "backup -", exitUsage, []string{"stdout"})
}

// checkNames imports a set with names: they are shown, are part of what an import
// keeps, and go into the models of jobs and of folds.
func checkNames(t *testing.T, dir string) {
	t.Helper()
	m := newMoods(60)
	data := m.file(t, dir, "moods.csv", m.header, 0, 1, 2, 3, 4, 5, 6)
	works(t, "dataset", "import", "--data", data)
	if text := works(t, "dataset", "show", "moods"); !strings.Contains(text, "a, b, c, d\n") || !strings.Contains(text, "happy, sad, angry\n") {
		t.Errorf("shown as\n%s", text)
	}
	renamed := m.file(t, dir, "renamed.csv", []string{"a", "b", "c", "D", "label_happy", "label_sad", "label_angry"}, 0, 1, 2, 3, 4, 5, 6)
	refused(t, nil, "dataset import --data "+renamed+" --name moods", exitFailed, []string{`"moods"`, `feature 3 (counted from 0) is called "d", but in the new dataset "D"`})
	works(t, append([]string{"train", "--dataset", "moods", "--name", "named", "--folds", "2"}, small...)...)
	if e := coppice(t, append([]string{"train", "--dataset", "moods", "--name", "named", "--folds", "2", "-o", "json"}, small...)...); e.code != exitOK || !strings.Contains(e.stderr, "job named with the same spec is already done") || !json.Valid([]byte(e.stdout)) {
		t.Errorf("trained again: exit code %d, %s\n%s", e.code, e.stderr, e.stdout)
	}
	if e := coppice(t, "model", "list", "--limit", "1"); e.code != exitOK || !strings.Contains(e.stderr, "the newest 1 model;") || !strings.Contains(e.stdout, "named/1") || strings.Contains(e.stdout, "named/0") {
		t.Errorf("models: exit code %d, %s\n%s", e.code, e.stderr, e.stdout)
	}
	model := filepath.Join(dir, "named.coppice")
	works(t, "model", "download", "named/1", "--out", model)
	swapped := m.file(t, dir, "swapped.csv", []string{"d", "c", "b", "a"}, 3, 2, 1, 0)
	if predictedBy(t, model, data) != predictedBy(t, model, swapped) {
		t.Error("columns in another order are predicted otherwise")
	}
}

// interruptRunning begins a command, and interrupts it once a job runs.
func interruptRunning(t *testing.T, job string, args ...string) <-chan ended {
	ctx, interrupt := context.WithCancel(t.Context())
	end := make(chan ended, 1)
	go func() { end <- coppiceIn(ctx, args...) }()
	testkit.Until(t, "the job to run", func() bool {
		return strings.Contains(coppice(t, "job", "list", "--state", "running").stdout, job)
	})
	interrupt()
	return end
}

// checkCancel submits a job that never ends by itself.
func checkCancel(t *testing.T) {
	t.Helper()
	submit := []string{"job", "submit", "--dataset", "trees", "--name", "long", "--steps", "1000000000", "--set", "patience=1000000"}
	works(t, submit...)
	works(t, submit...) // the same job, not a second one
	if e := coppice(t, "dataset", "delete", "trees"); e.code != exitFailed || !strings.Contains(e.stderr, "long") {
		t.Errorf("deleting a dataset in use: exit code %d, %s", e.code, e.stderr)
	}
	for _, output := range []string{"text", "jsonl"} {
		if e := coppice(t, "job", "watch", "long", "--timeout", "1s", "-o", output); e.code != exitFailed || !strings.Contains(e.stderr, "job long is still ") {
			t.Errorf("a watch with a time limit: exit code %d, %s", e.code, e.stderr)
		}
	}
	end := interruptRunning(t, "long", "job", "watch", "long")
	if e := <-end; e.code != exitSignal+2 || !strings.Contains(e.stderr, "continues") || !strings.Contains(e.stderr, "coppice job cancel long") {
		t.Errorf("an interrupted watch: exit code %d, %s", e.code, e.stderr)
	}
	withdraw := append([]string{"train", "--cancel-interrupted"}, submit[2:]...)
	works(t, "job", "cancel", "long")
	withdraw[slices.Index(withdraw, "long")] = "longer"
	if e := <-interruptRunning(t, "longer", withdraw...); e.code != exitSignal+2 || !strings.Contains(e.stderr, "job longer was cancelled") {
		t.Errorf("an interrupted train: exit code %d, %s", e.code, e.stderr)
	}
	if e := coppice(t, "job", "watch", "long"); e.code != exitFailed || !strings.Contains(e.stderr, "cancelled") {
		t.Errorf("watching a cancelled job: exit code %d, %s", e.code, e.stderr)
	}
}
