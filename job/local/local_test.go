package local

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

func artificial(t *testing.T, rows int) *Data {
	t.Helper()
	m, shards := datatest.Artificial(t, rows)
	return &Data{Manifest: m, Shards: shards}
}

func resolve(t *testing.T, d *Data, s protocol.Spec) *round.Job {
	t.Helper()
	if s.Set == nil {
		s.Set = map[string]string{"steps": "150", "trees": "2", "depth": "4", "leaf_batches": "50"}
	}
	j, err := spec.Resolve(s, d.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func run(t *testing.T, d *Data, j *round.Job, o Options) *pipeline.Outcome {
	t.Helper()
	outcome, err := Run(t.Context(), j, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// The number of lanes changes nothing, and another seed changes the model.
func TestLanes(t *testing.T) {
	d := artificial(t, 400)
	j := resolve(t, d, protocol.Spec{TestFraction: 0.1})
	want := run(t, d, j, Options{Lanes: 1})
	if got := run(t, d, j, Options{Lanes: 5}); got.ModelDigest != want.ModelDigest || !bytes.Equal(got.Model, want.Model) {
		t.Errorf("five lanes gave %s, one %s", got.ModelDigest, want.ModelDigest)
	}
	if want.Rows != (pipeline.Counts{Train: 288, Validation: 72, Test: 40}) {
		t.Errorf("rows %+v", want.Rows)
	}
	seed := uint64(2)
	if got := run(t, d, resolve(t, d, protocol.Spec{TestFraction: 0.1, Seed: &seed}),
		Options{}); got.ModelDigest == want.ModelDigest {
		t.Error("another seed gave the same model")
	}
}

// A fold of a job of folds is the same job run alone.
func TestFolds(t *testing.T) {
	d := artificial(t, 300)
	j := resolve(t, d, protocol.Spec{Folds: 3})
	all := run(t, d, j, Options{Lanes: 3})
	if len(all.Folds) != 3 {
		t.Fatalf("%d folds", len(all.Folds))
	}
	for f, got := range all.Folds {
		want := run(t, d, pipeline.SubJob(j, f), Options{Lanes: 2, Points: curve.FoldPoints})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fold %d differs from the job alone:\n%s", f, diff)
		}
	}
	if all.Folds[0].ModelDigest == all.Folds[1].ModelDigest {
		t.Error("two folds have the same model")
	}
}

// Folds that are listed row by row decide the test rows.
func TestListedFolds(t *testing.T) {
	d := artificial(t, 200)
	d.Assigned = make([]uint16, 200)
	for i := 150; i < 200; i++ {
		d.Assigned[i] = 1
	}
	all := run(t, d, resolve(t, d, protocol.Spec{Folds: 2, Assigned: "listed"}), Options{})
	if all.Folds[0].Rows.Test != 150 || all.Folds[1].Rows.Test != 50 {
		t.Errorf("test rows %+v and %+v", all.Folds[0].Rows, all.Folds[1].Rows)
	}
}

func TestProgress(t *testing.T) {
	d := artificial(t, 200)
	var seen []round.Progress
	outcome := run(t, d, resolve(t, d, protocol.Spec{Folds: 2}), Options{Progress: func(p round.Progress) {
		seen = append(seen, p)
	}})
	last := seen[len(seen)-1]
	if last.Step != outcome.Steps || last.Steps != outcome.Steps || last.Samples != outcome.Samples ||
		last.Phase != "2 of 2 folds done" {
		t.Errorf("the last progress is %+v of %d steps", last, outcome.Steps)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].Step < seen[i-1].Step {
			t.Errorf("progress went back from %+v to %+v", seen[i-1], seen[i])
		}
	}
}

func TestErrors(t *testing.T) {
	d := artificial(t, 100)
	j := resolve(t, d, protocol.Spec{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, j, d, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Run(t.Context(), j, artificial(t, 101), Options{}); err == nil ||
		!strings.Contains(err.Error(), "dataset") {
		t.Errorf("another dataset: %v", err)
	}
	if _, err := Run(t.Context(), resolve(t, d, protocol.Spec{Folds: 2, Assigned: "x"}), d, Options{}); err == nil {
		t.Error("a missing list of folds passed")
	}
}
