package dataset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"pgregory.net/rapid"
)

// TestWholeGroups: validation rows, the test rows of inner folds and the held rows of another job are whole groups.
// There are about as many of them as without groups, and at most half of the rows.
func TestWholeGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, count := rapid.IntRange(2, 400).Draw(t, "rows"), rapid.IntRange(1, 30).Draw(t, "groups")
		groups := make([]uint16, rows)
		for i := range groups {
			groups[i] = uint16(rapid.IntRange(0, count-1).Draw(t, "group"))
		}
		left, largest := sizes(groups)
		s := dataset.Split{Seed: rapid.Uint64().Draw(t, "seed"), Groups: "groups",
			ValidationFraction: rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "validation"),
			ValidationMin:      rapid.SampledFrom([]int{0, 20}).Draw(t, "minimum"),
		}
		kind := rapid.SampledFrom([]string{"plain", "inner", "held"}).Draw(t, "kind")
		switch kind {
		case "inner":
			s.Inner, s.InnerGroups = rapid.IntRange(2, 12).Draw(t, "folds"), true
			s.InnerFold = rapid.IntRange(0, s.Inner-1).Draw(t, "fold")
		case "held":
			s.Held = dataset.Held{Fraction: 0.2, Train: rapid.IntRange(0, 100).Draw(t, "most")}
		}
		roles, err := s.AssignGrouped(rows, nil, groups)
		if kind == "inner" && left < 2 {
			if err == nil || !strings.Contains(err.Error(), "in one group") {
				t.Fatalf("one group: error %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		wholeGroups(t, roles, groups)
		trained, held := datasettest.CountRole(roles, dataset.Train), datasettest.CountRole(roles, dataset.Validation)
		if trained == 0 {
			t.Fatalf("no rows to train on: %v", roles)
		}
		if kind == "inner" && datasettest.CountRole(roles, dataset.Test) == 0 {
			t.Fatal("an inner fold is empty")
		}
		want := min((trained+held)/2, max(s.ValidationMin, int(s.ValidationFraction*float64(trained+held))))
		if s.ValidationFraction == 0 {
			want = 0
		}
		if held > (trained+held)/2 || held > want+largest || kind == "plain" && left > 1 && want > 0 && held == 0 {
			t.Fatalf("%d rows of %d validate, want about %d; the largest of %d groups has %d", held, trained+held, want, left,
				largest)
		}
		if again, _ := s.AssignGrouped(rows, nil, slices.Clone(groups)); !slices.Equal(roles, again) {
			t.Fatal("the same split differs")
		}
	})
}

// sizes returns the number of groups that have rows, and the greatest number of rows of a group.
func sizes(groups []uint16) (count, largest int) {
	size := make(map[uint16]int)
	for _, g := range groups {
		size[g]++
		largest = max(largest, size[g])
	}
	return len(size), largest
}

// wholeGroups fails if a group has rows with two roles. Rows that are outside do not count.
func wholeGroups(t *rapid.T, roles []dataset.Roles, groups []uint16) {
	of := make(map[uint16]dataset.Roles)
	for row, role := range roles {
		switch g := groups[row]; {
		case role == dataset.Outside:
		case of[g] == 0:
			of[g] = role
		case of[g] != role:
			t.Fatalf("group %d has the roles %d and %d", g, of[g], role)
		}
	}
}

// TestInnerGroups: the inner folds test each row once, and have about as many rows each; fewer groups than folds are
// tested more than once.
func TestInnerGroups(t *testing.T) {
	groups := make([]uint16, 90)
	for row := range groups {
		groups[row] = uint16(min(row%20, 10))
	}
	for _, folds := range []int{2, 5} {
		for fold := range folds {
			s := dataset.Split{Seed: 4, Groups: "g", Inner: folds, InnerFold: fold, InnerGroups: true}
			roles, err := s.AssignGrouped(90, nil, groups)
			if n := datasettest.CountRole(roles, dataset.Test); err != nil || folds == 2 && n != 45 && n != 40 && n != 50 {
				t.Errorf("fold %d of %d tests %d rows, error %v", fold, folds, n, err)
			}
		}
	}
	tested := make([]int, 3)
	for fold := range 5 {
		s := dataset.Split{Groups: "g", Inner: 5, InnerFold: fold, InnerGroups: true}
		roles, err := s.AssignGrouped(3, nil, []uint16{0, 1, 2})
		if err != nil || datasettest.CountRole(roles, dataset.Test) != 1 {
			t.Fatalf("fold %d: roles %v, error %v", fold, roles, err)
		}
		tested[slices.Index(roles, dataset.Test)]++
	}
	if slices.Min(tested) < 1 {
		t.Errorf("groups are tested %v times", tested)
	}
}

// TestGroupsMissing: a split is refused if it names groups that it is not given.
func TestGroupsMissing(t *testing.T) {
	s := dataset.Split{Groups: "g", ValidationFraction: 0.2}
	if _, err := s.Assign(5, nil); err == nil || !strings.Contains(err.Error(), "the groups of 0 samples") {
		t.Errorf("no groups: error %v", err)
	}
	if _, err := s.AssignGrouped(5, nil, make([]uint16, 4)); err == nil {
		t.Error("groups of four rows are accepted for five")
	}
	for _, wrong := range []dataset.Split{{Inner: 2, InnerGroups: true}, {Groups: "g", InnerGroups: true},
		{Groups: "g", Assigned: "a", Folds: 4, Inner: 2, InnerGroups: true, InnerWhole: true}} {
		if wrong.Check() == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
	if tests, err := s.Tests(5, nil); err != nil || slices.Contains(tests, true) {
		t.Errorf("test rows %v, error %v", tests, err)
	}
}
