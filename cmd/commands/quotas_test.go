package commands

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// An audit that cannot be is wrong usage.
func TestAuditUsage(t *testing.T) {
	for _, args := range [][]string{{"--audit", "1.5"}, {"--audit", "-0.1"}, {"--audit", "NaN"}, {"--audit", "some"}, {"--audit", "0.5", "--local"}} {
		for _, command := range [][]string{{"train"}, {"job", "submit"}} {
			if command[0] == "job" && len(args) > 2 {
				continue
			}
			e := cmdtest.Run(t, append(append(command, "--dataset", "x"), args...)...)
			if e.Code != ExitUsage || !strings.Contains(e.Stderr, "audit") || strings.Count(cmdtest.WithoutNotes(e.Stderr), "\n") != 1 {
				t.Errorf("%v %v: exit code %d, %s", command, args, e.Code, e.Stderr)
			}
		}
	}
	if e := cmdtest.Run(t, "coordinator", "--dir", t.TempDir(), "--max-queue", "-1"); e.Code != ExitUsage || !strings.Contains(e.Stderr, "--max-queue") {
		t.Errorf("a negative queue: exit code %d, %s", e.Code, e.Stderr)
	}
}

// What is over a quota is refused on one line that names the flag, with exit code 1.
func TestQuotas(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 300, 1)
	more := cmdtest.ArtificialFile(t, t.TempDir(), "more.csv", 3000, 2)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx := testkit.Context(t)
	c, err := proc.Start(ctx, proc.Config{
		Exe: exe, Env: []string{cmdtest.AsCommand + "=1"}, Dir: t.TempDir(), Coordinators: 1, // no worker: jobs stay
		Args: []string{"--max-queue", "2", "--max-job-memory", "1MiB", "--max-blob-bytes", "32KiB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("COPPICE_SERVER", c.Servers())
	cmdtest.Works(t, "dataset", "import", "--data", data, "--name", "set")
	refused := func(flag string, args ...string) {
		t.Helper()
		e := cmdtest.Run(t, args...)
		if e.Code != ExitFailed || !strings.Contains(e.Stderr, flag) || !strings.Contains(e.Stderr, "at most") || strings.Count(cmdtest.WithoutNotes(e.Stderr), "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
	refused("--max-blob-bytes", "dataset", "import", "--data", more)
	submit := []string{"job", "submit", "--dataset", "set", "--name"}
	refused("--max-job-memory", append(submit, "big", "--set", "depth=16", "--set", "trees=50")...)
	cmdtest.Works(t, append(submit, "one")...)
	cmdtest.Works(t, append(submit, "two", "--audit", "0.25")...)
	refused("--max-queue", append(submit, "three")...)
	cmdtest.Works(t, append(submit, "two", "--audit", "0.25")...)
	other := cmdtest.Run(t, append(submit, "two")...)
	if other.Code != ExitFailed || !strings.Contains(other.Stderr, "audit") {
		t.Errorf("the same name with another audit: exit code %d, %s", other.Code, other.Stderr)
	}
	if text := cmdtest.Works(t, "job", "show", "two"); !strings.Contains(text, "0.25 of the tasks") {
		t.Errorf("the audit is not shown:\n%s", text)
	}
	cmdtest.Works(t, "job", "cancel", "one")
	cmdtest.Works(t, append(submit, "three")...)
}

// A suspect job says so wherever it is listed, and so does a distrusted worker.
func TestSuspectIsShown(t *testing.T) {
	j := &protocol.JobInfo{ID: 7, Name: "tainted", State: protocol.Done, Suspect: "worker w1: unit 3 differs"}
	if row := jobRow(j, time.Now()); row[2] != "done, suspect" {
		t.Errorf("listed as %v", row)
	}
	var b bytes.Buffer
	writeJob(new(app), &b, j, new(protocol.JobCurve))
	if !strings.Contains(b.String(), "worker w1: unit 3 differs") {
		t.Errorf("shown as\n%s", b.String())
	}
	b.Reset()
	warnSuspect(&app{stderr: &b}, j)
	if !strings.Contains(b.String(), "warning") || !strings.Contains(b.String(), "unit 3 differs") {
		t.Errorf("warned with %q", b.String())
	}
	b.Reset()
	writeCluster(new(app), &b, &protocol.Cluster{ID: "c", Quarantined: []protocol.Quarantined{{Worker: "w1", Reason: "unit 3 differs", Time: 1}}}, false)
	for _, part := range []string{"w1", "unit 3 differs", "coppice cluster trust", "none at present"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the cluster lacks %q:\n%s", part, b.String())
		}
	}
}

// A job's time leaves its pauses out, and its ETA follows.
func TestTimesOfAPausedJob(t *testing.T) {
	now := time.Unix(10_000, 0)
	j := &protocol.JobInfo{State: protocol.Running, Started: 1000, Since: 9990, Ran: 20, Progress: &round.Progress{Step: 50, Steps: 100}}
	if got := secondsOf(j, now); got != (times{"30.0 s", "30.0 s"}) {
		t.Errorf("running: %+v", got)
	}
	j.State = protocol.Paused
	if got := secondsOf(j, now); got != (times{"20.0 s", "-"}) {
		t.Errorf("paused: %+v", got)
	}
}
