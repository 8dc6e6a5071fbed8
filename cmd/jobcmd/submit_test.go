package jobcmd

import (
	"os"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// An audit that cannot be is wrong usage.
func TestAuditUsage(t *testing.T) {
	for _, args := range [][]string{{"--audit", "1.5"}, {"--audit", "-0.1"}, {"--audit", "NaN"}, {"--audit", "some"},
		{"--audit", "0.5", "--local"}} {
		for _, command := range [][]string{{"train"}, {"job", "submit"}} {
			if command[0] == "job" && len(args) > 2 {
				continue
			}
			e := cmdtest.Run(t, append(append(command, "--dataset", "x"), args...)...)
			if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "audit") ||
				strings.Count(cmdtest.WithoutNotes(e.Stderr), "\n") != 1 {
				t.Errorf("%v %v: exit code %d, %s", command, args, e.Code, e.Stderr)
			}
		}
	}
	if e := cmdtest.Run(t, "coordinator", "--dir", t.TempDir(), "--max-queue", "-1"); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "--max-queue") {
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
		if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, flag) || !strings.Contains(e.Stderr, "at most") ||
			strings.Count(cmdtest.WithoutNotes(e.Stderr), "\n") != 1 {
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
	if other.Code != cli.ExitFailed || !strings.Contains(other.Stderr, "audit") {
		t.Errorf("the same name with another audit: exit code %d, %s", other.Code, other.Stderr)
	}
	if text := cmdtest.Works(t, "job", "show", "two"); !strings.Contains(text, "0.25 of the tasks") {
		t.Errorf("the audit is not shown:\n%s", text)
	}
	cmdtest.Works(t, "job", "cancel", "one")
	cmdtest.Works(t, append(submit, "three")...)
}

// TestFoldsOverSpec: --folds replaces both ways in which a spec divides samples.
func TestFoldsOverSpec(t *testing.T) {
	for folds, want := range map[string]protocol.Spec{"groups": {GroupFolds: true}, "5": {Folds: 5}} {
		got := protocol.Spec{Folds: 10, GroupFolds: folds == "5"}
		if err := (&SpecFlags{Folds: folds}).apply(&got); err != nil || got.Folds != want.Folds ||
			got.GroupFolds != want.GroupFolds {
			t.Errorf("--folds %s: %+v, error %v", folds, got, err)
		}
	}
}
