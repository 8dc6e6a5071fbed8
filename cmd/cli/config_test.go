package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol/access"
)

// under runs a real process with more variables in its environment.
func under(t *testing.T, vars []string, args ...string) cmdtest.Ended {
	t.Helper()
	cmd, stdout, stderr := cmdtest.Process(t, t.TempDir(), args...)
	cmd.Env = append(cmd.Env, vars...)
	cmd.Run()
	return cmdtest.Ended{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// A flag overrides a variable, a variable the file, a section of the file its top, and
// everything the default; config show says which it was.
func TestConfigPrecedence(t *testing.T) {
	dir := t.TempDir()
	file := cmdtest.Write(t, dir, "c.yaml", "# of all\nsteps: 10\nserver: [a:1, b:2]\nseed: 3\ntrain:\n  steps: 20\n  "+
		"test-fraction: 0.5\n  local: true\nworker: {memory: 1GiB}\n")
	vars := []string{"COPPICE_SEED=4", "COPPICE_CONFIG=" + file, "COPPICE_NAME=", "COPPICE_FOLDS=5"}
	e := under(t, vars, "config", "show", "-o", "json", "train", "--folds", "2", "--set", "trees=1", "--set", "depth=2")
	var shown shownConfig
	if err := json.Unmarshal([]byte(e.Stdout), &shown); err != nil {
		t.Fatal(err, e.Stderr)
	}
	got := make(map[string][2]string)
	for _, s := range shown.Values {
		if s.Command != "train" {
			t.Errorf("a value of %q", s.Command)
		}
		got[s.Flag] = [2]string{s.Value, s.From}
	}
	for flag, want := range map[string][2]string{
		"folds": {"2", "flag"}, "seed": {"4", "COPPICE_SEED"}, "steps": {"20", file + ":6"}, "test-fraction": {"0.5",
			file + ":7"},
		"local": {"true", file + ":8"}, "server": {"a:1,b:2", file + ":3"}, "header": {"auto", "default"},
		"name": {"", "default"}, "set": {"trees=1,depth=2", "flag"},
	} {
		if got[flag] != want {
			t.Errorf("--%s is %q, want %q", flag, got[flag], want)
		}
	}
	if len(shown.Unknown) > 0 {
		t.Errorf("unknown: %v", shown.Unknown)
	}
}

// The values reach the commands: required flags too, and -o.
func TestConfigReachesCommands(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	file := cmdtest.Write(t, dir, "c.yaml", "train:\n  local: true\n  data: "+data+
		"\n  set: [trees=1, depth=3]\n  model-out: "+filepath.Join(dir, "m.model")+"\n")
	e := under(t, []string{"COPPICE_STEPS=30", "COPPICE_OUTPUT=json"}, "--config", file, "train", "--seed", "9")
	var r struct {
		Seed, Steps uint64
		RefitSteps  uint64 `json:"refit_steps"`
		Settings    map[string]any
	}
	if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil || r.Seed != 9 || r.Steps-r.RefitSteps != 30 ||
		r.Settings["trees"] != 1.0 || r.Settings["depth"] != 3.0 {
		t.Errorf("%+v, %v, %s", r, err, e.Stderr)
	}
	e = under(t, []string{"COPPICE_MODEL=" + filepath.Join(dir, "m.model"), "COPPICE_DATA=" + data}, "predict", "--out",
		filepath.Join(dir, "p.csv"))
	if e.Code != ExitOK {
		t.Errorf("required flags from variables: exit code %d, %s", e.Code, e.Stderr)
	}
	if e = under(t, []string{"COPPICE_TREES=x"}, "version"); e.Code != ExitOK {
		t.Errorf("an unknown variable: exit code %d, %s", e.Code, e.Stderr)
	}
}

// What is wrong is told in one line that says where it stands; exit code 2.
func TestConfigRefusals(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for text, want := range map[string]string{
		"stepz: 1\n":                    `c.yaml:1:1: there is no flag --stepz (did you mean "steps"?)`,
		"train:\n  stay: true\n":        "c.yaml:2:3: there is no flag --stay",
		"jobs:\n  list: {}\n":           `c.yaml:1:1: there is no command "jobs"`,
		"job:\n  lst: {output: json}\n": `c.yaml:2:3: there is no command "job lst"`,
		"config: x\n":                   "there is no flag --config",
		"die-with-stdin: true\n":        "there is no flag --die-with-stdin",
		"output: xml\n": `--output: ` + filepath.Join(dir, "c.yaml") +
			`:1: want one of text, json, csv, jsonl, not "xml"`,
		"train: {local: maybe}\n": "c.yaml:1: bool value must be true, 1, yes, false, 0 or no but got \"maybe\"",
		"data: [a, b]\n":          "--data: " + filepath.Join(dir, "c.yaml") + ":1: want one value, not a list",
		"train: [\n":              "c.yaml:1:",
	} {
		file := cmdtest.Write(t, dir, "c.yaml", text)
		e := under(t, []string{"COPPICE_CONFIG=" + file}, "train", "--dataset", "x")
		if e.Code != ExitUsage || strings.Count(e.Stderr, "\n") != 1 || !strings.Contains(e.Stderr, want) {
			t.Errorf("%q: exit code %d, %s; want %s", text, e.Code, e.Stderr, want)
		}
	}
	e := under(t, []string{"COPPICE_MEMORY=8GB"}, "worker", "--dir", filepath.Join(dir, "w"), "--join", "a:1")
	if e.Code != ExitUsage || !strings.Contains(e.Stderr, `--memory: COPPICE_MEMORY: "8GB" is not a size`) {
		t.Errorf("a wrong variable: exit code %d, %s", e.Code, e.Stderr)
	}
	if e = under(t, nil, "version", "--config", filepath.Join(dir, "none")); e.Code != ExitUsage ||
		!strings.Contains(e.Stderr, "none: no such file") {
		t.Errorf("a missing file: exit code %d, %s", e.Code, e.Stderr)
	}
}

// TestConfigShowHidesTokens: a token in the place of its file is not printed.
func TestConfigShowHidesTokens(t *testing.T) {
	text, id, _ := access.NewToken()
	for _, args := range [][]string{{"config", "show"}, {"config", "show", "-o", "json", "job", "list"}} {
		e := under(t, []string{"COPPICE_TOKEN_FILE=" + text}, args...)
		if e.Code != ExitOK || strings.Contains(e.Stdout+e.Stderr, text) ||
			!strings.Contains(e.Stdout, "coppice_"+id+"_SECRET") {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stdout)
		}
	}
}

// Without a command line, config show lists what variables and the file give, and
// variables of no flag.
func TestConfigShowAll(t *testing.T) {
	e := under(t, []string{"COPPICE_SERVER=a:1", "COPPICE_SERVR=b:2", "COPPICE_MAX_QUEUE=7"}, "config", "show")
	lines := strings.Split(strings.TrimSuffix(e.Stdout, "\n"), "\n")
	if e.Code != ExitOK || len(lines) != 3 {
		t.Fatalf("exit code %d, %s", e.Code, e.Stdout)
	}
	for i, want := range []string{"commands --server a:1 COPPICE_SERVER", "coordinator --max-queue 7 COPPICE_MAX_QUEUE"} {
		if got := strings.Join(strings.Fields(lines[i+1]), " "); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if !strings.Contains(e.Stderr, `no flag has the environment variable COPPICE_SERVR (did you mean "COPPICE_SERVER"?)`) {
		t.Error(e.Stderr)
	}
}

// Processes that another one starts take nothing from the environment.
func TestChildrenIgnoreTheEnvironment(t *testing.T) {
	cmd, stdout, stderr := cmdtest.Process(t, t.TempDir(), "quickstart", "--coordinators", "1", "--workers", "1",
		"--steps", "10", "-o", "json")
	cmd.Env = append(cmd.Env, "COPPICE_NATS=nats://127.0.0.1:1", "COPPICE_SLOTS=-1", "COPPICE_JOIN_CLUSTER=127.0.0.1:1",
		"COPPICE_HEARTBEAT=1h")
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
}

func TestVariable(t *testing.T) {
	got := []string{Variable("max-queue"), Variable("o"), Variable("join-cluster")}
	if diff := cmp.Diff([]string{"COPPICE_MAX_QUEUE", "COPPICE_O", "COPPICE_JOIN_CLUSTER"}, got); diff != "" {
		t.Error(diff)
	}
}
