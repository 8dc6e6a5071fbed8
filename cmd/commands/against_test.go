package commands

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestNotBetterThanBaseline: the mean of all training samples as neighbours is the mean baseline. train, model show and
// evaluate say so, as text and as JSON. Of training samples nothing is said.
func TestNotBetterThanBaseline(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 40, 1), dir+"/m.model"
	all := []string{"train", "--local", "--data", data, "--algorithm", "aa-knn", "--set", "scaling=none"}
	args := append(all, "--test-fraction", "0.25", "--set", "k=30", "--model-out", model)
	evaluate := []string{"evaluate", "--model", model, "--data", data}
	var r result
	cmdtest.JSON(t, &r, args...)
	var e evaluation
	cmdtest.JSON(t, &e, evaluate...)
	if r.Against == nil || r.Against.Verdict != measures.NotBetter || r.Against.Samples != 10 || e.Against == nil || e.Against.Verdict != measures.NotBetter || e.Against.Samples != 40 {
		t.Errorf("train says %+v, evaluate %+v", r.Against, e.Against)
	}
	for on, text := range map[string]string{
		"test samples": cmdtest.Works(t, args...) + cmdtest.Works(t, "model", "show", model),
		"samples":      cmdtest.Works(t, evaluate...) + cmdtest.Works(t, evaluate...),
	} {
		if strings.Count(text, "warning: aa-knn is not better than the mean baseline: its K-L on the "+on+" differs by 0.00000 (standard error 0.00000).\n") != 2 {
			t.Errorf("the text does not say it of the %s:\n%s", on, text)
		}
	}
	if text := cmdtest.Works(t, append(all, "--set", "k=40")...); strings.Contains(text, "than the mean baseline") {
		t.Errorf("without test samples:\n%s", text)
	}
	if text := cmdtest.Works(t, append(all, "--set", "k=3", "--folds", "4")...); strings.Contains(text, "than the mean baseline") {
		t.Errorf("a better model:\n%s", text)
	}
}

// TestWorseThanBaseline: what is said of a model that is worse.
func TestWorseThanBaseline(t *testing.T) {
	var b strings.Builder
	writeAgainst(&b, "ldlf", "test samples", &measures.AgainstBaseline{Samples: 9, Difference: measures.Stat{Mean: 0.5, Std: 0.75}, StandardError: 0.25, Verdict: measures.Worse})
	if got, want := b.String(), "warning: ldlf is worse than the mean baseline: its K-L on the test samples is higher by 0.50000 (standard error 0.25000).\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
