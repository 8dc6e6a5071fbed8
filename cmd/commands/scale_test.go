package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestEvaluateRange: a --range of other numbers than the model's is refused; the model's own is accepted.
func TestEvaluateRange(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "x.csv", "a,label_1,label_2,label_3\n1,1,0,0\n2,0,1,0\n3,0,0,1\n"), dir+"/m.model"
	cmdtest.Works(t, "train", "--local", "--data", data, "--range", "1:3", "--algorithm", "aa-knn", "--set", "k=1", "--model-out", model)
	for _, r := range []string{"0:2", "101:103", "0:3"} {
		end := cmdtest.Run(t, "evaluate", "--model", model, "--data", data, "--range", r)
		if end.Code != ExitUsage || !strings.Contains(end.Stderr, "give --range 1:3") {
			t.Errorf("--range %s: %d, %s", r, end.Code, end.Stderr)
		}
	}
	cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--range", "1:3")
}

// TestRoundedAgesAreNoted: train and evaluate say how many ages are rounded for errors, as text and as JSON.
func TestRoundedAgesAreNoted(t *testing.T) {
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "x.csv", "a,age\n1,25.5\n2,26.5\n3,30\n"), dir+"/m.model"
	const want = "the ages of 2 samples are not whole numbers"
	flags := []string{"--data", data, "--labels", "age", "--sigma", "2", "--range", "0:69"}
	end := cmdtest.Run(t, slices.Concat([]string{"train", "--local", "--algorithm", "aa-knn", "--set", "k=1", "--model-out", model}, flags)...)
	if end.Code != ExitOK || strings.Count(end.Stderr, want) != 1 {
		t.Errorf("train: %d, %s", end.Code, end.Stderr)
	}
	if end = cmdtest.Run(t, "evaluate", "--model", model, "--data", data); strings.Count(end.Stderr, want) != 1 {
		t.Errorf("evaluate: %d, %s", end.Code, end.Stderr)
	}
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data)
	if !slices.ContainsFunc(e.Notes, func(s string) bool { return strings.Contains(s, want) }) {
		t.Errorf("notes of JSON: %q", e.Notes)
	}
}
