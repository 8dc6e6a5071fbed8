package clusters

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// rounds runs the rounds of a fit to its end, each with so many tasks as there are shards. The fit is cut before each.
func rounds(t *testing.T, f *Fit, k int, d *dataset.Data) *Fit {
	t.Helper()
	var s Scratch
	for !f.Done() {
		state, err := fields.Append(nil, 1, f.State)
		if err != nil {
			t.Fatal(err)
		}
		f = NewFit(k, d.Manifest)
		if err := fields.Read(state, 1, f.State); err != nil {
			t.Fatal(err)
		}
		r := round.Round{Scope: round.Sharded, Roles: dataset.Train}
		f.Next(&r)
		shape := r.How.(*round.Reduce).Shape
		if most := MostSums(k, d.Manifest); shape.F64 > most {
			t.Fatalf("a round sums %d values, at most %d are expected", shape.F64, most)
		}
		sum := make([]float64, shape.F64)
		for i := range r.Tasks {
			var part round.Partial
			part.Reset(shape)
			u := r.Task(i)
			if !Run(&part, &u, d, r.Vars, &s) {
				t.Fatalf("operation %d is unknown", r.Op)
			}
			for c, x := range part.F64 {
				sum[c] += x
			}
		}
		if err := f.Fold(sum); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// TestFit: a fit in rounds has the same clusters as KMeans on the rows in their order.
func TestFit(t *testing.T) {
	for _, rows := range []int{3, 40, 900} {
		for _, k := range []int{1, 5} {
			t.Run(fmt.Sprintf("rows=%d,clusters=%d", rows, k), func(t *testing.T) {
				src, err := generate.New(generate.Options{Rows: rows, Features: 3, Labels: 4, Density: 1, Seed: 7})
				if err != nil {
					t.Fatal(err)
				}
				m, shards := datatest.Build(t, src)
				d := datatest.Data(t, m, shards, dataset.Split{}, nil)
				labels := make([][]float64, m.Rows)
				for _, ref := range d.Select(0, len(m.Shards), dataset.Train) {
					shard := d.Shard(int(ref.Shard))
					row := make([]float64, m.Labels)
					degreesOf(row, shard.Label(int(ref.Pos)))
					labels[shard.Row[ref.Pos]] = row
				}
				f := NewFit(k, m)
				f.Begin()
				f = rounds(t, f, k, d)
				for i, want := range KMeans(labels, k) {
					if got, _ := Nearest(f.Centres(), labels[i]); got != want {
						t.Fatalf("row %d is in cluster %d, want %d", i, got, want)
					}
				}
			})
		}
	}
}

// TestFitWeights: a fit to samples with whole weights has the clusters of as many samples, also if some weights are 0.
// The weights decide the first centre and the clusters of some of the drawn sets.
func TestFitWeights(t *testing.T) {
	const k, seeds = 3, 30
	firsts, others := 0, 0
	for seed := range uint64(seeds) {
		s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
		l := &datasettest.Listed{Described: dataset.Info{Rows: 20, Features: 1, Labels: 3, HasWeights: true}}
		for i := range l.Described.Rows {
			a, b := s.Float64(), s.Float64()
			row := dataset.Row{Number: i, Values: []float64{1}, Labels: []float64{a * b, a * (1 - b), 1 - a}}
			if row.Weight = math.Floor(4 * s.Float64()); i%5 == 0 {
				row.Weight *= 5
			}
			l.Rows = append(l.Rows, row)
		}
		l.Rows[0].Weight = 1
		m, shards := datatest.Build(t, l)
		d := datatest.Data(t, m, shards, dataset.Split{}, nil)
		labels, weights := make([][]float64, m.Rows), make([]int, m.Rows)
		for _, ref := range d.Select(0, len(m.Shards), dataset.Train) {
			shard, pos := d.Shard(int(ref.Shard)), int(ref.Pos)
			row := make([]float64, m.Labels)
			degreesOf(row, shard.Label(pos))
			labels[shard.Row[pos]], weights[shard.Row[pos]] = row, int(shard.WeightOf(pos))
		}
		var repeated, alone [][]float64
		var of []int
		for i, row := range labels {
			for range weights[i] {
				repeated, of = append(repeated, row), append(of, i)
			}
			if weights[i] > 0 {
				alone = append(alone, row)
			}
		}
		f := NewFit(k, m)
		f.Begin()
		f = rounds(t, f, k, d)
		want := KMeans(repeated, k)
		for i, cluster := range want {
			if got, _ := Nearest(f.Centres(), repeated[i]); got != cluster {
				t.Fatalf("seed %d: row %d of weight %d is in cluster %d, want %d", seed, of[i], weights[of[i]], got, cluster)
			}
		}
		if firsts1, firsts2 := firstCentres(repeated, k), firstCentres(alone, k); !slices.Equal(firsts1[0], firsts2[0]) {
			firsts++
		} else {
			unweighted, at := KMeans(alone, k), 0
			for i, row := range of {
				if i > 0 && row != of[i-1] {
					at++
				}
				if unweighted[at] != want[i] {
					others++
					break
				}
			}
		}
	}
	if firsts < 3 || others < 3 {
		t.Errorf("of %d sets, weights decide the first centre of %d and only the clusters of %d, want at least 3 each", seeds,
			firsts, others)
	}
}

// TestFitErrors: no samples, and states that no run has.
func TestFitErrors(t *testing.T) {
	src, err := generate.New(generate.Options{Rows: 10, Features: 3, Labels: 4, Density: 1, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Build(t, src)
	f := NewFit(2, m)
	f.Begin()
	if err := f.Fold(make([]float64, 5)); !errors.Is(err, algorithms.ErrNoRows) {
		t.Errorf("without samples: %v", err)
	}
	for _, bad := range []Fit{
		{stage: stages}, {stage: stageMean, have: 1}, {stage: stageFirst, have: 2}, {stage: stageMove, have: 1},
		{stage: stageMove, have: 2, passes: MaxPasses}, {stage: stageFirst, passes: 1},
		{stage: stageMean, centres: []float64{math.NaN(), 0, 0, 0, 0, 0, 0, 0}},
	} {
		if bad.centres == nil {
			bad.centres = make([]float64, 8)
		}
		bad.clusters = 2
		state, err := fields.Append(nil, 1, bad.State)
		if err != nil {
			t.Fatal(err)
		}
		if err := fields.Read(state, 1, NewFit(2, m).State); !errors.Is(err, fields.ErrState) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	good := NewFit(2, m)
	good.Begin()
	if state, err := fields.Append(nil, 1, good.State); err != nil || fields.Read(state, 1, NewFit(2, m).State) != nil {
		t.Errorf("a state at the beginning is refused: %v", err)
	}
	if !slices.Equal(good.Centres(), make([]float64, 8)) {
		t.Error("there are centres at the beginning")
	}
}
