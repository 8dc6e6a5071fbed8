package commands

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

func trainArgs(data string, more ...string) []string {
	return append(append([]string{"train", "--local", "--data", data}, cmdtest.Small...), more...)
}

func TestTrainLocal(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 600, 1)
	var r result
	cmdtest.JSON(t, &r, trainArgs(data, "--test-fraction", "0.1", "--seed", "7", "--name", "first")...)
	if r.Job != "first" || r.Algorithm != "ldlf" || r.Dataset != "set" || r.Seed != 7 || r.Steps != 400 || r.RefitSteps != 200 || r.BestStep != 200 || r.Seconds <= 0 || r.EvaluatedOn != "test samples" || r.Rows.Test != 60 {
		t.Errorf("got %+v", r)
	}
	if model, mean := r.Measures[0].Mean, r.MeanPredictor[0].Mean; model > mean/5 || mean < 0.03 || mean > 0.06 {
		t.Errorf("K-L %v, of the mean baseline %v", model, mean)
	}
	var again result
	cmdtest.JSON(t, &again, trainArgs(data, "--test-fraction", "0.1", "--seed", "8")...)
	if again.ModelDigest == r.ModelDigest {
		t.Error("another seed gave the same model")
	}
}

// The names that others read from -o json.
func TestTrainJSON(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 200, 1)
	var v map[string]json.RawMessage
	cmdtest.JSON(t, &v, trainArgs(data)...)
	for _, key := range []string{"job", "algorithm", "dataset", "steps", "seconds", "loss", "measures", "mean_baseline", "evaluated_on", "model_digest", "settings", "seed", "split", "samples"} {
		if v[key] == nil {
			t.Errorf("no %q", key)
		}
	}
	var byName map[string]struct{ Mean, Std *float64 }
	if err := json.Unmarshal(v["measures"], &byName); err != nil {
		t.Fatal(err)
	}
	for _, m := range measures.All {
		if byName[m.Name].Mean == nil || byName[m.Name].Std == nil {
			t.Errorf("no measure %q", m.Name)
		}
	}
}

func TestTrainText(t *testing.T) {
	text := cmdtest.Works(t, trainArgs(cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 200, 1))...)
	for _, says := range []string{"and the defaults (-o json has all)", "mean baseline", "K-L", "Canberra", "model digest", "training samples"} {
		if !strings.Contains(text, says) {
			t.Errorf("the text does not say %q:\n%s", says, text)
		}
	}
}

// A spec file and flags give the same job, and flags stand above the file.
func TestTrainSpec(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	file := cmdtest.Write(t, dir, "job.yaml", "name: x\nseed: 3\ntest_fraction: 0.2\ntrees: 2\ndepth: 4\nsteps: 50\n")
	var fromFile, fromFlags, over result
	cmdtest.JSON(t, &fromFile, "train", "--local", "--data", data, "--spec", file)
	cmdtest.JSON(t, &fromFlags, "train", "--local", "--data", data, "--name", "x", "--seed", "3", "--test-fraction", "0.2", "--set", "trees=2", "--set", "depth=4", "--steps", "50")
	fromFile.Seconds, fromFlags.Seconds, fromFile.Spent, fromFlags.Spent = 0, 0, nil, nil
	if diff := cmp.Diff(fromFile, fromFlags, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	cmdtest.JSON(t, &over, "train", "--local", "--data", data, "--spec", file, "--seed", "4", "--set", "trees=1")
	if over.Seed != 4 || !strings.Contains(string(over.Settings), `"trees": 1`) {
		t.Errorf("seed %d, settings %s", over.Seed, over.Settings)
	}
}

// What is predicted and evaluated with a model file is what training measured.
func TestPredictAndEvaluate(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	model, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	var trained result
	cmdtest.JSON(t, &trained, trainArgs(data, "--model-out", model)...)
	if trained.Model != model {
		t.Errorf("the model is at %q", trained.Model)
	}
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	predicted := readCSV(t, out)
	if diff := cmp.Diff([]string{"row", "label_0", "label_1", "label_2"}, predicted[0]); diff != "" || len(predicted) != 301 || predicted[300][0] != "299" {
		t.Errorf("%d lines, header differs: %s", len(predicted), diff)
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data, "--per-sample")
	if e.Rows != 300 || len(e.PerSample) != 300 {
		t.Fatalf("%d rows, %d of them one by one", e.Rows, len(e.PerSample))
	}
	kl := 0.0
	for i, m := range measures.All {
		if !near(e.Measures[i].Mean, trained.Measures[i].Mean) || !near(e.MeanPredictor[i].Mean, trained.MeanPredictor[i].Mean) {
			t.Errorf("%s: %+v and %+v when training, %+v and %+v now", m.Name, trained.Measures[i], trained.MeanPredictor[i], e.Measures[i], e.MeanPredictor[i])
		}
	}
	truth := readCSV(t, data)
	for i, row := range e.PerSample {
		got := measures.KL(numbers(t, truth[i+1][3:]), numbers(t, predicted[i+1][1:]))
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
	var plain, more, folds result
	cmdtest.JSON(t, &plain, trainArgs(data)...)
	cmdtest.JSON(t, &more, trainArgs(data, "--measures", "all", "--clip", "pyldl", "--model-out", model)...)
	if plain.ModelDigest != more.ModelDigest || plain.Added != nil || plain.Clip != "" || more.Clip != "pyldl" {
		t.Errorf("digests %s and %s, clip %q", plain.ModelDigest, more.ModelDigest, more.Clip)
	}
	own, mean := more.Added.Model.Distribution, more.Added.MeanPredictor.Distribution
	if !(own.Spearman.Mean > mean.Spearman.Mean && own.JensenShannon.Mean < mean.JensenShannon.Mean && own.ZeroOne.Mean <= mean.ZeroOne.Mean && own.ErrorProbability.Mean <= mean.ErrorProbability.Mean) {
		t.Errorf("%+v, of the mean baseline %+v", own, mean)
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data, "--measures", "all", "--clip", "pyldl")
	if got := e.Added.Model.Distribution; !near(got.Spearman.Mean, own.Spearman.Mean) || !near(got.JensenShannon.Mean, own.JensenShannon.Mean) || !near(e.Measures[0].Mean, more.Measures[0].Mean) {
		t.Errorf("evaluated %+v, trained %+v", got, own)
	}
	cmdtest.JSON(t, &folds, trainArgs(data, "--folds", "2", "--set", "measures=all")...)
	if a := folds.Added; a == nil || a.Model.Distribution == nil || folds.Folds[1].Added.Model.Distribution == nil {
		t.Errorf("of folds: %+v", a)
	}
	if shown := cmdtest.Works(t, "model", "show", model); !strings.Contains(shown, "probabilities clipped as pyldl does") {
		t.Errorf("the model does not say how it was measured:\n%s", shown)
	}
	text := cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--measures", "all", "--clip", "pyldl")
	for _, says := range []string{"Spearman", "Jensen-Shannon", "Zero-one loss", "Error probability", "probabilities clipped as pyldl does"} {
		if !strings.Contains(text, says) {
			t.Errorf("the text does not say %q:\n%s", says, text)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func numbers(t *testing.T, texts []string) (v []float64) {
	t.Helper()
	for _, s := range texts {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, x)
	}
	return v
}

// Measures of each row go to a file, or before the table.
func TestEvaluatePerSample(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 50, 1), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, trainArgs(data, "--model-out", model)...)
	text := cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--per-sample")
	if lines := strings.Split(text, "\n"); !strings.HasPrefix(lines[0], "row,kl,euclidean,") || !strings.Contains(lines[0], "mean_kl") || !strings.HasPrefix(lines[50], "49,") || !strings.Contains(text, "mean baseline") {
		t.Errorf("got\n%s", text)
	}
	out := filepath.Join(dir, "rows.csv")
	cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--per-sample", "--out", out)
	if rows := readCSV(t, out); len(rows) != 51 || len(rows[0]) != 1+2*measures.Count {
		t.Errorf("%d lines of %d fields", len(rows), len(rows[0]))
	}
}

// Names travel from the file into model, predictions and measures of each row.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("name,height,width,label_oak,label_elm\n")
	for i := range 40 {
		x := float64(i) / 40
		b.WriteString(strings.Join([]string{"tree " + strconv.Itoa(i), strconv.FormatFloat(x, 'g', -1, 64), "1", strconv.FormatFloat(x, 'g', -1, 64), strconv.FormatFloat(1-x, 'g', -1, 64)}, ",") + "\n")
	}
	data, model, out := cmdtest.Write(t, dir, "trees.csv", b.String()), filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	cmdtest.Works(t, trainArgs(data, "--model-out", model)...)
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	predicted := readCSV(t, out)
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
		cmdtest.Works(t, trainArgs(data, append(test.flags, "--model-out", model)...)...)
		var e evaluation
		cmdtest.JSON(t, &e, append([]string{"evaluate", "--model", model, "--data", data}, test.flags...)...)
		var shown modelShown
		cmdtest.JSON(t, &shown, "model", "show", model)
		if e.Rows != 60 || shown.Labels != test.labels || e.Measures[0].Mean >= e.MeanPredictor[0].Mean {
			t.Errorf("%s: %d rows, %d labels, K-L %v against %v", test.name, e.Rows, shown.Labels, e.Measures[0].Mean, e.MeanPredictor[0].Mean)
		}
	}
}

// Folds are one job; each has a model file.
func TestTrainFolds(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1), filepath.Join(dir, "m.coppice")
	var r result
	cmdtest.JSON(t, &r, trainArgs(data, "--folds", "3", "--model-out", model)...)
	if len(r.Folds) != 3 || r.Folds[0].ModelDigest == r.Folds[1].ModelDigest || r.Folds[0].Rows.Test != 100 {
		t.Errorf("got %+v", r.Folds)
	}
	var shown modelShown
	cmdtest.JSON(t, &shown, "model", "show", filepath.Join(dir, "m-fold2.coppice"))
	if shown.Digest != r.Folds[2].ModelDigest || shown.Job.Split.Fold != 2 {
		t.Errorf("the third file holds %s of fold %d", shown.Digest, shown.Job.Split.Fold)
	}
	if diff := cmp.Diff([]string{"m-fold0.coppice", "m-fold1.coppice", "m-fold2.coppice", "set.csv"}, cmdtest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	var list strings.Builder
	list.WriteString("row,fold\n")
	for i := range 300 {
		list.WriteString(strconv.Itoa(i) + "," + strconv.Itoa(i%2) + "\n")
	}
	cmdtest.JSON(t, &r, trainArgs(data, "--split", cmdtest.Write(t, dir, "folds.csv", list.String()))...)
	if len(r.Folds) != 2 || r.Folds[0].Rows.Test != 150 {
		t.Errorf("listed folds: %+v", r.Folds)
	}
}

// The command that model show gives makes the same model.
func TestRepeat(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, trainArgs(data, "--model-out", model, "--seed", "5", "--test-fraction", "0.1", "--set", "optimizer=adam")...)
	var shown modelShown
	cmdtest.JSON(t, &shown, "model", "show", model)
	var r result
	cmdtest.JSON(t, &r, strings.Fields(strings.Replace(shown.Repeat, "FILE", data, 1))[1:]...)
	if r.ModelDigest != shown.Digest {
		t.Errorf("%s\ngave %s, not %s", shown.Repeat, r.ModelDigest, shown.Digest)
	}
}

func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.csv", "a.csv.gz", "a.npz"} {
		path := filepath.Join(dir, name)
		cmdtest.Works(t, "dataset", "generate", "--kind", "random", "--rows", "80", "--features", "20", "--labels", "4", "--density", "0.1", "--seed", "3", "--out", path)
		var r result
		cmdtest.JSON(t, &r, trainArgs(path)...)
		if want := "a"; r.Dataset != want {
			t.Errorf("dataset %q", r.Dataset)
		}
		if name != "a.csv" {
			continue
		}
		if rows := readCSV(t, path); len(rows) != 81 || len(rows[0]) != 24 {
			t.Errorf("%d lines of %d fields", len(rows), len(rows[0]))
		}
	}
}

func TestVersionAndSettings(t *testing.T) {
	var v struct{ Version string }
	if cmdtest.JSON(t, &v, "version"); v.Version == "" {
		t.Error("no version")
	}
	var keys struct{ Settings []settingInfo }
	cmdtest.JSON(t, &keys, "train", "--algorithm", "ldlf", "--settings")
	have := make(map[string]bool)
	for _, s := range keys.Settings {
		have[s.Key] = s.Values != "" && s.Default != "" && s.Doc != ""
	}
	for _, key := range strings.Fields("trees depth outputs bias scaling batch_size optimizer learning_rate learning_rate_step learning_rate_decay momentum weight_decay init init_std leaf_iterations leaf_batches validation_fraction patience") {
		if !have[key] {
			t.Errorf("%s is not described", key)
		}
	}
}

// Every command has help that names its flags.
func TestHelp(t *testing.T) {
	for _, command := range []string{"", "quickstart", "train", "predict", "evaluate", "dataset import", "dataset inspect", "dataset generate", "job submit", "job watch", "model show", "model download", "coordinator", "worker", "version"} {
		text := cmdtest.Works(t, append(strings.Fields(command), "--help")...)
		if !strings.Contains(text, "Usage: coppice "+command) || !strings.Contains(text, "--output") {
			t.Errorf("%s --help:\n%s", command, text)
		}
	}
	if text := cmdtest.Works(t, "evaluate", "--help"); !strings.Contains(text, "Labels are rounded to float32") {
		t.Errorf("evaluate --help does not say to what labels are rounded:\n%s", text)
	}
}
