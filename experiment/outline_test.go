package experiment

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// sizes are the plans of a spec on datasets with these numbers of samples.
func sizes(t *testing.T, text string, rows ...int) (*Spec, []*Plan) {
	t.Helper()
	s, err := Parse(t.Context(), "s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var plans []*Plan
	for i, n := range rows {
		m, _ := datatest.Artificial(t, n)
		p, err := NewPlan(t.Context(), s, &s.Datasets[i], &Data{Manifest: m})
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	return s, plans
}

// TestHyperparameters: a layout has what methods resolve to on each dataset.
func TestHyperparameters(t *testing.T) {
	s, plans := sizes(t, `
name: a
folds: 2
datasets: [{dataset: small}, {dataset: large}, {dataset: again}]
methods:
  - {algorithm: rf, preset: auto}
  - quadratic
  - {algorithm: rf, preset: paper, settings: {trees: 7}}
  - ldl-ldm`, 60, 500, 60)
	o := NewOutline(s, plans, nil)
	l, err := o.Layout()
	if err != nil {
		t.Fatal(err)
	}
	list := l.Table.Hyperparameters
	if len(list) != 2 || list[0].Algorithm != "rf" || list[1].Algorithm != "ldl-ldm" { // quadratic predicts numbers
		t.Fatalf("%+v", list)
	}
	rf := list[0]
	if rf.Names[0] != "preset" || rf.Methods[0].Values["max_depth"] != "20" {
		t.Errorf("%+v", rf)
	}
	for i, want := range []struct {
		method                 int
		datasets               []int
		preset, trees, samples string
	}{{0, []int{0, 2}, "auto", "200", "12"}, {0, []int{1}, "auto", "200", "80"}, {2, []int{0, 1, 2}, "paper", "7", "20"}} {
		m := rf.Methods[i]
		if m.Method != want.method || !slices.Equal(m.Datasets, want.datasets) || m.Values["preset"] != want.preset ||
			m.Values["trees"] != want.trees || m.Values["min_samples"] != want.samples {
			t.Errorf("%d: %+v, want %+v", i, m, want)
		}
	}
	of := func() []result.Hyperparameters {
		t.Helper()
		l, err := o.Layout()
		if err != nil {
			t.Fatal(err)
		}
		return l.Table.Hyperparameters
	}
	if o, err = DecodeOutline(marshalled(o)); err != nil {
		t.Fatal(err)
	}
	if got := of(); string(marshalled(got)) != string(marshalled(list)) {
		t.Errorf("of the JSON: %s, want %s", marshalled(got), marshalled(list))
	}
}
