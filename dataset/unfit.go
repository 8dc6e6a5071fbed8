package dataset

import (
	"fmt"
	"math"
)

// unfit collects the values of features and labels that an import refuses since they
// are no finite float32. Missing values are none of these.
type unfit struct {
	columns []*unfitColumn // in the order in which they were found
	at      map[unfitKey]*unfitColumn
}

// unfitKey is a feature or a label.
type unfitKey struct {
	kind   string
	column int
}

// unfitColumn is the first such value of a column, and how many there are.
type unfitColumn struct {
	first RowError
	count int
}

// add looks at a row of a source that info describes.
func (u *unfit) add(info *Info, r *Row) {
	for i, v := range r.Values {
		if !fits(v) {
			if r.Sparse {
				i = int(r.Columns[i])
			}
			u.found(r.Number, unfitKey{"feature", i}, info.FeatureNames, v)
		}
	}
	for i, v := range r.Labels {
		if !fits(v) && !r.LeftOut {
			u.found(r.Number, unfitKey{"label", i}, info.LabelNames, v)
		}
	}
}

// fits tells whether a value is a finite float32, or missing.
func fits(v float64) bool { return !math.IsInf(float64(float32(v)), 0) }

func (u *unfit) found(row int, key unfitKey, names []string, v float64) {
	c := u.at[key]
	if c == nil {
		c = &unfitColumn{first: RowError{
			Row: row, Column: key.column, Kind: key.kind, Name: nameAt(names, key.column), Reason: notFinite(v),
		}}
		if u.at == nil {
			u.at = map[unfitKey]*unfitColumn{}
		}
		u.at[key], u.columns = c, append(u.columns, c)
	}
	c.count++
}

// faults says where the first such value of each column is, of the first columns.
func (u *unfit) faults() (lines []string) {
	for _, c := range u.columns[:min(warningNames, len(u.columns))] {
		line := c.first.Error()
		if c.count > 1 {
			line += fmt.Sprintf(" (%d such values in this column)", c.count)
		}
		lines = append(lines, line)
	}
	if n := len(u.columns) - len(lines); n > 0 {
		lines = append(lines, fmt.Sprintf("%d more columns have values that are not finite or do not fit in a float32", n))
	}
	return lines
}
