package datasetcmd

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// fed runs a command line with something on stdin.
func fed(t *testing.T, stdin string, args ...string) cmdtest.Ended {
	t.Helper()
	ctx := testkit.Context(t)
	var stdout, stderr bytes.Buffer
	code := cmdtest.RunWith(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	if code != cli.ExitOK {
		t.Fatalf("coppice %s: exit code %d\n%s", strings.Join(args, " "), code, &stderr)
	}
	return cmdtest.Ended{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}
}

func TestInspectCommand(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "s.csv", clitest.Survey(40))
	text := cmdtest.Works(t, "dataset", "inspect", data)
	for _, part := range []string{"samples     40", "2 features in 2 samples", "label sums  1 to 1",
		`";" between columns, a comma before decimals`} {
		if !strings.Contains(text, part) {
			t.Errorf("it lacks %q:\n%s", part, text)
		}
	}
	var f inspect.Inspection
	cmdtest.JSON(t, &f, "dataset", "inspect", data)
	if f.Rows != 40 || f.Features != 2 || f.FeatureColumns[0].Name != "id" || *f.FeatureColumns[0].Most != 39 ||
		f.Missing.Rows != 2 {
		t.Errorf("%+v", f)
	}
	piped := fed(t, clitest.Survey(40), "dataset", "inspect", "-", "--data-format", "csv")
	commands := regexp.MustCompile(`(?m)^  coppice .*\n`)
	if got, want := commands.ReplaceAllString(piped.Stdout, ""), strings.ReplaceAll(commands.ReplaceAllString(text, ""),
		data, "stdin"); got != want {
		t.Errorf("of stdin it says\n%s", piped.Stdout)
	}
	if diff := cmp.Diff([]string{"s.csv"}, cmdtest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestInspectFaults: what training refuses shows before it does.
func TestInspectFaults(t *testing.T) {
	data := cmdtest.Write(t, t.TempDir(), "s.csv", "a,mood\n1,x\n1e39,NaN\n3,\nNA,y\n")
	text := cmdtest.Works(t, "dataset", "inspect", data, "--labels", "class", "--label-columns", "mood")
	for _, part := range []string{"missing     1 feature and 2 labels in 3 samples",
		`row 1, feature 0 "a" (counted from 0): 1e+39 is too large for a float32`} {
		if !strings.Contains(text, part) {
			t.Errorf("it lacks %q:\n%s", part, text)
		}
	}
	var stdout, stderr bytes.Buffer
	code := cmdtest.RunWith(t.Context(), []string{"dataset", "inspect", "-", "--data-format", "libsvm"},
		strings.NewReader(""), &stdout, &stderr)
	if code != cli.ExitFailed || !strings.Contains(stderr.String(), "stdin: the file is empty") {
		t.Errorf("of an empty stdin: exit code %d, %s", code, &stderr)
	}
}

// TestMissingAsTrained: a model remembers what its data made of missing values.
func TestMissingAsTrained(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model, out := cmdtest.Write(t, dir, "s.csv", clitest.Survey(40)), filepath.Join(dir, "m.coppice"),
		filepath.Join(dir, "p.csv")
	folds := "row,fold\n"
	for i := range 40 {
		folds += fmt.Sprintf("%d,%d\n", i, i%2)
	}
	cmdtest.Works(t, clitest.TrainArgs(data, "--missing", "drop", "--split", cmdtest.Write(t, dir, "f.csv", folds))...)
	e := cmdtest.Run(t, clitest.TrainArgs(data, "--missing", "drop", "--drop", "id", "--model-out", model)...)
	if e.Code != cli.ExitOK || !strings.Contains(e.Stderr,
		"s.csv: 2 of 40 samples have missing values and are left out") || strings.Contains(e.Stderr, `"id"`) {
		t.Fatalf("exit code %d: %s", e.Code, e.Stderr)
	}
	e = cmdtest.Run(t, "predict", "--model", model, "--data", data, "--drop", "id", "--out", out)
	predicted := clitest.ReadCSV(t, out)
	if !strings.Contains(e.Stderr, "2 samples (rows counted from 0: 3, 8)") || len(predicted) != 39 ||
		predicted[4][0] != "4" || predicted[8][0] != "9" {
		t.Errorf("%d lines, row %s: %s", len(predicted), predicted[4][0], e.Stderr)
	}
	var r struct {
		Rows    int   `json:"samples"`
		LeftOut []int `json:"left_out"`
	}
	for _, command := range [][]string{{"predict", "--out", out}, {"evaluate"}} {
		args := append(command, "--model", model, "--data", data, "--drop", "id")
		cmdtest.JSON(t, &r, args...)
		if r.Rows != 38 || !slices.Equal(r.LeftOut, []int{3, 8}) {
			t.Errorf("%s: %+v", command[0], r)
		}
		r.LeftOut = nil
		cmdtest.JSON(t, &r, append(args, "--missing", "0.5")...)
		if r.Rows != 40 || r.LeftOut != nil {
			t.Errorf("%s with --missing 0.5: %+v", command[0], r)
		}
		if e := cmdtest.Run(t, append(args, "--missing", "refuse")...); e.Code != cli.ExitFailed ||
			!strings.Contains(e.Stderr, "row 3") {
			t.Errorf("%s with --missing refuse: exit code %d, %s", command[0], e.Code, e.Stderr)
		}
	}
}

// TestStdin: data from stdin gives the same model, predictions and measures as the
// file, and leaves nothing behind.
func TestStdin(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	b, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	model, out, want := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv"), filepath.Join(dir, "q.csv")
	var trained results.Result
	cmdtest.JSON(t, &trained, clitest.TrainArgs(data)...)
	piped := []string{"--data-format", "csv"}
	e := fed(t, string(b), append(clitest.TrainArgs("-", "--model-out", model, "-o", "json"), piped...)...)
	if !strings.Contains(e.Stdout, trained.ModelDigest) || !strings.Contains(e.Stdout, `"dataset": "stdin"`) {
		t.Errorf("the file's model is %s:\n%s", trained.ModelDigest, e.Stdout)
	}
	fed(t, string(b), append([]string{"predict", "--model", model, "--data", "-", "--out", out}, piped...)...)
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", want)
	if diff := cmp.Diff(clitest.ReadCSV(t, want), clitest.ReadCSV(t, out)); diff != "" {
		t.Error(diff)
	}
	e = fed(t, string(b), append([]string{"evaluate", "--model", model, "--data", "-"}, piped...)...)
	if file := cmdtest.Works(t, "evaluate", "--model", model, "--data", data); strings.ReplaceAll(e.Stdout, " on -:",
		" on "+data+":") != file {
		t.Errorf("%s\nwant\n%s", e.Stdout, file)
	}
	if left := cmdtest.Contents(t, temp); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// TestStdinInterrupted: a command that waits for stdin ends when it is told to.
func TestStdinInterrupted(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	in, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer keep.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := cmdtest.RunWith(ctx, []string{"dataset", "inspect", "-", "--data-format", "csv"}, in, &stdout, &stderr)
	if code != cli.ExitSignal+int(syscall.SIGINT) || !strings.Contains(stderr.String(), "interrupted") ||
		cmdtest.Contents(t, temp) != nil {
		t.Errorf("exit code %d: %s; left behind: %v", code, &stderr, cmdtest.Contents(t, temp))
	}
}

// TestZeroBasedAsTrained: a file without an index 0 is read as the model's was.
func TestZeroBasedAsTrained(t *testing.T) {
	dir := t.TempDir()
	var train, some, table strings.Builder
	table.WriteString("x0,x1,x2\n")
	for i := range 30 {
		a, b := i%5, i%3
		fmt.Fprintf(&train, "%d 0:%d 1:%d 2:1\n", i%2, a, b)
		fmt.Fprintf(&some, "1:%d 2:1\n", b)
		fmt.Fprintf(&table, "0,%d,1\n", b)
	}
	model, out, want := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv"), filepath.Join(dir, "q.csv")
	cmdtest.Works(t, clitest.TrainArgs(cmdtest.Write(t, dir, "t.svm", train.String()), "--labels", "class",
		"--model-out", model)...)
	cmdtest.Works(t, "predict", "--model", model, "--data", cmdtest.Write(t, dir, "s.svm", some.String()), "--out", out)
	cmdtest.Works(t, "predict", "--model", model, "--data", cmdtest.Write(t, dir, "s.csv", table.String()), "--out", want)
	if diff := cmp.Diff(clitest.ReadCSV(t, want), clitest.ReadCSV(t, out)); diff != "" {
		t.Error(diff)
	}
}

// TestCountedFromOne: a file that counts from 0 is not read for a model whose file
// counted from 1: each feature would be taken for its neighbour.
func TestCountedFromOne(t *testing.T) {
	dir := t.TempDir()
	var train strings.Builder
	for i := range 30 {
		fmt.Fprintf(&train, "%d 1:%d 2:%d 3:1\n", i%2, i%5, i%3)
	}
	model := filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, clitest.TrainArgs(cmdtest.Write(t, dir, "t.svm", train.String()), "--labels", "class",
		"--model-out", model)...)
	args := "predict --model " + model + " --data @/s.svm --out @/p.csv"
	cmdtest.Refused(t, map[string]string{"s.svm": "0:1 1:2 2:3\n"}, args, cli.ExitFailed,
		[]string{"s.svm", "from 0", "from 1", "--zero-based"})
	cmdtest.Works(t, strings.Fields(strings.ReplaceAll(args+" --zero-based", "@",
		filepath.Dir(cmdtest.Write(t, dir, "s.svm", "0:1 1:2 2:3\n"))))...)
}

// TestImportWarns: what an inspection warns of is said when the data is used.
func TestImportWarns(t *testing.T) {
	data := cmdtest.Write(t, t.TempDir(), "s.csv", clitest.Survey(40))
	e := cmdtest.Run(t, clitest.TrainArgs(data, "--missing", "drop")...)
	for _, part := range []string{`s.csv: ";" between columns`, `warning: ` + data +
		`: 2 of 40 samples have missing values and are left out`} {
		if e.Code != cli.ExitOK || !strings.Contains(e.Stderr, part) {
			t.Errorf("exit code %d, it lacks %q:\n%s", e.Code, part, e.Stderr)
		}
	}
}

func TestReadingRefusals(t *testing.T) {
	testkit.WithoutRace(t)
	files := map[string]string{"x.csv": "x;label_a\n1;1\n", "x.npz": "PK", "x.xlsx": "PK"}
	for _, test := range []struct {
		args string
		code int
		says []string
	}{
		{"train --local --data @/x.csv --delimiter ;;", 2, []string{"--delimiter", "one character"}},
		{"train --local --data @/x.csv --decimal x", 2, []string{"--decimal", "want . or ,"}},
		{"train --local --data @/x.csv --missing mode", 2, []string{"--missing", "refuse, drop, mean, median or a number"}},
		{"train --local --data @/x.csv --data-format xml", 2, []string{"--data-format", "csv.gz"}},
		{"train --local --data -", 2, []string{"--data-format", "csv"}},
		{"train --local --data @/x.xlsx", 1, []string{"x.xlsx", "read_excel", "to_csv"}},
		{"train --local --data @/x.csv --labels-variable y", 1, []string{"x.csv", "--labels-variable", ".npz"}},
		{"train --local --data @/x.csv --drop y", 1, []string{"x.csv", `no column "y"`, "x, label_a"}},
		{"dataset inspect @/x.csv --missing drop", 2, []string{"--missing"}},
		{"dataset inspect @/none.csv", 1, []string{"none.csv", "no such file"}},
		{"dataset inspect", 2, []string{"file"}},
	} {
		t.Run(test.args, func(t *testing.T) { cmdtest.Refused(t, files, test.args, test.code, test.says) })
	}
}
