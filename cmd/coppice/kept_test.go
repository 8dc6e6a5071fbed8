package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// A model of means has no medians: predict and evaluate refuse the other one, and say what the model keeps.
func TestMissingOtherThanTrained(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := write(t, dir, "t.csv", "a,b,label_p,label_q\n0,1,.1,.9\n1,2,.2,.8\n2,1,.3,.7\n30,2,.4,.6\n8,1,.6,.4\n40,2,.7,.3\n,1,.5,.5\n")
	later := write(t, dir, "later.csv", "a,b\nNA,1\n5,1\n13.5,1\n")
	for by, other := range map[string]string{"mean": "median", "median": "mean"} {
		model := filepath.Join(dir, by+".model")
		works(t, knn(data, model, "--missing", by)...)
		for _, args := range [][]string{{"predict", "--out", "-", "--data", later}, {"evaluate", "--data", data}} {
			args = append(args, "--model", model, "--missing")
			e := coppice(t, append(args, other)...)
			if e.code != exitUsage || !strings.Contains(e.stderr, "the model has the "+by) || !strings.Contains(e.stderr, "--missing "+by) {
				t.Errorf("trained with %s: exit code %d, %s", by, e.code, e.stderr)
			}
			works(t, append(args, by)...)
		}
	}
	// The advice of an error works.
	model := filepath.Join(dir, "none.model")
	works(t, knn(data, model, "--missing", "drop")...)
	works(t, knn(write(t, dir, "full.csv", "a,b,label_p,label_q\n0,1,.1,.9\n1,2,.2,.8\n2,1,.3,.7\n"), model)...)
	e := coppice(t, "predict", "--model", model, "--data", later, "--out", "-")
	if e.code == exitOK || strings.Contains(e.stderr, "--missing mean") || !strings.Contains(e.stderr, "does not have the mean") {
		t.Errorf("exit code %d, %s", e.code, e.stderr)
	}
	for _, m := range []string{"drop", "0"} {
		if !strings.Contains(e.stderr, "--missing "+m) {
			t.Errorf("it lacks --missing %s: %s", m, e.stderr)
		}
		works(t, "predict", "--model", model, "--data", later, "--out", "-", "--missing", m)
	}
}
