package result

import (
	"cmp"
	"fmt"
)

// Name is what a spec calls a run, whatever its number in a table.
type Name struct {
	Dataset, Method string
	Repeat, Fold    int
}

// Compare orders names: by dataset, method, repeat and fold.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Dataset, other.Dataset), cmp.Compare(n.Method, other.Method), cmp.Compare(n.Repeat, other.Repeat), cmp.Compare(n.Fold, other.Fold))
}

// NameOf returns the name of a run of a valid table.
func (t *Table) NameOf(c *Run) Name {
	return Name{t.Datasets[c.Dataset].Name, t.Methods[c.Method].Name, c.Repeat, c.Fold}
}

// String names the run in errors and reports.
func (n Name) String() string {
	text := fmt.Sprintf("%s, %s, fold %d", n.Dataset, n.Method, n.Fold)
	if n.Repeat > 0 {
		text += fmt.Sprintf(" of repeat %d", n.Repeat)
	}
	return text
}

// RunName names a run of a valid table in errors and reports.
func (t *Table) RunName(c *Run) string { return t.NameOf(c).String() }
