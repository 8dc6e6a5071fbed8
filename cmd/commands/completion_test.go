package commands

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// shell runs a script in a shell that finds this binary as coppice; where there is no such
// shell the test is skipped.
func shell(t *testing.T, name, script string) string {
	t.Helper()
	at, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(dir, "coppice")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), at, "-c", script)
	cmd.Env = append(os.Environ(), cmdtest.AsCommand+"=1", "TMPDIR="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// bash completes commands, flags and values, also behind =, and leaves files to itself.
func TestBashCompletion(t *testing.T) {
	testkit.WithoutRace(t)
	wants := map[string]string{
		"coppice qu":                   "quickstart",
		"coppice job p":                "predictions pause prune",
		"coppice cluster tr":           "transfer trust",
		"coppice -o json train --test": "--test-fraction",
		"coppice worker --log-level ":  "debug info warn error",
		"coppice train --output=j":     "json jsonl",
		"coppice train --set leaf_f":   "leaf_first=",

		"coppice train --algorithm structrf --set s":     "sampling_ratio= step=",
		"coppice train --algorithm=aa-knn --set ":        "preset= k= scaling=",
		"coppice train --algorithm structrf --set step=": "exhaustive adaptive",
		"coppice train --set=leaf_first=t":               "true",
		"coppice train --spec job.yaml --set em":         "em_rounds=",
		"coppice train --set em":                         "",
		"coppice train --algorithm str":                  "structrf",
		"coppice help job w":                             "watch",
		"coppice algorithm show aa":                      "aa-bp aa-knn",
		"coppice algorithm show be":                      "best",
		"coppice train --algorithm be":                   "best",
		"coppice train --algorithm best --set ":          "members= weights= inner_folds= validated_folds= inner= weight_rows= budget=",
		"coppice job list --algorithm be":                "",
		"coppice completion z":                           "zsh",
		"coppice train --data ":                          "",
		"coppice predict -- --":                          "",
		"coppice nonsense --lo":                          "",
	}
	lines := slices.Sorted(maps.Keys(wants))
	script := "source <(coppice completion bash); complete -p coppice > /dev/null || exit 1\n"
	for _, line := range lines {
		script += `COMP_LINE='` + line +
			`'; COMP_POINT=${#COMP_LINE}; COMPREPLY=(); _coppice coppice; echo "= ${COMPREPLY[*]}"` + "\n"
	}
	answers := strings.Split(strings.TrimPrefix(shell(t, "bash", script), "="), "\n=")
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d lines: %q", len(answers), len(lines), answers)
	}
	for i, line := range lines {
		if got := strings.Join(strings.Fields(answers[i]), " "); got != wants[line] {
			t.Errorf("%s: %q, want %q", line, got, wants[line])
		}
	}
}

// The other shells can read their scripts.
func TestCompletionScripts(t *testing.T) {
	testkit.WithoutRace(t)
	for _, name := range []string{"bash", "zsh", "fish"} {
		t.Run(name, func(t *testing.T) {
			if script := clitest.Output(t, "completion", name); !strings.Contains(script, "__complete --") {
				t.Errorf("got %s", script)
			}
			shell(t, name, "coppice completion "+name+" > \"$TMPDIR/script\"; "+name+" -n \"$TMPDIR/script\"")
		})
	}
	if e := cmdtest.Run(t, "completion", "tcsh"); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "fish") {
		t.Errorf("an unknown shell: exit code %d, %s", e.Code, e.Stderr)
	}
}

// Every command and flag that help shows is offered, and nothing that is hidden.
func TestCompletionIsWhole(t *testing.T) {
	root := cli.NewParser(&root{}).Model.Node
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		offered := make(map[string]bool)
		for _, last := range []string{"", "-"} {
			for _, c := range complete(root, append(cli.CommandPath(n), last)) {
				offered[c.text] = true
			}
		}
		for _, c := range n.Children {
			if offered[c.Name] == c.Hidden {
				t.Errorf("%s below %q: %v", c.Name, cli.CommandPath(n), offered[c.Name])
			}
			if !c.Hidden && c.Name != "help" {
				walk(c)
			}
		}
		for _, f := range n.Flags {
			if offered["--"+f.Name] == f.Hidden && strings.Join(cli.CommandPath(n), " ") != "config show" {
				t.Errorf("--%s of %q: %v", f.Name, cli.CommandPath(n), offered["--"+f.Name])
			}
		}
	}
	walk(root)
}
