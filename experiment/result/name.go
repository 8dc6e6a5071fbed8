package result

import (
	"cmp"
	"fmt"

	"github.com/coppice-ldl/coppice/internal/units"
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

// maxSame bounds the methods that a note says to be the same as another one.
const maxSame = 5

// SameNotes names the methods and datasets that are others under a second name, and the datasets with equal folds.
func (t *Table) SameNotes() (list []string) {
	same := make(map[string][]string) // the other names of a method
	for i := range t.Methods {
		if r := &t.Methods[i]; r.Same != "" {
			same[r.Same] = append(same[r.Same], r.Name)
		}
	}
	for i := range t.Methods {
		others := same[t.Methods[i].Name]
		if len(others) == 0 {
			continue
		}
		text := fmt.Sprintf("Methods %q", t.Methods[i].Name)
		for _, other := range others[:min(len(others), maxSame)] {
			text += fmt.Sprintf(" = %q", other)
		}
		if n := len(others) - maxSame; n > 0 {
			text += " = " + units.Plural(n, "other")
		}
		list = append(list, text+": they have the same hyperparameters on every dataset. Tables, tests and ranks list and count the method once.")
	}
	for i := range t.Datasets {
		d := &t.Datasets[i]
		if d.Same != "" {
			list = append(list, fmt.Sprintf("Datasets %s and %s have the same samples, labels and folds. Ranks count the two datasets once.", d.Same, d.Name))
		} else if b := t.sameSamples(i); b != nil {
			list = append(list, fmt.Sprintf("Datasets %s and %s have the same samples, but other folds or labels of another kind. Ranks count both datasets.", b.Name, d.Name))
		}
		if len(d.Divisions) > 0 {
			list = append(list, fmt.Sprintf("Dataset %s: repeats have the same folds. Results of equal folds are averaged first, so the repeats add no evidence to the tests.", d.Name))
		}
	}
	return list
}

// sameSamples returns the first dataset before dataset i with the same digest, or nil.
func (t *Table) sameSamples(i int) *Dataset {
	for b := range t.Datasets[:i] {
		if t.Datasets[i].Digest != "" && t.Datasets[b].Digest == t.Datasets[i].Digest {
			return &t.Datasets[b]
		}
	}
	return nil
}
