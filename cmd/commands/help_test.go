package commands

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// The first help is one screen: every command once, in groups, without subcommands.
func TestShortHelp(t *testing.T) {
	help := clitest.Output(t, "--help")
	if n := strings.Count(help, "\n"); n > 48 {
		t.Errorf("%d lines:\n%s", n, help)
	}
	for _, command := range cli.NewParser(&root{}).Model.Children {
		if listed := strings.Count(help, "\n  "+command.Name+"  "); (listed == 1) == command.Hidden {
			t.Errorf("%s is listed %d times", command.Name, listed)
		}
	}
	for title := range strings.SplitSeq("Train and use models:|What a cluster holds:|Run a cluster:|Other commands:",
		"|") {
		if !strings.Contains(help, "\n"+title+"\n") {
			t.Errorf("no group %q", title)
		}
	}
	if strings.Contains(help, "job list") || strings.Contains(help, "Which cluster:") {
		t.Errorf("details in the first help:\n%s", help)
	}
}

// The ways to ask for help and version agree.
func TestHelpAndVersion(t *testing.T) {
	testkit.WithoutRace(t)
	for _, words := range [][]string{{}, {"job"}, {"job", "list"}, {"train"}} {
		if behind, before := clitest.Output(t, append(words, "--help")...), clitest.Output(t,
			append([]string{"help"}, words...)...); behind != before || !strings.HasPrefix(behind, "Usage: coppice") {
			t.Errorf("help of %q differs:\n%s\n%s", words, behind, before)
		}
	}
	if a, b := clitest.Output(t, "--version"), clitest.Output(t, "version"); a != b || !strings.HasPrefix(a, "coppice ") {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := clitest.Output(t, "train", "--version"), clitest.Output(t, "version"); a != b {
		t.Errorf("behind a command: %q", a)
	}
	e := cmdtest.Run(t, "help", "job", "lst")
	if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, `did you mean "list"?`) ||
		strings.Count(e.Stderr, "\n") != 1 {
		t.Errorf("help of an unknown command: exit code %d, %s", e.Code, e.Stderr)
	}
}

// TestHelpAll: every command takes --help-all, which shows its flags. Without many rare flags, --help shows the same.
func TestHelpAll(t *testing.T) {
	for _, command := range []string{"", "coordinator", "worker", "certs", "certs node", "token", "token create",
		"context", "context set", "job list"} {
		args := strings.Fields(command)
		all, help := clitest.Output(t, append(args, "--help-all")...), clitest.Output(t, append(args, "--help")...)
		if all != help || !strings.HasPrefix(all, "Usage: coppice "+command) {
			t.Errorf("coppice %s --help-all shows:\n%s\nbut --help shows:\n%s", command, all, help)
		}
	}
	if help := clitest.Output(t, "worker", "--help"); !strings.Contains(help, "--tls-dir=DIR") {
		t.Errorf("worker --help has no --tls-dir:\n%s", help)
	}
}

// The help of train is short; --help-all has every flag, and no help has a setting of an algorithm.
func TestTrainHelp(t *testing.T) {
	testkit.WithoutRace(t)
	help, all := clitest.Output(t, "train", "--help"), clitest.Output(t, "train", "--help-all")
	if n := strings.Count(help, "\n"); n > 80 {
		t.Errorf("train --help has %d lines:\n%s", n, help)
	}
	left := 0
	for _, group := range cli.Subcommand(cli.NewParser(&root{}).Model.Node, "train").AllFlags(true) {
		for _, f := range group {
			if !strings.Contains(all, "--"+f.Name) {
				t.Errorf("train --help-all has no --%s", f.Name)
			}
			listed := strings.Contains(help, "  --"+f.Name+" ") || strings.Contains(help, "  --"+f.Name+"=") ||
				strings.Contains(help, ", --"+f.Name)
			if listed == f.Tag.Has("seldom") {
				t.Errorf("--%s is in the help of train: %v", f.Name, listed)
			}
			if f.Tag.Has("seldom") {
				left++
			}
		}
	}
	if want := fmt.Sprintf("\n\"coppice train --help-all\" shows %d flags that few people need.\n",
		left); !strings.HasSuffix(help, want) || strings.Contains(all, "few people need.\n\"") {
		t.Errorf("train --help does not end with %q:\n%s", want, help)
	}
	if strings.Contains(all, "leaf_iterations") {
		t.Errorf("train --help-all has settings:\n%s", all)
	}
	for title := range strings.SplitSeq("What to train:|How to test:|What to write:|Which cluster:|How a data file is "+
		"read:", "|") {
		if !strings.Contains(help, "\n"+title+"\n") {
			t.Errorf("train --help has no group %q", title)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(help), " "), `"coppice algorithm show NAME" lists the settings`) {
		t.Errorf("train --help does not say where the settings are:\n%s", help)
	}
}

// full is a stdout without room.
type full struct{}

// Write implements io.Writer.
func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// Help that cannot be written is a failure, and no wrong usage.
func TestHelpWithoutRoom(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"help", "train"}, {"train", "--help"}} {
		var stderr strings.Builder
		if code := cmdtest.RunWith(t.Context(), args, strings.NewReader(""), full{}, &stderr); code != cli.ExitFailed ||
			!strings.Contains(stderr.String(), "stdout: cannot be written") {
			t.Errorf("%q: exit code %d, %s", args, code, stderr.String())
		}
	}
}
