package read

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestThin: however many values are not zero, and wherever they are, a matrix is
// read as it is; few of them are kept sparse.
func TestThin(t *testing.T) {
	const rows, columns = 700, 300 // more than thinSlack values
	for name, c := range map[string]struct {
		isZero func(row, column int, draw float64) bool
		sparse bool
	}{
		"all zeros":       {func(int, int, float64) bool { return true }, true},
		"few":             {func(_, _ int, draw float64) bool { return draw > 0.02 }, true},
		"a fifth":         {func(_, _ int, draw float64) bool { return draw > 0.2 }, true},
		"nearly a third":  {func(_, _ int, draw float64) bool { return draw > 0.3 }, false},
		"none":            {func(int, int, float64) bool { return false }, false},
		"dense, then few": {func(_, column int, draw float64) bool { return column > 100 && draw > 0.1 }, false},
		"few, then dense": {func(_, column int, draw float64) bool { return column < 200 && draw > 0.1 }, false},
		"the last only":   {func(row, column int, _ float64) bool { return row < rows-1 || column < columns-1 }, true},
	} {
		s := num.NewStream(num.NewKey(1, name), 0, 0)
		byColumn := make([]float64, rows*columns)
		for i := range byColumn {
			draw := float64(s.Uint64n(1<<20)) / (1 << 20)
			if !c.isZero(i%rows, i/rows, draw) {
				byColumn[i] = draw + 0.5
			}
		}
		rest := byColumn
		table, err := readTable(rows, columns, func(dst []float64) error {
			rest = rest[copy(dst, rest):]
			return nil
		})
		if err != nil || (table.start != nil) != c.sparse {
			t.Fatalf("%s: sparse %v, error %v", name, !c.sparse, err)
		}
		var row dataset.Row
		for i := range rows {
			table.fillRow(i, &row)
			want := make([]float64, columns)
			for j := range want {
				want[j] = byColumn[j*rows+i]
				if !c.sparse {
					want[j] = float64(float32(want[j]))
				}
			}
			if !slices.Equal(datasettest.Dense(row, columns), want) {
				t.Fatalf("%s: row %d is wrong", name, i)
			}
			row = dataset.Row{}
		}
	}
}
