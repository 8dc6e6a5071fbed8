package local

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// quickSettings train each algorithm in milliseconds.
var quickSettings = map[string]map[string]string{
	"ldlf":     {"steps": "60", "trees": "2", "depth": "3", "leaf_batches": "10"},
	"structrf": {"trees": "3"},
	"ensemble": {"members": "structrf:trees=2,structrf:trees=3", "inner_folds": "2"},
}

// cellsOf is a job of runs of some algorithms on folds of the data.
func cellsOf(t *testing.T, d *Data, folds, repeats int, algorithms ...string) *round.Job {
	t.Helper()
	j := resolve(t, d, protocol.Spec{Folds: folds, Set: quickSettings["ldlf"]})
	j.Algorithm, j.Params, j.Folds, j.Predictions = round.AlgorithmCells, nil, 0, 0
	j.Split.ValidationFraction, j.Split.ValidationMin = 0, 0
	j.Cells = &round.Cells{Repeats: repeats, Folds: folds}
	for _, a := range algorithms {
		of := resolve(t, d, protocol.Spec{Algorithm: a, Folds: folds, Set: quickSettings[a]})
		j.Cells.Rows = append(j.Cells.Rows, round.CellRow{
			Algorithm: a, Params: of.Params, ValidationFraction: of.Split.ValidationFraction,
			ValidationMin: of.Split.ValidationMin,
		})
	}
	return j
}

// encodedCells are the encoded outcomes of a job of runs.
func encodedCells(t *testing.T, o *pipeline.Outcome) (list [][]byte) {
	t.Helper()
	for unit := range o.CellCount {
		b, err := o.Cell(unit)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// TestCells: each run has the digest and the measures of the same fold of a job of folds with
// the repeat's seed, on one lane and on many.
func TestCells(t *testing.T) {
	d := artificial(t, 200)
	names := []string{"ldlf", "structrf", "ensemble"}
	j := cellsOf(t, d, 2, 2, names...)
	j.Cells.Curves, j.Cells.PredictedRows = true, 4
	want := run(t, d, j, Options{Lanes: 1})
	if got := run(t, d, j, Options{Lanes: 3}); got.ModelDigest != want.ModelDigest ||
		!reflect.DeepEqual(encodedCells(t, got), encodedCells(t, want)) {
		t.Error("three lanes have other cells than one")
	}
	for _, b := range encodedCells(t, want) {
		if o, _ := pipeline.DecodeOutcome(b); o.Error != "" {
			t.Error(o.Error)
		}
	}
	if want.CellCount != 12 || want.CellsFailed != 0 {
		t.Fatalf("%d cells, %d failed", want.CellCount, want.CellsFailed)
	}
	for _, a := range names {
		for repeat := range 2 {
			seed := uint64(1 + repeat)
			of := run(t, d, resolve(t, d, protocol.Spec{Algorithm: a, Folds: 2, Seed: &seed, Set: quickSettings[a]}), Options{})
			for unit, cell := range j.Cells.All() {
				if j.Cells.Rows[cell.Row].Algorithm != a || cell.Repeat != repeat {
					continue
				}
				o, err := pipeline.DecodeOutcome(encodedCells(t, want)[unit])
				if err != nil {
					t.Fatal(err)
				}
				alone := of.Folds[cell.Fold]
				checkRecorded(t, o, alone)
				if o.ModelDigest != alone.ModelDigest || o.Measures != alone.Measures || o.MeanPredictor != alone.MeanPredictor ||
					len(o.Model) > 0 {
					t.Errorf("%s, repeat %d, fold %d: digest %.12s, alone %.12s", a, repeat, cell.Fold, o.ModelDigest,
						alone.ModelDigest)
				}
			}
		}
	}
}

// checkRecorded: a run has the curve of the fold alone, and four of its predictions.
func checkRecorded(t *testing.T, o, alone *pipeline.Outcome) {
	t.Helper()
	if !o.Curve.Equal(alone.Curve) || o.Curve == nil {
		t.Errorf("the curve is %+v, alone %+v", o.Curve, alone.Curve)
	}
	some, err := predictions.Decode(o.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	all, err := predictions.Decode(alone.Predictions)
	if err != nil {
		t.Fatal(err)
	}
	var places []int
	for _, row := range some.Row {
		places = append(places, slices.Index(all.Row, row))
	}
	if len(places) != 4 || !reflect.DeepEqual(all.Only(places), some) {
		t.Errorf("rows %v, alone %v", some.Row, all.Row)
	}
}

// TestFailedCell: a run that fails says why, and the others have what they have without it.
func TestFailedCell(t *testing.T) {
	d := artificial(t, 200)
	j := cellsOf(t, d, 2, 1, "structrf", "structrf")
	j.Cells.Rows[0].Params = json.RawMessage(`{"trees":-1}`)
	j.Cells.Rows = append(j.Cells.Rows, round.CellRow{Algorithm: "nothing", Params: json.RawMessage(`{}`), Only: []int{1}})
	o := run(t, d, j, Options{Lanes: 2})
	if o.CellCount != 5 || o.CellsFailed != 3 {
		t.Fatalf("%d of %d cells failed", o.CellsFailed, o.CellCount)
	}
	whole := run(t, d, cellsOf(t, d, 2, 1, "structrf"), Options{})
	for unit, cell := range j.Cells.All() {
		c, err := pipeline.DecodeOutcome(encodedCells(t, o)[unit])
		if err != nil {
			t.Fatal(err)
		}
		if c.Curve != nil || c.Predictions != nil {
			t.Errorf("the cell %v has a curve or predictions that nobody asked for", cell)
		}
		switch cell.Row {
		case 1:
			if alone, _ := pipeline.DecodeOutcome(encodedCells(t, whole)[cell.Fold]); alone.ModelDigest != c.ModelDigest ||
				c.Error != "" {
				t.Errorf("fold %d: %+v", cell.Fold, c)
			}
		default:
			if c.Error == "" || c.ModelDigest != "" || strings.Contains(c.Error, "\n") {
				t.Errorf("the cell %v has the error %q", cell, c.Error)
			}
		}
	}
}

// TestModelsOfCells are kept where they are asked for, and are those of the fold alone.
func TestModelsOfCells(t *testing.T) {
	d := artificial(t, 200)
	j := cellsOf(t, d, 2, 1, "structrf")
	j.Cells.Models = true
	c, err := pipeline.DecodeOutcome(encodedCells(t, run(t, d, j, Options{}))[1])
	if err != nil {
		t.Fatal(err)
	}
	of := resolve(t, d, protocol.Spec{Algorithm: "structrf", Folds: 2, Set: quickSettings["structrf"]})
	if alone := run(t, d, pipeline.SubJob(of, 1), Options{}); string(alone.Model) != string(c.Model) || len(c.Model) == 0 {
		t.Errorf("a model of %d bytes, alone of %d", len(c.Model), len(alone.Model))
	}
}

// TestCellsGoOn: a job of runs whose state was written at its end goes on from there.
func TestCellsGoOn(t *testing.T) {
	d := artificial(t, 200)
	j := cellsOf(t, d, 2, 1, "structrf")
	trainer, err := pipeline.New(j, d.Manifest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trainer.Next(); err != nil {
		t.Fatal(err)
	}
	want := run(t, d, j, Options{})
	if err := trainer.Fold(&round.Result{Gathered: encodedCells(t, want)}); err != nil {
		t.Fatal(err)
	}
	state, err := trainer.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := pipeline.New(j, d.Manifest, state)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := again.Next(); err != nil || r != nil {
		t.Fatalf("the job is not done, error %v", err)
	}
	if o, err := again.Outcome(); err != nil || o.ModelDigest != want.ModelDigest {
		t.Errorf("another outcome, error %v", err)
	}
}
