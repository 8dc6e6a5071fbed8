package param

import (
	"fmt"
	"slices"
	"strings"
)

// lookalikes are hints at words that only look like a word that exists, by the word as it is asked for.
var lookalikes = map[string]struct{ like, hint string }{
	"min-samples-leaf": {"min_samples", " (a leaf has no minimum of samples; min_samples is the number of samples that a node needs to be split)"},
}

// Suggest returns a hint at the word that is closest to text, such as ` (did you mean
// "depth"?)`, or "" where none is near.
func Suggest(text string, words []string) string {
	if l, ok := lookalikes[fold(text)]; ok && slices.Contains(words, l.like) {
		return l.hint
	}
	best, least := "", maxHint
	for _, w := range words {
		if d := distance(fold(text), fold(w)); d < least && Near(text, w) {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// Near reports whether one text may be a slip of the pen for the other: at most a third of the longer one
// is other letters, and one letter in any case, but of a text of one letter.
func Near(a, b string) bool {
	a, b = fold(a), fold(b)
	longer, shorter := max(len(a), len(b)), min(len(a), len(b))
	return shorter > 0 && longer > 1 && longer <= maxHint && distance(a, b) <= max(1, longer/3)
}

// fold makes texts equal that differ in capitals, or in what stands between words.
func fold(text string) string {
	return strings.ReplaceAll(strings.ToLower(text), "_", "-")
}

// maxHint bounds the texts that are compared, in bytes.
const maxHint = 64

// distance is how many letters to insert, to delete, to replace or to swap with their neighbour make b of
// a, where no part is changed twice; maxHint, where a text is longer than that.
func distance(a, b string) int {
	if len(a) > maxHint || len(b) > maxHint {
		return maxHint
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			}
			row[j+1] = min(row[j+1], last[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
