package main

import (
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
)

// leftOut are the rows that a command left out for missing values, by their
// numbers in the file.
type leftOut []int

const maxLeftOutShown = 20

func (l *leftOut) add(row int) { *l = append(*l, row) }

// String says how many rows are left out, and which; "" for none.
func (l leftOut) String() string {
	if len(l) == 0 {
		return ""
	}
	var numbers []string
	for _, row := range l[:min(maxLeftOutShown, len(l))] {
		numbers = append(numbers, fmt.Sprint(row))
	}
	if len(l) > maxLeftOutShown {
		numbers = append(numbers, "...")
	}
	return fmt.Sprintf("left out because of missing values: %s (rows counted from 0: %s)", plural(len(l), "sample"), strings.Join(numbers, ", "))
}

// tell prints how a file was read, where that is no matter of course.
func (a *app) tell(src dataset.Source) {
	if a.json { // it has them
		return
	}
	for _, note := range src.Info().Said() {
		a.note("%s: %s", src.Info().File, note)
	}
}
