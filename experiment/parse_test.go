package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/job/spec"
)

// whole is a spec with every key.
const whole = `name: whole
seed: 3
missing: skip
datasets:
  - data/Movie.mat
  - {file: faces.csv.gz, name: SJAFFE, labels: age, sigma: 2, label_columns: [a, b], folds: {sklearn: 5, seed: 9, repeats: 4}}
  - dataset: persons
    folds: groups
folds: {k: 10, repeats: 2}
methods:
  - rf
  - algorithm: ldlf
    name: "forest of {trees}, {preset}"
    settings: {steps: 100}
    grid: {trees: [1, 5], preset: [auto, paper]}
  - {algorithm: structrf, settings: {trees: 3}}
  - {algorithm: sa-bfgs, settings: {iterations: 9}, grid: {l2: [0.1, 0.01]}, choose: {inner: 3}}
measures: [kl, clark]
published:
  - {dataset: Movie, method: StructRF of the paper, source: Table 3, values: {kl: 0.0842±0.005, clark: .5}}
`

func TestParse(t *testing.T) {
	s, err := Parse(t.Context(), "whole.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "whole" || s.Seed != 3 || !s.SkipMissing || !slices.Equal(s.Measures, []string{"kl", "clark"}) {
		t.Errorf("%+v", s)
	}
	var names []string
	for _, r := range s.Methods {
		names = append(names, r.Name)
	}
	want := []string{"rf", "forest of 1, auto", "forest of 1, paper", "forest of 5, auto", "forest of 5, paper",
		"structrf trees=3", "sa-bfgs iterations=9, chosen of 2"}
	if !slices.Equal(names, want) || s.Methods[2].Settings["preset"] != "paper" ||
		s.Methods[2].Settings["steps"] != "100" {
		t.Errorf("the methods are %q", names)
	}
	if r := s.Methods[6]; r.Algorithm != "ensemble" ||
		r.Settings["members"] != "sa-bfgs:iterations=9:l2=0.1,sa-bfgs:iterations=9:l2=0.01" ||
		r.Settings["weights"] != "best" || r.Settings["inner_folds"] != "3" {
		t.Errorf("the method that chooses has %v", r.Settings)
	}
	movie, faces, persons := s.Datasets[0], s.Datasets[1], s.Datasets[2]
	if movie.Name != "Movie" || movie.Folds.Way != folds.Seeded || movie.Folds.Scheme.Folds != 10 ||
		movie.Folds.Repeats != 2 || movie.Folds.Seed != 3 {
		t.Errorf("%+v", movie)
	}
	if faces.Name != "SJAFFE" || faces.Folds.Way != folds.ScikitLearn || faces.Folds.Seed != 9 ||
		faces.Folds.Repeats != 4 || len(faces.Options) != 3 || faces.Options[2].Value != "a,b" {
		t.Errorf("%+v", faces)
	}
	if persons.On != "persons" || persons.Folds.Way != folds.Groups || persons.Folds.Repeats != 1 {
		t.Errorf("%+v", persons)
	}
	if len(s.Published) != 2 || s.Published[0].Value != .0842 || s.Published[0].Deviation != .005 ||
		s.Published[1].Measure != "clark" {
		t.Errorf("%+v", s.Published)
	}
}

// TestParseErrors: what is wrong is named with its line and column, and what is near.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "s.yaml: the file is empty; a spec of an experiment is a YAML mapping with the keys name, seed, datasets,"},
		{"name: a\nmethods: [rf]", "s.yaml: the key datasets is missing"},
		{"name: a\ndataset: [b]", `s.yaml:2:1: a spec of an experiment: unknown key "dataset" (did you mean "datasets"?)`},
		{"name: a\ndatasets: [b]\nmethods: [structrv]",
			`s.yaml:3:11: algorithm: "structrv" is unknown (did you mean "structrf"?)`},
		{"name: a\ndatasets: [b]\nmethods:\n  - algorithm: ldlf\n    settings: {tress: 5}",
			`s.yaml:5:16: unknown setting tress of ldlf (did you mean "trees"?)`},
		{"name: a\ndatasets: [b]\nmethods:\n  - algorithm: ldlf\n    settings: {trees: -5}",
			`s.yaml:5:23: trees: "-5" is not a whole number`},
		{"name: a\ndatasets: [b]\nmethods:\n  - algorithm: ldlf\n    settings: {folds: 5}",
			`s.yaml:5:16: folds: a method gives only settings of its algorithm; folds is set for the whole experiment`},
		{"name: a\ndatasets: [b]\nmethods:\n  - {algorithm: rf, preset: best}",
			`s.yaml:4:29: preset: "best" is not auto or paper`},
		{"name: a\ndatasets: [b]\nmethods:\n  - {algorithm: rf, grid: {}}", "s.yaml:4:21: grid: the grid is empty"},
		{"name: a\ndatasets: [b]\nmethods:\n  - {algorithm: rf, grid: {trees: []}}", "s.yaml:4:28: trees: the list is empty"},
		{"name: a\ndatasets: [b]\nmethods: [rf, rf]", `s.yaml:3:15: two methods have the name "rf", the first in line 3`},
		{"name: a\ndatasets: [b, c/b.mat]\nmethods: [rf]",
			`s.yaml:2:15: two datasets have the name "b", the first in line 2`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nmeasures: [kl, clerk]",
			`s.yaml:4:16: unknown measure "clerk" (did you mean "clark"?)`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: 1", "s.yaml:4:8: folds: \"1\" is not a whole number from 2"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {k: 3, sklearn: 4}",
			"s.yaml:4:15: folds: the keys sklearn and k exclude each other: give one of k, sklearn, groups, file"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {seed: 3}",
			"s.yaml:4:8: folds: the key that says how samples are divided is missing: give one of k, sklearn, groups, file"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {groups: true, seed: 3}",
			"s.yaml:4:8: folds: the kind groups has no seed"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {sklearn: 10, repeats: 103}",
			"s.yaml:4:8: folds: 103 repeats of 10 folds make 1,030 splits, want at most 1,024"},
		{"name: a\ndatasets: [b]\nmethods: [rf, ldlf]\nfolds: {k: 10, repeats: 50001}",
			"s.yaml:2:12: the experiment has more than 250,000 runs with this dataset (2 methods, 50,001 repeats, 10"},
		{"name: a\ndatasets: [b]\nmethods: [rf, ldlf]\nfolds: {sklearn: 10, repeats: 5001}",
			"s.yaml:4:8: folds: 5,001 repeats of 10 folds make 50,010 splits, want at most 1,024"},
		{"name: a\ndatasets: [b]\nmethods: [rf, mean]",
			`s.yaml:3:15: algorithm: "mean" is unknown; a spec does not list the mean baseline, because each report has it`},
		{"name: a\ndatasets: [{file: b, name: 'c d'}]\nmethods: [rf]",
			`s.yaml:2:12: the dataset's name "c d": a name can have only letters, digits, '.', '_' and '-', not ' '`},
		{"name: a\ndatasets: [{dataset: b, sigma: 3}]\nmethods: [rf]",
			"s.yaml:2:12: sigma applies only to a file; a dataset on the cluster was read when it was imported"},
		{"name: a\ndatasets: [{name: b}]\nmethods: [rf]",
			"s.yaml:2:12: a dataset is a file (key file) or a dataset on the cluster (key dataset)"},
		{"name: a\ndatasets: [{file: b, lables: age}]\nmethods: [rf]",
			`s.yaml:2:22: a dataset: unknown key "lables" (did you mean "labels"?)`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\npublished: [{dataset: c, method: x, values: {kl: 1}}]",
			`s.yaml:4:23: the experiment has no dataset "c"`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\npublished: [{dataset: b, method: x, values: {kl: one}}]",
			`s.yaml:4:50: kl: "one" is not a number, nor a mean and a standard deviation such as 0.073±0.005`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nmeasures: [kl]\npublished: [{dataset: b, method: x, values: {clark: 1}}]",
			"s.yaml:5:46: clark is not a measure of this experiment; its measures are kl"},
		{"name: a b\ndatasets: [b]\nmethods: [rf]", "s.yaml:1:7: name:"},
		{"name: a\nname: b", `s.yaml:2:1: mapping key "name" already defined`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, choose: {inner: 3}}]",
			"s.yaml:3:27: choose: the method has only one candidate"},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, grid: {trees: [1, 2]}, choose: {inner: 1}}]",
			`inner_folds: "1" is not`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: ranking, grid: {preset: [auto, paper]}, choose: {}}]", "members"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nbudget: 20",
			`s.yaml:4:9: budget: "20" is not a duration from 1s to 10000h, such as 90s, 20m or 1h30m`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, budget: 5ms}]",
			`s.yaml:3:35: budget: "5ms" is not a duration from 1s to 10000h, such as 90s, 20m or 1h30m`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {k: 5, only: [0, 2, 0]}",
			"s.yaml:4:28: only: fold 0 is listed twice"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {k: 5, only: [-1]}",
			`s.yaml:4:22: only: "-1" is not a whole number from 0`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nfolds: {k: 5, only: []}", "only: the list is empty"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nrecord: [curve, predictons]",
			`s.yaml:4:17: record: cannot record "predictons" (did you mean "predictions"?); want curve or predictions`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nrecord: [curve, curve]", "s.yaml:4:17: record: curve is listed twice"},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nrecord: curves",
			`s.yaml:4:9: record: cannot record "curves" (did you mean "curve"?); want curve or predictions`},
		{"- a", "s.yaml:1:1: a spec of an experiment is a YAML mapping with the keys name, seed, datasets, missing, folds,"},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: Mean  baseline}]",
			`s.yaml:3:11: no method can have the name "Mean  baseline", because each report has a line of this name`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: ' x '}, {algorithm: ldlf, name: x}]",
			`s.yaml:3:41: two methods have the name "x", the first in line 3`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: 'x y'}, {algorithm: ldlf, name: \"x\u00a0 \u200by\"}]",
			`of a method looks like the name "x y" in line 3`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: k-nn}, {algorithm: ldlf, name: \"k\u2011nn\"}]",
			`looks like the name "k-nn" in line 3`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: \"k\u2013nn\"}, {algorithm: ldlf, name: \"k\u2212nn\"}]",
			"looks like the name \"k\u2013nn\" in line 3"},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: k-nn}, {algorithm: ldlf, name: \"k-\ufe0fnn\"}]",
			`looks like the name "k-nn" in line 3`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: caf\u00e9}, {algorithm: ldlf, name: cafe\u0301}]",
			`of a method looks like the name "café" in line 3`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: \"a\\nb\"}]",
			`s.yaml:3:33: name: "a\nb" contains the control character U+000A; a name is one line of text`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: \"a\\eb\"}]",
			`s.yaml:3:33: name: "a\x1bb" contains the control character U+001B; a name is one line of text`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: rf, name: ' '}]", `s.yaml:3:33: name: the name is empty`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: aa-knn, name: 'knn {kk}', settings: {k: 3}}]",
			`s.yaml:3:11: name: "knn {kk}": this method does not give the setting {kk} (did you mean "k"?)`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: aa-knn, name: 'knn {k}'}]",
			`s.yaml:3:11: name: "knn {k}": this method does not give the setting {k}; the method gives no settings`},
		{"name: a\ndatasets: [&x {file: b}, *x]\nmethods: [rf]",
			`s.yaml:2:12: found an anchor: a spec of an experiment cannot have anchors (&name), aliases (*name), merge`},
		{"name: a\ndatasets: [b]\nmethods: [{<<: {algorithm: rf}}]",
			`s.yaml:3:12: found a merge key: a spec of an experiment cannot have anchors (&name), aliases (*name), merge`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\nseed: !!int 3",
			`s.yaml:4:7: found a tag: a spec of an experiment cannot have anchors (&name), aliases (*name), merge keys`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\npublished: [{dataset: b, method: x, values: {kl: 1_0}}]",
			`s.yaml:4:50: kl: "1_0" is not a number, nor a mean and a standard deviation such as 0.073±0.005`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\npublished: [{dataset: b, method: x, values: {kl: 0x1p-3}}]",
			`s.yaml:4:50: kl: "0x1p-3" is not a number, nor a mean and a standard deviation such as 0.073±0.005`},
		{"name: a\ndatasets: [b]\nmethods: [rf]\npublished: [{dataset: b, method: x, values: {kl: 0.1±0x1p-3}}]",
			`s.yaml:4:50: kl: "0.1±0x1p-3" is not a number, nor a mean and a standard deviation such as 0.073±0.005`},
		{"name: a\ndatasets: [b]\nmethods: [{algorithm: ldlf, search: {draws: 2, space: {learning_rate: {log: [1_0e-3, " +
			"1]}}}}]", `"1_0e-3" is not a number`},
	} {
		_, err := Parse(t.Context(), "s.yaml", []byte(c.text))
		var at *spec.Error
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.As(err, &at) {
			t.Errorf("%q: error %v, want %q", c.text, err, c.want)
		}
	}
}

// TestNamesInBraces: a value takes the place of its setting once, and braces that are no word stay.
func TestNamesInBraces(t *testing.T) {
	s, err := Parse(t.Context(), "s.yaml", []byte("name: a\ndatasets: [b]\nmethods: [{algorithm: ldlf, name: ' {trees} "+
		"in {1}, {preset} ', preset: auto, grid: {trees: [1, 5]}}]"))
	if err != nil || s.Methods[0].Name != "1 in {1}, auto" || s.Methods[1].Name != "5 in {1}, auto" {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestDocumentedSpec: the first spec of docs/reference/experiment-spec.md is one.
func TestDocumentedSpec(t *testing.T) {
	b, err := os.ReadFile("../docs/reference/experiment-spec.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "```yaml\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("the page has no spec")
	}
	s, err := Parse(t.Context(), "docs/reference/experiment-spec.md", []byte(text))
	if err != nil || len(s.Methods) != 7 || len(s.Datasets) != 4 {
		t.Errorf("%+v, error %v", s, err)
	}
}

// FuzzParse: any text is a spec whose methods and datasets have names, or an error of the file.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("name: a\ndatasets: [b]\nmethods: [{algorithm: ensemble, settings: {members: [rf, structrf]}}]\nfolds: " +
		"{file: x}"))
	f.Add([]byte("? [a]\n: b"))
	f.Add([]byte("name: !!str a\ndatasets: &x [*x]"))
	shipped, _ := filepath.Glob("shipped/*.yaml")
	for _, path := range shipped {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 8<<10 {
			return
		}
		var s *Spec
		var err error
		allocs.AtMost(t, 1<<30, "a spec", func() { s, err = Parse(t.Context(), "f.yaml", b) })
		if err != nil {
			var at *spec.Error
			if !errors.As(err, &at) {
				t.Fatalf("error %v", err)
			}
			return
		}
		if s.Name == "" || len(s.Methods) == 0 || len(s.Datasets) == 0 || s.Methods[0].Name == "" ||
			s.Datasets[0].Name == "" {
			t.Fatalf("%+v", s)
		}
	})
}
