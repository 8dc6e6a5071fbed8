package measures

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
)

// The targets and predictions of six samples, whose third target is constant.
var (
	trueTargets = [][]float32{{1.83, 68.476, .25}, {-1.285, 23.236, .25}, {-.549, 22.717, .25}, {2.995, 59.142, .25},
		{-.39, 78.451, .25}, {2.065, 43.544, .25}}
	predictedTargets = [][]float32{{1.641, 67.012, -.012}, {-1.119, 23.047, -.088}, {-.426, 25.207, -.32},
		{2.918, 56.2, -.164}, {-.777, 78.513, .238}, {1.974, 40.4, -.016}}
)

// ofTargets is the plan for them.
func ofTargets() *Plan {
	b := &dataset.Bounds{Low: []float64{-3, 0, -1}, High: []float64{3, 100, 1}}
	return &Plan{Labels: 3, Type: dataset.LabelType{Bounds: b}, Bounds: b}
}

// measured returns the measures of predictions.
func measured(p *Plan, truth, predicted [][]float32) (Report, *Added) {
	sums := make([]float64, p.Width())
	for i := range truth {
		r := &dataset.Rows{N: 1, Labels: len(truth[i]), D: truth[i]}
		p.Add(sums, r, 0, predicted[i])
	}
	return p.Read(sums)
}

// TestTargets compares errors of targets with scikit-learn 1.9 (mean_absolute_error, mean_squared_error,
// root_mean_squared_error and r2_score).
func TestTargets(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 2e-6*math.Max(1, math.Abs(want)) { // targets are float32
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	_, a := measured(ofTargets(), trueTargets, predictedTargets)
	of := a.Targets
	near("MAE", of.MAE.Mean, 0.7325555555555562)
	near("MSE", of.MSE.Mean, 1.5508627777777777)
	near("RMSE", of.RMSE.Mean, 0.8909534067675975)
	near("R²", of.R2.Mean, 0.6580184077196073)
	for c, want := range [][3]float64{{0.17216666666666666, 0.0403975, 0.9839046125479632},
		{1.7151666666666685, 4.487176833333333, 0.9901506106108587}, {0.31033333333333335, 0.12501400000000004, 0}} {
		near("MAE of a label", of.Labels[c].MAE.Mean, want[0])
		near("MSE of a label", of.Labels[c].MSE.Mean, want[1])
		near("RMSE of a label", of.Labels[c].RMSE.Mean, math.Sqrt(want[1]))
		near("R² of a label", of.Labels[c].R2.Mean, want[2])
	}
	near("scaled MAE", of.ScaledMAE.Mean, (0.17216666666666666/3+1.7151666666666685/50+0.31033333333333335)/3)
	near("scaled MSE", of.ScaledMSE.Mean, (0.0403975/9+4.487176833333333/2500+0.12501400000000004)/3)
	same := make([][]float32, len(trueTargets))
	for i, row := range predictedTargets {
		same[i] = []float32{row[0], row[1], .25}
	}
	_, a = measured(ofTargets(), trueTargets, same)
	near("R² of constant targets without error", a.Targets.Labels[2].R2.Mean, 1)
	if _, a = measured(ofTargets(), trueTargets[:1], predictedTargets[:1]); !math.IsNaN(a.Targets.R2.Mean) {
		t.Errorf("R² of one sample: %v", a.Targets.R2.Mean)
	}
}

// TestTargetsAsDistributions: the ten measures are of targets divided by their sum, or projected.
func TestTargetsAsDistributions(t *testing.T) {
	for _, x := range []struct{ targets, want []float32 }{
		{[]float32{1, 3, 4}, []float32{.125, .375, .5}},
		{[]float32{-1, .25, .5}, []float32{0, .375, .625}},
		{[]float32{0, 0, 0}, []float32{1. / 3, 1. / 3, 1. / 3}},
		{[]float32{-5, -5.5, -9}, []float32{.75, .25, 0}},
		{[]float32{3, -1, 0}, []float32{1, 0, 0}},
	} {
		for c, v := range AsDistribution(x.targets) {
			if math.Abs(v-float64(x.want[c])) > 1e-6 {
				t.Errorf("%v: label %d has %v, want %v", x.targets, c, v, x.want)
			}
		}
	}
	p := ofTargets()
	report, _ := measured(p, [][]float32{{1, 3, 4}}, [][]float32{{-1, .25, .5}})
	of := OfRow([]float64{.125, .375, .5}, []float64{0, .375, .625})
	for i, m := range All {
		if got := report[i].Mean; math.Abs(got-of[i]) > 1e-12 {
			t.Errorf("%s: %v, want %v", m.Name, got, of[i])
		}
	}
}

// TestTargetsOverFolds: values over folds are means of the folds' values, and JSON has them by label.
func TestTargetsOverFolds(t *testing.T) {
	p := ofTargets()
	_, a := measured(p, trueTargets[:3], predictedTargets[:3])
	_, b := measured(p, trueTargets[3:], predictedTargets[3:])
	all := AddedOverFolds([]*Added{a, b})
	for _, name := range []string{"mae_target", "mse_target", "rmse_target", "r2_target", "mae_scaled", "mse_scaled"} {
		x, ok := Value(name, Report{}, a)
		y, _ := Value(name, Report{}, b)
		mean, _ := Value(name, Report{}, all)
		if want := (x.Mean + y.Mean) / 2; !ok || math.Abs(mean.Mean-want) > 1e-12 {
			t.Errorf("%s: %v over folds, want %v", name, mean.Mean, want)
		}
	}
	got, want := all.Targets.Labels[1].MAE.Mean, (a.Targets.Labels[1].MAE.Mean+b.Targets.Labels[1].MAE.Mean)/2
	if math.Abs(got-want) > 1e-12 {
		t.Errorf("MAE of a label over folds: %v, want %v", got, want)
	}
	text, err := json.Marshal(all)
	if err != nil || !strings.Contains(string(text), `"labels":[{"mae":{"mean":`) {
		t.Errorf("JSON %s, error %v", text, err)
	}
	var back Added
	if err := json.Unmarshal(text, &back); err != nil || back.Targets.R2.Mean != all.Targets.R2.Mean {
		t.Errorf("from JSON: %+v, error %v", back.Targets, err)
	}
}
