package jobcmd

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// What cannot be asked is wrong usage, on one line that says what would be right.
func TestDeletionUsage(t *testing.T) {
	testkit.WithoutRace(t)
	for line, says := range map[string]string{
		"job delete":                                 "job",
		"job prune":                                  "--older-than",
		"job prune --older-than 30":                  "30d",
		"job prune --older-than 1.5d":                "1d12h",
		"job prune --older-than 1d --state running":  "want done, failed or cancelled",
		"job prune --older-than 1d --state finished": "want queued, paused",
		"job list --state done,finished":             `"finished"`,
		"job list --sort loss":                       "submitted, ended",
		"job list --limit=-1":                        "0 means all",
		"model delete":                               "name",
		"coordinator --dir x --keep-jobs=-1":         "--keep-jobs",
	} {
		e := cmdtest.Run(t, strings.Fields(line)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, says) || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", line, e.Code, e.Stderr)
		}
	}
}

// Jobs and models are deleted, also while a leader dies; what is gone is said so, and
// what was not deleted stays.
func TestDeletion(t *testing.T) {
	data, c := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 300, 1), cmdtest.Start(t, 3, 1)
	t.Setenv("COPPICE_SERVER", c.Servers())
	train := func(name string) *protocol.JobInfo {
		cmdtest.Works(t, cmdtest.Train(data, 20, "--name", name)...)
		j, err := c.Client().Jobs().Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	one, two, three := train("one"), train("two"), train("three")
	failed := func(says string, args ...string) {
		t.Helper()
		e := cmdtest.Run(t, args...)
		if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, says) ||
			strings.Count(cmdtest.WithoutNotes(e.Stderr), "\n") != 1 {
			t.Errorf("%v: exit code %d: %s", args, e.Code, e.Stderr)
		}
	}
	cmdtest.Works(t, "job", "submit", "--dataset", "set", "--name", "waits", "--steps", "1000000000", "--set",
		"patience=1000000000")
	cmdtest.Works(t, "job", "pause", "waits") // it would compute as long as this test takes
	failed("(waits) is ", "job", "delete", "one", "waits")

	leader := cmdtest.KillLeader(t, c)
	var d protocol.Deletion
	cmdtest.JSON(t, &d, "job", "delete", "one", fmt.Sprint(two.ID)) // while there is no leader
	restart := func(n *proc.Node) {
		if err := n.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	restart(leader)
	restart(cmdtest.KillLeader(t, c))
	cmdtest.Leader(t, c) // else a command may say first that it waits
	if len(d.Jobs) != 2 || d.Jobs[0].ID != one.ID || d.Jobs[1].Name != "two" {
		t.Errorf("deleted: %+v", d)
	}
	for _, key := range []string{"one", fmt.Sprint(one.ID)} {
		for _, command := range []string{"show", "watch", "cancel", "pause"} {
			failed(fmt.Sprintf("job %d (one) was deleted", one.ID), "job", command, key)
		}
		failed("(one) was deleted", "job", "predictions", key, "--out", filepath.Join(t.TempDir(), "p.csv"))
	}
	failed("(one) was deleted", "model", "download", "one", "--out", filepath.Join(t.TempDir(), "m"))
	if text := cmdtest.Works(t, "job", "delete", fmt.Sprint(one.ID)); !strings.Contains(text,
		"(one) had been deleted before") {
		t.Errorf("deleted again: %s", text)
	}
	withoutModel(t, data, three, failed)
	prune(t)
	if again := train("one"); again.ID <= three.ID || again.Models[0].Digest != one.Models[0].Digest {
		t.Errorf("trained again: job %d with %s", again.ID, again.Models[0].Digest)
	}
}

// withoutModel deletes the model of the job three.
func withoutModel(t *testing.T, data string, j *protocol.JobInfo, failed func(says string, args ...string)) {
	t.Helper()
	failed("folds are deleted together", "model", "delete", "three/1")
	if text := cmdtest.Works(t, "model", "delete", "three"); !strings.Contains(text,
		"\n"+"data that nothing else needs are deleted from the disks within seconds if the files are older than 60 "+
			"minutes, and otherwise when they reach that age"+"\n") {
		t.Errorf("its deletion says\n%s", text)
	}
	failed(fmt.Sprintf("the model of job %d (three) was deleted", j.ID), "model", "show", "three")
	again := cmdtest.Train(data, 20, "--name", "three", "--model-out", filepath.Join(t.TempDir(), "m"))
	failed("the model of job three was deleted", slices.DeleteFunc(again, func(arg string) bool {
		return arg == "-o" || arg == "json"
	})...)
	if text := cmdtest.Works(t, "job", "show", "three"); !strings.Contains(text, "model          deleted 20") ||
		!strings.Contains(text, j.Models[0].Digest) {
		t.Errorf("its job is shown as\n%s", text)
	}
	if text := cmdtest.Works(t, "model", "list"); strings.Contains(text, "three") {
		t.Errorf("it is listed:\n%s", text)
	}
}

// prune deletes the last job that has ended.
func prune(t *testing.T) {
	t.Helper()
	var d protocol.Deletion
	if cmdtest.JSON(t, &d, "job", "prune", "--older-than", "1h"); len(d.Jobs) != 0 {
		t.Errorf("younger than an hour: %+v", d)
	}
	text := cmdtest.Works(t, "job", "prune", "--older-than", "0", "--state", "done,failed", "--dry-run")
	if !strings.Contains(text, "three") || strings.Contains(text, "waits") ||
		!strings.Contains(text, "1 job would be deleted") || !strings.Contains(text, "\nthis would free ") {
		t.Errorf("a dry run says\n%s", text)
	}
	if text := cmdtest.Works(t, "job", "prune", "--older-than", "0", "--state",
		"failed"); text != "no job that has ended is old enough and in one of the states\n" {
		t.Errorf("failed ones:\n%s", text)
	}
	if text := cmdtest.Works(t, "job", "prune", "--older-than", "0"); !strings.Contains(text, "1 job deleted") ||
		!strings.Contains(text, "three") || !strings.Contains(text, "\nthis frees ") {
		t.Errorf("it says\n%s", text)
	}
	if text := cmdtest.Works(t, "job", "prune", "--older-than",
		"0"); text != "no job that has ended is old enough and in one of the states\n" {
		t.Errorf("again:\n%s", text)
	}
	if text := cmdtest.Works(t, "job", "prune", "--older-than", "1h", "--state",
		"done,failed"); text != "no job that has ended is old enough and in one of the states\n" {
		t.Errorf("of an hour:\n%s", text)
	}
	var list []protocol.JobInfo
	if cmdtest.JSON(t, &list, "job", "list"); len(list) != 1 || list[0].Name != "waits" {
		t.Errorf("left: %+v", list)
	}
	cmdtest.Works(t, "job", "cancel", "waits")
}
