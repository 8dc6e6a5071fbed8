package modelcmd

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/job/predict"
)

// TestCalibrationWithoutPairs: a label without a known degree has no error, not the error 0.
func TestCalibrationWithoutPairs(t *testing.T) {
	var b strings.Builder
	none := predict.Calibration{Label: "none"}
	(&calibration{CalibrationCurve: &predict.CalibrationCurve{Labels: []predict.Calibration{none, none}}}).text(&b)
	if _, rows, _ := strings.Cut(b.String(), "Calibration of each label"); strings.Contains(rows, "0.0") ||
		!strings.Contains(rows, "-") {
		t.Error(b.String())
	}
}

// TestCalibration: the bins of evaluate --calibration are the bins of the predictions that predict writes.
func TestCalibration(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, other := cmdtest.Write(t, dir, "set.csv", noisy(80, 1)), cmdtest.Write(t, dir, "other.csv", noisy(50, 2))
	model, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	cmdtest.Works(t, "train", "--local", "--data", data, "--algorithm", "sa-bfgs", "--model-out", model)
	cmdtest.Works(t, "predict", "--model", model, "--data", other, "--out", out)
	args := []string{"evaluate", "--model", model, "--data", other, "--calibration", "--bins", "5"}
	var e evaluation
	cmdtest.JSON(t, &e, append(args, "--figures", dir+"/figures")...)
	if e.Calibration == nil || len(e.Calibration.Labels) != 2 || e.Calibration.All.Count != 100 {
		t.Fatalf("%+v", e.Calibration)
	}
	predicted, truth := clitest.ReadCSV(t, out), clitest.ReadCSV(t, other)
	for k, l := range e.Calibration.Labels {
		type one struct{ p, d float64 }
		var all []one
		for i := range 50 {
			all = append(all, one{clitest.Numbers(t, predicted[i+1][k+1:])[0], clitest.Numbers(t, truth[i+1][k+3:])[0]})
		}
		slices.SortFunc(all, func(a, b one) int {
			if a.p < b.p {
				return -1
			}
			return 1
		})
		want := 0.0
		for b := range 5 {
			difference := 0.0
			for _, x := range all[10*b : 10*b+10] {
				difference += (x.p - x.d) / 10
			}
			got := l.Bins[b]
			if got.Count != 10 || math.Abs(got.Predicted-got.Observed-difference) > 1e-6 {
				t.Errorf("%s, bin %d: %+v, want the difference %v", l.Label, b, got, difference)
			}
			want += math.Abs(difference) / 5
		}
		if math.Abs(l.Error-want) > 1e-6 {
			t.Errorf("%s: error %v, want %v", l.Label, l.Error, want)
		}
	}
	if diff := cmp.Diff([]string{"calibration.pdf", "calibration.png", "calibration.svg", "distributions.pdf",
		"distributions.png", "distributions.svg"}, cmdtest.Contents(t, dir+"/figures")); diff != "" {
		t.Error(diff)
	}
	text := cmdtest.Works(t, args...)
	for _, says := range []string{"Calibration in 5 bins of equal counts: expected calibration error 0.",
		"Calibration of each label", "\nup "} {
		if !strings.Contains(text, says) {
			t.Errorf("the text lacks %q:\n%s", says, text)
		}
	}
	var plain evaluation
	cmdtest.JSON(t, &plain, "evaluate", "--model", model, "--data", other)
	if plain.Calibration != nil {
		t.Error("without --calibration there is a curve")
	}
	for says, more := range map[string][]string{
		"--bins needs --calibration": {"--bins", "5"},
		"want 1 to 1,000 bins":       {"--calibration", "--bins", "0"},
	} {
		x := cmdtest.Run(t, append([]string{"evaluate", "--model", model, "--data", other}, more...)...)
		if x.Code != cli.ExitUsage || !strings.Contains(x.Stderr, says) {
			t.Errorf("%q: exit code %d, %s", more, x.Code, x.Stderr)
		}
	}
}

// TestCalibrationOfNumbersAndTargets: a number has one curve, and targets have curves in their units; over all labels
// they are scaled by their bounds.
func TestCalibrationOfNumbersAndTargets(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model := cmdtest.Write(t, dir, "songs.csv", songs()), filepath.Join(dir, "m.coppice")
	evaluate := []string{"evaluate", "--model", model, "--data", data, "--calibration", "--figures", dir + "/figures"}
	cmdtest.Works(t, "train", "--local", "--data", data, "--labels", "bounded", "--algorithm", "gld-knn", "--bounds",
		"-4:4,0:100", "--model-out", model)
	var e evaluation
	cmdtest.JSON(t, &e, evaluate...)
	all, arousal := e.Calibration.All, e.Calibration.Labels[1]
	if all.Bins[0].Low < 0 || all.Bins[len(all.Bins)-1].High > 1 || arousal.Bins[len(arousal.Bins)-1].High < 50 {
		t.Errorf("%+v", e.Calibration)
	}
	ages := cmdtest.Write(t, dir, "ages.csv", "x,age\n"+strings.Repeat("0,3\n1,5\n2,7\n3,9\n", 5))
	cmdtest.Works(t, "train", "--local", "--data", ages, "--labels", "age", "--sigma", "1", "--range", "0:10",
		"--algorithm", "quadratic", "--model-out", model)
	evaluate[4] = ages
	var number evaluation
	cmdtest.JSON(t, &number, evaluate...)
	if c := number.Calibration; len(c.Labels) != 0 || c.All.Count != 20 || len(c.All.Bins) != 4 || c.All.Error > .1 {
		t.Errorf("%+v", c)
	}
}
