package experiment

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/job/spec"
)

// TestAllMistakes: one answer has all mistakes of a spec, in the order of their lines, and none that follows from
// another.
func TestAllMistakes(t *testing.T) {
	text := `name: no good
seed: -1
datasets:
  - first.csv
  - {file: first.csv, name: again, rang: "0:3"}
  - {name: nowhere}
folds: {k: 1}
methods:
  - structrff
  - {algorithm: ldlf, settings: {trees: 0, treees: 3}, budget: soon}
  - {algorithm: rf, grid: {trees: [5, x, y]}}
  - sa-bfgs
  - sa-bfgs
  - {algorithm: rf, search: {draws: 3, space: {trees: {int: [9, 3]}, depth: {int: [1]}}}}
measures: [kl, kll, kl]
record: [curve, curv]
published:
  - {dataset: nowhere, method: x, values: {kl: a, foo: 1}}
  - {dataset: first, values: {kl: 1}}
`
	_, err := Parse(t.Context(), "e.yaml", []byte(text))
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("%v", err)
	}
	want := []string{
		"1:7: name: a name can have", "2:7: seed:", "5:36: a dataset: unknown key", "6:5: a dataset is a file", "7:12: k:",
		"9:5: algorithm:", "10:41: trees:",
		"10:44: unknown setting treees", "10:64: budget:", "11:35: trees: \"x\"", "11:35: trees: \"y\"", "13:5: two methods",
		"14:61: trees: the lower bound",
		"14:78: depth: int: want two numbers", "15:16: unknown measure", "15:21: measures: kl is listed twice",
		"16:17: record:", "18:48: kl:", "18:51: unknown measure",
		"19:5: published values need",
	}
	for i := range max(len(all), len(want)) {
		switch {
		case i >= len(all):
			t.Errorf("missing: %s", want[i])
		case i >= len(want):
			t.Errorf("one more: %v", all[i])
		case !strings.HasPrefix(all[i].Error(), "e.yaml:"+want[i]):
			t.Errorf("mistake %d: %v, want %s", i, all[i], want[i])
		}
	}
	var one *spec.Error
	if !errors.As(err, &one) || one.Line != 1 {
		t.Error("the errors are not of the kind that a spec has")
	}
}

// TestNoMistakeFollows: a mistake that follows from another one is not told.
func TestNoMistakeFollows(t *testing.T) {
	const rest = "name: a\ndatasets: [a.csv]\nmethods: [rf]\n"
	for _, text := range []string{
		"nam: a\ndatasets: [a.csv]\nmethods: [rf]",
		"name: a\ndataset: [a.csv]\nmethods: [rf]\npublished: [{dataset: a, method: x, values: {kl: 1}}]",
		"name: a\nmethods: [rf]\npublished: [{dataset: a, method: x, values: {kl: 1}}]",
		"name: a\ndatasets: [a.csv]\nmethods: [{algoritm: rf}]",
		"name: a\ndatasets: [a.csv]\nmethods: [{algorithm: rf, grid: {trees: []}}]",
		"name: a\ndatasets: [a.csv]\nmethods: [{algorithm: rf, search: {draw: 3, space: {trees: [1, 2, 3]}}}]",
		rest + "folds: {kk: 3}",
		rest + "published: [{datset: a, method: x, values: {kl: 1}}]",
		rest + "measure: [euclidean]\npublished: [{dataset: a, method: x, values: {euclidean: 1}}]",
		"name: " + strings.Repeat("a", 200) + "\ndatasets: [a.csv]\nmethods: [rf]",
	} {
		_, err := Parse(t.Context(), "e.yaml", []byte(text))
		var all Errors
		if !errors.As(err, &all) || len(all) != 1 {
			t.Errorf("%s:\n%v", text, err)
		}
	}
}

// TestAddError: only errors about a place of the spec are mistakes.
func TestAddError(t *testing.T) {
	s := &Spec{file: "e.yaml"}
	var e Errors
	cause := errors.New("row 3")
	if e.Add(cause) || !e.Add(s.Located(Dataset{}.At, cause)) || !e.Add(Errors{s.Error(Dataset{}.At, "x")}) ||
		len(e) != 2 || !errors.Is(e.Sorted(), cause) {
		t.Errorf("%v", e)
	}
	if (Errors{}).Sorted() != nil {
		t.Error("no mistakes are an error")
	}
}
