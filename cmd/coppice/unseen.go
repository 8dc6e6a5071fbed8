package main

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
)

// unseenFlag says what becomes of values of a category that the model does not know.
type unseenFlag struct {
	Unseen string `enum:"refuse,ignore" default:"refuse" group:"data" help:"What to do about a category value that is not a level of the model: refuse the file; or ignore the value, so that all features of the category are 0 in that sample."`
}

// unseenLevels counts the rows with such values.
type unseenLevels struct {
	Rows  int    `json:"samples"`
	First string `json:"first"` // where, and which

	last int // the last row
}

// count has such values counted, if they are not refused.
func (f *unseenFlag) count(o *dataset.OpenOptions) *unseenLevels {
	if f.Unseen != "ignore" {
		return nil
	}
	u := &unseenLevels{last: -1}
	o.Unseen = func(row int, category, level string) {
		if u.Rows == 0 {
			u.First = fmt.Sprintf("row %d (counted from 0), %s %q", row, category, level)
		}
		if row != u.last {
			u.Rows, u.last = u.Rows+1, row
		}
	}
	return u
}

// String says how many rows there are; empty for none.
func (u *unseenLevels) String() string {
	if u == nil || u.Rows == 0 {
		return ""
	}
	return fmt.Sprintf("%s with levels that the model does not know; their features are set to 0; the first is in %s", plural(u.Rows, "sample"), u.First)
}
