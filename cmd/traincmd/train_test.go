package traincmd

import (
	"encoding/json"
	"os"
	"path/filepath"
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
	"github.com/coppice-ldl/coppice/job/pipeline"
)

func TestTrainLocal(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 600, 1)
	var r results.Result
	cmdtest.JSON(t, &r, clitest.TrainArgs(data, "--test-fraction", "0.1", "--seed", "7", "--name", "first")...)
	if r.Job != "first" || r.Algorithm != "ldlf" || r.Dataset != "set" || r.Seed != 7 || r.Steps != 400 || r.RefitSteps != 200 || r.BestStep != 200 || r.Seconds <= 0 || r.EvaluatedOn != "test samples" || r.Rows.Test != 60 {
		t.Errorf("got %+v", r)
	}
	if model, mean := r.Measures[0].Mean, r.MeanPredictor[0].Mean; model > mean/5 || mean < 0.03 || mean > 0.06 {
		t.Errorf("K-L %v, of the mean baseline %v", model, mean)
	}
	var again results.Result
	cmdtest.JSON(t, &again, clitest.TrainArgs(data, "--test-fraction", "0.1", "--seed", "8")...)
	if again.ModelDigest == r.ModelDigest {
		t.Error("another seed gave the same model")
	}
}

// The names that others read from -o json.
func TestTrainJSON(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 200, 1)
	var v map[string]json.RawMessage
	cmdtest.JSON(t, &v, clitest.TrainArgs(data)...)
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
	text := cmdtest.Works(t, clitest.TrainArgs(cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 200, 1))...)
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
	var fromFile, fromFlags, over results.Result
	cmdtest.JSON(t, &fromFile, "train", "--local", "--data", data, "--spec", file)
	cmdtest.JSON(t, &fromFlags, "train", "--local", "--data", data, "--name", "x", "--seed", "3", "--test-fraction", "0.2", "--set", "trees=2", "--set", "depth=4", "--steps", "50")
	fromFile.Seconds, fromFlags.Seconds, fromFile.Spent, fromFlags.Spent = 0, 0, nil, nil
	if diff := cmp.Diff(fromFile, fromFlags, cmp.AllowUnexported(results.Result{})); diff != "" {
		t.Error(diff)
	}
	cmdtest.JSON(t, &over, "train", "--local", "--data", data, "--spec", file, "--seed", "4", "--set", "trees=1")
	if over.Seed != 4 || !strings.Contains(string(over.Settings), `"trees": 1`) {
		t.Errorf("seed %d, settings %s", over.Seed, over.Settings)
	}
}

// Folds are one job; each has a model file.
func TestTrainFolds(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1), filepath.Join(dir, "m.coppice")
	var r results.Result
	cmdtest.JSON(t, &r, clitest.TrainArgs(data, "--folds", "3", "--model-out", model)...)
	if len(r.Folds) != 3 || r.Folds[0].ModelDigest == r.Folds[1].ModelDigest || r.Folds[0].Rows.Test != 100 {
		t.Errorf("got %+v", r.Folds)
	}
	var shown struct {
		*pipeline.Provenance
		Digest, Repeat string
	}
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
	cmdtest.JSON(t, &r, clitest.TrainArgs(data, "--split", cmdtest.Write(t, dir, "folds.csv", list.String()))...)
	if len(r.Folds) != 2 || r.Folds[0].Rows.Test != 150 {
		t.Errorf("listed folds: %+v", r.Folds)
	}
}

func TestVersionAndSettings(t *testing.T) {
	var v struct{ Version string }
	if cmdtest.JSON(t, &v, "version"); v.Version == "" {
		t.Error("no version")
	}
	var keys struct {
		Settings []struct{ Key, Values, Default, Doc string }
	}
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

// An interrupt ends local training with exit code 130 and leaves nothing behind.
func TestInterruptLocal(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 2000, 1)
	cmd, stdout, stderr := cmdtest.Process(t, dir, "train", "--local", "--data", data, "--steps", "1000000000", "--set", "patience=1000000", "--model-out", filepath.Join(dir, "m.coppice"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the file to be begun", func() bool { return len(cmdtest.Contents(t, dir)) == 2 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitSignal+2 || stdout.Len() > 0 || !strings.HasSuffix(stderr.String(), "coppice: interrupted\n") {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	if diff := cmp.Diff([]string{"set.csv"}, cmdtest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// What help says of the files of folds is what they are called.
func TestFoldNames(t *testing.T) {
	help := strings.Join(strings.Fields(clitest.Output(t, "train", "--help")), " ")
	for i, want := range []string{"m-fold0.model", "m-fold1.model"} {
		if got := foldPath("m.model", i); got != want || !strings.Contains(help, want) {
			t.Errorf("fold %d is in %s; help says %v of %s", i, got, strings.Contains(help, want), want)
		}
	}
}
