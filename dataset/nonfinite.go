package dataset

import (
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/internal/units"
)

// nonFiniteValues collects the values of features and labels that an import refuses since
// they are not finite as float32. It ignores missing values.
type nonFiniteValues struct {
	columns []*nonFiniteColumn // in the order in which they were found
	at      map[nonFiniteKey]*nonFiniteColumn
}

// nonFiniteKey is a feature or a label.
type nonFiniteKey struct {
	kind   string
	column int
}

// nonFiniteColumn is the first such value of a column, and their number.
type nonFiniteColumn struct {
	first RowError
	count int
}

// add adds the values of a row; info describes its source.
func (u *nonFiniteValues) add(info *Info, r *Row) {
	for i, v := range r.Values {
		if !isFinite32(v) {
			if r.Sparse {
				i = int(r.Columns[i])
			}
			u.found(r.Number, nonFiniteKey{"feature", i}, info.FeatureNames, v)
		}
	}
	for i, v := range r.Labels {
		if !isFinite32(v) && !r.LeftOut {
			u.found(r.Number, nonFiniteKey{"label", i}, info.LabelNames, v)
		}
	}
}

// isFinite32 reports whether a value is missing or finite as float32.
func isFinite32(v float64) bool { return !math.IsInf(float64(float32(v)), 0) }

func (u *nonFiniteValues) found(row int, key nonFiniteKey, names []string, v float64) {
	c := u.at[key]
	if c == nil {
		c = &nonFiniteColumn{first: RowError{
			Row: row, Column: key.column, Kind: key.kind, Name: nameAt(names, key.column), Reason: notFinite(v, ""),
		}}
		if u.at == nil {
			u.at = map[nonFiniteKey]*nonFiniteColumn{}
		}
		u.at[key], u.columns = c, append(u.columns, c)
	}
	c.count++
}

// faults returns a line for each of the first columns, with the column's first such value.
func (u *nonFiniteValues) faults() (lines []string) {
	for _, c := range u.columns[:min(warningNames, len(u.columns))] {
		line := c.first.Error()
		if c.count > 1 {
			line += fmt.Sprintf(" (%s such values in this column)", units.Count(c.count))
		}
		lines = append(lines, line)
	}
	if n := len(u.columns) - len(lines); n > 0 {
		lines = append(lines, fmt.Sprintf("%s more columns have values that are not finite or too large for a float32", units.Count(n)))
	}
	return lines
}
