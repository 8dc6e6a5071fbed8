package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/job/pipeline"
)

// spentWords are the kinds of rounds as the line about time calls them, in its order;
// other kinds come after them, and what is no round last.
var spentWords = [][2]string{
	{"step", "steps"}, {"leaf update", "leaf updates"}, {"tree", "trees"}, {"fold", "folds"},
	{"validation", "validation"}, {"evaluation", "evaluation"},
}

// spentLine says where the time of a job went.
func spentLine(spent map[string]float64) string {
	var parts []string
	left := maps.Clone(spent)
	add := func(kind, word string) {
		if seconds, ok := left[kind]; ok {
			parts = append(parts, word+" "+duration(seconds))
			delete(left, kind)
		}
	}
	waiting, waits := left[pipeline.Waiting]
	delete(left, pipeline.Waiting)
	for _, w := range spentWords {
		add(w[0], w[1])
	}
	for _, kind := range slices.Sorted(maps.Keys(left)) {
		add(kind, kind)
	}
	if waits {
		parts = append(parts, "waiting "+duration(waiting))
	}
	return strings.Join(parts, ", ")
}
