package cli

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// What a command line says twice, leaves empty or sends to one file twice is refused before
// anything is done.
func TestGivenFlags(t *testing.T) {
	testkit.WithoutRace(t)
	fine := "x0,x1,label_a,label_b\n1,2,0.5,0.5\n3,4,0.25,0.75\n"
	tests := []struct {
		name  string
		files map[string]string
		args  string // of coppice; @ stands for the folder
		code  int
		says  []string
	}{
		{"a model and predictions in one file", map[string]string{"x.csv": fine},
			"train --local --data @/x.csv --folds 2 --model-out @/o.csv --predictions-out @/./o.csv", 2,
			[]string{"--predictions-out", "o.csv", "--model-out writes to this file"}},
		{"predictions and a curve in one file", map[string]string{"x.csv": fine, "o.csv": ""},
			"train --local --data @/x.csv --folds 2 --predictions-out @/o.csv --curve-out @/o.csv", 2, []string{"--curve-out",
				"--predictions-out writes to this file"}},
		{"patches in one file", nil, "dataset patches --images @ --maps @ --out @/p.csv --test-images 1 --test-out @/p.csv",
			2, []string{"--test-out", "--out writes to this file"}},
		{"a flag given twice", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --seed 1 --seed 2", 2,
			[]string{"--seed is given twice"}},
		{"a switch given twice", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --local", 2,
			[]string{"--local is given twice"}},
		{"an output given twice", nil, "version -o text --output text", 2, []string{"--output is given twice"}},
		{"an empty file name", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --model-out=", 2,
			[]string{"--model-out has an empty value"}},
		{"an empty algorithm", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --algorithm=", 2,
			[]string{"--algorithm has an empty value"}},
		{"an empty server", nil, "job list --server=", 2, []string{"--server has an empty value"}},
		{"a server that is a comma", nil, "job list --server ,", 2, []string{"--server has an empty value"}},
		{"no labels generated", nil, "dataset generate --kind random --labels 0 --out @/x.csv", 2, []string{"0 labels"}},
		{"no density", nil, "dataset generate --kind random --density 0 --out @/x.csv", 2, []string{"density 0"}},
		{"a server for training here", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --server h", 2,
			[]string{"--server", "--local"}},
		{"a wait for training here", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --wait 3s", 2,
			[]string{"--wait", "--local"}},
		{"a missing file of no kind", nil, "train --local --data @/yeast", 1, []string{"yeast: no such file"}},
		{"a missing spec", nil, "experiment report @/none.yaml", 1, []string{"none.yaml", "no such file"}},
		{"a report over its spec", map[string]string{"e.yaml": "name: e\n"}, "experiment run @/e.yaml --local --out @/e.yaml",
			2, []string{"--out", "reads that file"}},
		{"a report in no folder", map[string]string{"e.yaml": "name: e\n"},
			"experiment run @/e.yaml --local --out @/no/r.html", 1, []string{"r.html", "folder does not exist"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { cmdtest.Refused(t, test.files, test.args, test.code, test.says) })
	}
}

// The word at the cursor may be empty when a shell asks how a command line may go on.
func TestEmptyWord(t *testing.T) {
	if text := cmdtest.Works(t, "__complete", "--", ""); !strings.Contains(text, "quickstart\t") ||
		!strings.Contains(text, "version\t") {
		t.Errorf("an empty command line goes on with\n%s", text)
	}
}

// An empty argument is refused before anybody is asked.
func TestEmptyArgument(t *testing.T) {
	testkit.WithoutRace(t)
	for _, args := range [][]string{{"job", "show", ""}, {"job", "delete", ""}, {"model", "show", ""},
		{"dataset", "delete", ""}, {"experiment", "report", ""}} {
		if e := cmdtest.Run(t, args...); e.Code != ExitUsage || !strings.Contains(e.Stderr, "is empty") {
			t.Errorf("%q: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

// A variable, or a file, may name a cluster for training that asks none.
func TestClusterOutside(t *testing.T) {
	dir := t.TempDir()
	path := cmdtest.Write(t, dir, "x.csv", "a,b,label_a,label_b\n1,7,0.5,0.5\n3,4,0.25,0.75\n5,1,0.5,0.5\n6,2,0.5,0.5\n")
	train := []string{"train", "--local", "--data", path, "--algorithm", "aa-knn"}
	cmdtest.Works(t, append(train, "--config", cmdtest.Write(t, dir, "c.yaml", "server: 127.0.0.1:1\nwait: 3s\n"))...)
	t.Setenv("COPPICE_SERVER", "127.0.0.1:1")
	cmdtest.Works(t, train...)
	if e := cmdtest.Run(t, "train", "--local", "--dataset", "x", "--wait", "0"); e.Code != ExitFailed ||
		!strings.Contains(e.Stderr, "127.0.0.1:1") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
}

// A flag that is a list may be given again and again.
func TestGivenAgain(t *testing.T) {
	dir := t.TempDir()
	path := cmdtest.Write(t, dir, "x.csv", "a,b,c,label_a,label_b\n1,2,3,0.5,0.5\n3,4,2,0.25,0.75\n5,6,1,0.5,0.5\n")
	var shown struct {
		Features int `json:"features"`
	}
	cmdtest.JSON(t, &shown, "dataset", "inspect", path, "--drop", "a", "--drop", "b")
	if shown.Features != 1 {
		t.Errorf("%d features are left of three, of which two are dropped", shown.Features)
	}
}

// TestNearOnly: of what is suggested for a word that is not known only what is near, or begins so, is left.
func TestNearOnly(t *testing.T) {
	for text, want := range map[string]string{
		`unexpected argument foo, did you mean "job"?`:                                "unexpected argument foo",
		`unexpected argument modle, did you mean "model"?`:                            `unexpected argument modle, did you mean "model"?`,
		`unknown flag --k, did you mean one of "-h", "-o", "--kept-memory"?`:          "unknown flag --k",
		`unknown flag --dat, did you mean one of "--data", "--set", "--data-format"?`: `unknown flag --dat, did you mean one of "--data", "--data-format"?`,
		`unknown flag --foo`:                           "unknown flag --foo",
		`missing flags: --out=FILE, did you mean "x"?`: `missing flags: --out=FILE, did you mean "x"?`,
	} {
		from := errors.New(text)
		if err := nearOnly(from); err.Error() != want || !errors.Is(err, from) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestDecimalFlags: flags that are numbers are decimal, on the command line and from outside.
func TestDecimalFlags(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	file := cmdtest.ArtificialFile(t, dir, "a.csv", 40, 1)
	for _, c := range []struct{ flag, value string }{
		{"--sigma", "0x1p1"}, {"--sigma", "1_0"}, {"--tolerance", "0x1p-9"}, {"--tolerance", "1e-0_4"}, {"--range", "0:0x10"},
		{"--range", "0:1_0"}, {"--missing", "1_0"}, {"--missing", "0x10"},
	} {
		args := []string{"train", "--local", "--data", file, "--labels", "age", c.flag + "=" + c.value}
		for _, other := range []string{"--sigma=2", "--range=0:69"} {
			if !strings.HasPrefix(other, c.flag) {
				args = append(args, other)
			}
		}
		if e := cmdtest.Run(t, args...); e.Code != ExitUsage || !strings.Contains(e.Stderr, c.value) {
			t.Errorf("%s %s: exit code %d, %s", c.flag, c.value, e.Code, e.Stderr)
		}
	}
	for _, value := range []string{"0x10", "1_0", "0b11", "1e1", "10.0", ""} {
		if e := cmdtest.Run(t, "dataset", "generate", "--out", dir+"/b.csv", "--rows="+value); e.Code != ExitUsage {
			t.Errorf("--rows %s: exit code %d, %s", value, e.Code, e.Stderr)
		}
	}
	var made struct {
		Rows int `json:"samples"`
	}
	cmdtest.JSON(t, &made, "dataset", "generate", "--out", dir+"/b.csv", "--rows", "010")
	if made.Rows != 10 {
		t.Errorf("--rows 010 is %d", made.Rows)
	}
	t.Setenv("COPPICE_ROWS", "1_0")
	if e := cmdtest.Run(t, "dataset", "generate", "--out", dir+"/c.csv"); e.Code != ExitUsage ||
		!strings.Contains(e.Stderr, "COPPICE_ROWS") {
		t.Errorf("COPPICE_ROWS: exit code %d, %s", e.Code, e.Stderr)
	}
}

// TestNegativeValues: a negative value is the value of the flag before it, with a space as with =. If the flag allows
// none, the error names the flag, before anything is asked or done.
func TestNegativeValues(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "x.csv", "x0,x1,label_a,label_b\n1,2,0.5,0.5\n3,4,0.25,0.75\n5,6,0.25,0.75\n")
	for command, all := range map[string]string{
		"certs init --ca-dir @": "--valid -1h", "certs client u --role read": "--quota -1",
		"train --local --data x.csv": "--seed -1 --steps -1 --folds -2 --test-fraction -0.5 " +
			"--name -1 --tolerance -.5 --threads -1 --memory -1GiB --audit -1",
		"train --local --data x.csv --labels age --range 0:5": "--sigma -1",
		"train --local --data x.csv --folds 2":                "--fold -1 --fold-seed -1",
		"audit":                                               "--limit -1 --since -1h",
		"job list":                                            "--limit -1 --server -1",
		"job prune --older-than 1h":                           "--wait -1s", "job prune": "--older-than -1h",
		"job watch j":  "--timeout -1s",
		"model show m": "--tree -1",
		"coordinator --dir @": "--jobs -1 --max-queue -1 --keep-jobs -1 --max-connections -1 --heartbeat -1s " +
			"--snapshot-bytes -1",
		"worker --dir @ --join h:1":                       "--slots -1 --cache -1GiB",
		"cluster add d=h:1":                               "--vote-timeout -1s",
		"dataset generate --out x.csv":                    "--rows -1 --seed -1",
		"dataset patches --images @ --maps @ --out y.csv": "--patch -1 --stride -1",
		"chaos":      "--rounds -1 --workers -1 --seed -1 --hold -1s",
		"quickstart": "--workers -1 --coordinators -1 --sigma -1 --steps -1",
		"version":    "--output -1", "token create t --role read": "--expires -1d --quota -1",
	} {
		base := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(command, "@", dir), "x.csv", data))
		for words := strings.Fields(all); len(words) > 0; words = words[2:] {
			for _, how := range [][]string{{words[0], words[1]}, {words[0] + "=" + words[1]}} {
				e := cmdtest.Run(t, append(slices.Clone(base), how...)...)
				if e.Code != ExitUsage || !strings.Contains(e.Stderr, words[0]) || strings.Contains(e.Stderr, "perhaps") {
					t.Errorf("%s %q: exit code %d: %s", command, how, e.Code, e.Stderr)
				}
			}
		}
	}
	if e := cmdtest.Run(t, "version", "-o", "-1"); e.Code != ExitUsage || !strings.Contains(e.Stderr, "--output") {
		t.Errorf("-o -1: exit code %d: %s", e.Code, e.Stderr)
	}
	cmdtest.Works(t, "dataset", "convert", "--data", data, "--out", filepath.Join(dir, "y.npz"), "--missing", "-1")
	if e := cmdtest.Run(t, "job", "show", "--", "-1"); strings.Contains(e.Stderr, "unknown flag") {
		t.Errorf("an argument after --: %s", e.Stderr)
	}
}
