package result

import (
	"cmp"
	"fmt"
)

// Name is what a spec calls a cell, whatever its number in a table.
type Name struct {
	Dataset, Row string
	Repeat, Fold int
}

// Compare orders names: by dataset, row, repeat and fold.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Dataset, other.Dataset), cmp.Compare(n.Row, other.Row), cmp.Compare(n.Repeat, other.Repeat), cmp.Compare(n.Fold, other.Fold))
}

// NameOf returns the name of a cell of a valid table.
func (t *Table) NameOf(c *Cell) Name {
	return Name{t.Datasets[c.Dataset].Name, t.Rows[c.Row].Name, c.Repeat, c.Fold}
}

// String names the cell in errors and reports.
func (n Name) String() string {
	text := fmt.Sprintf("%s, %s, fold %d", n.Dataset, n.Row, n.Fold)
	if n.Repeat > 0 {
		text += fmt.Sprintf(" of repeat %d", n.Repeat)
	}
	return text
}

// CellName names a cell of a valid table in errors and reports.
func (t *Table) CellName(c *Cell) string { return t.NameOf(c).String() }
