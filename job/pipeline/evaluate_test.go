package pipeline_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/google/go-cmp/cmp"
)

// direct computes what a job's evaluation should say, row by row in their original
// order, with the model read from its file.
func direct(t *testing.T, w *work, split dataset.Split, file []byte) (counts pipeline.Counts, model,
	baseline measures.Report, differences []float64) {
	t.Helper()
	m := w.data.Manifest
	_, trained, err := registry.Model(file)
	if err != nil {
		t.Fatal(err)
	}
	at := make([]dataset.RowRef, m.Rows)
	for s, shard := range w.data.Shards {
		for i, row := range shard.Row {
			at[row] = dataset.RowRef{Shard: uint32(s), Pos: uint32(i)}
		}
	}
	roles, err := split.Assign(m.Rows, w.data.Assigned)
	if err != nil {
		t.Fatal(err)
	}
	label := func(row int) []float32 { return w.data.Shards[at[row].Shard].Label(int(at[row].Pos)) }
	mean, learnt := make([]float64, m.Labels), 0.0
	for row, role := range roles {
		switch role {
		case dataset.Test:
			counts.Test++
			continue
		case dataset.Validation:
			counts.Validation++
		default:
			counts.Train++
		}
		learnt++
		for c, d := range label(row) {
			mean[c] += float64(d)
		}
	}
	flat := make([]float32, m.Labels)
	for c := range mean {
		flat[c] = float32(mean[c] / learnt)
	}
	var ofModel, ofMean []measures.Row
	predicted, scratch := make([]float32, m.Labels), trained.NewScratch()
	for row, role := range roles {
		if (role == dataset.Test) != (counts.Test > 0) {
			continue
		}
		trained.Predict(predicted, at[row:row+1], func(s uint32) *dataset.Rows { return w.data.Shards[s] }, scratch)
		ofModel = append(ofModel, measures.OfRow(label(row), predicted))
		ofMean = append(ofMean, measures.OfRow(label(row), flat))
	}
	for i := range ofModel {
		differences = append(differences, ofModel[i][0]-ofMean[i][0])
	}
	return counts, average(ofModel), average(ofMean), differences
}

func average(rows []measures.Row) (r measures.Report) {
	for i := range r {
		sum, squares := 0.0, 0.0
		for _, row := range rows {
			sum += row[i]
		}
		mean := sum / float64(len(rows))
		for _, row := range rows {
			squares += (row[i] - mean) * (row[i] - mean)
		}
		r[i] = measures.Stat{Mean: mean, Std: math.Sqrt(squares / float64(len(rows)))}
	}
	return r
}

func near(t *testing.T, what string, want, got measures.Report) {
	t.Helper()
	for i := range want {
		// A deviation from sums of squares loses digits where it is small beside the mean.
		if math.Abs(want[i].Mean-got[i].Mean) > 1e-12 || math.Abs(want[i].Std-got[i].Std) > 1e-7 {
			t.Errorf("%s, %s: %v, computed directly %v", what, measures.All[i].Name, got[i], want[i])
		}
	}
}

// against compares what an outcome says of the mean baseline with the differences of K-L divergences of its test rows.
func against(t *testing.T, what string, differences []float64, o *pipeline.Outcome) {
	t.Helper()
	if o.EvaluatedOn != "test samples" {
		if o.Against != nil {
			t.Errorf("%s: %+v without test rows", what, o.Against)
		}
		return
	}
	n, want := float64(len(differences)), measures.StatOver(differences)
	a := o.Against
	if a == nil || a.Samples != len(differences) || math.Abs(a.Difference.Mean-want.Mean) > 1e-12 ||
		math.Abs(a.Difference.Std-want.Std) > 1e-7 ||
		math.Abs(a.StandardError-want.Std*math.Sqrt(n/(n-1))/math.Sqrt(n)) > 1e-7 ||
		(a.Verdict == measures.Better) != (want.Mean < -a.StandardError) {
		t.Errorf("%s: %+v, computed directly %v of %v rows", what, a, want, n)
	}
}

// TestEvaluationIsRight: what the rounds sum up over shards and tasks is what one
// gets by predicting the rows one by one.
func TestEvaluationIsRight(t *testing.T) {
	whole := newWork(t, generate.Artificial(200, 3), dataset.Split{Seed: 5})
	for name, w := range map[string]*work{"dense": artificial(t), "sparse": sparse(t), "no test rows": whole} {
		o := w.run(t, w.job)
		counts, model, baseline, differences := direct(t, w, w.job.Split, o.Model)
		if o.Rows != counts {
			t.Errorf("%s: rows %v, want %v", name, o.Rows, counts)
		}
		near(t, name+", model", model, o.Measures)
		near(t, name+", mean predictor", baseline, o.MeanPredictor)
		on := "test samples"
		if counts.Test == 0 {
			on = "training samples"
		}
		if o.EvaluatedOn != on {
			t.Errorf("%s: evaluated on %q, want %q", name, o.EvaluatedOn, on)
		}
		against(t, name, differences, o)
	}
}

// TestModelFileTellsItsStory: the model of an outcome has its digest, and its
// provenance repeats the outcome and the job.
func TestModelFileTellsItsStory(t *testing.T) {
	w := artificial(t)
	o := w.run(t, w.job)
	file, _, err := registry.Model(o.Model)
	if err != nil {
		t.Fatal(err)
	}
	if file.Digest != o.ModelDigest {
		t.Errorf("the file has digest %s, the outcome says %s", file.Digest, o.ModelDigest)
	}
	var p pipeline.Provenance
	if err := json.Unmarshal(file.Provenance, &p); err != nil {
		t.Fatal(err)
	}
	want := *w.job
	want.Predictions = 0 // no part of how the model was made
	if diff := cmp.Diff(&want, p.Job); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	if p.Measures != o.Measures || p.MeanPredictor != o.MeanPredictor || p.Rows != o.Rows || p.Steps != o.Steps ||
		p.EvaluatedOn != o.EvaluatedOn {
		t.Errorf("provenance %+v is not of outcome %+v", p, o)
	}
	sum := 0.0
	for _, d := range p.MeanLabel {
		sum += d
	}
	if len(p.MeanLabel) != w.data.Manifest.Labels || math.Abs(sum-1) > 1e-6 {
		t.Errorf("mean label %v", p.MeanLabel)
	}
}

// TestFoldIsTheJobRunAlone: a child has exactly the digest, the measures and the
// file of the same job by itself.
func TestFoldIsTheJobRunAlone(t *testing.T) {
	w := folds(t)
	o := w.run(t, w.job)
	if len(o.Folds) != 3 {
		t.Fatalf("%d folds", len(o.Folds))
	}
	h := sha256.New()
	h.Write([]byte("coppice-folds\x00"))
	seen := make(map[string]bool)
	var means []measures.Report
	var all []float64 // differences of the test rows of all folds
	steps := uint64(0)
	for f, got := range o.Folds {
		child := pipeline.SubJob(w.job, f)
		alone := w.runWith(t, child, local.Options{Lanes: 2, Points: curve.FoldPoints})
		if diff := cmp.Diff(alone, got); diff != "" {
			t.Errorf("fold %d (-alone +fold):\n%s", f, diff)
		}
		counts, model, baseline, differences := direct(t, w, child.Split, got.Model)
		if got.Rows != counts || counts.Test != 100 {
			t.Errorf("fold %d: rows %v, want %v", f, got.Rows, counts)
		}
		near(t, fmt.Sprintf("fold %d", f), model, got.Measures)
		near(t, fmt.Sprintf("fold %d, mean", f), baseline, got.MeanPredictor)
		against(t, fmt.Sprintf("fold %d", f), differences, got)
		all = append(all, differences...)
		h.Write([]byte(got.ModelDigest))
		seen[got.ModelDigest] = true
		means = append(means, got.Measures)
		steps += got.Steps
	}
	against(t, "all folds", all, o)
	if len(seen) != 3 {
		t.Error("two folds have the same model")
	}
	if want := fmt.Sprintf("%x", h.Sum(nil)); o.ModelDigest != want || o.Model != nil {
		t.Errorf("the job's digest is %s, want %s; %d bytes of model", o.ModelDigest, want, len(o.Model))
	}
	if o.Measures != measures.OverFolds(means) || o.Steps != steps {
		t.Errorf("measures %v after %d steps", o.Measures, o.Steps)
	}
	if w.job.Folds != 3 || w.job.Split.Fold != 0 {
		t.Error("making children changed their parent")
	}
}

// TestAssignedFolds: folds that a list gives are tested on the rows that it says.
func TestAssignedFolds(t *testing.T) {
	w := folds(t)
	w.data.Assigned = make([]uint16, w.data.Manifest.Rows)
	for row := range w.data.Assigned {
		w.data.Assigned[row] = uint16(row % 5 / 2) // 0 0 1 1 2
	}
	w.job.Split.Assigned = "of a list"
	o := w.run(t, w.job)
	for f, want := range []int{120, 120, 60} {
		counts, model, _, _ := direct(t, w, pipeline.SubJob(w.job, f).Split, o.Folds[f].Model)
		if counts.Test != want || o.Folds[f].Rows != counts {
			t.Errorf("fold %d: rows %v, want %d test rows", f, o.Folds[f].Rows, want)
		}
		near(t, fmt.Sprintf("fold %d", f), model, o.Folds[f].Measures)
	}
}

// TestLanesAndSeeds: the outcome depends on the seed, not on the lanes.
func TestLanesAndSeeds(t *testing.T) {
	w := artificial(t)
	want := w.run(t, w.job)
	if diff := cmp.Diff(want, w.drive(t, nil, 0, ignore)); diff != "" {
		t.Errorf("one lane and two (-two +one):\n%s", diff)
	}
	other := *w.job
	other.Seed++
	if w.run(t, &other).ModelDigest == want.ModelDigest {
		t.Error("another seed gives the same digest")
	}
	if r := want.Rows; r.Train+r.Validation+r.Test != w.data.Manifest.Rows {
		t.Errorf("rows %v of %d", r, w.data.Manifest.Rows)
	}
}
