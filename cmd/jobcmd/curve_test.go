package jobcmd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// A job of trees or folds and one that predicts have units too: how far they are, and how
// long they take, their steps tell.
func TestStepsOfUnits(t *testing.T) {
	of := func(units, collected int, p *round.Progress) *protocol.JobInfo {
		return &protocol.JobInfo{State: protocol.Running, Ran: 30, Since: 1000, Tasks: units, Gathered: collected,
			Progress: p}
	}
	now := time.Unix(1000, 0)
	for _, test := range []struct {
		what    string
		job     *protocol.JobInfo
		percent string
		left    string
		lines   [][2]string
	}{
		{
			"folds, none done", of(3, 0, &round.Progress{Step: 50, Steps: 200, Loss: 0.5}), "25 %", "1m30s",
			[][2]string{{"step", "50 of 200"}, {"training loss", "K-L 0.50000"}, {"ETA", "1m30s"}},
		},
		{
			"trees", of(8, 2, &round.Progress{Step: 2, Steps: 8, Loss: 0.5}), "25 %", "1m30s",
			[][2]string{{"step", "2 of 8"}, {"training loss", "K-L 0.50000"}, {"ETA", "1m30s"}},
		},
		{
			"predictions", of(12, 0, &round.Progress{Step: 100, Steps: 100, Loss: 0.5}), "100 %", "0 ms",
			[][2]string{{"step", "100 of 100"}, {"training loss", "K-L 0.50000"}, {"ETA", "0 ms"}},
		},
		{"trees kept by another leader", of(8, 2, nil), "25 %", "-", nil},
	} {
		if got := percent(test.job); got != test.percent {
			t.Errorf("%s: %s done, want %s", test.what, got, test.percent)
		}
		if got := secondsOf(test.job, now).left; got != test.left {
			t.Errorf("%s: ETA %q, want %q", test.what, got, test.left)
		}
		if diff := cmp.Diff(test.lines, runningLines(test.job, nil, now)); diff != "" {
			t.Errorf("%s: %s", test.what, diff)
		}
	}
}

// What is not known of a job is said, and is no number.
func TestLossThatIsNotKnown(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "x.csv", 100, 1)
	args := []string{"train", "--local", "--data", data, "--steps", "20", "--set", "preset=paper"}
	text := cmdtest.Works(t, args...)
	if strings.Contains(text, "-1.0") || strings.Contains(text, "samples/s") ||
		!strings.Contains(text, "training loss  not known") {
		t.Errorf("20 steps without gradient:\n%s", text)
	}
	var r map[string]any
	cmdtest.JSON(t, &r, args...)
	if loss, ok := r["loss"]; !ok || loss != nil {
		t.Errorf("the loss is %v", loss)
	}
}

// A curve of a job in this process is written as CSV, that of folds with the fold.
func TestCurveOut(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "x.csv", 200, 1)
	out := filepath.Join(dir, "c.csv")
	train := []string{"train", "--local", "--data", data, "--steps", "40", "--set", "leaf_batches=10", "--set", "trees=2",
		"--set", "depth=3", "--curve-out", out}
	var r struct {
		Curve string
		Steps uint64
		Folds []struct{ Steps uint64 }
	}
	cmdtest.JSON(t, &r, train...)
	records := clitest.ReadCSV(t, out)
	last := records[len(records)-1]
	if diff := cmp.Diff([]string{"step", "training_loss", "validation_loss", "seconds"}, records[0]); diff != "" ||
		last[0] != strconv.FormatUint(r.Steps, 10) || r.Curve != out || last[3] == "" {
		t.Errorf("%d lines, the last %q: %s", len(records), last, diff)
	}
	cmdtest.JSON(t, &r, append(train, "--folds", "2")...)
	records = clitest.ReadCSV(t, out)
	if last = records[len(records)-1]; records[0][0] != "fold" || last[0] != "1" ||
		last[1] != strconv.FormatUint(r.Folds[1].Steps, 10) || last[4] != "" {
		t.Errorf("of folds: %q to %q", records[0], last)
	}
	for _, wrong := range [][]string{{"--curve-out", filepath.Join(dir, "c.npz")}, {"--curve-out", "-"},
		{"--curve-out", out, "--model-out", out}} {
		e := cmdtest.Run(t, append(train[:len(train)-2:len(train)-2], wrong...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, wrong[1]) || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", wrong, e.Code, e.Stderr)
		}
	}
}

// What a command cannot print is refused, naming what it can.
func TestOutputs(t *testing.T) {
	for _, wrong := range [][]string{{"job", "list", "-o", "csv"}, {"job", "curve", "x", "-o", "jsonl"},
		{"version", "-o", "jsonl"}, {"job", "watch", "x", "-o", "csv"}} {
		e := cmdtest.Run(t, wrong...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "prints text") {
			t.Errorf("%v: exit code %d, %s", wrong, e.Code, e.Stderr)
		}
	}
}

// The curve of a job of a cluster is that of --local, but for the seconds; a watch in
// JSON lines ends with the job's last state.
func TestCurveOfACluster(t *testing.T) {
	clitest.Cluster(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "x.csv", 300, 1)
	here, there := filepath.Join(dir, "here.csv"), filepath.Join(dir, "there.csv")
	for _, more := range [][]string{{"--name", "plain"}, {"--name", "folds", "--folds", "2"}} {
		train := append([]string{"train", "--data", data, "--steps", "600", "--set", "leaf_batches=10", "--set", "trees=2",
			"--set", "depth=3"}, more...)
		cmdtest.Works(t, append(train, "--curve-out", there)...)
		cmdtest.Works(t, append(train, "--curve-out", here, "--local")...)
		a, b := clitest.ReadCSV(t, here), clitest.ReadCSV(t, there)
		seconds := len(a[0]) - 1
		for _, records := range [][][]string{a, b} {
			for i := range records {
				records[i][seconds] = ""
			}
		}
		if diff := cmp.Diff(a, b); diff != "" || len(a) < 30 {
			t.Errorf("%v: %d lines: %s", more, len(a), diff)
		}
		if printed := cmdtest.Works(t, "job", "curve", more[1], "-o", "csv"); strings.Count(printed, "\n") != len(b) {
			t.Errorf("%d lines are printed, %d are in the file", strings.Count(printed, "\n"), len(b))
		}
	}
	var line protocol.JobCurve
	if cmdtest.JSON(t, &line, "job", "curve", "plain"); line.Name != "plain" || len(line.Points) < 30 ||
		line.Points[9].Millis < 0 {
		t.Errorf("the curve is %+v", line)
	}
	if text := cmdtest.Works(t, "job", "curve", "plain"); !strings.Contains(text, "first") ||
		!strings.Contains(text, "least") {
		t.Errorf("shown as\n%s", text)
	}
	if text := cmdtest.Works(t, "job", "curve", "folds"); strings.Count(text, "least") < 2 ||
		!strings.Contains(text, "fold 1") {
		t.Errorf("shown as\n%s", text)
	}
	if text := cmdtest.Works(t, "job", "show", "plain"); !strings.Contains(text, "validation loss curve") ||
		!strings.Contains(text, "least") {
		t.Errorf("shown as\n%s", text)
	}
	watchedCurve(t)
	if e := cmdtest.Run(t, "job", "curve", "none"); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "none") {
		t.Errorf("no job: exit code %d, %s", e.Code, e.Stderr)
	}
}

// watchedCurve watches a job in lines, and one that is cancelled.
func watchedCurve(t *testing.T) {
	t.Helper()
	lines := func(text string) (all []protocol.JobInfo) {
		s := bufio.NewScanner(strings.NewReader(text))
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			var j protocol.JobInfo
			if err := json.Unmarshal(s.Bytes(), &j); err != nil {
				t.Fatal(err)
			}
			all = append(all, j)
		}
		return all
	}
	if all := lines(cmdtest.Works(t, "job", "watch", "plain", "-o", "jsonl")); len(all) != 1 ||
		all[0].State != protocol.Done {
		t.Errorf("a job that is done is watched as %d lines", len(all))
	}
	cmdtest.Works(t, "job", "submit", "--dataset", "x", "--name", "long", "--steps", "1000000", "--set",
		"validation_fraction=0")
	cmdtest.Works(t, "job", "pause", "long")
	cmd, stdout, stderr := cmdtest.Process(t, t.TempDir(), "job", "watch", "long", "-o", "jsonl")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmdtest.Works(t, "job", "resume", "long")
	testkit.Until(t, "a rate", func() bool { return len(rate(t)) > 0 })
	cmdtest.Works(t, "job", "cancel", "long")
	err := cmd.Wait()
	all := lines(stdout.String())
	last := &all[len(all)-1]
	if err == nil || last.State != protocol.Cancelled || !bytes.Contains(stderr.Bytes(), []byte(`"exit_code":1`)) {
		t.Errorf("%d lines, the last %+v; %v, %s", len(all), last, err, stderr)
	}
	if last.Seconds <= 0 {
		t.Errorf("a cancelled job ran %v seconds", last.Seconds)
	}
}

// rate is the line of job show that tells the rate of the job long, once there is one, with
// its ETA and workers.
func rate(t *testing.T) string {
	t.Helper()
	text := cmdtest.Works(t, "job", "show", "long")
	_, after, ok := strings.Cut(text, "\nrate ")
	if !ok {
		return ""
	}
	if !strings.Contains(text, "\nETA ") || !strings.Contains(text, "\nworkers ") || !strings.Contains(text, "\nstep ") {
		t.Errorf("shown as\n%s", text)
	}
	line, _, _ := strings.Cut(after, "\n")
	return line
}
