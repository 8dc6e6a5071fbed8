package dataset_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"pgregory.net/rapid"
)

// TestValidationRowsOfDataset: the rows before them have the roles of a dataset without them, whatever the split, but
// none of these rows validates. The others validate in every job, and test a job that measures the validation.
func TestValidationRowsOfDataset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, own := rapid.IntRange(10, 300).Draw(t, "rows"), rapid.IntRange(1, 50).Draw(t, "validation rows")
		s := dataset.Split{Seed: rapid.Uint64().Draw(t, "seed")}
		var assigned, groups []uint16
		switch rapid.SampledFrom([]string{"all", "fraction", "folds", "listed", "overlapping"}).Draw(t, "tests") {
		case "fraction":
			s.TestFraction = 0.3
		case "folds":
			s.Folds, s.Fold = 5, 2
		case "listed":
			s.Folds, s.Fold, s.Assigned = 3, 1, "listed"
			for row := range rows {
				assigned = append(assigned, uint16(row*7%3))
			}
		case "overlapping":
			s.Folds, s.Fold, s.Assigned, s.Overlap = 20, 17, "listed", true
			for row := range rows {
				assigned = append(assigned, uint16(row), uint16(row))
			}
		}
		s.TrainFraction = rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "part")
		if rapid.Bool().Draw(t, "inner") {
			s.Inner, s.InnerFold = 3, 1
			if s.InnerGroups = rapid.Bool().Draw(t, "whole"); s.InnerGroups {
				s.Groups = "groups"
				for row := range rows {
					groups = append(groups, uint16(row%10))
				}
			}
		}
		want, err := s.AssignGrouped(rows, assigned, groups)
		if err != nil {
			t.Skip(err)
		}
		s.ValidationFrom = rows
		s.ValidationFraction = rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "validates")
		s.ValidationMin = 20
		held := rapid.Bool().Draw(t, "held")
		role := dataset.Validation
		if held {
			s.Held, role = dataset.Held{Fraction: 0.2}, dataset.Validation|dataset.Test
			for row, r := range want {
				if r == dataset.Test {
					want[row] = dataset.Outside
				}
			}
		}
		got, err := s.AssignGrouped(rows+own, assigned, groups)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != rows+own || !slices.Equal(got[:rows], want) {
			t.Fatalf("roles\n%v, of the rows alone\n%v", got[:rows], want)
		}
		if slices.ContainsFunc(got[rows:], func(r dataset.Roles) bool { return r != role }) {
			t.Fatalf("validation rows have the roles %v, want %v", got[rows:], role)
		}
		if held || s.Inner > 0 { // only of a job without a parent job
			return
		}
		tests, err := s.Tests(rows+own, assigned)
		if err != nil || len(tests) != rows {
			t.Fatalf("%d rows are tested or not, error %v; want %d", len(tests), err, rows)
		}
		if _, err := s.AssignGrouped(rows, assigned, groups); err == nil {
			t.Fatal("a dataset without the validation rows is accepted")
		}
	})
}

// TestNeverTrained: a round over training and validation rows, such as a refit, has no validation row of the dataset.
func TestNeverTrained(t *testing.T) {
	m := &dataset.Manifest{Rows: 4, Features: 1, Labels: 1, Shards: make([]dataset.ShardRef, 1)}
	rows := func(m *dataset.Manifest, roles dataset.Roles) (selected []uint32) {
		d := dataset.NewData(m, []dataset.Roles{dataset.Train, dataset.Test, dataset.Validation,
			dataset.Validation | dataset.Test})
		d.SetShard(0, &dataset.Rows{N: 4, Row: []uint32{3, 2, 1, 0}})
		for _, ref := range d.Filled(nil).Select(0, 1, roles) {
			selected = append(selected, d.Shard(0).Row[ref.Pos])
		}
		return selected
	}
	own := *m
	own.Validation = &dataset.OwnValidation{Rows: 2, FileRows: 2}
	for _, c := range []struct {
		of    *dataset.Manifest
		roles dataset.Roles
		want  []uint32
	}{
		{m, dataset.Train | dataset.Validation, []uint32{3, 2, 0}}, {&own, dataset.Train | dataset.Validation, []uint32{0}},
		{&own, dataset.Train, []uint32{0}}, {&own, dataset.Validation, []uint32{3, 2}}, {&own, dataset.Test, []uint32{3, 1}},
		{&own, dataset.AllRows, []uint32{3, 2, 1, 0}},
	} {
		if got := rows(c.of, c.roles); !slices.Equal(got, c.want) {
			t.Errorf("roles %b of a dataset with the validation %v: rows %v, want %v", c.roles, c.of.Validation, got, c.want)
		}
	}
}

// TestDividedRows: rows of a validation file that were left out are none of the rows that splits divide.
func TestDividedRows(t *testing.T) {
	m := &dataset.Manifest{Rows: 7, Features: 2, NonZeros: 14}
	for i, row := range []int{1, 4, 6, 9} { // of eleven: five of the file, then six
		last := -1
		if i > 0 {
			last = []int{1, 4, 6}[i-1]
		}
		m.LeftOut.Add(last, row)
	}
	plain := m.Digest()
	m.Validation = &dataset.OwnValidation{Rows: 4, FileRows: 6}
	d := m.Divided()
	if left := d.LeftOutRows(); d.Rows != 3 || d.NonZeros != 6 || d.FileRows() != 5 || !slices.Equal(left, []int{1, 4}) {
		t.Errorf("%d rows of %d, without %v", d.Rows, d.FileRows(), left)
	}
	if m.Digest() == plain {
		t.Error("the digest does not say which rows validate")
	}
	for _, wrong := range []dataset.OwnValidation{{}, {Rows: 7, FileRows: 7}, {Rows: 4, FileRows: 3},
		{Rows: 2, FileRows: 7}} {
		bad, _, err := importer.Build(generate.Artificial(7, 1), importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		bad.Validation = &wrong
		if err := bad.Check(); !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("%+v: error %v", wrong, err)
		}
	}
}
