package pipeline_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func provenance(t *testing.T, f *modelfile.File) *pipeline.Provenance {
	t.Helper()
	p := new(pipeline.Provenance)
	if err := json.Unmarshal(f.Provenance, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// opened writes a file of rows and opens it.
func opened(t *testing.T, rows int, column string, o read.OpenOptions, value func(i int) string) dataset.Source {
	t.Helper()
	text := "p,q," + column + "\n"
	for i := range rows {
		text += fmt.Sprintf("%d,%d,%s\n", i*5%13, i%3, value(i))
	}
	path := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := read.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func classes(t *testing.T) dataset.Source {
	o := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Class}}
	return opened(t, 240, "class", o, func(i int) string { return []string{"a", "b", "c"}[i*5%13/5] })
}

func scale(t *testing.T) dataset.Source {
	o := read.OpenOptions{Labels: read.LabelOptions{Kind: dataset.Age, Sigma: 1, Low: 3, High: 20}}
	return opened(t, 240, "age", o, func(i int) string { return fmt.Sprint(4 + i*5%13) })
}

// TestAddedMeasures: what the rounds sum up is what the kept predictions say, row by row, for
// classes and for a scale; the mean predictor's is what the mean in the model file says.
func TestAddedMeasures(t *testing.T) {
	for name, src := range map[string]dataset.Source{"classes": classes(t), "scale": scale(t)} {
		w := newWork(t, src, dataset.Split{Seed: 5, TestFraction: 0.4})
		o := w.run(t, w.job)
		set, err := predictions.Decode(o.Predictions)
		if err != nil {
			t.Fatal(err)
		}
		f, err := modelfile.Decode(o.Model)
		if err != nil {
			t.Fatal(err)
		}
		p := provenance(t, f)
		if !p.LabelType.Same(&w.data.Manifest.LabelType) || !set.Type.Same(&p.LabelType) {
			t.Errorf("%s: the model file says %+v, the predictions %+v", name, p.LabelType, set.Type)
		}
		mean := make([]float32, len(p.MeanLabel))
		for i, v := range p.MeanLabel {
			mean[i] = float32(v)
		}
		for _, side := range []struct {
			got  *pipeline.Added
			of   func(i int) []float32
			name string
		}{
			{&pipeline.Added{Model: o.Added.Model}, set.PredictedOf, "model"},
			{&pipeline.Added{Model: o.Added.MeanPredictor}, func(int) []float32 { return mean }, "mean predictor"},
		} {
			right, mae, n := 0.0, 0.0, float64(len(set.Row))
			for i := range set.Row {
				v := side.of(i)
				if dataset.Greatest(set.TruthOf(i)) == dataset.Greatest(v) {
					right += 1 / n
				}
				if s := set.Type.Scale; s != nil {
					mae += math.Abs(s.Expected(v)-set.True[i]) / n
				}
			}
			got, want := 0.0, right
			if a := side.got.Model; a.Classes != nil {
				got = a.Classes.Accuracy.Mean
			} else {
				got, want = a.Scale.Expected.MAE.Mean, mae
			}
			if math.Abs(got-want) > 1e-12 || name == "classes" && side.name == "model" && got < 0.6 {
				t.Errorf("%s, %s: %v, row by row %v", name, side.name, got, want)
			}
		}
	}
}

// TestAddedOfFolds: the job has the sum of the folds' confusion matrices, a fold has none,
// and everything is the same with several lanes and from any state.
func TestAddedOfFolds(t *testing.T) {
	w := newWork(t, classes(t), dataset.Split{Seed: 5, Folds: 3})
	o := w.run(t, w.job)
	total := 0.0
	for _, row := range o.Added.Model.Classes.Confusion {
		for _, n := range row {
			total += n
		}
	}
	if total != 240 {
		t.Errorf("the matrix counts %v rows of 240", total)
	}
	accuracies := []float64{}
	for _, f := range o.Folds {
		if f.Added.Model.Classes.Confusion != nil || f.Added.MeanPredictor.Classes.Confusion != nil {
			t.Error("a fold has a matrix")
		}
		accuracies = append(accuracies, f.Added.Model.Classes.Accuracy.Mean)
	}
	if mean := (accuracies[0] + accuracies[1] + accuracies[2]) / 3; math.Abs(o.Added.Model.Classes.Accuracy.Mean-
		mean) > 1e-12 {
		t.Errorf("accuracy %v of folds %v", o.Added.Model.Classes.Accuracy, accuracies)
	}
	if d := cmp.Diff(o.Added, w.runWith(t, w.job, local.Options{Lanes: 1}).Added, cmpopts.EquateNaNs()); d != "" {
		t.Error(d)
	}
	one := newWork(t, scale(t), dataset.Split{Seed: 5, TestFraction: 0.4})
	var states [][]byte
	whole := one.drive(t, nil, 0, func(state []byte, _ string) { states = append(states, slices.Clone(state)) })
	for _, i := range []int{len(states) - 3, len(states) - 2, len(states) - 1} {
		again := one.drive(t, states[i], uint64(i+1), ignore)
		if d := cmp.Diff(whole.Added, again.Added); d != "" {
			t.Errorf("from state %d: %s", i, d)
		}
	}
}

// TestDistributionsHaveNoneAdded: neither the outcome nor the model file of distributions
// says anything of types of labels.
func TestDistributionsHaveNoneAdded(t *testing.T) {
	w := artificial(t)
	o := w.run(t, w.job)
	f, err := modelfile.Decode(o.Model)
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]any
	if err := json.Unmarshal(f.Provenance, &said); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"added", "label_type", "median"} {
		if _, ok := said[key]; ok || o.Added != nil {
			t.Errorf("%s is there", key)
		}
	}
}

// TestAddedOfAnOutcomeThatLies: an outcome of another process may lack what it should have.
func TestAddedOfAnOutcomeThatLies(t *testing.T) {
	w := folds(t)
	tr, err := pipeline.New(w.job, w.data.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, added := range []string{`{}`, `{"model":{}}`, `{"model":{"classes":{"confusion":[[1],[2,3],null]}}}`,
		`{"model":{"scale":{}},"mean_baseline":{"classes":null}}`} {
		head := []byte(`{"added":` + added + `}`)
		one := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
		one = append(one, head...)
		one = append(one, make([]byte, 16)...)
		if err := tr.Fold(&round.Result{Gathered: [][]byte{one, one, one}}); err != nil {
			t.Fatal(err)
		}
		o, err := tr.Outcome()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.Encode(); err != nil {
			t.Errorf("%s: %v", added, err)
		}
	}
}
