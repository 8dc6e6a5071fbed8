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
	if r.Job != "first" || r.Algorithm != "ldlf" || r.Dataset != "set" || r.Seed != 7 || r.Steps != 400 ||
		r.RefitSteps != 200 || r.BestStep != 200 || r.Seconds <= 0 || r.EvaluatedOn != "test samples" || r.Rows.Test != 60 {
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
	for _, key := range []string{"job", "algorithm", "dataset", "steps", "seconds", "loss", "measures", "mean_baseline",
		"evaluated_on", "model_digest", "settings", "seed", "split", "samples"} {
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
	for _, says := range []string{"and the defaults (-o json has all)", "mean baseline", "K-L", "Canberra", "model digest",
		"training samples"} {
		if !strings.Contains(text, says) {
			t.Errorf("the text does not say %q:\n%s", says, text)
		}
	}
}

// TestScreeningSays: without an algorithm, stderr and -o json say how small models of others do; stdout does not.
func TestScreeningSays(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 200, 1)
	args := clitest.TrainArgs(data)
	for _, c := range []struct {
		flags []string
		says  bool
	}{{nil, true}, {[]string{"--no-screen"}, false}, {[]string{"--algorithm", "ldlf"}, false}} {
		e := cmdtest.Run(t, append(args, c.flags...)...)
		if got := strings.Contains(e.Stderr, "screening on "); e.Code != 0 || got != c.says ||
			strings.Contains(e.Stdout, "creening on") {
			t.Errorf("%v: exit code %d, stderr %s, stdout %s", c.flags, e.Code, e.Stderr, e.Stdout)
		}
		var r results.Result
		cmdtest.JSON(t, &r, append(args, c.flags...)...)
		if (r.Screening != nil) != c.says {
			t.Errorf("%v: screening %+v", c.flags, r.Screening)
		}
	}
	data = cmdtest.ArtificialFile(t, t.TempDir(), "more.csv", 400, 1) // with 200 samples, any budget fits two candidates
	for _, wrong := range [][]string{{"--budget", "3"}, {"--algorithm", "best", "--budget", "none"},
		{"--algorithm", "best", "--set", "preset=paper"}, {"--algorithm", "best", "--budget", "0.001"}} {
		if e := cmdtest.Run(t, append([]string{"train", "--local", "--data", data}, wrong...)...); e.Code != cli.ExitUsage {
			t.Errorf("%v: exit code %d, %s", wrong, e.Code, e.Stderr)
		}
	}
}

// TestScreeningText: the text names a model that is clearly better, and by how much.
func TestScreeningText(t *testing.T) {
	s := &pipeline.Screening{Samples: 1200, KL: 0.4, MeanBaseline: 0.41, Others: []pipeline.ScreenedModel{
		{Algorithm: "sa-bfgs", Samples: 960, KL: 0.398}, {Algorithm: "structrf", Samples: 960, KL: 0.3}}}
	for _, says := range []string{"1,200 validation samples", "25 % lower", "Try --algorithm structrf", "0.41"} {
		if text := results.ScreeningText("ldlf", s).String(); !strings.Contains(text, says) {
			t.Errorf("%q does not say %q", text, says)
		}
	}
	s.Others = s.Others[:1] // it is lower by less than a hundredth
	if text := results.ScreeningText("ldlf", s).String(); strings.Contains(text, "Try") {
		t.Error(text)
	}
}

// A spec file and flags give the same job, and flags stand above the file.
func TestTrainSpec(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 300, 1)
	file := cmdtest.Write(t, dir, "job.yaml", "name: x\nseed: 3\ntest_fraction: 0.2\ntrees: 2\ndepth: 4\nsteps: 50\n")
	var fromFile, fromFlags, over results.Result
	cmdtest.JSON(t, &fromFile, "train", "--local", "--data", data, "--spec", file)
	cmdtest.JSON(t, &fromFlags, "train", "--local", "--data", data, "--name", "x", "--seed", "3", "--test-fraction", "0.2",
		"--set", "trees=2", "--set", "depth=4", "--steps", "50")
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
	if diff := cmp.Diff([]string{"m-fold0.coppice", "m-fold1.coppice", "m-fold2.coppice", "set.csv"},
		cmdtest.Contents(t, dir)); diff != "" {
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
}

// Every command has help that names its flags.
func TestHelp(t *testing.T) {
	for _, command := range []string{"", "quickstart", "train", "predict", "evaluate", "dataset import", "dataset inspect",
		"dataset generate", "job submit", "job watch", "model show", "model download", "coordinator", "worker", "version"} {
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
	cmd, stdout, stderr := cmdtest.Process(t, dir, "train", "--local", "--data", data, "--steps", "1000000000", "--set",
		"patience=1000000", "--model-out", filepath.Join(dir, "m.coppice"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the file to be begun", func() bool { return len(cmdtest.Contents(t, dir)) == 2 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitSignal+2 || stdout.Len() > 0 ||
		!strings.HasSuffix(stderr.String(), "coppice: interrupted\n") {
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

// An exact fit that takes more memory than is allowed is refused, and says what takes less.
func TestExactFitsAreBounded(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.ArtificialFile(t, dir, "x.csv", 40, 1)
	for memory, refused := range map[string]bool{"25599": true, "25600": false} { // 16 bytes for each of 40 x 40 pairs
		e := cmdtest.Run(t, "train", "--local", "--data", filepath.Join(dir, "x.csv"), "--algorithm", "ldsvr",
			"--memory", memory)
		if (e.Code == cli.ExitFailed) != refused || refused && !strings.Contains(e.Stderr, "landmarks") {
			t.Errorf("--memory %s: exit code %d, %s", memory, e.Code, e.Stderr)
		}
	}
	cmdtest.Works(t, "train", "--local", "--data", filepath.Join(dir, "x.csv"), "--algorithm", "ldsvr", "--memory", "1KiB",
		"--set", "landmarks=10")
}

// The error of a fold that cannot train names the fold, or the group that it tests.
func TestFoldFailures(t *testing.T) {
	testkit.WithoutRace(t)
	data := "x0,x1,person,label_a,label_b\n1,2,ada,0.5,0.5\n2,3,ada,0.5,0.5\n3,5,ada,0.5,0.5\n4,1,bob,0.5,0.5\n"
	files := map[string]string{"x.csv": data, "split.csv": "row,fold\n0,1\n1,1\n2,1\n3,0\n",
		"overlap.csv": "row,first,second\n0,0,1\n1,0,1\n2,0,1\n3,1,0\n"}
	for _, test := range []struct {
		args string
		says []string
	}{
		{"--split @/split.csv", []string{"fold 1: ", "only 1 training sample"}},
		{"--split @/overlap.csv", []string{"fold 1: ", "only 1 training sample"}},
		{"--folds groups --groups person", []string{`without the group "ada": `, "only 1 training sample"}},
	} {
		t.Run(strings.Fields(test.args)[1], func(t *testing.T) {
			args := "train --local --data @/x.csv --algorithm aa-knn --set k=3 " + test.args
			if !strings.Contains(args, "groups") {
				args += " --drop person"
			}
			cmdtest.Refused(t, files, args, cli.ExitUsage, test.says)
		})
	}
}

// settingsShown returns what a command printed of settings.
func settingsShown(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "settings "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no settings in\n%s", text)
	return ""
}

// TestChangedSettings: train and model show print the settings that differ from the defaults, JSON has all, and the
// command that model show prints trains the same model.
func TestChangedSettings(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, sparse := filepath.Join(dir, "d.csv"), filepath.Join(dir, "s.libsvm")
	cmdtest.Works(t, "dataset", "generate", "--rows", "120", "--features", "4", "--labels", "3", "--kind", "random",
		"--out", data)
	cmdtest.Write(t, dir, "s.libsvm", strings.Repeat("0.5,0.5 3:1\n0.25,0.75 7:2\n1,0 20:1\n", 20))
	for _, c := range []struct{ data, flags, want string }{
		{data, "--algorithm structrf", "the defaults (-o json has all)"},
		{data, "--algorithm structrf --set trees=3", "trees=3, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20", "steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20 --set scaling=none", "scaling=none steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20 --set preset=paper --set leaf_batches=5",
			"preset=paper leaf_batches=5 steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ldlf --steps 20 --set features=mlp", "features=mlp steps=20, and the defaults (-o json has all)"},
		{data, "--algorithm ensemble --members structrf:trees=3,aa-knn --set weights=mean",
			"members=structrf:trees=3,aa-knn weights=mean, and the defaults (-o json has all)"},
		{sparse, "--algorithm sa-bfgs --folds 2", "the defaults (-o json has all)"},
		{sparse, "--algorithm ldlf --steps 20", "steps=20, and the defaults (-o json has all)"},
	} {
		model := filepath.Join(dir, "m.model")
		train := append(strings.Fields("train --local --data "+c.data+" --model-out "+model), strings.Fields(c.flags)...)
		if got := settingsShown(t, cmdtest.Works(t, train...)); got != c.want {
			t.Errorf("%s: settings are %q, want %q", c.flags, got, c.want)
		}
		if strings.Contains(c.flags, "folds") {
			continue
		}
		text := cmdtest.Works(t, "model", "show", model)
		_, again, ok := strings.Cut(text, "To train the model again, with the same data in FILE:\ncoppice ")
		if !ok || len(settingsShown(t, text)) > 300 {
			t.Fatal(text)
		}
		var first struct {
			Digest string
			Job    struct {
				Settings json.RawMessage
			}
		}
		cmdtest.JSON(t, &first, "model", "show", model)
		if !strings.HasPrefix(string(first.Job.Settings), "{") || strings.Count(string(first.Job.Settings), ":") < 4 {
			t.Errorf("%s: JSON has the settings %s", c.flags, first.Job.Settings)
		}
		var r struct {
			ModelDigest string `json:"model_digest"`
		}
		cmdtest.JSON(t, &r, strings.Fields(strings.ReplaceAll(again, " FILE", " "+c.data))...)
		if r.ModelDigest != first.Digest {
			t.Errorf("%s: %s trains another model", c.flags, again)
		}
	}
}
