package modelcmd

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

func gunzip(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Predictions and measures of each row are the same in every format and on stdout.
func TestOutputFormats(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(30)
	_, model := m.Trained(t, dir)
	for i := range m.Rows {
		m.Rows[i] = append(m.Rows[i], "row "+m.Rows[i][0])
	}
	data := m.File(t, dir, "named.csv", append(m.Header, "name"), 0, 1, 2, 3, 4, 5, 6, 7)
	for _, c := range []struct {
		args    []string
		array   string
		columns []string
	}{
		{[]string{"predict", "--model", model, "--data", data}, "predictions", []string{"happy", "sad", "angry"}},
		{[]string{"evaluate", "--model", model, "--data", data, "--per-sample"}, "measures", rowColumns(&measures.Plan{})},
		{[]string{"evaluate", "--model", model, "--data", data, "--per-sample", "--measures", "all"}, "measures",
			rowColumns(&measures.Plan{More: true})},
	} {
		out := func(name string, more ...string) string {
			path := filepath.Join(dir, name)
			cmdtest.Works(t, append(append(c.args, "--out", path), more...)...)
			return path
		}
		csv := cmdtest.Read(t, out("o.csv"))
		if got := gunzip(t, out("o.CSV.gz")); got != csv {
			t.Errorf("%s: .csv.gz has\n%s\n.csv\n%s", c.args[0], got, csv)
		}
		if got := cmdtest.Works(t, append(c.args, "--out", "-")...); got != csv {
			t.Errorf("%s: stdout has\n%s\n.csv\n%s", c.args[0], got, csv)
		}
		values, texts := clitest.Arrays(t, out("o.npz"))
		records := clitest.ReadCSV(t, filepath.Join(dir, "o.csv"))
		names := texts["label_names"]
		if c.array == "measures" {
			names = texts["measure_names"]
		}
		if diff := cmp.Diff(records[0], append([]string{"row"}, names...)); diff != "" ||
			len(values[c.array]) != 30*len(c.columns) {
			t.Fatalf("%s: %d values in .npz; %s", c.args[0], len(values[c.array]), diff)
		}
		for i, record := range records[1:] {
			if record[0] != texts["row_names"][i] || !strings.HasPrefix(record[0], "row ") {
				t.Errorf("%s: row %q, in .npz %q", c.args[0], record[0], texts["row_names"][i])
			}
			for j, want := range clitest.Numbers(t, record[1:]) {
				got := values[c.array][i*len(c.columns)+j]
				if c.array == "predictions" {
					got, want = float64(float32(got)), float64(float32(want))
				}
				if got != want {
					t.Fatalf("%s: row %d, column %d: %v in .npz, %v in .csv", c.args[0], i, j, got, want)
				}
			}
		}
	}
	if ten, all := rowColumns(&measures.Plan{}), rowColumns(&measures.Plan{More: true}); len(ten) != 2*measures.Count ||
		len(all) != 2*(measures.Count+measures.CountMore) {
		t.Errorf("%d and %d columns", len(ten), len(all))
	}
	set := filepath.Join(dir, "set.csv")
	cmdtest.Works(t, "dataset", "generate", "--rows", "20", "--out", set)
	if got := cmdtest.Works(t, "dataset", "generate", "--rows", "20", "--out", "-"); got != cmdtest.Read(t, set) {
		t.Errorf("generate to stdout:\n%s", got)
	}
}

// What cannot be written as asked is refused before anything is done.
func TestOutputRefusals(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(20)
	data, model := m.Trained(t, dir)
	for _, command := range []string{
		"predict --model " + model + " --data " + data,
		"evaluate --per-sample --model " + model + " --data " + data,
		"dataset generate --rows 20",
	} {
		for args, says := range map[string]string{
			"--out @/x.txt":              "x.txt: the format of the file to write is unknown",
			"--out @/x.feather":          ".csv, .csv.gz, .npz or .parquet",
			"--out @/x.npz --format csv": "x.npz ends in .npz",
			"--out - -o json":            "-o json",
		} {
			cmdtest.Refused(t, nil, command+" "+args, cli.ExitUsage, []string{says})
		}
	}
	cmdtest.Refused(t, nil, "evaluate --per-sample --format csv --model "+model+" --data "+data, cli.ExitUsage,
		[]string{"--format needs --out"})
	cmdtest.Refused(t, nil, "train --local --steps 2 --model-out - --data "+data, cli.ExitUsage, []string{"stdout"})
}

// A write that fails fails the command, and what stood there before stays.
func TestFailedWrites(t *testing.T) {
	testkit.WithoutRace(t)
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full")
	}
	dir, m := t.TempDir(), clitest.NewMoods(30)
	data, model := m.Trained(t, dir)
	for _, args := range []string{
		"predict --model " + model + " --data " + data,
		"evaluate --per-sample --model " + model + " --data " + data,
		"dataset generate --rows 20",
	} {
		for _, format := range []string{"csv", "csv.gz", "npz"} {
			cmdtest.Refused(t, nil, args+" --out /dev/full --format "+format, cli.ExitFailed,
				[]string{"/dev/full: cannot be written: no space left on device"})
		}
	}
	cmdtest.Refused(t, nil, "train --local --steps 2 --model-out /dev/full --data "+data, cli.ExitFailed,
		[]string{"/dev/full: cannot be written: no space left on device"})
	m.Rows[29][2] = "nan" // found only when the others are written
	bad := m.File(t, dir, "bad.csv", m.Header, 0, 1, 2, 3, 4, 5, 6)
	for _, name := range []string{"p.csv", "p.csv.gz", "p.npz"} {
		cmdtest.Refused(t, map[string]string{name: "before"}, "predict --model "+model+" --data "+bad+" --out @/"+name,
			cli.ExitFailed, []string{"bad.csv: row 29"})
	}
	out := cmdtest.Write(t, dir, "p.csv", "before")
	cmdtest.Run(t, "predict", "--model", model, "--data", bad, "--out", out)
	if got := cmdtest.Read(t, out); got != "before" {
		t.Errorf("a failed command left %q", got)
	}
}

// broken is a stdout that takes no more after some bytes.
type broken struct{ left int }

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

// Whatever a command prints, a stdout that cannot be written fails it.
func TestBrokenStdout(t *testing.T) {
	dir, m := t.TempDir(), clitest.NewMoods(20)
	data, model := m.Trained(t, dir)
	for _, args := range []string{
		"version", "version -o json", "--help", "algorithm list", "model show " + model, "dataset generate --out " +
			filepath.Join(dir, "g.csv"),
		"predict --out - --model " + model + " --data " + data, "evaluate --model " + model + " --data " + data,
		"evaluate --per-sample --model " + model + " --data " + data,
	} {
		var stderr strings.Builder
		code := cmdtest.RunWith(context.Background(), strings.Fields(args), strings.NewReader(""), &broken{left: 5}, &stderr)
		if code != cli.ExitFailed || !strings.Contains(stderr.String(),
			"stdout: cannot be written: no space left on device") {
			t.Errorf("%s: exit code %d: %s", args, code, &stderr)
		}
	}
}

// A pipe that its reader closes fails the command as any other write.
func TestClosedPipe(t *testing.T) {
	dir := t.TempDir()
	cmd, _, stderr := cmdtest.Process(t, dir, "dataset", "generate", "--rows", "100000", "--out", "-")
	cmd.Stdout = nil
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != cli.ExitFailed ||
		!strings.HasSuffix(stderr.String(), "coppice: stdout: cannot be written: broken pipe\n") {
		t.Errorf("%v: %s", cmd.ProcessState, stderr)
	}
}

// A key that is given twice is refused, by whichever flags.
func TestKeysGivenTwice(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "x.csv", 30, 1)
	for args, says := range map[string]string{
		"--steps 10 --set steps=20":               "steps is given twice, by --set and by --steps",
		"--set steps=10 --set steps=10":           "steps is given twice, by --set and by --set",
		"--seed 1 --set seed=2":                   "seed is given twice, by --seed and by --set",
		"--folds 2 --set folds=3":                 "folds is given twice",
		"--algorithm rf --set algorithm=structrf": "algorithm is given twice",
	} {
		cmdtest.Refused(t, nil, "train --local --data "+data+" "+args, cli.ExitUsage, []string{says})
	}
	files := map[string]string{"x.csv": cmdtest.Read(t, data), "s.yaml": "steps: 10\ntrees: 2\nsteps: 20\n"}
	cmdtest.Refused(t, files, "train --local --data @/x.csv --spec @/s.yaml", cli.ExitUsage,
		[]string{"s.yaml:3:1", "steps"})
}
