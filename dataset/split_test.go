package dataset_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// Every row has one role, and the numbers are as Split says.
func TestSplitSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(1, 2000).Draw(t, "rows")
		s := dataset.Split{
			Seed:               rapid.Uint64().Draw(t, "seed"),
			TestFraction:       rapid.SampledFrom([]float64{0, 0.001, 0.1, 0.5}).Draw(t, "test"),
			ValidationFraction: rapid.SampledFrom([]float64{0, 0.001, 0.1, 0.9}).Draw(t, "validation"),
			ValidationMin:      rapid.SampledFrom([]int{0, 1, 20}).Draw(t, "minimum"),
		}
		roles, err := s.Assign(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		test := 0
		if s.TestFraction > 0 {
			test = max(1, int(s.TestFraction*float64(rows)))
		}
		validation := 0
		if s.ValidationFraction > 0 {
			validation = min((rows-test)/2, max(s.ValidationMin, int(s.ValidationFraction*float64(rows-test))))
		}
		if datasettest.CountRole(roles, dataset.Test) != test ||
			datasettest.CountRole(roles, dataset.Validation) != validation ||
			datasettest.CountRole(roles, dataset.Train) != rows-test-validation {
			t.Fatalf("%d, %d, %d of %d rows, want %d tests and %d validations", datasettest.CountRole(roles, dataset.Train),
				datasettest.CountRole(roles, dataset.Validation), datasettest.CountRole(roles, dataset.Test), rows, test,
				validation)
		}
		if again, _ := s.Assign(rows, nil); !slices.Equal(roles, again) {
			t.Fatal("the same split differs")
		}
	})
}

// Each row is a test row in exactly one fold, folds differ by at most one row,
// and validation never touches test rows.
func TestFoldsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 12).Draw(t, "folds")
		rows := rapid.IntRange(k, 500).Draw(t, "rows")
		seed := rapid.Uint64().Draw(t, "seed")
		tested := make([]int, rows)
		for fold := range k {
			s := dataset.Split{Seed: seed, Folds: k, Fold: fold, ValidationFraction: 0.1, ValidationMin: 5}
			roles, err := s.Assign(rows, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := datasettest.CountRole(roles, dataset.Test); n < rows/k || n > rows/k+1 {
				t.Fatalf("fold %d of %d has %d of %d rows", fold, k, n, rows)
			}
			for i, r := range roles {
				if r == dataset.Test {
					tested[i]++
				}
			}
		}
		for i, n := range tested {
			if n != 1 {
				t.Fatalf("row %d is tested %d times", i, n)
			}
		}
	})
}

func TestAssignedFolds(t *testing.T) {
	s := dataset.Split{Assigned: "digest", Folds: 3, Fold: 1}
	roles, err := s.Assign(5, []uint16{0, 1, 2, 1, 0})
	if err != nil || !slices.Equal(roles, []dataset.Roles{dataset.Train, dataset.Test, dataset.Train, dataset.Test,
		dataset.Train}) {
		t.Errorf("%v, %v", roles, err)
	}
	if _, err := s.Assign(5, []uint16{0, 1}); err == nil {
		t.Error("a list of another length was accepted")
	}
}

// TestListedFoldsThatAreNotThere: a list that names a fold beyond the last one is refused; of splits that
// overlap the numbers are bits.
func TestListedFoldsThatAreNotThere(t *testing.T) {
	for _, c := range []struct {
		split dataset.Split
		fold  uint16
		taken bool
	}{
		{dataset.Split{Folds: 3, Assigned: "x"}, 2, true}, {dataset.Split{Folds: 3, Assigned: "x"}, 3, false},
		{dataset.Split{Folds: 3, Assigned: "x", Overlap: true}, 7, true},
	} {
		list, err := c.split.Decode(dataset.EncodeFolds([]uint16{0, 1, c.fold}), 3)
		if (err == nil) != c.taken || !c.taken && !errors.Is(err, dataset.ErrFormat) || c.taken && list[2] != c.fold {
			t.Errorf("%+v with %d: %v, error %v", c.split, c.fold, list, err)
		}
	}
}

func TestSeedsGiveOtherSplits(t *testing.T) {
	a, _ := dataset.Split{Seed: 1, TestFraction: 0.5}.Assign(100, nil)
	b, _ := dataset.Split{Seed: 2, TestFraction: 0.5}.Assign(100, nil)
	if slices.Equal(a, b) {
		t.Error("two seeds give one split")
	}
}

// Data.Select gives each row of a role once, by shard and position.
func TestSelect(t *testing.T) {
	m, shards, err := importer.Build(datasettest.SomeRows(200), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := dataset.Split{Seed: 1, TestFraction: 0.2, ValidationFraction: 0.2}.Assign(200, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, r := range shards {
		if d.HasShard(i) {
			t.Errorf("shard %d is at hand too early", i)
		}
		d.SetShard(i, r)
	}
	seen := map[uint32]bool{}
	for _, role := range []dataset.Roles{dataset.Train, dataset.Validation, dataset.Test} {
		refs := d.Select(0, len(shards), role)
		for _, ref := range refs {
			row := d.Shard(int(ref.Shard)).Row[ref.Pos]
			if seen[row] || d.Role(row) != role {
				t.Errorf("row %d in %d", row, role)
			}
			seen[row] = true
		}
	}
	if len(seen) != 200 || len(d.Select(0, len(shards), dataset.AllRows)) != 200 ||
		len(d.Select(3, 3, dataset.AllRows)) != 0 {
		t.Errorf("%d rows", len(seen))
	}
}

// TestSample: a sample has the wanted number of training rows of the data, or all if there are fewer, and no other
// rows. The key draws them.
func TestSample(t *testing.T) {
	m, shards, err := importer.Build(generate.Artificial(400, 1), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	roles, err := dataset.Split{Seed: 3, TestFraction: 0.25, ValidationFraction: 0.2}.Assign(m.Rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := dataset.NewData(m, roles)
	for i, r := range shards {
		d.SetShard(i, r)
	}
	filled, all := d.Filled(make([]float64, m.Features)), d.Select(0, len(shards), dataset.Train)
	drawn := func(d *dataset.Data, n int, seed uint64) []dataset.RowRef {
		t.Helper()
		s := d.Sample(n, num.NewKey(seed, "sample"))
		refs := s.Select(0, len(shards), dataset.AllRows|dataset.Outside)
		if len(refs) != m.Rows {
			t.Fatalf("%d rows have a role, want %d", len(refs), m.Rows)
		}
		if s.Shard(0) != d.Shard(0) || !s.HasShard(0) {
			t.Error("the sample has other shards")
		}
		refs = s.Select(0, len(shards), dataset.Train)
		if seen := s.Select(0, len(shards), dataset.AllRows); len(refs) != min(n, len(all)) || !slices.Equal(seen, refs) {
			t.Fatalf("%d training rows of %d rows, want %d", len(refs), len(seen), min(n, len(all)))
		}
		for _, ref := range refs {
			if !slices.Contains(all, ref) {
				t.Fatalf("row %v is not a training row", ref)
			}
		}
		return refs
	}
	some := drawn(d, 100, 1)
	if !slices.Equal(some, drawn(filled, 100, 1)) {
		t.Error("filled data have another sample")
	}
	if slices.Equal(some, drawn(d, 100, 2)) {
		t.Error("two keys draw the same rows")
	}
	if !slices.Equal(all, drawn(d, 1000, 1)) {
		t.Error("a sample of all rows lacks some")
	}
}

// TestTrainFraction: a fraction keeps its part of the rows that are not test rows, which are in each greater fraction.
// Inner folds and validation rows are of the kept rows alone, and the test rows stay the same.
func TestTrainFraction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(4, 500).Draw(t, "rows")
		s := dataset.Split{Seed: rapid.Uint64().Draw(t, "seed"), Folds: 3, Fold: rapid.IntRange(0, 2).Draw(t, "fold")}
		if rapid.Bool().Draw(t, "validation") {
			s.ValidationFraction = 0.2
		}
		whole, err := s.Assign(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		rest := rows - datasettest.CountRole(whole, dataset.Test)
		var before []dataset.Roles
		for _, fraction := range []float64{0.001, 0.3, 0.5, 1} {
			s.TrainFraction = fraction
			roles, err := s.Assign(rows, nil)
			if err != nil {
				t.Fatal(err)
			}
			if want := rest - max(1, int(fraction*float64(rest))); datasettest.CountRole(roles, dataset.Outside) != want {
				t.Fatalf("fraction %v of %d rows: %d are outside, want %d", fraction, rest,
					datasettest.CountRole(roles, dataset.Outside), want)
			}
			for i := range roles {
				if (roles[i] == dataset.Test) != (whole[i] == dataset.Test) {
					t.Fatalf("row %d is tested or not by the fraction", i)
				}
				if before != nil && before[i] != dataset.Outside && roles[i] == dataset.Outside {
					t.Fatalf("row %d of a smaller fraction is not in %v", i, fraction)
				}
			}
			inner := s
			inner.Inner = 2
			within, err := inner.Assign(rows, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range roles {
				if out := roles[i] == dataset.Outside || roles[i] == dataset.Test; out != (within[i] == dataset.Outside) {
					t.Fatalf("row %d has role %d, and %d in the inner fold", i, roles[i], within[i])
				}
			}
			before = roles
		}
		if !slices.Equal(before, whole) {
			t.Fatal("the fraction 1 is not the whole")
		}
	})
	for _, wrong := range []float64{-0.1, 1.1} {
		if err := (dataset.Split{TrainFraction: wrong}).Check(); err == nil {
			t.Errorf("the fraction %v passes", wrong)
		}
	}
}

// TestHeldRows: a split with Held tests the validation rows of the split without it. The test rows of that are outside,
// and at most so many of the others are kept.
func TestHeldRows(t *testing.T) {
	of := dataset.Split{Seed: 4, TestFraction: 0.2, ValidationFraction: 0.15, ValidationMin: 10}
	first, err := of.Assign(500, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, train := range []int{0, 100, 1000} {
		s := of
		s.Held = dataset.Held{Fraction: of.ValidationFraction, Min: of.ValidationMin, Train: train}
		s.ValidationFraction, s.ValidationMin = 0.1, 0
		roles, err := s.Assign(500, nil)
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for row, r := range roles {
			if (r == dataset.Test) != (first[row] == dataset.Validation) {
				t.Fatalf("row %d has role %d, and %d without Held", row, r, first[row])
			}
			if r&(dataset.Train|dataset.Validation) != 0 {
				kept++
				if first[row] != dataset.Train {
					t.Fatalf("row %d has role %d, and %d without Held", row, r, first[row])
				}
			}
		}
		want := datasettest.CountRole(first, dataset.Train)
		if train > 0 {
			want = min(want, train)
		}
		if kept != want || datasettest.CountRole(roles, dataset.Validation) != want/10 {
			t.Errorf("at most %d: %d rows are kept, want %d", train, kept, want)
		}
	}
	for _, wrong := range []dataset.Held{{Fraction: -0.1}, {Fraction: 2}, {Fraction: 0.1, Min: -1}, {Train: -1}} {
		if (dataset.Split{Held: wrong}).Check() == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}
