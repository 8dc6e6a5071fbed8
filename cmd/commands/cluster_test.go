package commands

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// The commands of a cluster, one after the other.
func TestClusterCommands(t *testing.T) {
	dir := t.TempDir()
	data, other := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1), cmdtest.ArtificialFile(t, dir, "other.csv", 300, 2)
	c := cmdtest.Start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	var set, again struct {
		Digest string
		Rows   int `json:"samples"`
	}
	cmdtest.JSON(t, &set, "dataset", "import", "--data", data, "--name", "trees")
	cmdtest.JSON(t, &again, "dataset", "import", "--data", data, "--name", "trees")
	if set.Digest != again.Digest || set.Rows != 300 {
		t.Errorf("imported %+v, then %+v", set, again)
	}
	if e := cmdtest.Run(t, "dataset", "import", "--data", other, "--name", "trees"); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, `"trees" already exists with other content`) ||
		strings.Count(cmdtest.WithoutNotes(e.Stderr), "\n") != 1 {
		t.Errorf("other content: exit code %d, %s", e.Code, e.Stderr)
	}
	var trained results.Result
	cmdtest.JSON(t, &trained, append([]string{"train", "--dataset", "trees", "--name", "first", "--test-fraction", "0.1"},
		cmdtest.Small...)...)
	if trained.Job != "first" || trained.Dataset != "trees" || trained.DatasetDigest != set.Digest ||
		trained.Rows.Test != 30 {
		t.Errorf("trained %+v", trained)
	}
	var local results.Result
	cmdtest.JSON(t, &local, append([]string{"train", "--local", "--dataset", "trees", "--test-fraction", "0.1"},
		cmdtest.Small...)...)
	if local.ModelDigest != trained.ModelDigest {
		t.Errorf("digest %s on the cluster, %s in this process", trained.ModelDigest, local.ModelDigest)
	}
	checkListings(t, &trained)
	checkModel(t, dir, data, &trained)
	checkNames(t, dir)
	checkCancel(t)
	if e := cmdtest.Run(t, "dataset", "delete", "nothing"); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "nothing") {
		t.Errorf("deleting what is not there: exit code %d, %s", e.Code, e.Stderr)
	}
	cmdtest.Works(t, "dataset", "import", "--data", other)
	cmdtest.Works(t, "dataset", "delete", "other")
	if e := cmdtest.Run(t, "dataset", "show", "other"); e.Code != cli.ExitFailed {
		t.Errorf("the deleted dataset is shown: %s", e.Stdout)
	}
}

func checkListings(t *testing.T, trained *results.Result) {
	t.Helper()
	for _, list := range [][]string{{"dataset", "list"}, {"dataset", "show", "trees"}, {"job", "list"},
		{"job", "show", "first"}, {"model", "list"}} {
		if text := cmdtest.Works(t, list...); !strings.Contains(text, "trees") {
			t.Errorf("%v:\n%s", list, text)
		}
	}
	var jobs []protocol.JobInfo
	cmdtest.JSON(t, &jobs, "job", "list")
	if len(jobs) != 1 || jobs[0].State != protocol.Done {
		t.Errorf("jobs %+v", jobs)
	}
	var watched results.Result
	cmdtest.JSON(t, &watched, "job", "watch", "first")
	if watched.ModelDigest != trained.ModelDigest {
		t.Errorf("watch says %s", watched.ModelDigest)
	}
}

func checkModel(t *testing.T, dir, data string, trained *results.Result) {
	t.Helper()
	path := filepath.Join(dir, "first.coppice")
	cmdtest.Works(t, "model", "download", "first", "--out", path)
	var shown, onCluster struct{ Digest, Repeat string }
	cmdtest.JSON(t, &shown, "model", "show", path)
	cmdtest.JSON(t, &onCluster, "model", "show", "first")
	if shown.Digest != trained.ModelDigest || onCluster.Digest != trained.ModelDigest ||
		!strings.Contains(onCluster.Repeat, "--dataset trees") {
		t.Errorf("shown %s and %s, repeat %q", shown.Digest, onCluster.Digest, onCluster.Repeat)
	}
	cmdtest.Works(t, "evaluate", "--model", path, "--data", data)
	if got := cmdtest.Works(t, "model", "download", "first", "--out", "-"); got != cmdtest.Read(t, path) {
		t.Errorf("%d bytes on stdout", len(got))
	}
	cmdtest.Refused(t, nil, "model download first --out /dev/full", cli.ExitFailed,
		[]string{"/dev/full: cannot be written"})
	cmdtest.Refused(t, nil, "backup -", cli.ExitUsage, []string{"stdout"})
}

// checkNames imports a set with names: they are shown, are part of what an import
// keeps, and go into the models of jobs and of folds.
func checkNames(t *testing.T, dir string) {
	t.Helper()
	m := clitest.NewMoods(60)
	data := m.File(t, dir, "moods.csv", m.Header, 0, 1, 2, 3, 4, 5, 6)
	cmdtest.Works(t, "dataset", "import", "--data", data)
	if text := cmdtest.Works(t, "dataset", "show", "moods"); !strings.Contains(text, "a, b, c, d\n") ||
		!strings.Contains(text, "happy, sad, angry\n") {
		t.Errorf("shown as\n%s", text)
	}
	renamed := m.File(t, dir, "renamed.csv", []string{"a", "b", "c", "D", "label_happy", "label_sad", "label_angry"}, 0, 1,
		2, 3, 4, 5, 6)
	cmdtest.Refused(t, nil, "dataset import --data "+renamed+" --name moods", cli.ExitFailed,
		[]string{`"moods"`, `feature 3 (counted from 0) is called "d", but in the new dataset "D"`})
	cmdtest.Works(t, append([]string{"train", "--dataset", "moods", "--name", "named", "--folds", "2"},
		cmdtest.Small...)...)
	if e := cmdtest.Run(t, append([]string{"train", "--dataset", "moods", "--name", "named", "--folds", "2", "-o", "json"},
		cmdtest.Small...)...); e.Code != cli.ExitOK || !strings.Contains(e.Stderr, "job named with the same spec is "+
		"already done") || !json.Valid([]byte(e.Stdout)) {
		t.Errorf("trained again: exit code %d, %s\n%s", e.Code, e.Stderr, e.Stdout)
	}
	if e := cmdtest.Run(t, "model", "list", "--limit", "1"); e.Code != cli.ExitOK ||
		!strings.Contains(e.Stderr, "the newest 1 model;") || !strings.Contains(e.Stdout, "named/1") ||
		strings.Contains(e.Stdout, "named/0") {
		t.Errorf("models: exit code %d, %s\n%s", e.Code, e.Stderr, e.Stdout)
	}
	model := filepath.Join(dir, "named.coppice")
	cmdtest.Works(t, "model", "download", "named/1", "--out", model)
	swapped := m.File(t, dir, "swapped.csv", []string{"d", "c", "b", "a"}, 3, 2, 1, 0)
	if clitest.Predicted(t, model, data) != clitest.Predicted(t, model, swapped) {
		t.Error("columns in another order are predicted otherwise")
	}
}

// interruptRunning begins a command, and interrupts it once a job runs.
func interruptRunning(t *testing.T, job string, args ...string) <-chan cmdtest.Ended {
	ctx, interrupt := context.WithCancel(t.Context())
	end := make(chan cmdtest.Ended, 1)
	go func() { end <- cmdtest.RunContext(ctx, args...) }()
	testkit.Until(t, "the job to run", func() bool {
		return strings.Contains(cmdtest.Run(t, "job", "list", "--state", "running").Stdout, job)
	})
	interrupt()
	return end
}

// checkCancel submits a job that never ends by itself.
func checkCancel(t *testing.T) {
	t.Helper()
	submit := []string{"job", "submit", "--dataset", "trees", "--name", "long", "--steps", "1000000000", "--set",
		"patience=1000000"}
	cmdtest.Works(t, submit...)
	cmdtest.Works(t, submit...) // the same job, not a second one
	if e := cmdtest.Run(t, "dataset", "delete", "trees"); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "long") {
		t.Errorf("deleting a dataset in use: exit code %d, %s", e.Code, e.Stderr)
	}
	for _, output := range []string{"text", "jsonl"} {
		if e := cmdtest.Run(t, "job", "watch", "long", "--timeout", "1s", "-o", output); e.Code != cli.ExitFailed ||
			!strings.Contains(e.Stderr, "job long is still ") {
			t.Errorf("a watch with a time limit: exit code %d, %s", e.Code, e.Stderr)
		}
	}
	end := interruptRunning(t, "long", "job", "watch", "long")
	if e := <-end; e.Code != cli.ExitSignal+2 || !strings.Contains(e.Stderr, "continues") ||
		!strings.Contains(e.Stderr, "coppice job cancel long") {
		t.Errorf("an interrupted watch: exit code %d, %s", e.Code, e.Stderr)
	}
	withdraw := append([]string{"train", "--cancel-interrupted"}, submit[2:]...)
	cmdtest.Works(t, "job", "cancel", "long")
	withdraw[slices.Index(withdraw, "long")] = "longer"
	if e := <-interruptRunning(t, "longer", withdraw...); e.Code != cli.ExitSignal+2 ||
		!strings.Contains(e.Stderr, "job longer was cancelled") {
		t.Errorf("an interrupted train: exit code %d, %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "job", "watch", "long"); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "cancelled") {
		t.Errorf("watching a cancelled job: exit code %d, %s", e.Code, e.Stderr)
	}
}
