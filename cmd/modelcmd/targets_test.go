package modelcmd

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// songs is a file of targets in two units. The last sample is beyond the others.
func songs() string {
	var b strings.Builder
	b.WriteString("tempo,energy,y_valence,y_arousal\n")
	for i := range 60 {
		x, y := float64(i*7%60)/60, float64(i*11%60)/60
		fmt.Fprintf(&b, "%.3f,%.3f,%.3f,%.2f\n", x, y, 4*x-2, 20+60*y*y)
	}
	b.WriteString("0.5,0.5,3.5,99\n")
	return b.String()
}

// TestTargets: what train, evaluate, predict and model show say of targets agrees.
func TestTargets(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	rows := strings.SplitAfter(songs(), "\n")
	trained := cmdtest.Write(t, dir, "songs.csv", strings.Join(rows[:61], ""))
	all := cmdtest.Write(t, dir, "all.csv", songs())
	model, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	train := []string{"train", "--local", "--data", trained, "--labels", "bounded", "--algorithm", "gld-bfgs",
		"--model-out", model}
	var r results.Result
	cmdtest.JSON(t, &r, train...)
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", trained)
	for _, m := range measures.Others {
		x, ok := measures.Value(m.Name, r.Measures, r.Added.Model)
		y, also := measures.Value(m.Name, e.Measures, e.Added.Model)
		if ok != also || ok && math.Abs(x.Mean-y.Mean) > 1e-9 {
			t.Errorf("%s: %v in train, %v in evaluate", m.Name, x, y)
		}
	}
	if len(e.Added.Model.Targets.Labels) != 2 || e.Against != nil {
		t.Errorf("evaluated: %+v", e.Added.Model.Targets)
	}
	cmdtest.Works(t, "predict", "--model", model, "--data", all, "--out", out)
	records := clitest.ReadCSV(t, out)
	if got := strings.Join(records[0], ","); got != "row,valence,arousal" || len(records) != 62 {
		t.Fatalf("%d records, columns %s", len(records), got)
	}
	for _, record := range records[1:] {
		for c, bound := range [][2]float64{{-2, 4*59./60 - 2}, {20, 20 + 60*59./60*59/60}} {
			if v, err := strconv.ParseFloat(record[1+c], 64); err != nil || v < bound[0]-1e-3 || v > bound[1]+1e-2 {
				t.Errorf("target %d is %s, bounds %v", c, record[1+c], bound)
			}
		}
	}
	text := cmdtest.Works(t, "model", "show", model)
	if !strings.Contains(text, "targets in the bounds: valence -2 to 1.933, arousal 20 to 78.02") {
		t.Errorf("model show: %s", text)
	}
	text = cmdtest.Works(t, "evaluate", "--model", model, "--data", all)
	for _, word := range []string{"MAE, scaled", "RMSE", "R²", "Errors of each target, in its unit", "valence"} {
		if !strings.Contains(text, word) {
			t.Errorf("evaluate lacks %q: %s", word, text)
		}
	}
	rows = strings.Split(strings.TrimSpace(cmdtest.Works(t, "evaluate", "--model", model, "--data", all, "--per-sample",
		"--out", filepath.Join(dir, "rows.csv"))), "\n")
	if got := clitest.ReadCSV(t, filepath.Join(dir, "rows.csv")); len(got) != 62 || got[0][11] != "mae_target" {
		t.Errorf("%d rows, columns %q, %q", len(got), got[0], rows)
	}
	here := func(data, algorithm string, more ...string) []string {
		return append([]string{"train", "--local", "--data", data, "--algorithm", algorithm, "--labels", "bounded"}, more...)
	}
	for says, args := range map[string][]string{
		"these algorithms predict targets":                  here(trained, "sa-bfgs"),
		"the target 3.5 is outside the bounds -2 to 2":      here(all, "gld-knn", "--bounds=-2:2,0:100"),
		"--range is for whole numbers":                      here(trained, "gld-knn", "--range", "0:4"),
		"need labels that sum to 1":                         here(trained, "gld-knn", "--normalize"),
		"want two different numbers, the lower one first":   here(trained, "gld-knn", "--bounds", "3:3"),
		"there are bounds of 3 labels, but the data have 2": here(trained, "gld-knn", "--bounds", "0:1,0:1,0:1"),
	} {
		if x := cmdtest.Run(t, args...); x.Code != 2 && x.Code != 1 || !strings.Contains(x.Stderr, says) {
			t.Errorf("%q: exit code %d, %s", args, x.Code, x.Stderr)
		}
	}
	for _, algorithm := range []string{"gld-bfgs", "gld-knn"} { // the error does not advise --normalize
		x := cmdtest.Run(t, "train", "--local", "--data", trained, "--algorithm", algorithm)
		if x.Code != 2 || !strings.Contains(x.Stderr, "--labels bounded makes labels targets") ||
			strings.Contains(x.Stderr, "--normalize") {
			t.Errorf("%s: exit code %d, %s", algorithm, x.Code, x.Stderr)
		}
		cmdtest.Works(t, "train", "--local", "--data", trained, "--algorithm", algorithm, "--labels", "bounded")
	}
	for says, args := range map[string][]string{
		"cannot be changed for a model":        {"--bounds", "0:1"},
		"but the model was trained on targets": {"--labels", "distributions", "--normalize"},
	} {
		if x := cmdtest.Run(t, append([]string{"evaluate", "--model", model, "--data", trained}, args...)...); x.Code == 0 ||
			!strings.Contains(x.Stderr, says) {
			t.Errorf("%q: exit code %d, %s", args, x.Code, x.Stderr)
		}
	}
}
