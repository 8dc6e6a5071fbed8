package results

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// drawnIn returns the texts of the figures of a folder by name. Each figure is there as SVG, PNG and PDF.
func drawnIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	drawn, names := make(map[string]string), cmdtest.Contents(t, dir)
	for _, name := range names {
		stem, ok := strings.CutSuffix(name, ".svg")
		if !ok {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		drawn[stem] = string(b)
		in, err := os.Open(filepath.Join(dir, stem+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.DecodeConfig(in); err != nil {
			t.Errorf("%s.png: %v", stem, err)
		}
		in.Close()
		page, err := os.ReadFile(filepath.Join(dir, stem+".pdf"))
		if err != nil || !bytes.HasPrefix(page, []byte("%PDF-")) {
			t.Errorf("%s.pdf: %.10q, %v", stem, page, err)
		}
	}
	if len(names) != 3*len(drawn) {
		t.Errorf("%s has %v", dir, names)
	}
	return drawn
}

// hasTexts compares the names of figures and looks for texts in each.
func hasTexts(t *testing.T, drawn map[string]string, want map[string][]string) {
	t.Helper()
	for name, texts := range want {
		for _, text := range texts {
			if !strings.Contains(drawn[name], text) {
				t.Errorf("figure %s has no %q", name, text)
			}
		}
	}
	for name := range drawn {
		if want[name] == nil {
			t.Errorf("there is a figure %s", name)
		}
	}
}

// TestFiguresOfTraining: a training draws its learning curve and what it predicted of the rows that it held out.
func TestFiguresOfTraining(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	set := cmdtest.ArtificialFile(t, dir, "set.csv", 120, 1)
	var ages, classes strings.Builder
	ages.WriteString("x,y,age\n")
	classes.WriteString("x,y,kind\n")
	for i := range 120 {
		fmt.Fprintf(&ages, "%d,%d,%d\n", i%7, i%5, 20+i%7+i%5)
		fmt.Fprintf(&classes, "%d,%d,%s\n", i%7, i%5, []string{"oak", "elm"}[i%2])
	}
	train := []string{"train", "--local", "--algorithm"}
	for name, c := range map[string]struct {
		args []string
		want map[string][]string
	}{
		"distributions": {[]string{"ldlf", "--steps", "40", "--data", set, "--test-fraction", "0.3"}, map[string][]string{
			"learning-curve": {"set: ldlf", ">loss<", ">validation<"}, "distributions": {"set: ldlf, test samples",
				">predicted<", "K-L "},
		}},
		"folds": {[]string{"ldlf", "--steps", "40", "--data", set, "--folds", "3"}, map[string][]string{
			"learning-curve": {">fold 2<"}, "distributions": {">true<"},
		}},
		"ages": {[]string{"structrf", "--set", "trees=2", "--data", cmdtest.Write(t, dir, "ages.csv", ages.String()),
			"--labels", "age", "--range", "18:34", "--sigma", "2", "--test-fraction", "0.3"}, map[string][]string{
			"cumulative-score": {">expected<", "mean baseline", "samples (%)"}, "distributions": {">number<"},
			"learning-curve": {">training<"},
		}},
		"classes": {[]string{"structrf", "--set", "trees=2", "--data", cmdtest.Write(t, dir, "classes.csv", classes.String()),
			"--labels", "class", "--label-columns", "kind", "--test-fraction", "0.3"}, map[string][]string{
			"confusion": {">oak<", "true class"}, "distributions": {">elm<"}, "learning-curve": {">training<"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			figures := filepath.Join(dir, name+".figures")
			cmdtest.Works(t, append(append(slices.Clone(train), c.args...), "--figures", figures)...)
			hasTexts(t, drawnIn(t, figures), c.want)
		})
	}
}

// TestFiguresOfEvaluation: on a grid there is a colour map, on other rows there is none.
func TestFiguresOfEvaluation(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	set, grid, model := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1), filepath.Join(dir, "grid.csv"),
		filepath.Join(dir, "m.model")
	cmdtest.Works(t, "dataset", "generate", "--grid", "11", "--out", grid)
	cmdtest.Works(t, "train", "--local", "--data", set, "--algorithm", "sa-bfgs", "--model-out", model)
	for data, want := range map[string]map[string][]string{
		set:  {"distributions": {"set: sa-bfgs"}},
		grid: {"distributions": {"grid: sa-bfgs", "row "}, "colours": {">true<", ">predicted<", ">label 3<"}},
	} {
		figures := filepath.Join(dir, filepath.Base(data)+".figures")
		cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--figures", figures)
		hasTexts(t, drawnIn(t, figures), want)
	}
}

// TestFiguresOfReport: the figures of an experiment are files, which its report in Markdown shows, and a folder that
// cannot be one is refused before anything runs.
func TestFiguresOfReport(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "first.csv", 60, 1)
	cmdtest.ArtificialFile(t, dir, "second.csv", 60, 2)
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [first.csv, second.csv]\nfolds: 2\nmeasures: "+
		"[kl]\nmethods: [{algorithm: structrf, grid: {trees: [1, 2, 3]}}]")
	if e := cmdtest.Run(t, "experiment", "run", spec, "--local", "--figures", spec); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "e.yaml: is a file") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "experiment", "run", spec, "--local", "--figures", filepath.Join(dir, "no",
		"where")); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "the parent folder does not exist") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	figures, report := filepath.Join(dir, "figures"), filepath.Join(dir, "report.md")
	// a slow machine would have figures of times
	cmdtest.Works(t, "experiment", "run", spec, "--local", "--no-times", "--figures", figures, "--format", "md",
		"--out", report)
	hasTexts(t, drawnIn(t, figures), map[string][]string{
		"01-ranks-kl": {"average rank"}, "02-first-structrf-by-trees-kl": {">trees<", "K-L (nats)"},
		"03-second-structrf-by-trees-kl": {"second: structrf by trees"},
	})
	b, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(b), "](<figures/02-first-structrf-by-trees-kl.svg>)") {
		t.Errorf("the report does not show the figures, error %v", err)
	}
}

// TestFiguresOfJob: a job of a cluster has the figures of the same training in one process, and its curve is drawn by
// itself as well.
func TestFiguresOfJob(t *testing.T) {
	testkit.WithoutRace(t)
	clitest.Cluster(t)
	dir := t.TempDir()
	args := []string{"train", "--data", cmdtest.ArtificialFile(t, dir, "set.csv", 120, 1), "--algorithm", "ldlf",
		"--steps", "40", "--folds", "2", "--figures"}
	here, there, again := filepath.Join(dir, "here"), filepath.Join(dir, "there"), filepath.Join(dir, "again")
	cmdtest.Works(t, append(slices.Clone(args), here, "--local")...)
	cmdtest.Works(t, append(slices.Clone(args), there, "--name", "j")...)
	local := drawnIn(t, here)
	if diff := cmp.Diff(local, drawnIn(t, there)); diff != "" || len(local) != 2 {
		t.Errorf("%d figures: %s", len(local), diff)
	}
	cmdtest.Works(t, "job", "predictions", "j", "--out", filepath.Join(dir, "p.csv"), "--figures", again)
	if drawn := drawnIn(t, again); len(drawn) != 1 || drawn["distributions"] != local["distributions"] {
		t.Error("the figures of job predictions are others")
	}
	plot := filepath.Join(dir, "curve.svg")
	cmdtest.Works(t, "job", "curve", "j", "--plot", plot)
	if text := cmdtest.Read(t, plot); !strings.Contains(text, "job j") || !strings.Contains(text, ">fold 1<") {
		t.Errorf("the curve:\n%.300s", text)
	}
	if e := cmdtest.Run(t, "job", "curve", "j", "--plot", filepath.Join(dir, "curve.jpg")); e.Code != cli.ExitUsage ||
		!strings.Contains(e.Stderr, "must end in .svg, .png or .pdf") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
}

// A figure that cannot be written fails the command, but its result is printed.
func TestResultWithoutFigures(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	figures := filepath.Join(dir, "figures")
	if err := os.MkdirAll(filepath.Join(figures, "learning-curve.svg"), 0o777); err != nil {
		t.Fatal(err)
	}
	e := cmdtest.Run(t, "train", "--local", "--data", cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1), "--algorithm",
		"structrf", "--set", "trees=3", "--figures", figures)
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "learning-curve.svg") ||
		!strings.Contains(e.Stdout, "model digest") {
		t.Errorf("exit code %d\n%s%s", e.Code, e.Stdout, e.Stderr)
	}
}
