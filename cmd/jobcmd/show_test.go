package jobcmd

import (
	"bytes"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// A suspect job says so wherever it is listed, and so does a distrusted worker.
func TestSuspectIsShown(t *testing.T) {
	j := &protocol.JobInfo{ID: 7, Name: "tainted", State: protocol.Done, Suspect: "worker w1: unit 3 differs"}
	if row := jobRow(j, time.Now()); row[2] != "done, suspect" {
		t.Errorf("listed as %v", row)
	}
	var b bytes.Buffer
	writeJob(new(cli.App), &b, j, new(protocol.JobCurve))
	if !strings.Contains(b.String(), "worker w1: unit 3 differs") {
		t.Errorf("shown as\n%s", b.String())
	}
	b.Reset()
	WarnSuspect(&cli.App{Stderr: &b}, j)
	if !strings.Contains(b.String(), "warning") || !strings.Contains(b.String(), "unit 3 differs") {
		t.Errorf("warned with %q", b.String())
	}
}

// A job's time leaves its pauses out, and its ETA follows.
func TestTimesOfAPausedJob(t *testing.T) {
	now := time.Unix(10_000, 0)
	j := &protocol.JobInfo{State: protocol.Running, Started: 1000, Since: 9990, Ran: 20,
		Progress: &round.Progress{Step: 50, Steps: 100}}
	if got := secondsOf(j, now); got != (times{"30.0 s", "30.0 s"}) {
		t.Errorf("running: %+v", got)
	}
	j.State = protocol.Paused
	if got := secondsOf(j, now); got != (times{"20.0 s", "-"}) {
		t.Errorf("paused: %+v", got)
	}
}

// A job's table row has what it waits for in place of an end that nobody knows.
func TestWaitingRow(t *testing.T) {
	now := time.Unix(1000, 0)
	j := &protocol.JobInfo{State: protocol.Running, Since: 990, Started: 990, Progress: progressAt(10, 100)}
	if text := stateOf(j); text != "running" || secondsOf(j, now).left == "-" {
		t.Errorf("a job that runs: %q, ETA %s", text, secondsOf(j, now).left)
	}
	j.WaitingFor, j.Waiting = protocol.WaitNoWorker, "no worker"
	if text := stateOf(j); text != "running, no worker" || secondsOf(j, now).left != "-" {
		t.Errorf("a waiting job: %q, ETA %s", text, secondsOf(j, now).left)
	}
	for _, r := range protocol.WaitReasons() {
		if r.Short() == "" || r.Short() == string(r) {
			t.Errorf("%s is called %q", r, r.Short())
		}
	}
}

// TestJobListPages: job list says how to list the jobs that follow, until none follows.
func TestJobListPages(t *testing.T) {
	dir, address := t.TempDir(), testkit.FreeAddress(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 1)
	go func() {
		ends <- cmdtest.RunContext(ctx, "coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a="+address)
	}()
	defer func() { cancel(); testkit.Receive(t, "the end of the coordinator", ends) }()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1)
	for seed, name := range []string{"a", "b", "c"} {
		cmdtest.Works(t, "job", "submit", "--wait", "5m", "--name", name, "--data", data, "--algorithm", "sa-bfgs", "--seed",
			strconv.Itoa(seed), "--server", address)
	}
	list := []string{"job", "list", "--server", address, "--sort", "name", "--limit", "2"}
	e := cmdtest.Run(t, list...)
	next := regexp.MustCompile(`the first 2 of 3 jobs, sorted by name; --after (\d+) lists more`).
		FindStringSubmatch(e.Stderr)
	if next == nil {
		t.Fatalf("job list notes %q", e.Stderr)
	}
	var rest []protocol.JobInfo
	if cmdtest.JSON(t, &rest, append(list, "--after", next[1])...); len(rest) != 1 || rest[0].Name != "c" {
		t.Errorf("then follow %+v", rest)
	}
	if e := cmdtest.Run(t, append(list, "--after", "999")...); e.Code != cli.ExitFailed ||
		!strings.Contains(e.Stderr, "job 999") {
		t.Errorf("after an unknown job: exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, append(list, "--after", "x")...); e.Code != cli.ExitUsage {
		t.Errorf("after a text: exit code %d: %s", e.Code, e.Stderr)
	}
}

// A list is sorted, filtered and cut by the cluster; what is cut is said.
func TestJobListFlags(t *testing.T) {
	c := cmdtest.Start(t, 1, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 300, 1)
	cmdtest.Works(t, cmdtest.Train(data, 20, "--name", "long")...)
	cmdtest.Works(t, cmdtest.Train(data, 2, "--name", "short")...)
	untested := cmdtest.Train(data, 20, "--name", "train")
	untested[slices.Index(untested, "--test-fraction")+1] = "0"
	cmdtest.Works(t, untested...)
	for line, want := range map[string]string{
		"":                                 "train short long",
		"--sort submitted":                 "long short train",
		"--sort=-name --state done,failed": "train short long",
		"--state failed":                   "",
		"--limit 2":                        "train short",
		"--limit 1 --sort name":            "long",
	} {
		e := cmdtest.Run(t, append([]string{"job", "list"}, strings.Fields(line)...)...)
		var names []string
		for _, row := range strings.Split(strings.TrimSpace(e.Stdout), "\n")[1:] {
			names = append(names, strings.Fields(row)[1])
		}
		cut := strings.Contains(line, "limit")
		if got := strings.Join(names, " "); e.Code != cli.ExitOK || got != want ||
			strings.Contains(e.Stderr, "of 3 jobs") != cut {
			t.Errorf("%q: exit code %d, %s, want %s; %s", line, e.Code, got, want, e.Stderr)
		}
	}
	var list []protocol.JobInfo
	cmdtest.JSON(t, &list, "job", "list", "--sort", "kl")
	if len(list) != 3 || list[2].Name != "train" || list[0].Measures["kl"] > list[1].Measures["kl"] ||
		list[0].EvaluatedOn != "test samples" {
		t.Errorf("by kl: %+v", list)
	}
	text := cmdtest.Works(t, "job", "list", "--sort", "name")
	for _, want := range []string{cli.Measure(list[0].Measures["kl"]) + " test", cli.Measure(list[2].Measures["kl"]) +
		" training"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q:\n%s", want, text)
		}
	}
}

func progressAt(step, of uint64) *round.Progress {
	return &round.Progress{Step: step, Steps: of, Loss: 0.5}
}

// TestEventsAreShown: job show prints the newest events of a job, and how many others there were.
func TestEventsAreShown(t *testing.T) {
	j := &protocol.JobInfo{ID: 7, Name: "j", State: protocol.Running, EventsDropped: 1000}
	for i := range maxEvents + 2 {
		j.Events = append(j.Events, protocol.JobEvent{Time: 1000.5 + float64(i), Kind: protocol.EventLost,
			Text: "worker w" + strconv.Itoa(i) + " left", Worker: "w" + strconv.Itoa(i), Step: 12_345})
	}
	var b bytes.Buffer
	writeJob(new(cli.App), &b, j, new(protocol.JobCurve))
	text := b.String()
	for want, is := range map[string]bool{"1,002; -o json lists 2": true, "worker w1 left": false, "worker w2 left": true,
		", step 12,345: worker w13 left\n": true, cli.Time(1002): true} {
		if strings.Contains(text, want) != is {
			t.Errorf("%q is shown: %v, in\n%s", want, !is, text)
		}
	}
	if j.Events, j.EventsDropped = j.Events[:1], 0; len(eventLines(j)) != 1 {
		t.Errorf("one event is shown as %q", eventLines(j))
	}
}
