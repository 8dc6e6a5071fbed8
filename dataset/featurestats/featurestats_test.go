package featurestats

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"gonum.org/v1/gonum/stat"
	"pgregory.net/rapid"
)

// watched scans src and returns the kinds of its suspects by feature.
func watched(t *testing.T, src dataset.Source) map[int]string {
	t.Helper()
	w := New(src.Info())
	if err := src.Scan(func(r *dataset.Row) error { w.Add(r); return nil }); err != nil {
		t.Fatal(err)
	}
	found := map[int]string{}
	for _, s := range w.Suspects() {
		found[s.Feature] = s.Kind
	}
	return found
}

// suspicious returns n rows: a number that rises, noise, a constant, a copy of label
// 0, a line in label 1, and a name that is an id's.
func suspicious(n int, sparse bool) *datasettest.Listed {
	l := &datasettest.Listed{Described: dataset.Info{
		Rows: n, Features: 6, Labels: 3,
		FeatureNames: []string{"n", "noise", "c", "copy", "line", "ID"}, LabelNames: []string{"p", "q", "r"},
	}}
	for i := range n {
		d := float64(i*7%64) / 128
		noise := float64(i * i % 17)
		e := (1 - d) * float64(i*5%8) / 8
		r := dataset.Row{Values: []float64{float64(1000 + 3*i), noise, 5, d, 4 - 3*e, noise}, Labels: []float64{d, e, 1 - d - e}}
		if r.Sparse = sparse; sparse {
			r.Columns = []uint32{0, 1, 2, 3, 4, 5}
		}
		l.Rows = append(l.Rows, r)
	}
	return l
}

func TestSuspects(t *testing.T) {
	want := map[int]string{0: SuspectRowNumber, 2: SuspectConstant, 3: SuspectLabel, 4: SuspectLabel, 5: SuspectRowNumber}
	for _, rows := range []int{12, 300, 5000} {
		for _, sparse := range []bool{false, true} {
			if got := watched(t, suspicious(rows, sparse)); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d rows, sparse %v: %v, want %v", rows, sparse, got, want)
			}
		}
	}
}

// TestNoSuspects: what is in order is not suspect, and in a few rows anything may
// rise or go with a label.
func TestNoSuspects(t *testing.T) {
	generated, err := generate.New(generate.Options{Rows: 500, Features: 30, Labels: 4, Density: 0.1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	few := suspicious(9, false)
	few.Described.Features, few.Described.FeatureNames = 2, few.Described.FeatureNames[:2]
	for i := range few.Rows {
		few.Rows[i].Values = few.Rows[i].Values[:2]
	}
	for name, src := range map[string]dataset.Source{"artificial": generate.Artificial(500, 1), "generated": generated, "few rows": few} {
		if got := watched(t, src); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestSuspectsOfSorted: rows that are sorted by class have the same label for long.
func TestSuspectsOfSorted(t *testing.T) {
	l := &datasettest.Listed{Described: dataset.Info{Rows: 3000, Features: 1, Labels: 2}}
	for i := range 3000 {
		class := float64(i / 1500)
		l.Rows = append(l.Rows, dataset.Row{Values: []float64{10 * class}, Labels: []float64{1 - class, class}})
	}
	if got := watched(t, l); got[0] != SuspectLabel {
		t.Errorf("%v", got)
	}
}

// TestCorrelations: correlations leave out rows with a missing value, and are exact if large values change little.
func TestCorrelations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2*MinRows, 200).Draw(t, "rows")
		at := float64(rapid.SampledFrom([]int{0, 1, 1 << 40}).Draw(t, "offset"))
		slope := rapid.IntRange(-3, 3).Draw(t, "slope")
		var x, y []float64
		w := New(dataset.Info{Features: 1, Labels: 1})
		for range n {
			label := float64(rapid.IntRange(0, 50).Draw(t, "y"))
			value := at + float64(slope)*label + float64(rapid.IntRange(0, 9).Draw(t, "x"))
			if len(x) > MinRows && rapid.IntRange(0, 4).Draw(t, "missing") == 0 {
				value = numbers.NaN
			} else {
				x, y = append(x, value), append(y, label)
			}
			w.Add(&dataset.Row{Values: []float64{value}, Labels: []float64{label}})
		}
		if slices.Min(x) == slices.Max(x) || slices.Min(y) == slices.Max(y) {
			return
		}
		if _, got := w.Correlations.closest(0); math.Abs(got-stat.Correlation(x, y, nil)) > 1e-9 {
			t.Fatalf("%v, want %v", got, stat.Correlation(x, y, nil))
		}
	})
}

// TestSampled: every row at first, then fewer, and some of all of a long file.
func TestSampled(t *testing.T) {
	n, last := 0, 0
	for row := range 1 << 20 {
		if sampled(row) {
			n, last = n+1, row
		}
		if row < pairRows && n != row+1 {
			t.Fatalf("row %d is passed over", row)
		}
	}
	if n > 14*pairRows || last < 1<<19 {
		t.Errorf("%d rows, the last %d", n, last)
	}
}

func TestWarnings(t *testing.T) {
	w := New(suspicious(1, false).Described)
	for _, r := range suspicious(100, false).Rows {
		w.Add(&r)
	}
	lines := strings.Join(errtext.Strings(Warnings(w.Suspects())), "\n")
	for _, part := range []string{
		`feature "n" looks like a row number`, `--drop n leaves it out`, `feature "copy" is label "p" or follows from it (correlation 1.0000)`,
		`feature "line" is label "q"`, `correlation -1.0000`, `feature "ID" has the name of a row number`, `feature "c" is 5 in every sample`,
	} {
		if !strings.Contains(lines, part) {
			t.Errorf("%q lacks %q", lines, part)
		}
	}
	var many []Suspect
	for i := range 20 {
		many = append(many, Suspect{Feature: i, Kind: SuspectConstant, Reason: "is 0 in every sample"}, Suspect{Feature: i, Kind: SuspectLabel, Reason: "is it"})
	}
	lines = strings.Join(errtext.Strings(Warnings(many)), "\n")
	if n := strings.Count(lines, "\n") + 1; n != WarningNames+2 || !strings.Contains(lines, "12 more features") || !strings.Contains(lines, "6, 7 and 12 more") {
		t.Errorf("%d lines: %s", n, lines)
	}
}
