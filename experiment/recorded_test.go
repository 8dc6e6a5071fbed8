package experiment

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/outcome/predictions"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// recordsOf has a learning curve of two steps and one predicted row.
func recordsOf(t *testing.T, key string) *Record {
	t.Helper()
	line := curve.NewRecorder(curve.FoldPoints, nil)
	for step, loss := range []float64{.5, .25} {
		line.Observe(round.Progress{Step: uint64(step + 1), Loss: loss}, curve.Unknown)
	}
	line.End()
	set := &predictions.Set{Labels: 3}
	set.Add(7, []float32{1, 0, 0}, []float32{.5, .25, .25})
	return &Record{Key: key, Outcome: &pipeline.Outcome{Steps: 2, RefitSteps: 1, Curve: line.Curve(),
		Predictions: set.Encode()}}
}

// TestRecords: what is recorded of a run is in its folder, and in the table of a spec that records
// it and of no other.
func TestRecords(t *testing.T) {
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [rf]\nfolds: 2\nmeasures: [kl]\nrecord: [predictions, curve]")
	if c := p.Job.Cells; !c.Curves || c.PredictedRows != round.MaxPredictedRows {
		t.Errorf("%+v", c)
	}
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "e")
	put(t, dir, recordsOf(t, l.Keys[0]))
	table := l.Fill(recorded(t, dir))
	if err := table.Validate(); err != nil {
		t.Fatal(err)
	}
	want := result.Run{Curve: &result.Curve{Steps: []uint64{1, 2}, Training: []float64{.5, .25}, BeforeRefit: 1},
		Predictions: []result.Predicted{{Row: 7, True: []float32{1, 0, 0}, Predicted: []float32{.5, .25, .25}}}}
	for _, diff := range []string{cmp.Diff(want.Curve, table.Runs[0].Curve),
		cmp.Diff(want.Predictions, table.Runs[0].Predictions)} {
		if diff != "" {
			t.Error(diff)
		}
	}
	var text strings.Builder
	if err := table.Encode(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `"training_loss":[0.5,0.25]`) {
		t.Error(text.String())
	}
	s, p = planned(t, "name: a\ndatasets: [b]\nmethods: [rf]\nfolds: 2\nmeasures: [kl]")
	if l, err = NewLayout(s, []*Plan{p}, nil); err != nil {
		t.Fatal(err)
	}
	if c := l.Fill(recorded(t, dir)).Runs[0]; c.Curve != nil || c.Predictions != nil || c.State != result.Done ||
		l.Table.Datasets[0].Axis != nil {
		t.Errorf("%+v", c)
	}
}

// TestRecordBounds: more bytes than a run or an experiment may have are refused at the place of the
// key.
func TestRecordBounds(t *testing.T) {
	for text, want := range map[string]string{
		"folds: 2":                                 "",
		"folds: {k: 2, repeats: 100000}":           "s.yaml:4:9: record: the records of all runs take up to ",
		"folds: {k: 2, repeats: 50000, only: [0]}": "",
	} {
		s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [rf]\nrecord: curve\n"+text)
		if err := s.CheckPlans([]*Plan{p}); (err == nil) != (want == "") || err != nil &&
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	s, p := planned(t, "name: a\ndatasets: [b]\nmethods: [rf]\nfolds: 2\nrecord: predictions")
	many := *p.Manifest
	many.Labels = 400
	p.Manifest = &many
	if err := s.CheckPlans([]*Plan{p}); err == nil || !strings.Contains(err.Error(),
		"s.yaml:5:9: record: dataset b: the predictions for 6 samples with 400 labels take") {
		t.Errorf("error %v", err)
	}
}

// TestFilling: records that come one by one make the table of the records that count, whatever their order.
func TestFilling(t *testing.T) {
	s, p := planned(t, "name: a\nrecord: [curve, predictions]\ndatasets: [b]\nfolds: 2\nmethods: [rf, {algorithm: rf, "+
		"name: alike}]\n")
	l, err := NewLayout(s, []*Plan{p}, nil)
	if err != nil || l.Keys[0] != l.Keys[2] {
		t.Fatalf("keys %v, error %v", l.Keys, err)
	}
	whole := recordsOf(t, "")
	kinds := []*Record{{Outcome: &pipeline.Outcome{Error: "why"}}, {Outcome: &pipeline.Outcome{Error: "once more"}},
		{Outcome: &pipeline.Outcome{ModelDigest: "bare"}}, whole}
	for order := range 4 * 4 * 4 {
		own, err := NewLayout(s, []*Plan{p}, nil)
		if err != nil {
			t.Fatal(err)
		}
		records, f := make(map[string]*Record), own.Filling()
		for i, n := range []int{order % 4, order / 4 % 4, order / 16} {
			r := *kinds[n]
			r.Key, r.Seconds = l.Keys[0], float64(n)
			want := r.BetterThan(records[r.Key])
			if want {
				records[r.Key] = &r
			}
			records[r.Key].Attempts = i + 1
			if counts, has := f.Put(&r); counts != want || !has {
				t.Errorf("record %d counts: %v, want %v; the table has it: %v", n, counts, want, has)
			}
		}
		if diff := cmp.Diff(l.Fill(records), own.Table, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("order %d: %s", order, diff)
		}
	}
	if counts, has := l.Filling().Put(&Record{Key: "another", Outcome: whole.Outcome}); !counts || has {
		t.Error("a run that the table does not have")
	}
}

// TestBetterThan: of two records of a run the one counts that has more, else the first.
func TestBetterThan(t *testing.T) {
	failed, bare, whole := &Record{Outcome: &pipeline.Outcome{Error: "why"}}, &Record{Outcome: &pipeline.Outcome{}},
		recordsOf(t, "")
	order := []*Record{nil, failed, bare, whole}
	for i, before := range order {
		for j, next := range order[1:] {
			want := j+1 > i || before == failed
			if got := next.BetterThan(before); got != want {
				t.Errorf("%d after %d: %v", j+1, i, got)
			}
		}
	}
	both := &Recorded{Curve: true, Predictions: true}
	if got := []bool{failed.Lacks(both), bare.Lacks(both), whole.Lacks(both),
		bare.Lacks(&Recorded{})}; !reflect.DeepEqual(got, []bool{false, true, false, false}) {
		t.Errorf("%v", got)
	}
}
