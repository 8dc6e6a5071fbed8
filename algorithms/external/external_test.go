package external_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// sample is a dataset of so many rows, with the rows of a fold.
func sample(t testing.TB, rows int) (*dataset.Manifest, *dataset.Data, []uint32) {
	t.Helper()
	m, shards, err := importer.Build(generate.Artificial(rows, 1), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := dataset.Split{Seed: 3, Folds: 4, Fold: 1}.Assign(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, s := range shards {
		d.SetShard(i, s)
	}
	var tested []uint32
	for row, role := range roles {
		if role == dataset.Test {
			tested = append(tested, uint32(row))
		}
	}
	return m, d, tested
}

// tableOf predicts the same distribution for each row.
func tableOf(rows []uint32, degrees ...float32) *external.Table {
	t := &external.Table{Labels: len(degrees), Row: slices.Clone(rows)}
	for range rows {
		t.Degrees = append(t.Degrees, degrees...)
	}
	t.Sort()
	return t
}

// compare runs the only round of a job whose predictions are of some rows.
func compare(t *testing.T, m *dataset.Manifest, d *dataset.Data, rows []uint32) (algorithms.Trainer, error) {
	t.Helper()
	own := tableOf(rows, 0.5, 0.25, 0.25)
	j := &round.Job{Algorithm: external.Name, Params: external.Params(own.Digest()),
		WeightsFile: external.Encode([]*external.Table{tableOf(rows, 1, 0, 0), own})}
	tr, err := external.New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := external.New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tr.Next()
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	part, err := k.(round.GatherKernel).Gather(context.Background(), r.Task(0), d, nil, k.NewScratch())
	if err != nil {
		t.Fatal(err)
	}
	return tr, tr.Fold(&round.Result{Gathered: [][]byte{part}})
}

// TestRows: a run has the predictions of its own table, and fails if their rows are not the test samples of its fold.
func TestRows(t *testing.T) {
	m, d, tested := sample(t, 40)
	tr, err := compare(t, m, d, tested)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := tr.Next(); r != nil || err != nil {
		t.Fatal("another round", err)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]float32, 3*40)
	var refs []dataset.RowRef
	for i := range d.Manifest.Shards {
		for pos := range d.Shard(i).N {
			refs = append(refs, dataset.RowRef{Shard: uint32(i), Pos: uint32(pos)})
		}
	}
	model.Predict(dst, refs, func(i uint32) *dataset.Rows { return d.Shard(int(i)) }, model.NewScratch())
	for i, ref := range refs {
		row := d.Shard(int(ref.Shard)).Row[ref.Pos]
		is := slices.Contains(tested, row)
		if is != (dst[3*i] == 0.5) || is == math.IsNaN(float64(dst[3*i])) {
			t.Errorf("row %d: %v", row, dst[3*i:3*i+3])
		}
	}
	other := uint32(0)
	for slices.Contains(tested, other) {
		other++
	}
	_, lacks := compare(t, m, d, tested[1:])
	_, has := compare(t, m, d, append([]uint32{other}, tested...))
	_, both := compare(t, m, d, append([]uint32{other}, tested[2:]...))
	for _, c := range []struct {
		err  error
		want string
	}{{lacks, "lacks row "}, {has, ", which the fold does not test"}, {both, "lacks rows "}} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// TestDigests: a table with other rows, degrees or labels has another digest, and its order of rows has not.
func TestDigests(t *testing.T) {
	of := tableOf([]uint32{2, 5}, 0.5, 0.5)
	if tableOf([]uint32{5, 2}, 0.5, 0.5).Digest() != of.Digest() {
		t.Error("the order of rows changes the digest")
	}
	for _, other := range []*external.Table{tableOf([]uint32{2, 6}, 0.5, 0.5), tableOf([]uint32{2, 5}, 0.25, 0.75),
		tableOf([]uint32{2, 5}, 0.5, 0.5, 0)} {
		if other.Digest() == of.Digest() {
			t.Errorf("%+v has the same digest", other)
		}
	}
}

// TestMissing: a job without its table is refused.
func TestMissing(t *testing.T) {
	m, _, tested := sample(t, 40)
	of := tableOf(tested, 0.5, 0.25, 0.25)
	for want, j := range map[string]*round.Job{
		"other programs are missing": {Params: external.Params(of.Digest())},
		" are missing":               {Params: external.Params(of.Digest()), WeightsFile: external.Encode(nil)},
		"not the":                    {Params: external.Params("x"), WeightsFile: external.Encode([]*external.Table{of})},
		"has 3": {Params: external.Params(tableOf(tested, 1).Digest()),
			WeightsFile: external.Encode([]*external.Table{tableOf(tested, 1)})},
	} {
		if _, err := external.New().NewTrainer(j, m, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzDecode: Decode returns tables that Encode writes to the same bytes, or an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(external.Encode(nil))
	f.Add(external.Encode([]*external.Table{tableOf([]uint32{1, 4}, 0.5, 0.5), tableOf([]uint32{0}, 1)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var tables []*external.Table
		var err error
		allocs.AtMost(t, 64*len(b)+1<<20, "predictions", func() { tables, err = external.Decode(b) })
		if err != nil {
			return
		}
		again, err := external.Decode(external.Encode(tables))
		if err != nil || len(again) != len(tables) {
			t.Fatal(err)
		}
		for i := range again {
			if again[i].Digest() != tables[i].Digest() {
				t.Fatal("another table")
			}
		}
	})
}
