package jobs

import (
	"encoding/json"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// reporterAlone hides that a UnitReporter counts.
type reporterAlone struct{ round.UnitReporter }

// TestCountedUnits: cells that are counted are as far as cells that are listed, and take a fifth of the memory.
func TestCountedUnits(t *testing.T) {
	cells := &round.Cells{Rows: []round.CellRow{{Algorithm: "structrf", Params: json.RawMessage(`{}`)}}, Repeats: 1, Folds: 4}
	trainer, err := pipeline.New(&round.Job{Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Split: dataset.Split{Folds: 4}, Cells: cells}, new(dataset.Manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := trainer.(round.UnitReporter)
	if size, of := unsafe.Sizeof(countedUnit{}), unsafe.Sizeof(round.UnitProgress{}); 4*size > of {
		t.Errorf("%d bytes of a unit, listed %d", size, of)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "units")
		counted, listed := newUnitList(g, n), newUnitList(reporterAlone{g}, n)
		if _, ok := counted.(*countedUnits); !ok {
			t.Fatal("runs are not counted")
		}
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			u := rapid.IntRange(0, n-1).Draw(t, "unit")
			if rapid.Bool().Draw(t, "ends") {
				notRun := rapid.Bool().Draw(t, "not run")
				counted.end(u, notRun)
				listed.end(u, notRun)
			} else {
				p := round.Progress{Step: rapid.Uint64Range(0, 9).Draw(t, "step"), Samples: rapid.Uint64Range(0, 99).Draw(t, "samples"), Loss: 0.5, Phase: rapid.SampledFrom([]string{"", "training", "failed"}).Draw(t, "phase")}
				counted.set(u, p)
				listed.set(u, p)
			}
			a, b := counted.at(u), listed.at(u)
			if a.Step != b.Step || a.Samples != b.Samples || a.Known != b.Known || a.Done != b.Done || a.NotRun != b.NotRun {
				t.Fatalf("unit %d is counted as %+v, listed as %+v", u, a, b)
			}
			if got, want := counted.progress(), listed.progress(); got != want {
				t.Fatalf("counted %+v, listed %+v", got, want)
			}
		}
	})
}
