package modelcmd

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestNotBetterThanBaseline: the mean of all training samples as neighbours is the mean baseline. train, model show and
// evaluate say so, as text and as JSON. Of training samples nothing is said.
func TestNotBetterThanBaseline(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 40, 1), dir+"/m.model"
	all := []string{"train", "--local", "--data", data, "--algorithm", "aa-knn", "--set", "scaling=none"}
	args := append(all, "--test-fraction", "0.25", "--set", "k=30", "--model-out", model)
	evaluate := []string{"evaluate", "--model", model, "--data", data}
	var r results.Result
	cmdtest.JSON(t, &r, args...)
	var e evaluation
	cmdtest.JSON(t, &e, evaluate...)
	if r.Against == nil || r.Against.Verdict != measures.NotBetter || r.Against.Samples != 10 || e.Against == nil ||
		e.Against.Verdict != measures.NotBetter || e.Against.Samples != 40 {
		t.Errorf("train says %+v, evaluate %+v", r.Against, e.Against)
	}
	for on, text := range map[string]string{
		"test samples": cmdtest.Works(t, args...) + cmdtest.Works(t, "model", "show", model),
		"samples":      cmdtest.Works(t, evaluate...) + cmdtest.Works(t, evaluate...),
	} {
		if strings.Count(text, "warning: aa-knn is not better than the mean baseline: its K-L on the "+on+
			" differs by 0.00000 (standard error 0.00000).\n") != 2 {
			t.Errorf("the text does not say it of the %s:\n%s", on, text)
		}
	}
	if text := cmdtest.Works(t, append(all, "--set", "k=40")...); strings.Contains(text, "than the mean baseline") {
		t.Errorf("without test samples:\n%s", text)
	}
	if text := cmdtest.Works(t, append(all, "--set", "k=3", "--folds", "4")...); strings.Contains(text,
		"than the mean baseline") {
		t.Errorf("a better model:\n%s", text)
	}
}

// What is predicted and evaluated with a model file is what training measured.
func TestPredictAndEvaluate(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	model, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	var trained results.Result
	cmdtest.JSON(t, &trained, clitest.TrainArgs(data, "--model-out", model)...)
	if trained.Model != model {
		t.Errorf("the model is at %q", trained.Model)
	}
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	predicted := clitest.ReadCSV(t, out)
	if diff := cmp.Diff([]string{"row", "label_0", "label_1", "label_2"}, predicted[0]); diff != "" ||
		len(predicted) != 301 || predicted[300][0] != "299" {
		t.Errorf("%d lines, header differs: %s", len(predicted), diff)
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data, "--per-sample")
	if e.Rows != 300 || len(e.PerSample) != 300 {
		t.Fatalf("%d rows, %d of them one by one", e.Rows, len(e.PerSample))
	}
	kl := 0.0
	for i, m := range measures.All {
		if !near(e.Measures[i].Mean, trained.Measures[i].Mean) ||
			!near(e.MeanPredictor[i].Mean, trained.MeanPredictor[i].Mean) {
			t.Errorf("%s: %+v and %+v when training, %+v and %+v now", m.Name, trained.Measures[i], trained.MeanPredictor[i],
				e.Measures[i], e.MeanPredictor[i])
		}
	}
	truth := clitest.ReadCSV(t, data)
	for i, row := range e.PerSample {
		got := measures.KL(clitest.Numbers(t, truth[i+1][3:]), clitest.Numbers(t, predicted[i+1][1:]))
		if math.Abs(got-row.Measures["kl"]) > 1e-6 {
			t.Fatalf("row %d: K-L %v of the predictions, %v reported", i, got, row.Measures["kl"])
		}
		kl += row.Measures["kl"] / 300
	}
	if !near(kl, e.Measures[0].Mean) {
		t.Errorf("the rows' mean K-L is %v, the whole's %v", kl, e.Measures[0].Mean)
	}
	if diff := cmp.Diff([]string{"m.coppice", "p.csv", "set.csv"}, cmdtest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// TestMoreMeasures: --measures all and --clip change what is printed and no model; a job of folds,
// the spec and evaluate know them as well.
func TestMoreMeasures(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	model := filepath.Join(dir, "m.coppice")
	var plain, more, folds results.Result
	cmdtest.JSON(t, &plain, clitest.TrainArgs(data)...)
	cmdtest.JSON(t, &more, clitest.TrainArgs(data, "--measures", "all", "--clip", "pyldl", "--model-out", model)...)
	if plain.ModelDigest != more.ModelDigest || plain.Added != nil || plain.Clip != "" || more.Clip != "pyldl" {
		t.Errorf("digests %s and %s, clip %q", plain.ModelDigest, more.ModelDigest, more.Clip)
	}
	own, mean := more.Added.Model.Distribution, more.Added.MeanPredictor.Distribution
	for i, m := range measures.More {
		if better := own[i].Mean - mean[i].Mean; m.HigherIsBetter && better < 0 || !m.HigherIsBetter && better > 0 {
			t.Errorf("%s: %v, of the mean baseline %v", m.Name, own[i], mean[i])
		}
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data, "--measures", "all", "--clip", "pyldl")
	got := e.Added.Model.Distribution
	for i, m := range measures.More {
		if !near(got[i].Mean, own[i].Mean) || !near(e.Measures[0].Mean, more.Measures[0].Mean) {
			t.Errorf("%s: evaluated %v, trained %v", m.Name, got[i], own[i])
		}
	}
	cmdtest.JSON(t, &folds, clitest.TrainArgs(data, "--folds", "2", "--set", "measures=all")...)
	if a := folds.Added; a == nil || a.Model.Distribution == nil || folds.Folds[1].Added.Model.Distribution == nil {
		t.Errorf("of folds: %+v", a)
	}
	if shown := cmdtest.Works(t, "model", "show", model); !strings.Contains(shown, "probabilities clipped as pyldl does") {
		t.Errorf("the model does not say how it was measured:\n%s", shown)
	}
	text := cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--measures", "all", "--clip", "pyldl")
	for _, says := range []string{"Spearman", "Jensen-Shannon", "Zero-one loss", "Error probability",
		"probabilities clipped as pyldl does"} {
		if !strings.Contains(text, says) {
			t.Errorf("the text does not say %q:\n%s", says, text)
		}
	}
}

// Measures of each row go to a file, or before the table.
func TestEvaluatePerSample(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 50, 1), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, clitest.TrainArgs(data, "--model-out", model)...)
	text := cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--per-sample")
	if lines := strings.Split(text, "\n"); !strings.HasPrefix(lines[0], "row,kl,euclidean,") ||
		!strings.Contains(lines[0], "mean_kl") || !strings.HasPrefix(lines[50], "49,") ||
		!strings.Contains(text, "mean baseline") {
		t.Errorf("got\n%s", text)
	}
	out := filepath.Join(dir, "rows.csv")
	cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--per-sample", "--out", out)
	if rows := clitest.ReadCSV(t, out); len(rows) != 51 || len(rows[0]) != 1+2*measures.Count {
		t.Errorf("%d lines of %d fields", len(rows), len(rows[0]))
	}
}

// TestEvaluateRange: a --range of other numbers than the model's is refused; the model's own is accepted.
func TestEvaluateRange(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "x.csv", "a,label_1,label_2,label_3\n1,1,0,0\n2,0,1,0\n3,0,0,1\n"), dir+"/m.model"
	cmdtest.Works(t, "train", "--local", "--data", data, "--range", "1:3", "--algorithm", "aa-knn", "--set", "k=1",
		"--model-out", model)
	for _, r := range []string{"0:2", "101:103", "0:3"} {
		end := cmdtest.Run(t, "evaluate", "--model", model, "--data", data, "--range", r)
		if end.Code != cli.ExitUsage || !strings.Contains(end.Stderr, "give --range 1:3") {
			t.Errorf("--range %s: %d, %s", r, end.Code, end.Stderr)
		}
	}
	cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--range", "1:3")
}

// TestRoundedAgesAreNoted: train and evaluate say how many ages are rounded for errors, as text and as JSON.
func TestRoundedAgesAreNoted(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "x.csv", "a,age\n1,25.5\n2,26.5\n3,30\n"), dir+"/m.model"
	const want = "the ages of 2 samples are not whole numbers"
	flags := []string{"--data", data, "--labels", "age", "--sigma", "2", "--range", "0:69"}
	end := cmdtest.Run(t, slices.Concat([]string{"train", "--local", "--algorithm", "aa-knn", "--set", "k=1",
		"--model-out", model}, flags)...)
	if end.Code != cli.ExitOK || strings.Count(end.Stderr, want) != 1 {
		t.Errorf("train: %d, %s", end.Code, end.Stderr)
	}
	if end = cmdtest.Run(t, "evaluate", "--model", model, "--data", data); strings.Count(end.Stderr, want) != 1 {
		t.Errorf("evaluate: %d, %s", end.Code, end.Stderr)
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data)
	if !slices.ContainsFunc(e.Notes, func(s string) bool { return strings.Contains(s, want) }) {
		t.Errorf("notes of JSON: %q", e.Notes)
	}
}

// A model of means has no medians: predict and evaluate refuse the other one, and say what the model keeps.
func TestMissingOtherThanTrained(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv",
		"a,b,label_p,label_q\n0,1,.1,.9\n1,2,.2,.8\n2,1,.3,.7\n30,2,.4,.6\n8,1,.6,.4\n40,2,.7,.3\n,1,.5,.5\n")
	later := cmdtest.Write(t, dir, "later.csv", "a,b\nNA,1\n5,1\n13.5,1\n")
	for by, other := range map[string]string{"mean": "median", "median": "mean"} {
		model := filepath.Join(dir, by+".model")
		cmdtest.Works(t, clitest.NearestNeighbour(data, model, "--missing", by)...)
		for _, args := range [][]string{{"predict", "--out", "-", "--data", later}, {"evaluate", "--data", data}} {
			args = append(args, "--model", model, "--missing")
			e := cmdtest.Run(t, append(args, other)...)
			if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "the model has the "+by) ||
				!strings.Contains(e.Stderr, "--missing "+by) {
				t.Errorf("trained with %s: exit code %d, %s", by, e.Code, e.Stderr)
			}
			cmdtest.Works(t, append(args, by)...)
		}
	}
	// The advice of an error works.
	model := filepath.Join(dir, "none.model")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model, "--missing", "drop")...)
	cmdtest.Works(t, clitest.NearestNeighbour(cmdtest.Write(t, dir, "full.csv",
		"a,b,label_p,label_q\n0,1,.1,.9\n1,2,.2,.8\n2,1,.3,.7\n"), model)...)
	e := cmdtest.Run(t, "predict", "--model", model, "--data", later, "--out", "-")
	if e.Code == cli.ExitOK || strings.Contains(e.Stderr, "--missing mean") ||
		!strings.Contains(e.Stderr, "does not have the mean") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	for _, m := range []string{"drop", "0"} {
		if !strings.Contains(e.Stderr, "--missing "+m) {
			t.Errorf("it lacks --missing %s: %s", m, e.Stderr)
		}
		cmdtest.Works(t, "predict", "--model", model, "--data", later, "--out", "-", "--missing", m)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

// Names travel from the file into model, predictions and measures of each row.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("name,height,width,label_oak,label_elm\n")
	for i := range 40 {
		x := float64(i) / 40
		b.WriteString(strings.Join([]string{"tree " + strconv.Itoa(i), strconv.FormatFloat(x, 'g', -1, 64), "1",
			strconv.FormatFloat(x, 'g', -1, 64), strconv.FormatFloat(1-x, 'g', -1, 64)}, ",") + "\n")
	}
	data, model, out := cmdtest.Write(t, dir, "trees.csv", b.String()), filepath.Join(dir, "m.coppice"),
		filepath.Join(dir, "p.csv")
	cmdtest.Works(t, clitest.TrainArgs(data, "--model-out", model)...)
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	predicted := clitest.ReadCSV(t, out)
	if diff := cmp.Diff([]string{"row", "oak", "elm"}, predicted[0]); diff != "" || predicted[8][0] != "tree 7" {
		t.Errorf("row %q; %s", predicted[8][0], diff)
	}
	var shown modelShown
	cmdtest.JSON(t, &shown, "model", "show", model)
	if diff := cmp.Diff([]string{"height", "width"}, shown.FeatureNames); diff != "" {
		t.Error(diff)
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data, "--per-sample")
	if e.PerSample[3].Row != "tree 3" {
		t.Errorf("row %q", e.PerSample[3].Row)
	}
}

// Classes and ages become distributions, in training and in evaluation alike.
func TestLabelKinds(t *testing.T) {
	dir := t.TempDir()
	var classes, ages strings.Builder
	classes.WriteString("x0,x1,class\n")
	ages.WriteString("x0,x1,age\n")
	for i := range 60 {
		classes.WriteString(strconv.Itoa(i%3) + ",1," + []string{"ash", "elm", "oak"}[i%3] + "\n")
		ages.WriteString(strconv.Itoa(i%7) + ",1," + strconv.Itoa(i%7+2) + "\n")
	}
	for _, test := range []struct {
		name, text string
		flags      []string
		labels     int
	}{
		{"classes.csv", classes.String(), []string{"--labels", "class"}, 3},
		{"ages.csv", ages.String(), []string{"--labels", "age", "--sigma", "2", "--range", "0:10"}, 11},
	} {
		data, model := cmdtest.Write(t, dir, test.name, test.text), filepath.Join(dir, test.name+".coppice")
		cmdtest.Works(t, clitest.TrainArgs(data, append(test.flags, "--model-out", model)...)...)
		var e evaluation
		cmdtest.JSON(t, &e, append([]string{"evaluate", "--model", model, "--data", data}, test.flags...)...)
		var shown modelShown
		cmdtest.JSON(t, &shown, "model", "show", model)
		if e.Rows != 60 || shown.Labels != test.labels || e.Measures[0].Mean >= e.MeanPredictor[0].Mean {
			t.Errorf("%s: %d rows, %d labels, K-L %v against %v", test.name, e.Rows, shown.Labels, e.Measures[0].Mean,
				e.MeanPredictor[0].Mean)
		}
	}
}

// The command that model show gives makes the same model.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, clitest.TrainArgs(data, "--model-out", model, "--seed", "5", "--test-fraction", "0.1", "--set",
		"optimizer=adam")...)
	var shown modelShown
	cmdtest.JSON(t, &shown, "model", "show", model)
	var r results.Result
	cmdtest.JSON(t, &r, strings.Fields(strings.Replace(shown.Repeat, "FILE", data, 1))[1:]...)
	if r.ModelDigest != shown.Digest {
		t.Errorf("%s\ngave %s, not %s", shown.Repeat, r.ModelDigest, shown.Digest)
	}
}
