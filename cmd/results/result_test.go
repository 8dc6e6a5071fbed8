package results

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestSpentLine: where the time went is the end of the text, and in the JSON.
func TestSpentLine(t *testing.T) {
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 300, 1)
	text := strings.TrimSpace(cmdtest.Works(t, clitest.TrainArgs(data)...))
	lines := strings.Split(text, "\n")
	last := lines[len(lines)-1]
	for _, word := range []string{"time spent on", "step ", "leaf update ", "validation ", "waiting "} {
		if !strings.Contains(last, word) {
			t.Errorf("the last line %q lacks %q", last, word)
		}
	}
	for name, args := range map[string][]string{
		"one job": clitest.TrainArgs(data, "--threads", "1"),
		"folds":   clitest.TrainArgs(data, "--folds", "3", "--threads", "2"),
		"forest":  {"train", "--local", "--data", data, "--algorithm", "structrf", "--set", "trees=1000"},
	} {
		var r Result
		cmdtest.JSON(t, &r, args...)
		kinds := []string{"step", "leaf update", "validation", "evaluation", pipeline.Waiting}
		if name == "forest" {
			kinds = []string{"tree", "evaluation", pipeline.Waiting}
		}
		sum := 0.0
		for _, v := range r.Spent {
			sum += v
		}
		for _, kind := range kinds {
			if _, ok := r.Spent[kind]; !ok {
				t.Errorf("%s: no time of %q in %v", name, kind, r.Spent)
			}
		}
		lanes := 1.0
		if name == "folds" {
			lanes = 2
		}
		// A short job is mostly its start, which no kind has.
		if sum > lanes*r.Seconds*1.01+0.01 || sum < lanes*r.Seconds*0.5 {
			t.Errorf("%s: %v s of %v s on %v lanes", name, sum, r.Seconds, lanes)
		}
	}
	spent := map[string]float64{"zeal": 1, "tree": 65, pipeline.Waiting: 0.5, "evaluation": 2}
	if got := spentLine(spent); got != "evaluation 2.0 s, tree 1m05s, waiting 500 ms, zeal 1.0 s" {
		t.Errorf("%q", got)
	}
}

// TestWorseThanBaseline: what is said of a model that is worse.
func TestWorseThanBaseline(t *testing.T) {
	var b strings.Builder
	WriteAgainst(&b, "ldlf", "test samples", &measures.AgainstBaseline{Samples: 9, Difference: measures.Stat{Mean: 0.5,
		Std: 0.75}, StandardError: 0.25, Verdict: measures.Worse})
	if got, want := b.String(), "warning: ldlf is worse than the mean baseline: its K-L on the test samples is higher "+
		"by 0.50000 (standard error 0.25000).\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLinearText: what is said of a linear baseline that is not better, and was fitted to all training samples.
func TestLinearText(t *testing.T) {
	var b strings.Builder
	var ten measures.Report
	ten[0].Mean = 0.25
	WriteLinear(&b, "ldlf", &pipeline.LinearBaseline{Samples: 20_000, Measures: ten}, pipeline.Counts{Train: 20_000}, ten)
	if got, want := b.String(),
		"Linear baseline: K-L 0.25000 (sa-bfgs, fitted to the 20,000 training samples)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Reset()
	if WriteLinear(&b, "ldlf", nil, pipeline.Counts{}, ten); b.Len() > 0 {
		t.Errorf("text without a linear baseline: %q", b.String())
	}
}

// TestLinearWarning: train warns if the linear baseline is better than the model, and model show does too.
func TestLinearWarning(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 26_000, 1), dir+"/m.model"
	args := []string{"train", "--local", "--data", data, "--test-fraction", "0.1", "--algorithm", "structrf", "--set",
		"trees=1", "--set", "max_depth=1", "--model-out", model}
	var r Result
	cmdtest.JSON(t, &r, args...)
	if r.Linear == nil || !r.Linear.Better || r.Linear.Difference.Mean <= 0 {
		t.Fatalf("linear baseline %+v", r.Linear)
	}
	linear := fmt.Sprintf("Linear baseline: K-L %s (sa-bfgs, fitted to 20,000 of the 23,400 training samples)\n",
		cli.Measure(r.Linear.Measures[0].Mean))
	warning := fmt.Sprintf("warning: the linear baseline has a lower K-L than structrf (%s). Try --algorithm sa-bfgs.\n",
		cli.Measure(r.Measures[0].Mean))
	for _, text := range []string{cmdtest.Works(t, args...), cmdtest.Works(t, "model", "show", model)} {
		if !strings.Contains(text, linear+warning) {
			t.Errorf("the text does not say %q:\n%s", linear+warning, text)
		}
	}
}
