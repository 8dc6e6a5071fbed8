package modelcmd

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/export"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
)

// TestExport: a model is exported by the end of the file's name, with its cards. Nothing is left of a refused export.
func TestExport(t *testing.T) {
	dir, m := t.TempDir(), clitest.NewMoods(40)
	_, model := m.Trained(t, dir)
	want, err := predict.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "m.npz")
	var e exported
	cmdtest.JSON(t, &e, "model", "export", model, "--out", out)
	if e.Digest != want.File.Digest || e.Format != "npz" || e.Tensors != len(want.File.Tensors) || e.Features != 4 ||
		e.Bytes != int64(len(cmdtest.Read(t, out))) || len(e.Cards) != 2 {
		t.Errorf("%+v", e)
	}
	text := cmdtest.Works(t, "model", "export", model, "--format", "json", "--out", "-")
	var all struct {
		About   map[string]any `json:"about"`
		Tensors map[string]struct {
			Dtype string    `json:"dtype"`
			Shape []int     `json:"shape"`
			Data  []float64 `json:"data"`
		} `json:"tensors"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, tensor := range want.File.Tensors {
		got := all.Tensors[tensor.Name]
		for i, v := range got.Data {
			same := tensor.F64 != nil && tensor.F64[i] == v || tensor.U32 != nil && float64(tensor.U32[i]) == v ||
				tensor.F32 != nil && tensor.F32[i] == float32(v)
			if !same {
				t.Errorf("%s: value %d is %v", tensor.Name, i, v)
			}
		}
		if !slices.Equal(got.Shape, tensor.Dims) || len(got.Data) != len(tensor.F64)+len(tensor.F32)+len(tensor.U32) {
			t.Errorf("%s: shape %v, %d values", tensor.Name, got.Shape, len(got.Data))
		}
	}
	if all.About["digest"] != want.File.Digest || len(all.Tensors) != len(want.File.Tensors) {
		t.Errorf("%v", all.About)
	}
	before := cmdtest.Contents(t, dir)
	for _, c := range []struct{ args, says string }{
		{"--out x.bin", "give --format"},
		{"--out x.npz --card x.txt", "must end in .md"},
		{"--out x.json --card x.md", "writes to this file, too"},
		{"--out none/x.npz", "the parent folder does not exist"},
		{"--out x.npz --card none/x.md", "the parent folder does not exist"},
		{"--out m.coppice --format npz", "this command reads that file"},
		{"--out x.npz --format pmml", "--format"},
		{"--out x.npz --license=", "--license has an empty value"},
	} {
		args := []string{"model", "export", model}
		for _, word := range strings.Fields(c.args) {
			if strings.Contains(word, ".") || strings.Contains(word, "/") {
				word = filepath.Join(dir, word)
			}
			args = append(args, word)
		}
		if e := cmdtest.Run(t, args...); e.Code == 0 || !strings.Contains(e.Stderr, c.says) {
			t.Errorf("%s: exit code %d: %s", c.args, e.Code, e.Stderr)
		}
	}
	if after := cmdtest.Contents(t, dir); !slices.Equal(before, after) {
		t.Errorf("the folder had %q, and now %q", before, after)
	}
}

// TestCard: the front matter is YAML, names cannot break it, and the commands of the card work.
func TestCard(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "odd.csv", clitest.PeopleFile([]string{"x1", "x2", "label_a", "label_b"}, ",", ".",
		true))
	model := filepath.Join(dir, "odd: - [name].model")
	cmdtest.Works(t, "train", "--local", "--data", data, "--algorithm", "structrf", "--set", "trees=2", "--test-fraction",
		"0.25", "--model-out", model)
	text := cmdtest.Works(t, "model", "card", model, "--license", "cc-by-4.0", "--dataset-name", `a "b" | *c*`)
	parts := strings.SplitN(text, "---\n", 3)
	var front struct {
		License string `yaml:"license"`
		Library string `yaml:"library_name"`
		Index   []struct {
			Name    string `yaml:"name"`
			Results []struct {
				Dataset struct {
					Name string `yaml:"name"`
				} `yaml:"dataset"`
				Metrics []struct {
					Type  string  `yaml:"type"`
					Value float64 `yaml:"value"`
				} `yaml:"metrics"`
			} `yaml:"results"`
		} `yaml:"model-index"`
	}
	if err := yaml.Unmarshal([]byte(parts[1]), &front); err != nil {
		t.Fatalf("%v\n%s", err, parts[1])
	}
	var card card
	cmdtest.JSON(t, &card, "model", "card", model)
	metrics := front.Index[0].Results[0].Metrics
	if front.License != "cc-by-4.0" || front.Index[0].Name != "odd: - [name]" || metrics[0].Type != "kl" ||
		metrics[0].Value != card.Measures[0].Mean || front.Index[0].Results[0].Dataset.Name != `a "b" | *c*` {
		t.Errorf("%+v", front)
	}
	if !card.HeldOut || card.Spec.Seed != 1 || card.Data.Samples != 24 || card.MeanPredictor[0].Mean == 0 {
		t.Errorf("%+v", card)
	}
	if !strings.Contains(text, `| dataset | a "b" \| \*c\* |`) {
		t.Errorf("the name of the dataset breaks the table:\n%s", text)
	}
	t.Chdir(dir)
	for _, command := range []string{card.Commands.Train, card.Commands.Predict, card.Commands.Evaluate,
		card.Commands.Verify, card.Commands.VerifyData} {
		cmdtest.Works(t, cmdtest.Words(t, strings.ReplaceAll(command, "FILE", "odd.csv"))...)
	}
	for _, c := range []struct{ out, says string }{
		{"card.txt", "must end in"}, {"none/card.md", "parent folder does not exist"}, {model, "unknown"},
	} {
		if e := cmdtest.Run(t, "model", "card", model, "--out", c.out); e.Code == 0 ||
			!strings.Contains(e.Stderr, c.says) && !strings.Contains(e.Stderr, "ends in .md or .json") {
			t.Errorf("%s: exit code %d: %s", c.out, e.Code, e.Stderr)
		}
	}
	people := cmdtest.Write(t, dir, "people.csv", strings.Replace(clitest.PeopleFile([]string{"x1", "word", "x2", "mood"},
		",", ".", true), "\n0,", "\nNA,", 1))
	for _, c := range []struct{ missing, says string }{{"median", "by its median in the"}, {"7", "is replaced by 7."}} {
		path := filepath.Join(dir, "people.model")
		cmdtest.Works(t, "train", "--local", "--data", people, "--algorithm", "aa-knn", "--labels", "class",
			"--label-columns", "mood", "--categories", "word", "--missing", c.missing, "--model-out", path)
		text := cmdtest.Works(t, "model", "card", path)
		for _, says := range []string{c.says, "The column word has", "calm, sad, wild", "| `features` | float32, 5 columns: x1, ",
			"pipeline_tag: tabular-classification"} {
			if !strings.Contains(text, says) {
				t.Errorf("%s: the card does not say %q:\n%s", c.missing, says, text)
			}
		}
		var about struct{ About export.About }
		if err := json.Unmarshal([]byte(cmdtest.Works(t, "model", "export", path, "--format", "json", "--out", "-")),
			&about); err != nil || len(about.About.Fill) != about.About.Features {
			t.Errorf("%s: %v, %+v", c.missing, err, about)
		}
	}
	graph := filepath.Join(dir, "people.onnx")
	cmdtest.Works(t, "model", "export", filepath.Join(dir, "people.model"), "--out", graph)
	ofGraph := cmdtest.Read(t, filepath.Join(dir, "people.card.md"))
	for _, says := range []string{"for each sample (`people.onnx`)", "| `features` | float32, 2 columns: x1, x2 |",
		"| `category_word` | string, 1 column: word; levels: w, wx, wxx |",
		"| `predictions` | float32, 3 columns: calm, sad, wild |"} {
		if !strings.Contains(ofGraph, says) {
			t.Errorf("the card of ONNX does not say %q:\n%s", says, ofGraph)
		}
	}
	trained := forged(t, model, "trained.model", 0, func(p *pipeline.Provenance) { p.Rows.Train, p.Rows.Test = 24, 0 })
	if text := cmdtest.Works(t, "model", "card", trained); strings.Contains(text, "model-index") ||
		!strings.Contains(text, "no samples were held out") {
		t.Errorf("measures of training samples are in the index:\n%s", text)
	}
}

// TestDiff: the output names what differs, and predictions are compared.
func TestDiff(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(60)
	data, model := m.Trained(t, dir)
	other := filepath.Join(dir, "other.coppice")
	cmdtest.Works(t, "train", "--local", "--data", data, "--algorithm", "structrf", "--set", "trees=3", "--test-fraction",
		"0.1", "--model-out", other)
	var d modelDifference
	cmdtest.JSON(t, &d, "model", "diff", model, other, "--data", data)
	has := func(name string) bool {
		return slices.ContainsFunc(d.Differences, func(x difference) bool { return x.Name == name })
	}
	if d.Same || !has("algorithm") || !has("split") || has("depth") || has("digest") || len(d.Measures) != 10 ||
		d.Predictions == nil ||
		d.Predictions.Samples != 60 || !(d.Predictions.Greatest > d.Predictions.Mean && d.Predictions.Mean > 0) {
		t.Errorf("%+v", d)
	}
	cmdtest.JSON(t, &d, "model", "diff", model, model, "--data", data)
	if !d.Same || len(d.Differences) != 0 || d.Predictions.Same != 60 || d.Predictions.Greatest != 0 {
		t.Errorf("of itself: %+v", d)
	}
	four := filepath.Join(dir, "four.coppice")
	cmdtest.Works(t, "train", "--local", "--data", data, "--algorithm", "structrf", "--set", "trees=4", "--test-fraction",
		"0.1", "--model-out", four)
	cmdtest.JSON(t, &d, "model", "diff", other, four)
	if want := (difference{What: "hyperparameter", Name: "trees", A: "3", B: "4"}); len(d.Differences) != 2 ||
		!has("steps") || !slices.Contains(d.Differences, want) {
		t.Errorf("of another number of trees: %+v", d)
	}
	people := cmdtest.Write(t, dir, "people.csv", clitest.PeopleFile([]string{"x1", "x2", "label_a", "label_b"}, ",", ".",
		true))
	foreign := filepath.Join(dir, "foreign.coppice")
	cmdtest.Works(t, "train", "--local", "--data", people, "--algorithm", "aa-knn", "--model-out", foreign)
	cmdtest.JSON(t, &d, "model", "diff", model, foreign)
	if d.Predictions = nil; !has("digest") || !has("label names") || !has("features") {
		t.Errorf("of other data: %+v", d)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{model, other, "--exit-code"}, 1, "the models differ"},
		{[]string{model, model, "--exit-code"}, 0, ""},
		{[]string{model, foreign, "--data", data}, 2, "different labels"},
		{[]string{model, other, "--missing", "drop"}, 2, "--data"},
		{[]string{model, other, "--data", "-", "--data-format", "csv"}, 2, "--data -"},
		{[]string{model, data}, 1, "header of a model file"},
	} {
		if e := cmdtest.Run(t, append([]string{"model", "diff"}, c.args...)...); e.Code != c.code ||
			!strings.Contains(e.Stderr, c.says) {
			t.Errorf("%q: exit code %d: %s", c.args, e.Code, e.Stderr)
		}
	}
}

// TestCardExamples: a card has the hash of the exported file, and the predictions of two samples.
func TestCardExamples(t *testing.T) {
	dir, m := t.TempDir(), clitest.NewMoods(40)
	_, model := m.Trained(t, dir)
	cmdtest.Works(t, "model", "export", model, "--out", filepath.Join(dir, "m.json"))
	var own card
	if err := json.Unmarshal([]byte(cmdtest.Read(t, filepath.Join(dir, "m.card.json"))), &own); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(cmdtest.Read(t, filepath.Join(dir, "m.json"))))
	if own.SHA256 != fmt.Sprintf("%x", hash) {
		t.Errorf("the hash is %s", own.SHA256)
	}
	if len(own.Examples) != 2 || !slices.Equal(own.Examples[0].Features, make([]float32, 4)) ||
		!slices.Equal(own.Examples[1].Features, []float32{-1, -0.5, 0, 0.5}) {
		t.Fatalf("examples: %+v", own.Examples)
	}
	text := strings.Join(own.Inputs[0].Columns, ",") + "\n0,0,0,0\n-1,-0.5,0,0.5\n"
	lines := strings.Split(strings.TrimSpace(cmdtest.Works(t, "predict", "--model", model, "--data",
		cmdtest.Write(t, dir, "two.csv", text), "--out", "-")), "\n")
	for i, e := range own.Examples {
		want := strconv.Itoa(i)
		for _, p := range e.Predictions {
			want += "," + strconv.FormatFloat(float64(p), 'g', -1, 32)
		}
		if !strings.HasPrefix(lines[1+i], want) {
			t.Errorf("example %d: predict has %s, the card %s", i, lines[1+i], want)
		}
	}
}

// TestCardMarks: names with marks of Markdown stay in their cells and blocks, and the command to train has all flags
// that decide the model.
func TestCardMarks(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "odd.csv", "x,l|a,b~&lt;\n1,0.25,0.75\n2,0.5,0.5\n3,0.75,0.25\n"+
		"4,0.5,0.5\n5,0.125,0.875\n")
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, "train", "--local", "--data", data, "--label-columns", "l|a,b~&lt;", "--algorithm", "sa-bfgs",
		"--mask", "0.4", "--set", "iterations=3", "--model-out", model)
	out := filepath.Join(dir, "a`b|c.npz")
	cmdtest.Works(t, "model", "export", model, "--out", out, "--card-name", "a\n```\n# b", "--card",
		filepath.Join(dir, "c.md"))
	text := cmdtest.Read(t, filepath.Join(dir, "c.md"))
	for _, says := range []string{"\n| l\\|a | ", "\n| b\\~&amp;lt; | ", " (`` a`b|c.npz ``)",
		"The file `` a`b|c.npz `` has",
		"\n````sh\ncoppice predict --model 'a\n```\n# b.model' --data FILE", "# b.model' --data FILE\n````\n"} {
		if !strings.Contains(text, says) {
			t.Errorf("the card does not have %q:\n%s", says, text)
		}
	}
	var card card
	cmdtest.JSON(t, &card, "model", "card", model)
	t.Chdir(dir)
	again := cmdtest.Words(t, strings.ReplaceAll(card.Commands.Train, "FILE", "odd.csv"))
	var trained struct {
		Digest string `json:"model_digest"`
	}
	cmdtest.JSON(t, &trained, again...)
	if trained.Digest != card.Digest {
		t.Errorf("%q trains the model %s, not %s", again, trained.Digest, card.Digest)
	}
}
