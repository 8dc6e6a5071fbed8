package param

import "fmt"

// Suggest returns a hint at the word that is closest to text, such as ` (did you mean
// "depth"?)`, or "".
func Suggest(text string, words []string) string {
	best, least := "", max(2, len(text)/3)+1
	for _, w := range words {
		if d := distance(text, w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// maxHint bounds the texts that distance compares.
const maxHint = 64

// distance is the Levenshtein distance of two texts.
func distance(a, b string) int {
	if len(a) > maxHint || len(b) > maxHint {
		return maxHint
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
