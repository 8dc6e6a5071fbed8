package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestLinearWarning: train warns if the linear baseline is better than the model, and model show does too.
func TestLinearWarning(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model := cmdtest.ArtificialFile(t, dir, "set.csv", 26_000, 1), dir+"/m.model"
	args := []string{"train", "--local", "--data", data, "--test-fraction", "0.1", "--algorithm", "structrf", "--set", "trees=1", "--set", "max_depth=1", "--model-out", model}
	var r result
	cmdtest.JSON(t, &r, args...)
	if r.Linear == nil || !r.Linear.Better || r.Linear.Difference.Mean <= 0 {
		t.Fatalf("linear baseline %+v", r.Linear)
	}
	linear := fmt.Sprintf("Linear baseline: K-L %s (sa-bfgs, fitted to 20,000 of the 23,400 training samples)\n", figure(r.Linear.Measures[0].Mean))
	warning := fmt.Sprintf("warning: the linear baseline has a lower K-L than structrf (%s). Try --algorithm sa-bfgs.\n", figure(r.Measures[0].Mean))
	for _, text := range []string{cmdtest.Works(t, args...), cmdtest.Works(t, "model", "show", model)} {
		if !strings.Contains(text, linear+warning) {
			t.Errorf("the text does not say %q:\n%s", linear+warning, text)
		}
	}
}

// TestLinearText: what is said of a linear baseline that is not better, and was fitted to all training samples.
func TestLinearText(t *testing.T) {
	var b strings.Builder
	var ten measures.Report
	ten[0].Mean = 0.25
	writeLinear(&b, "ldlf", &pipeline.LinearBaseline{Samples: 20_000, Measures: ten}, pipeline.Counts{Train: 20_000}, ten)
	if got, want := b.String(), "Linear baseline: K-L 0.25000 (sa-bfgs, fitted to the 20,000 training samples)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.Reset()
	if writeLinear(&b, "ldlf", nil, pipeline.Counts{}, ten); b.Len() > 0 {
		t.Errorf("text without a linear baseline: %q", b.String())
	}
}
