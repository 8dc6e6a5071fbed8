package experiment

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// drawJob draws a job of runs, and what its splits test. A seed, a setting or what is tested may look like a mark.
func drawJob(t *rapid.T) (j *round.Job, tested []string) {
	text := rapid.SampledFrom([]string{"plain", strconv.FormatUint(markedSeed, 10),
		strconv.FormatUint(markedSplitSeed, 10), strconv.Itoa(markedFold), markedTested, `<"é`})
	seed := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1, math.MaxUint64 - 2, markedSplitSeed,
		markedSeed}))
	j = &round.Job{
		Algorithm: round.AlgorithmCells, Numerics: round.Numerics, Seed: seed.Draw(t, "seed"),
		Dataset: text.Draw(t, "dataset"), Params: json.RawMessage(`{}`),
		Cells: &round.Cells{Repeats: rapid.IntRange(1, 3).Draw(t, "repeats"), Folds: rapid.IntRange(1, 12).Draw(t, "folds"),
			Models: rapid.Bool().Draw(t, "models"), PredictedRows: rapid.IntRange(0, 2).Draw(t, "predicted")},
	}
	j.Split = dataset.Split{Seed: seed.Draw(t, "seed of the split"), Folds: j.Cells.Folds, Overlap: rapid.Bool().
		Draw(t, "overlap")}
	if rapid.Bool().Draw(t, "assigned") {
		j.Split.Assigned = text.Draw(t, "list")
	}
	if rapid.Bool().Draw(t, "classes") {
		j.Cells.Labels.Classes = true
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "methods") {
		settings, err := json.Marshal(map[string]any{"k": i, "text": text.Draw(t, "setting"),
			"number": seed.Draw(t, "number")})
		if err != nil {
			t.Fatal(err)
		}
		r := round.CellRow{Algorithm: text.Draw(t, "algorithm"), Params: settings, ValidationMin: i}
		if rapid.Bool().Draw(t, "only") {
			r.Only = []int{j.Cells.Folds - 1}
		}
		j.Cells.Rows = append(j.Cells.Rows, r)
	}
	if j.Split.Overlap {
		j.Split.Folds *= j.Cells.Repeats
		for i := range j.Split.Folds {
			tested = append(tested, rapid.SampledFrom([]string{hexSum([]byte{byte(i)}), "", `"`, markedTested}).
				Draw(t, "tested"))
		}
	}
	return j, tested
}

// TestKeysOfMethod: the keys of all runs equal the keys of their sub-jobs one by one, also if a seed, a setting or what
// is tested looks like a mark.
func TestKeysOfMethod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, tested := drawJob(t)
		cells, err := RunsOf(j, tested, make([]int, len(j.Cells.Rows)))
		if err != nil || len(cells) != j.Cells.Count() {
			t.Fatalf("%d runs, error %v", len(cells), err)
		}
		for i := range cells {
			child, err := pipeline.Cell(j, i)
			if err != nil {
				t.Fatal(err)
			}
			of := ""
			if j.Split.Overlap {
				of = tested[child.Split.Fold]
			}
			if want := keyOf(child, of, &j.Cells.Labels); cells[i].Key != want {
				t.Fatalf("run %d has the key %s, want %s of %s", i, cells[i].Key, want, keyText(child, of, &j.Cells.Labels))
			}
		}
	})
}

// TestNumbers: two runs of several jobs have the same number exactly if they have the same key. Jobs are often much
// like an earlier one.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers, byKey, byNumber := NewNumbers(), make(map[string]int32), make(map[int32]string)
		var jobs []*round.Job
		var lists [][]string
		for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
			j, tested := drawJob(t)
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "like") > 0 {
				like := rapid.IntRange(0, i-1).Draw(t, "an earlier job")
				copied, cells := *jobs[like], *jobs[like].Cells
				copied.Cells, tested = &cells, lists[like]
				copied.Seed += rapid.Uint64Range(0, 1).Draw(t, "seed moves")
				copied.Split.Seed += rapid.Uint64Range(0, 1).Draw(t, "seed of the split moves")
				cells.Rows = slices.Clone(cells.Rows)
				slices.Reverse(cells.Rows)
				for k := range cells.Rows {
					cells.Rows[k].Only = rapid.SampledFrom([][]int{nil, {0}, {cells.Folds - 1}}).Draw(t, "folds")
				}
				j = &copied
			}
			if rapid.Bool().Draw(t, "external") {
				r := &j.Cells.Rows[len(j.Cells.Rows)-1]
				r.Algorithm, r.External = external.Name, nil
				for fold := range j.Cells.Repeats * j.Cells.Folds {
					r.External = append(r.External, hexSum([]byte{byte(fold % 2)}))
				}
			}
			jobs, lists = append(jobs, j), append(lists, tested)
			runs, err := RunsOf(j, tested, make([]int, len(j.Cells.Rows)))
			if err != nil {
				t.Fatal(err)
			}
			list, err := numbers.Add(j, tested)
			if err != nil || len(list) != len(runs) {
				t.Fatalf("%d numbers of %d runs, %v", len(list), len(runs), err)
			}
			for unit, number := range list {
				key := runs[unit].Key
				first, known := byKey[key]
				if before, used := byNumber[number]; known != used || known && (first != number || before != key) {
					t.Fatalf("job %d, run %d: number %d, and %d of its key; key %s, and %s of its number", i, unit, number, first,
						key, before)
				}
				byKey[key], byNumber[number] = number, key
			}
		}
		if numbers.Different() != len(byKey) {
			t.Errorf("%d numbers of %d keys", numbers.Different(), len(byKey))
		}
	})
}

// manyRuns are the plans of 20,000 runs.
func manyRuns(b *testing.B) (*Spec, []*Plan) {
	b.Helper()
	text := "name: e\nfolds: {k: 10, repeats: 50}\ndatasets: [{dataset: a}, {dataset: b}, {dataset: c}, {dataset: " +
		"d}]\nmethods:\n"
	for k := range 10 {
		text += fmt.Sprintf("  - {algorithm: aa-knn, name: knn%d, settings: {k: %d}}\n", k, k+1)
	}
	s, err := Parse(b.Context(), "e.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	m, _ := datatest.Artificial(b, 300)
	var plans []*Plan
	for i := range s.Datasets {
		p, err := NewPlan(b.Context(), s, &s.Datasets[i], &Data{Manifest: m})
		if err != nil {
			b.Fatal(err)
		}
		plans = append(plans, p)
	}
	return s, plans
}

// BenchmarkManyRuns measures what a submission of 20,000 runs needs.
func BenchmarkManyRuns(b *testing.B) {
	s, plans := manyRuns(b)
	o := NewOutline(s, plans, nil)
	l, err := o.Layout()
	if err != nil || len(l.Keys) != 20_000 {
		b.Fatalf("%d runs, error %v", len(l.Keys), err)
	}
	for what, f := range map[string]func() error{
		"plans": func() error {
			for i := range s.Datasets {
				if _, err := NewPlan(b.Context(), s, &s.Datasets[i], &Data{Manifest: plans[i].Manifest}); err != nil {
					return err
				}
			}
			return nil
		},
		"keys": func() error {
			for _, p := range plans {
				if _, err := p.Runs(); err != nil {
					return err
				}
			}
			return nil
		},
		"layout": func() error { _, err := o.Layout(); return err },
	} {
		b.Run(what, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
