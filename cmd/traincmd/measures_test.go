package traincmd

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// byNumPy are the means over folds that testdata/measures.py computes with NumPy of the exported predictions on a
// generated set, of each algorithm and then of the mean predictor, in the order of measures.All. NumPy 2.4.6;
// TestMeasuresBesideNumPy prints them.
var byNumPy = map[string][]float64{
	"structrf": {
		0.0074504922311315986, 0.059137629555095758, 0.046142783026611324, 0.0074685750349617929, 0.99812515385049605,
		0.95385721670434109, 0.046142783034888508, 0.097645055931221608, 0.14825182414293547, 0.99357839463488096,
		0.043954809007758125, 0.15619001755329912, 0.12257164602092334, 0.043694068906656919, 0.98891225970418639,
		0.87742835375236405, 0.12257164606137147, 0.24446142101220417, 0.3797222893430513, 0.96099306244122573,
	},
	"sa-bfgs": {
		0.0013727718732670271, 0.025061546223569209, 0.019706611977355723, 0.0013733540854794324, 0.99965637548257968,
		0.98029338773329722, 0.019706612676484707, 0.043167981858505206, 0.065662664674781837, 0.99891081401893267,
		0.043954809007758125, 0.15619001755329912, 0.12257164602092334, 0.043694068906656919, 0.98891225970418639,
		0.87742835375236405, 0.12257164606137147, 0.24446142101220417, 0.3797222893430513, 0.96099306244122573,
	},
}

// foldMeasures are the measures of a training as its JSON has them.
type foldMeasures struct {
	Measures      measures.Report `json:"measures"`
	MeanPredictor measures.Report `json:"mean_baseline"`
	Folds         []struct {
		Measures      measures.Report `json:"measures"`
		MeanPredictor measures.Report `json:"mean_baseline"`
	} `json:"folds"`
}

// trainings are those whose measures NumPy computes as well.
var trainings = map[string][]string{
	"structrf": {"--algorithm", "structrf", "--set", "preset=paper", "--set", "trees=5"},
	"sa-bfgs":  {"--algorithm", "sa-bfgs", "--set", "decay=fixed", "--set", "refit=false"},
}

// trainFolds trains ten folds and returns what it says of them; the predictions go to a file.
func trainFolds(t *testing.T, data, predictions string, algorithm []string) (m foldMeasures) {
	t.Helper()
	cmdtest.JSON(t, &m, append([]string{"train", "--local", "--data", data, "--folds", "10", "--predictions-out",
		predictions, "--set", "keep_predictions=50000000"}, algorithm...)...)
	return m
}

// TestMeasuresByNumPy: the measures of StructRF, SA-BFGS and the mean predictor are those that NumPy computed of
// the exported predictions, within 1e-8: predictions are float32.
func TestMeasuresByNumPy(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)
	for name, algorithm := range trainings {
		m := trainFolds(t, data, filepath.Join(dir, name+".npz"), algorithm)
		want := byNumPy[name]
		for i := range measures.All {
			for k, got := range []float64{m.Measures[i].Mean, m.MeanPredictor[i].Mean} {
				if want := want[k*measures.Count+i]; !(math.Abs(got-want) <= 1e-8) {
					t.Errorf("%s, %s of %s: %.17g, NumPy has %.17g", name, measures.All[i].Name,
						[]string{"the model", "the mean baseline"}[k], got, want)
				}
			}
		}
	}
}

// TestMeasuresBesideNumPy is TestMeasuresByNumPy with the NumPy that is here, on datasets that are here, for
// deviations and single folds as well.
func TestMeasuresBesideNumPy(t *testing.T) {
	python := os.Getenv("COPPICE_TEST_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skipf("%s has no NumPy (COPPICE_TEST_PYTHON names another Python): %v", python, err)
	}
	dir := t.TempDir()
	sets := []string{cmdtest.ArtificialFile(t, dir, "set.csv", 200, 1)}
	for _, name := range []string{"SJAFFE.mat", "Movie.mat"} {
		if path := filepath.Join("../../../shared/data", name); exists(path) {
			sets = append(sets, path)
		}
	}
	for _, data := range sets {
		for name, algorithm := range trainings {
			predictions := filepath.Join(dir, name+".npz")
			m := trainFolds(t, data, predictions, algorithm)
			out, err := exec.CommandContext(t.Context(), python, "testdata/measures.py", predictions).Output()
			if err != nil {
				t.Fatal(err)
			}
			what := filepath.Base(data) + ", " + name
			compareNumPy(t, what, m, out)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// compareNumPy compares measures with what the script printed.
func compareNumPy(t *testing.T, what string, m foldMeasures, out []byte) {
	t.Helper()
	type stat struct {
		Mean, Std float64
		Folds     []float64
	}
	var peer struct {
		Model         map[string]stat `json:"model"`
		MeanPredictor map[string]stat `json:"mean_baseline"`
	}
	if err := json.Unmarshal(out, &peer); err != nil {
		t.Fatal(err)
	}
	var golden []string
	for k, by := range []map[string]stat{peer.Model, peer.MeanPredictor} {
		own, of := m.Measures, func(fold int) measures.Report { return m.Folds[fold].Measures }
		if k == 1 {
			own, of = m.MeanPredictor, func(fold int) measures.Report { return m.Folds[fold].MeanPredictor }
		}
		for i, measure := range measures.All {
			want := by[measure.Name]
			golden = append(golden, fmt.Sprintf("%.17g", want.Mean))
			if len(want.Folds) != 10 || len(m.Folds) != 10 || !(math.Abs(own[i].Mean-want.Mean) <= 1e-8) ||
				!(math.Abs(own[i].Std-want.Std) <= 1e-8) {
				t.Fatalf("%s, %s: %v, NumPy has %v", what, measure.Name, own[i], want)
			}
			for fold, v := range want.Folds {
				if got := of(fold)[i].Mean; !(math.Abs(got-v) <= 1e-8) {
					t.Errorf("%s, %s of fold %d: %v, NumPy has %v", what, measure.Name, fold, got, v)
				}
			}
		}
	}
	t.Logf("%s: %s", what, strings.Join(golden, ", "))
}
