package modelcmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// verified runs model verify with -o json, and returns what it printed, its exit code and its error.
func verified(t *testing.T, args ...string) (v verification, code int, stderr string) {
	t.Helper()
	e := cmdtest.Run(t, append([]string{"model", "verify", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(e.Stdout), &v); err != nil {
		t.Fatalf("coppice model verify %q: %v\n%s", args, err, e.Stderr)
	}
	return v, e.Code, e.Stderr
}

// isVerified trains a model, which must be verified with more flags.
func isVerified(t *testing.T, data string, train, more []string) {
	t.Helper()
	model := filepath.Join(t.TempDir(), "m.model")
	cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--model-out", model}, train...)...)
	of, _ := filepath.Glob(filepath.Join(filepath.Dir(model), "*.model"))
	for _, one := range of { // a file for each fold
		v, code, stderr := verified(t, append([]string{one, "--data", data}, more...)...)
		if v.Verdict != verdictVerified || code != 0 || v.Trained != v.Digest || !*v.SameMeasures || v.Reason != "" {
			t.Errorf("train %q, verify %q: %+v, exit code %d: %s", train, more, v, code, stderr)
		}
	}
	if len(of) == 0 {
		t.Error("no model was written")
	}
}

// forged writes a model file whose provenance is changed, and whose arithmetic version is another one unless it is 0.
func forged(t *testing.T, model, name string, numerics uint32, change func(*pipeline.Provenance)) string {
	t.Helper()
	f, err := modelfile.Decode([]byte(cmdtest.Read(t, model)))
	if err != nil {
		t.Fatal(err)
	}
	p := new(pipeline.Provenance)
	if err := json.Unmarshal(f.Provenance, p); err != nil {
		t.Fatal(err)
	}
	change(p)
	provenance, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	file, _ := modelfile.Encode(f.Algorithm, f.Tensors, provenance)
	if numerics > 0 {
		binary.LittleEndian.PutUint32(file[18:], numerics)
		end := len(file) - len(provenance) - 8 - 2*sha256.Size
		sum := sha256.Sum256(file[:end])
		copy(file[end:], sum[:])
	}
	return cmdtest.Write(t, filepath.Dir(model), name, string(file))
}

// TestVerdicts: a good model, one with a flipped bit, one of other rows, one of another version, one whose tensors or
// measures are not of its training, and one of another program.
func TestVerdicts(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(60)
	data, model := m.Trained(t, dir)
	fewer := clitest.NewMoods(50).File(t, dir, "fewer.csv", m.Header, 0, 1, 2, 3, 4, 5, 6)
	text := cmdtest.Read(t, data)
	lines := strings.SplitAfter(text, "\n")
	lines[1], lines[2] = lines[2], lines[1]
	turned := cmdtest.Write(t, dir, "turned.csv", strings.Join(lines, ""))
	other := filepath.Join(dir, "other.coppice")
	cmdtest.Works(t, clitest.TrainArgs(data, "--model-out", other, "--seed", "8")...)
	ofOther, err := modelfile.Decode([]byte(cmdtest.Read(t, other)))
	if err != nil {
		t.Fatal(err)
	}
	own, err := modelfile.Decode([]byte(cmdtest.Read(t, model)))
	if err != nil {
		t.Fatal(err)
	}
	mixed, _ := modelfile.Encode(own.Algorithm, ofOther.Tensors, own.Provenance)
	swapped := cmdtest.Write(t, dir, "swapped.coppice", string(mixed))
	better := forged(t, model, "better.coppice", 0, func(p *pipeline.Provenance) { p.Measures[0].Mean /= 2 })
	newer := forged(t, model, "newer.coppice", 9, func(p *pipeline.Provenance) {
		p.Version, p.Job.Numerics = "7.5.0", 9
	})
	renamed := forged(t, model, "renamed.coppice", 0, func(p *pipeline.Provenance) { p.Version = "0.0.9" })
	table := &external.Table{Labels: 3, Row: []uint32{0}, Degrees: []float32{0.5, 0.25, 0.25}}
	foreign, _ := modelfile.Encode(external.Name, table.Tensors(), own.Provenance)
	predictions := cmdtest.Write(t, dir, "predictions.coppice", string(foreign))
	for _, c := range []struct {
		name    string
		args    []string
		verdict string
		says    string
	}{
		{"of another program", []string{predictions, "--data", data}, verdictCannot, "no training to repeat"},
		{"good", []string{model, "--data", data}, verdictVerified, ""},
		{"good, data alone", []string{model, "--data", data, "--only-data"}, verdictSameData, ""},
		{"one thread", []string{model, "--data", data, "--threads", "1"}, verdictVerified, ""},
		{"another version, same arithmetic", []string{renamed, "--data", data}, verdictVerified, ""},
		{"fewer rows", []string{model, "--data", fewer}, verdictData, "the data have 50 samples, but the model's data 60"},
		{"fewer rows, data alone", []string{model, "--data", fewer, "--only-data"}, verdictData, "50 samples"},
		{"other order", []string{model, "--data", turned}, verdictData, "another order"},
		{"other columns", []string{model, "--data", data, "--drop", "a"}, verdictData, "3 features"},
		{"other tensors", []string{swapped, "--data", data}, verdictModel, own.Digest},
		{"other measures", []string{better, "--data", data}, verdictMeasures, "measures in the model file differ"},
		{"another version", []string{newer, "--data", data}, verdictCannot,
			"trained by Coppice 7.5.0 with arithmetic version 9"},
		{"another version, data alone", []string{newer, "--data", data, "--only-data"}, verdictSameData, ""},
	} {
		v, code, stderr := verified(t, c.args...)
		if v.Verdict != c.verdict || !strings.Contains(v.Reason, c.says) || !strings.Contains(stderr, c.says) ||
			(code == 0) != (v.Reason == "") {
			t.Errorf("%s: %+v, exit code %d: %s", c.name, v, code, stderr)
		}
	}
	flipped := []byte(cmdtest.Read(t, model))
	flipped[300] ^= 4
	path := cmdtest.Write(t, dir, "flipped.coppice", string(flipped))
	if e := cmdtest.Run(t, "model", "verify", path, "--data", data); e.Code != 1 || e.Stdout != "" ||
		!strings.Contains(e.Stderr, "tensors do not match its digest") {
		t.Errorf("flipped bit: %+v", e)
	}
	shown := cmdtest.Works(t, "model", "verify", model, "--data", data)
	if !strings.Contains(shown, "verdict        verified") || !strings.Contains(shown, own.Digest) {
		t.Errorf("text: %s", shown)
	}
}

// TestVerifyText: what predictions read besides the model is also verified: names, levels and replacements.
func TestVerifyText(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	var b strings.Builder
	for i := range 24 {
		missing := fmt.Sprintf("%d.5", i%7)
		if i%5 == 0 {
			missing = ""
		}
		fmt.Fprintf(&b, "%d,%s,%c,0.%d,0.%d\n", i, missing, 'p'+rune(i%3), 1+i%8, 9-i%8)
	}
	rows := b.String()
	data := cmdtest.Write(t, dir, "a.csv", "x,y,kind,label_a,label_b\n"+rows)
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, "train", "--local", "--data", data, "--categories", "kind", "--missing", "mean", "--normalize",
		"--algorithm", "structrf", "--set", "trees=2", "--model-out", model)
	for _, c := range []struct {
		says   string // empty: the model is verified
		change func(*pipeline.Provenance)
	}{
		{"", func(*pipeline.Provenance) {}},
		{"other names of labels", func(p *pipeline.Provenance) { slices.Reverse(p.LabelNames) }},
		{"other names of features", func(p *pipeline.Provenance) { p.FeatureNames[0], p.FeatureNames[1] = "y", "x" }},
		{"other levels of categories", func(p *pipeline.Provenance) { slices.Reverse(p.Reading.Categories[0].Levels) }},
		{"other types of labels", func(p *pipeline.Provenance) { p.LabelType.Classes = true }},
		{"other replacements of missing features", func(p *pipeline.Provenance) { p.Fill[1] = 1e6 }},
		{"other mean labels", func(p *pipeline.Provenance) { p.MeanLabel[0] = 0.25 }},
		{"measures in the model file differ", func(p *pipeline.Provenance) { p.EvaluatedOn = "test samples" }},
	} {
		v, code, _ := verified(t, forged(t, model, "forged.model", 0, c.change), "--data", data)
		if (v.Verdict == verdictVerified) != (c.says == "") || (code == 0) != (c.says == "") ||
			!strings.Contains(v.Reason, c.says) {
			t.Errorf("%q: %+v, exit code %d", c.says, v, code)
		}
	}
	renamed := cmdtest.Write(t, dir, "renamed.csv", "x,y,kind,label_b,label_a\n"+rows)
	if v, code, _ := verified(t, model, "--data", renamed); v.Verdict != verdictText || !v.Data.Same || code != 1 {
		t.Errorf("data with other names of labels: %+v, exit code %d", v, code)
	}
}

// TestVerifyReading: verify reads a file with the flags of the training.
func TestVerifyReading(t *testing.T) {
	testkit.WithoutRace(t)
	for _, c := range []struct {
		text  string
		flags []string
	}{
		{clitest.PeopleFile([]string{"id", "x1", "x2", "label_a", "label_b"}, ",", ".", true), []string{"--drop", "id"}},
		{clitest.PeopleFile([]string{"x1", "who", "x2", "label_a", "label_b"}, ",", ".", true),
			[]string{"--row-names", "who"}},
		{clitest.PeopleFile([]string{"id", "who", "x1", "x2", "label_a", "label_b"}, ",", ".", true),
			[]string{"--feature-columns", "x2,x1"}},
		{clitest.PeopleFile([]string{"id", "x1", "mood", "x2"}, ",", ".", true),
			[]string{"--labels", "class", "--label-columns", "mood", "--drop", "id"}},
		{clitest.PeopleFile([]string{"age", "x1", "family", "x2", "half"}, ",", ".", true), []string{"--labels", "age",
			"--sigma", "2", "--range", "15:40", "--label-columns", "age", "--values", "half", "--groups", "family"}},
		{clitest.PeopleFile([]string{"n_a", "n_b", "x1", "x2"}, ",", ".", true),
			[]string{"--labels", "counts", "--label-prefix", "n_"}},
		{clitest.PeopleFile([]string{"n_a", "n_b", "x1", "x2"}, ",", ".", true),
			[]string{"--normalize", "--label-columns", "n_a,n_b"}},
		{strings.ReplaceAll(clitest.PeopleFile([]string{"x1", "x2", "label_a", "label_b"}, "@", ",", true), "@", ";"),
			[]string{"--decimal", ",", "--delimiter", ";"}},
		{clitest.PeopleFile([]string{"x1", "big", "label_a", "label_b"}, ";", ".", true), []string{"--thousands", ","}},
		{strings.NewReplacer(",", "'", ".", ",").Replace(clitest.PeopleFile([]string{"x1", "big", "label_a", "label_b"}, ";",
			".", true)), []string{"--decimal", ",", "--thousands", "'"}},
		{clitest.PeopleFile([]string{"x1", "word", "x2", "mood"}, ",", ".", true), []string{"--labels", "class",
			"--label-columns", "mood", "--categories", "word"}},
		{clitest.PeopleFile([]string{"id", "x1", "family", "x2", "label_a", "label_b"}, ",", ".", false),
			[]string{"--label-columns", "4:5", "--drop", "0", "--groups", "2", "--header", "no"}},
		{strings.Replace(clitest.PeopleFile([]string{"x1", "x2", "label_a", "label_b"}, ",", ".", true), "\n0,", "\nNA,", 1),
			[]string{"--missing", "median"}},
		{clitest.PeopleFile([]string{"x1", "x2", "label_a", "label_b"}, ",", ".", true),
			[]string{"--labels", "bounded", "--bounds", "0:1"}},
	} {
		data := cmdtest.Write(t, t.TempDir(), "people.csv", c.text)
		flags := append([]string{"--algorithm", "structrf", "--set", "trees=2", "--test-fraction", "0.2"}, c.flags...)
		isVerified(t, data, flags, nil)
	}
}

// TestVerifyTrainings: models of folds, groups, ensembles, enhanced and hidden labels are verified from the data alone,
// or with the file or the seed that the output names.
func TestVerifyTrainings(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "a.csv", 60, 5)
	people := cmdtest.Write(t, dir, "people.csv", clitest.PeopleFile([]string{"x1", "x2", "family", "label_a", "label_b"},
		",", ".", true))
	var folds strings.Builder
	folds.WriteString("row,fold\n")
	for row := range 60 {
		fmt.Fprintf(&folds, "%d,%d\n", row, row*row%3)
	}
	split := cmdtest.Write(t, dir, "folds.csv", folds.String())
	network := filepath.Join(dir, "network.model")
	small := []string{"--algorithm", "dldl", "--set", "hidden=4", "--steps", "8"}
	cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--model-out", network}, small...)...)
	forest := []string{"--algorithm", "structrf", "--set", "trees=2"}
	for _, c := range []struct {
		data        string
		train, more []string
		lacks       string // what the reason names without more
	}{
		{data, append(forest, "--folds", "3"), nil, ""},
		{data, append(forest, "--folds", "sklearn:3"), nil, ""},
		{data, append(forest, "--folds", "3", "--fold-seed", "4"), []string{"--fold-seed", "4"}, "--fold-seed"},
		{data, append(forest, "--split", split, "--fold", "1"), []string{"--split", split}, "--split"},
		{people, append(forest, "--groups", "family", "--folds", "groups", "--fold", "2"), nil, ""},
		{data, append(forest, "--train-fraction", "0.5", "--test-fraction", "0.3"), nil, ""},
		{data, []string{"--algorithm", "sa-bfgs", "--enhance", "lp", "--binarise", "0.5", "--set", "iterations=5"}, nil, ""},
		{data, []string{"--algorithm", "sa-bfgs", "--mask", "0.3", "--test-fraction", "0.2", "--set", "iterations=5"}, nil,
			""},
		{data, []string{"--algorithm", "ensemble", "--members", "sa-bfgs,aa-knn", "--set", "inner_folds=2"}, nil, ""},
		{data, append(small, "--init-from", network), []string{"--init-from", network}, "--init-from"},
	} {
		isVerified(t, c.data, c.train, c.more)
		if c.lacks == "" {
			continue
		}
		model := filepath.Join(t.TempDir(), "m.model")
		cmdtest.Works(t, append([]string{"train", "--local", "--data", c.data, "--model-out", model}, c.train...)...)
		all, _ := filepath.Glob(filepath.Join(filepath.Dir(model), "*.model"))
		v, code, _ := verified(t, all[0], "--data", c.data)
		if v.Verdict != verdictCannot || code != 1 || !strings.Contains(v.Reason, c.lacks) {
			t.Errorf("%q: %+v, exit code %d", c.train, v, code)
		}
	}
	v, _, _ := verified(t, forged(t, network, "forged.model", 0, func(p *pipeline.Provenance) {
		p.Job.Weights = strings.Repeat("a", 64)
	}), "--data", data, "--init-from", network)
	if v.Verdict != verdictCannot || !strings.Contains(v.Reason, "has weights with the digest") {
		t.Errorf("other weights: %+v", v)
	}
}

// TestVerifyOnCluster: a cluster trains the same models again, from the data, and no job is left.
func TestVerifyOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	c := cmdtest.Start(t, 1, 1)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "a.csv", 60, 5)
	people := cmdtest.Write(t, dir, "people.csv", clitest.PeopleFile([]string{"x1", "x2", "family", "label_a", "label_b"},
		",", ".", true))
	network := filepath.Join(dir, "network.model")
	small := []string{"--algorithm", "dldl", "--set", "hidden=4", "--steps", "8"}
	cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--model-out", network}, small...)...)
	forest := []string{"--algorithm", "structrf", "--set", "trees=2"}
	at := []string{"--server", c.Servers()}
	for _, one := range []struct {
		data        string
		train, more []string
	}{
		{data, append(forest, "--test-fraction", "0.2"), nil},
		{data, append(forest, "--folds", "sklearn:3", "--fold", "1"), nil},
		{people, append(forest, "--groups", "family", "--folds", "groups", "--fold", "2"), nil},
		{data, []string{"--algorithm", "sa-bfgs", "--enhance", "lp", "--binarise", "0.5", "--set", "iterations=5"}, nil},
		{data, []string{"--algorithm", "sa-bfgs", "--mask", "0.3", "--test-fraction", "0.2", "--set", "iterations=5"}, nil},
		{data, []string{"--algorithm", "ensemble", "--members", "sa-bfgs,structrf:trees=2", "--set", "inner_folds=2"}, nil},
		{data, append(small, "--init-from", network), []string{"--init-from", network}},
	} {
		isVerified(t, one.data, one.train, append(one.more, at...))
	}
	for _, model := range runsOf(t, data, "{sklearn: 2, seed: 2, repeats: 2}") {
		if v, _, stderr := verified(t, append([]string{model, "--data", data}, at...)...); v.Verdict != verdictVerified {
			t.Errorf("a run of an experiment: %+v, %s", v, stderr)
		}
	}
	there := append([]string{"train", "--data", data, "--name", "there", "--test-fraction", "0.2"}, forest...)
	cmdtest.Works(t, append(there, at...)...)
	v, code, stderr := verified(t, append([]string{"there", "--data", data}, at...)...)
	if v.Verdict != verdictVerified || v.TrainedOn != "cluster" || code != 0 {
		t.Errorf("a model of the cluster: %+v, %s", v, stderr)
	}
	v, _, stderr = verified(t, append([]string{"there", "--data", data, "--local"}, at...)...)
	if v.Verdict != verdictVerified || v.TrainedOn != "this machine" {
		t.Errorf("a model of the cluster, here: %+v, %s", v, stderr)
	}
	var e exported
	cmdtest.JSON(t, &e, append([]string{"model", "export", "there", "--out", filepath.Join(dir, "there.npz")}, at...)...)
	card := cmdtest.Works(t, append([]string{"model", "card", "there"}, at...)...)
	if e.Digest != v.Digest || !strings.Contains(card, "coppice model verify there.model --data FILE") ||
		!strings.Contains(card, `name: "a"`) { // the dataset
		t.Errorf("export of a model of the cluster: %+v\n%s", e, card)
	}
	other := cmdtest.ArtificialFile(t, dir, "b.csv", 60, 6)
	if v, _, stderr = verified(t, append([]string{"there", "--data", other}, at...)...); v.Verdict != verdictData {
		t.Errorf("other data: %+v, %s", v, stderr)
	}
	jobs, err := c.Client().Jobs().All(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Name != "there" {
		t.Errorf("jobs that are left: %v, %v", jobs, err)
	}
}

// TestVerifyOtherFiles: the files that the data came from besides the data file must be named again.
func TestVerifyOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, columns := range map[string]int{"x.npy": 3, "labels.npy": 2} {
		var b bytes.Buffer
		w, err := npy.NewWriter[float64](&b, 20, columns)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 * columns {
			if err := w.Write([]float64{map[int]float64{3: float64(i * i % 7), 2: 0.5}[columns]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		cmdtest.Write(t, dir, name, b.String())
	}
	data, labels := filepath.Join(dir, "x.npy"), filepath.Join(dir, "labels.npy")
	train := []string{"--algorithm", "aa-knn", "--labels-file", labels}
	isVerified(t, data, train, []string{"--labels-file", labels})
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--model-out", model}, train...)...)
	if e := cmdtest.Run(t, "model", "verify", model, "--data", data); e.Code != 2 ||
		!strings.Contains(e.Stderr, "was read with --labels-file: give it") {
		t.Errorf("without the labels: %+v", e)
	}
	both := filepath.Join(dir, "both.npz") // another kind of file with the same samples
	cmdtest.Works(t, "dataset", "convert", "--data", data, "--labels-file", labels, "--out", both)
	if v, _, stderr := verified(t, model, "--data", both); v.Verdict != verdictVerified {
		t.Errorf("another kind of file: %+v, %s", v, stderr)
	}
}

// runsOf runs a small experiment of forests and linear models on a data file, and returns the model files of its runs.
func runsOf(t *testing.T, data, folds string) []string {
	t.Helper()
	dir := t.TempDir()
	spec := cmdtest.Write(t, dir, "e.yaml", fmt.Sprintf("name: e\nseed: 2\nfolds: %s\ndatasets:\n- {name: d, file: %s}\n"+
		"methods:\n- {algorithm: structrf, settings: {trees: 2}}\n- {algorithm: sa-bfgs, settings: {iterations: 3}}\n", folds,
		data))
	cmdtest.Works(t, "experiment", "run", spec, "--local", "--keep-models", "--dir", filepath.Join(dir, "e.experiment"))
	all, _ := filepath.Glob(filepath.Join(dir, "e.experiment", "models", "*.model"))
	if len(all) < 4 {
		t.Fatalf("the experiment has the models %q", all)
	}
	return all
}

// TestVerifyRuns: the models of the runs of an experiment are verified, with the seed of their folds if it is not the
// seed of the experiment.
func TestVerifyRuns(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "a.csv", 40, 5)
	for folds, more := range map[string][]string{
		"{k: 2, repeats: 2}": nil, "{sklearn: 2, seed: 2}": nil, "{sklearn: 2, seed: 4, repeats: 2}": {"--fold-seed", "4"},
		"{k: 2, seed: 4}": {"--fold-seed", "4"},
	} {
		for _, model := range runsOf(t, data, folds) {
			v, _, stderr := verified(t, append([]string{model, "--data", data}, more...)...)
			if v.Verdict != verdictVerified {
				t.Errorf("%s: %+v, %s", folds, v, stderr)
			}
		}
	}
}

// TestVerifyRefused: wrong command lines.
func TestVerifyRefused(t *testing.T) {
	dir, m := t.TempDir(), clitest.NewMoods(30)
	data, model := m.Trained(t, dir)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{model}, 2, "--data"},
		{[]string{model, "--data", data, "--local", "--server", "host"}, 2, "--local"},
		{[]string{model, "--data", filepath.Join(dir, "none.csv")}, 1, "none.csv"},
		{[]string{filepath.Join(dir, "none.model"), "--data", data, "--server", "127.0.0.1:1"}, 1, "none.model"},
		{[]string{model, "--data", data, "--labels", "age"}, 2, "--sigma"},
		{[]string{model, "--data", "-", "--data-format", "csv", "--server", "host"}, 2, "--data -"},
		{[]string{model, "--data", "-"}, 2, "--data-format"},
		{[]string{data, "--data", data}, 1, "does not begin with the header"},
	} {
		e := cmdtest.Run(t, append([]string{"model", "verify"}, c.args...)...)
		if e.Code != c.code || !strings.Contains(e.Stderr, c.says) {
			t.Errorf("%q: exit code %d: %s", c.args, e.Code, e.Stderr)
		}
	}
}

// TestSpecOf: the spec of a job names what decides its model, and otherKey finds what differs.
func TestSpecOf(t *testing.T) {
	a := &round.Job{Algorithm: "rf", Seed: 3, Params: json.RawMessage(`{"trees":2}`), Measures: "all", Predictions: 5}
	b := *a
	b.Measures, b.Predictions, b.LinearSamples = "", 0, 9
	if key := otherKey(a, &b); key != "" {
		t.Errorf("got %q, want no key", key)
	}
	for key, change := range map[string]func(*round.Job){
		"seed":     func(j *round.Job) { j.Seed++ },
		"settings": func(j *round.Job) { j.Params = json.RawMessage(`{"trees":3}`) },
		"split":    func(j *round.Job) { j.Split.ValidationMin = 4 },
		"fill":     func(j *round.Job) { j.Fill = "mean" },
	} {
		c := *a
		if change(&c); otherKey(a, &c) != key {
			t.Errorf("got %q, want %q", otherKey(a, &c), key)
		}
	}
}
