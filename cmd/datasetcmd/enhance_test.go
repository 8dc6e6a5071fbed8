package datasetcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// logicalFile writes four samples with logical labels.
func logicalFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "logical.csv")
	text := "x,y,label_0,label_1,label_2\n1,2,1,0,0\n1,3,1,1,0\n5,1,0,0,1\n6,1,0,1,1\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// labelsOf reads the columns of labels of a CSV file that enhance wrote.
func labelsOf(t *testing.T, path string) (labels []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n")[1:] {
		labels = append(labels, strings.SplitN(line, ",", 3)[2])
	}
	return labels
}

// TestEnhance: the file has the distributions as labels, and rows that are left out stay out.
func TestEnhance(t *testing.T) {
	file := logicalFile(t)
	dir := filepath.Dir(file)
	out := filepath.Join(dir, "sum.csv")
	var r enhanced
	cmdtest.JSON(t, &r, "dataset", "enhance", file, "--method", "logical", "--normalise", "sum", "--out", out)
	want := "1,0,0 0.5,0.5,0 0,0,1 0,0.5,0.5"
	if got := strings.Join(labelsOf(t, out), " "); got != want || r.Samples != 4 || r.Relevant != 1.5 ||
		r.Recovery != nil {
		t.Errorf("labels %s, want %s; %+v", got, want, r)
	}
	cmdtest.JSON(t, &r, "dataset", "enhance", file, "--method", "km", "--truth", out, "--threads", "3")
	if len(r.Recovery) != 3 {
		t.Errorf("%+v", r)
	}
	gaps := filepath.Join(dir, "gaps.csv")
	if err := os.WriteFile(gaps, []byte("x,y,label_0,label_1\n1,,1,0\n1,3,1,1\n5,1,0,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	cmdtest.Works(t, "dataset", "enhance", gaps, "--missing", "drop", "--method", "logical", "--normalise", "sum", "--out",
		out)
	if got := strings.Join(labelsOf(t, out), " "); got != "0.5,0.5 0,1" {
		t.Errorf("with a row left out: labels %s", got)
	}
}

// TestEnhanceRecovery: the result and the two trivial lines are compared with the truth, in both directions of K-L.
func TestEnhanceRecovery(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made.csv")
	cmdtest.Works(t, "dataset", "generate", "--rows", "60", "--out", file)
	for _, method := range []string{"lp", "km", "glle", "logical"} {
		var r enhanced
		cmdtest.JSON(t, &r, "dataset", "enhance", file, "--binarise", "0.5", "--method", method)
		if len(r.Recovery) != 3 || r.Recovery[1].Of != "L / sum" || r.Recovery[2].Of != "softmax(L)" {
			t.Fatalf("%s: %+v", method, r)
		}
		for _, line := range r.Recovery {
			if !(line.KL > 0 && line.ReverseKL != line.KL && line.Chebyshev > 0 && line.Cosine > 0.5) {
				t.Errorf("%s: %+v", method, line)
			}
		}
		e := cmdtest.Run(t, "dataset", "enhance", file, "--binarise", "0.5", "--method", method)
		for _, want := range []string{"reverse K-L", "L / sum", "softmax(L)", method + ", softmax"} {
			if !strings.Contains(e.Stdout, want) {
				t.Errorf("%s: %q is missing: %s", method, want, e.Stdout)
			}
		}
	}
}

// TestEnhanceRefuses: wrong flags have the exit code 2, wrong data 1, and no file is left.
func TestEnhanceRefuses(t *testing.T) {
	file := logicalFile(t)
	out := filepath.Join(filepath.Dir(file), "out.csv")
	none := filepath.Join(filepath.Dir(file), "none.csv")
	if err := os.WriteFile(none, []byte("x,label_0,label_1\n1,1,0\n2,0,0\n3,0,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "--out FILE, --binarise 0.5 or --truth FILE", []string{file}},
		{cli.ExitUsage, "give only one of them", []string{file, "--binarise", "0.5", "--truth", file}},
		{cli.ExitUsage, "above 0 and below 1", []string{file, "--binarise", "1"}},
		{cli.ExitUsage, "--method", []string{file, "--method", "ml", "--out", out}},
		{cli.ExitUsage, "want drop or a number", []string{file, "--missing", "mean", "--out", out}},
		{cli.ExitUsage, "", []string{file, "--out", file}},
		{cli.ExitUsage, "format", []string{file, "--out", out + ".txt"}},
		{cli.ExitFailed, "row 1 (counted from 0)", []string{none, "--out", out}},
		{cli.ExitFailed, "--binarise 0.5", []string{"made", "--out", out}},
		{cli.ExitFailed, "4 samples with 3 labels", []string{file, "--truth", "made", "--out", out}},
	} {
		for i, arg := range x.args {
			if arg == "made" {
				x.args[i] = filepath.Join(filepath.Dir(file), "made.csv")
				cmdtest.Works(t, "dataset", "generate", "--rows", "9", "--out", x.args[i])
			}
		}
		e := cmdtest.Run(t, append([]string{"dataset", "enhance"}, x.args...)...)
		if e.Code != x.code || !strings.Contains(e.Stderr, x.want) {
			t.Errorf("%q: exit code %d, %s", x.args, e.Code, e.Stderr)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: a file was written", x.args)
		}
	}
}
