package commands

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// A model of means has no medians: predict and evaluate refuse the other one, and say what the model keeps.
func TestMissingOtherThanTrained(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv", "a,b,label_p,label_q\n0,1,.1,.9\n1,2,.2,.8\n2,1,.3,.7\n30,2,.4,.6\n8,1,.6,.4\n40,2,.7,.3\n,1,.5,.5\n")
	later := cmdtest.Write(t, dir, "later.csv", "a,b\nNA,1\n5,1\n13.5,1\n")
	for by, other := range map[string]string{"mean": "median", "median": "mean"} {
		model := filepath.Join(dir, by+".model")
		cmdtest.Works(t, knn(data, model, "--missing", by)...)
		for _, args := range [][]string{{"predict", "--out", "-", "--data", later}, {"evaluate", "--data", data}} {
			args = append(args, "--model", model, "--missing")
			e := cmdtest.Run(t, append(args, other)...)
			if e.Code != ExitUsage || !strings.Contains(e.Stderr, "the model has the "+by) || !strings.Contains(e.Stderr, "--missing "+by) {
				t.Errorf("trained with %s: exit code %d, %s", by, e.Code, e.Stderr)
			}
			cmdtest.Works(t, append(args, by)...)
		}
	}
	// The advice of an error works.
	model := filepath.Join(dir, "none.model")
	cmdtest.Works(t, knn(data, model, "--missing", "drop")...)
	cmdtest.Works(t, knn(cmdtest.Write(t, dir, "full.csv", "a,b,label_p,label_q\n0,1,.1,.9\n1,2,.2,.8\n2,1,.3,.7\n"), model)...)
	e := cmdtest.Run(t, "predict", "--model", model, "--data", later, "--out", "-")
	if e.Code == ExitOK || strings.Contains(e.Stderr, "--missing mean") || !strings.Contains(e.Stderr, "does not have the mean") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	for _, m := range []string{"drop", "0"} {
		if !strings.Contains(e.Stderr, "--missing "+m) {
			t.Errorf("it lacks --missing %s: %s", m, e.Stderr)
		}
		cmdtest.Works(t, "predict", "--model", model, "--data", later, "--out", "-", "--missing", m)
	}
}
