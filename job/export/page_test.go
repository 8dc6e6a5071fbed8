package export

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
)

// plain are the operators that the page does not list: arithmetic and shapes.
var plain = []string{"Add", "Cast", "Concat", "Div", "Equal", "Expand", "Gather", "Identity", "IsNaN", "Max", "Min",
	"Mul", "Neg", "ReduceSum", "Reshape", "Shape", "Sub", "Transpose", "Unsqueeze", "Where"}

var quoted = regexp.MustCompile("`([^`]*)`")

// listed returns what stands between backticks.
func listed(cell string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestPage: the page about ONNX lists each algorithm once, with the operators of its graphs.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/export-onnx.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| algorithms | operators | tolerance |\n")
	operators := make(map[string][]string) // by algorithm
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			break
		}
		for _, name := range listed(cells[1]) {
			if _, twice := operators[name]; twice {
				t.Errorf("the page lists %s twice", name)
			}
			operators[name] = listed(cells[2])
		}
	}
	o := generate.Options{Rows: 150, Features: 5, Labels: 4, Density: 1, Seed: 1}
	for _, a := range registry.All() {
		want, ok := operators[a.Name()]
		delete(operators, a.Name())
		if a.Name() == "ensemble" && ok {
			continue // those of the members
		}
		kind := dataset.LabelType{}
		switch a.Predicts() {
		case algorithms.Number:
			kind.Scale = &dataset.Scale{Low: 10, True: dataset.TrueValue}
		case algorithms.Targets:
			kind.Bounds = &dataset.Bounds{Low: []float64{0, 0, 0, 0}, High: []float64{1, 1, 1, 1}}
		}
		used := make(map[string]bool)
		of := func(o generate.Options, set map[string]string) {
			g, _ := graphOf(t, train(t, o, kind, a.Name(), set))
			for _, name := range g.Operators() {
				if name = strings.TrimPrefix(name, "ai.onnx.ml:"); !slices.Contains(plain, name) {
					used[name] = true
				}
			}
		}
		for _, set := range settingsOf(a.Name()) {
			of(o, set)
		}
		if a.Name() == "dldl" {
			for _, set := range images {
				of(generate.Options{Rows: 120, Features: 2 * 7 * 8, Labels: 3, Density: 1, Seed: 3}, set)
			}
		}
		if got := slices.Sorted(maps.Keys(used)); !ok || !slices.Equal(got, want) {
			t.Errorf("%s has the operators %q, and the page has %q", a.Name(), got, want)
		}
	}
	for name := range operators {
		t.Errorf("the page lists %s, which is no algorithm", name)
	}
}
