package read

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	names := func(n ...string) columns { return columns{len(n), n} }
	for _, c := range []struct {
		name        string
		model, file columns
		by          string
		from        []int
	}{
		{"the same names", names("a", "b"), names("a", "b"), ByName, nil},
		{"another order", names("a", "b", "c"), names("c", "a", "b"), ByName, []int{1, 2, 0}},
		{"columns without names keep their order", names("a", "", "b", ""), names("", "b", "a", ""), ByName,
			[]int{2, 0, 1, 3}},
		{"no names", columns{n: 2}, columns{n: 2}, ByPosition, nil},
		{"a model without names", columns{n: 2}, names("b", "a"), ByPosition, nil},
		{"a file without names", names("b", "a"), columns{n: 2}, ByPosition, nil},
		{"default names in another order", columns{n: 3}, names("x2", "x0", "x1"), ByName, []int{1, 2, 0}},
	} {
		m, err := match("feature", c.model, c.file)
		if err != nil || m.By != c.by || !slices.Equal(m.from, c.from) || (m.By == ByPosition) != (m.Why != "") {
			t.Errorf("%s: %+v, %v", c.name, m, err)
		}
	}
	if m, err := match("label", columns{n: 2}, names("1", "0")); err != nil || !slices.Equal(m.from, []int{1, 0}) {
		t.Errorf("default names of labels: %+v, %v", m, err)
	}
}

// What cannot be matched is refused with the first difference, and what each side lacks.
func TestMatchRefuses(t *testing.T) {
	names := func(n ...string) columns { return columns{len(n), n} }
	for _, c := range []struct {
		model, file columns
		says        []string
	}{
		{names("a", "b", "c"), names("a", "x", "c"),
			[]string{`feature 1 (counted from 0) differs: the model reads "b", the file has "x"`,
				`missing from the file: 1 ("b")`, `unknown to the model: 1 ("x")`}},
		{names("a", "b"), names("a", "b", "id"), []string{`the model reads none, the file has "id"`,
			"missing from the file: none", `unknown to the model: 1 ("id")`}},
		{names("a", "b"), names("a"), []string{`feature 1 (counted from 0) differs: the model reads "b", the file has none`}},
		{names("a", "b"), names("A", "b"), []string{`reads "a", the file has "A"`}},
		{names("a", "a"), names("a", "b"), []string{`missing from the file: 1 ("a")`}},
		{names("a", ""), names("a", "b"), []string{`missing from the file: 1 ("")`}},
		{columns{n: 2}, columns{n: 3}, []string{"found 3 features, but the model reads 2, and neither the model nor the " +
			"file has the names of features"}},
		{names("a", "b"), columns{n: 1}, []string{"found 1 feature, but the model reads 2, and the file does not have the " +
			"names of features"}},
		{names("a", "b", "c", "d", "e", "f"), names("1", "2", "3", "4", "5", "6"),
			[]string{`missing from the file: 6 ("a", "b", "c", "d", "e", ...)`}},
	} {
		_, err := match("feature", c.model, c.file)
		datasettest.MustContain(t, err, c.says...)
	}
	_, err := match("label", names("sad"), names("glad"))
	datasettest.MustContain(t, err, `label 0 (counted from 0) differs: the model predicts "sad", the file has "glad"`)
}

// A row in any order of columns, dense or sparse, comes out as the model reads it, bit
// for bit.
func TestReorderUndoesPermutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "columns")
		order := rapid.Permutation(upTo(n)).Draw(t, "order")
		row := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0, 0, math.Copysign(0, -1), 1, -2.5, 1e-300, math.MaxFloat64,
			math.NaN()}), n, n).Draw(t, "row")
		unnamed := rapid.IntRange(0, 1).Draw(t, "unnamed")
		model, file, moved := make([]string, n), make([]string, n), make([]float64, n)
		for i := range n {
			model[i] = fmt.Sprint("c", i)
		}
		model[0] = model[0][:len(model[0])*(1-unnamed)] // one may lack a name
		for i, c := range order {
			file[i], moved[i] = model[c], row[c]
		}
		m, err := match("feature", columns{n, model}, columns{n, file})
		if err != nil {
			t.Fatal(err)
		}
		r := newReorder(m)
		if got := r.dense(moved); !sameBits(got, row) {
			t.Fatalf("dense: %v, want %v", got, row)
		}
		columns, values := nonZeros(moved)
		columns, values = r.sparse(columns, values)
		wantColumns, wantValues := nonZeros(row)
		if !slices.Equal(columns, wantColumns) || !sameBits(values, wantValues) {
			t.Fatalf("sparse: %v %v, want %v %v", columns, values, wantColumns, wantValues)
		}
	})
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func nonZeros(row []float64) (columns []uint32, values []float64) {
	for i, v := range row {
		if v != 0 {
			columns, values = append(columns, uint32(i)), append(values, v)
		}
	}
	return columns, values
}

func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}
