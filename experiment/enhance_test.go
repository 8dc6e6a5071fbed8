package experiment

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
)

// TestEnhance: the enhancement of a method or of a dataset is part of the keys of runs, of the table and of the command
// of a run.
func TestEnhance(t *testing.T) {
	const head = "name: e\nfolds: 3\ndatasets: [{file: a.csv"
	const methods = "}]\nmethods: [{algorithm: sa-bfgs, name: plain}, {algorithm: sa-bfgs, enhance: {method: km, " +
		"binarise: 0.5, normalise: sum}}]\n"
	s, p := planned(t, head+methods)
	if s.Methods[1].Name != "sa-bfgs, km" || *p.Job.Cells.Rows[1].Enhance != (round.Enhance{Method: "km", Normalise: "sum",
		Binarise: 0.5}) || p.Job.Cells.Rows[0].Enhance != nil {
		t.Errorf("methods %+v, rows %+v", s.Methods, p.Job.Cells.Rows)
	}
	keysOf(t, s, p) // all differ
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := l.Table.Methods[1]; m.Same != "" || m.Settings["enhance"] != "km" || m.Settings["binarise"] != "0.5" {
		t.Errorf("the table has %+v", m)
	}
	c, err := NewCommands(l, Sources{File: func(path string) string { return path }})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Alone(&result.Run{Method: 1})
	if want := " --enhance km --normalise sum --binarise 0.5"; err != nil || !strings.Contains(got, want) {
		t.Errorf("%s, %v, want %s", got, err, want)
	}

	s, p = planned(t, head+", enhance: lp"+methods)
	if s.Datasets[0].Name != "a-lp" || p.Job.Cells.Rows[0].Enhance.Method != "lp" ||
		!strings.Contains(p.Refused[1], "both name a label enhancement") {
		t.Errorf("datasets %+v, refused %v", s.Datasets, p.Refused)
	}
	if l, err = NewLayout(s, []*Plan{p}, nil); err != nil || l.Table.Datasets[0].Enhance != "lp, softmax" ||
		!strings.Contains(strings.Join(l.Table.Notes(), " "), "Dataset a-lp: the labels of training samples") {
		t.Errorf("%v, the table has %+v", err, l.Table.Datasets)
	}
}

// TestEnhanceMistakes: an error names the line, and what is right.
func TestEnhanceMistakes(t *testing.T) {
	for value, want := range map[string]string{
		"gle":                        `"gle" is not none, lp`,
		"none":                       "want one of lp, km, glle, logical",
		"{normalise: sum}":           "the key method is missing",
		"{method: lp, binarise: 1}":  "s.yaml:2:",
		"{method: lp, alpha: 1}":     "alpha",
		"{method: lp, normalise: x}": "is not softmax or sum",
	} {
		_, err := Parse(t.Context(), "s.yaml", []byte("name: e\ndatasets: [{file: a.csv, enhance: "+value+
			"}]\nmethods: [sa-bfgs]\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestShippedEnhancement: all methods of the shipped spec but the first have an enhancement.
func TestShippedEnhancement(t *testing.T) {
	f, ok := shipped.Find("enhancement")
	s, err := Parse(t.Context(), "enhancement.yaml", f.Text)
	if !ok || err != nil {
		t.Fatal(err)
	}
	for i, m := range s.Methods {
		if (m.Enhance == nil) != (i == 0) || i > 0 && m.Enhance.Method != m.Name {
			t.Errorf("method %s has the enhancement %v", m.Name, m.Enhance)
		}
	}
}
