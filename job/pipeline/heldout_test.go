package pipeline_test

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/google/go-cmp/cmp"
)

// TestPredictions: what is kept is what the model of the file predicts of each test row,
// however many tasks computed it.
func TestPredictions(t *testing.T) {
	large, err := generate.New(generate.Options{Rows: 20000, Features: 2, Labels: 60, Density: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	several := newWork(t, large, dataset.Split{Seed: 5, TestFraction: 0.9})
	several.job.Predictions = 64 << 20
	for name, w := range map[string]*work{"one unit": artificial(t), "sparse": sparse(t), "several units": several} {
		o := w.run(t, w.job)
		got, err := predictions.Decode(o.Predictions)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := w.heldOut(t, o.Model)
		if !reflect.DeepEqual(all, got) { // a tenth of the time of cmp.Diff
			t.Errorf("%s: %s", name, cmp.Diff(all, got))
		}
		w.checkDrawn(t, all, o.ModelDigest)
	}
}

// checkDrawn: five rows are drawn by the seed of the split, and the model stays the same.
func (w *work) checkDrawn(t *testing.T, all *predictions.Set, digest string) {
	t.Helper()
	j := *w.job
	j.Predictions, j.PredictedRows = 0, 5
	o := w.run(t, &j)
	got, err := predictions.Decode(o.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	order := slices.Clone(all.Row)
	slices.SortFunc(order, func(a, b uint32) int {
		key := num.NewKey(j.Split.Seed, "predicted rows")
		x, y := num.Philox(key, [4]uint32{a}), num.Philox(key, [4]uint32{b})
		return slices.Compare(x[:], y[:])
	})
	var places []int
	for at, row := range all.Row {
		if slices.Contains(order[:5], row) {
			places = append(places, at)
		}
	}
	if diff := cmp.Diff(all.Only(places), got); diff != "" || o.ModelDigest != digest {
		t.Errorf("digest %.12s, %.12s without: %s", o.ModelDigest, digest, diff)
	}
}

// heldOut predicts the test rows with a model read from its file, one by one.
func (w *work) heldOut(t *testing.T, file []byte) *predictions.Set {
	t.Helper()
	m := w.data.Manifest
	_, trained, err := registry.Model(file)
	if err != nil {
		t.Fatal(err)
	}
	roles, err := w.job.Split.Assign(m.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &predictions.Set{Labels: m.Labels}
	predicted, scratch := make([]float32, m.Labels), trained.NewScratch()
	var sets []*predictions.Set
	for i, shard := range w.data.Shards {
		for pos, row := range shard.Row {
			if roles[row] == dataset.Test {
				trained.Predict(predicted, []dataset.RowRef{{Shard: uint32(i), Pos: uint32(pos)}}, func(n uint32) *dataset.Rows {
					return w.data.Shards[n]
				}, scratch)
				s.Add(row, shard.Label(pos), predicted)
			}
		}
	}
	all, err := predictions.Merge(append(sets, s))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPredictionsOfFolds: those of a job of folds are those of each fold alone, and every
// row is there once.
func TestPredictionsOfFolds(t *testing.T) {
	w := folds(t)
	all, err := predictions.Decode(w.run(t, w.job).Predictions)
	if err != nil {
		t.Fatal(err)
	}
	var alone []*predictions.Set
	for f := range w.job.Folds {
		s, err := predictions.Decode(w.run(t, pipeline.SubJob(w.job, f)).Predictions)
		if err != nil {
			t.Fatal(err)
		}
		for _, fold := range s.Fold {
			if int(fold) != f {
				t.Errorf("a row of fold %d is in fold %d", f, fold)
			}
		}
		alone = append(alone, s)
	}
	want, err := predictions.Merge(alone)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, all); diff != "" || len(all.Row) != 300 || all.Row[299] != 299 {
		t.Errorf("%d rows: %s", len(all.Row), diff)
	}
}

// TestPredictionsOfTheFile: where rows of the file were left out, predictions have the numbers
// that the others have in the file, of a job and of folds; nothing else differs.
func TestPredictionsOfTheFile(t *testing.T) {
	for name, w := range map[string]*work{"single": artificial(t), "folds": folds(t)} {
		var sets [2]*predictions.Set
		for i := range sets {
			var err error
			if sets[i], err = predictions.Decode(w.run(t, w.job).Predictions); err != nil {
				t.Fatal(err)
			}
			left := *w.data.Manifest
			left.LeftOut = dataset.LeftOut{1, 10} // the rows 0 and 10
			w.data.Manifest = &left
		}
		for i, row := range sets[0].Row {
			if sets[0].Row[i]++; row >= 9 {
				sets[0].Row[i]++
			}
		}
		if diff := cmp.Diff(sets[0], sets[1]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPredictionsAreBounded: beyond the bound none are kept, and nothing else changes; a
// fold decides as the whole does.
func TestPredictionsAreBounded(t *testing.T) {
	for name, w := range map[string]*work{"single": artificial(t), "folds": folds(t)} {
		kept := w.run(t, w.job)
		bytes := pipeline.PredictionBytes(w.job, w.data.Manifest, kept.Rows.Test)
		for bound, want := range map[int64]bool{bytes: true, bytes - 1: false, 0: false} {
			j := *w.job
			j.Predictions = bound
			o := w.run(t, &j)
			if got := len(o.Predictions) > 0; got != want || o.ModelDigest != kept.ModelDigest {
				t.Errorf("%s, at most %d bytes: kept %v, model %.12s", name, bound, got, o.ModelDigest)
			}
			for i, f := range o.Folds {
				if len(f.Predictions) > 0 != want {
					t.Errorf("%s, at most %d bytes: fold %d kept %d", name, bound, i, len(f.Predictions))
				}
			}
		}
	}
}

// TestWrongPredictions: parts that are not those of the round end the job with an error.
func TestWrongPredictions(t *testing.T) {
	w := artificial(t)
	one := &predictions.Set{Labels: 3}
	one.Add(1, make([]float32, 3), make([]float32, 3))
	for name, part := range map[string][]byte{"no set": []byte("x"), "too few rows": one.Encode(), "nothing": nil} {
		if err := driveWith(t, w, part); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// driveWith drives a job whose predictions are part.
func driveWith(t *testing.T, w *work, part []byte) error {
	t.Helper()
	m := w.data.Manifest
	var last []byte
	w.drive(t, nil, 0, func(state []byte, _ string) {
		if tr, err := pipeline.New(w.job, m, state); err == nil {
			if r, err := tr.Next(); err == nil && r != nil && r.Gather() != nil {
				last = state
			}
		}
	})
	tr, err := pipeline.New(w.job, m, last)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tr.Next()
	if err != nil || last == nil {
		t.Fatal("no round collects predictions", err)
	}
	parts := make([][]byte, r.Tasks)
	parts[0] = part
	return tr.Fold(&round.Result{Gathered: parts})
}

// TestNamesOfRowsAreKept from a file, dense and sparse.
func TestNamesOfRowsAreKept(t *testing.T) {
	w := newWork(t, named{Source: generate.Artificial(100, 1)}, dataset.Split{Seed: 1, TestFraction: 0.3})
	o, err := local.Run(context.Background(), w.job, w.data, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := predictions.Decode(o.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range s.Row {
		if s.Names[i] != nameOf(int(row)) {
			t.Errorf("row %d is called %q", row, s.Names[i])
		}
	}
}

// named gives rows names.
type named struct{ dataset.Source }

func nameOf(row int) string { return string(rune('a'+row%26)) + "é" }

func (n named) Info() dataset.Info {
	i := n.Source.Info()
	i.HasRowNames = true
	return i
}

func (n named) Scan(f func(*dataset.Row) error) error {
	return n.Source.Scan(func(r *dataset.Row) error {
		row := *r
		row.Name = nameOf(r.Number)
		return f(&row)
	})
}
