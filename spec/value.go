package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
)

// ParseValue reads a value of a setting: int64, float64, bool or string, as
// algorithms.Values holds them. Errors are *algorithms.ParamError and say what
// would be right.
func ParseValue(p *algorithms.Param, text string) (any, error) {
	switch p.Kind {
	case algorithms.Int:
		return parseInt(p, text)
	case algorithms.Float:
		return parseFloat(p, text)
	case algorithms.Bool:
		return parseBool(p, text)
	case algorithms.Word:
		return parseWord(p, text)
	}
	if p.Check != nil {
		if err := p.Check(text); err != nil {
			return nil, &algorithms.ParamError{Name: p.Name, Reason: fmt.Sprintf("%q: %v", text, err)}
		}
	}
	return text, nil
}

func parseInt(p *algorithms.Param, text string) (any, error) {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || float64(v) < p.Min || float64(v) > p.Max {
		return nil, wrong(p, text)
	}
	return v, nil
}

// parseFloat reads decimal numbers. It refuses Go's hexadecimal forms, underscores, NaN and
// infinities.
func parseFloat(p *algorithms.Param, text string) (any, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.eE+-") != "" || math.IsNaN(v) || v < p.Min || v > p.Max {
		return nil, wrong(p, text)
	}
	return v, nil
}

func parseBool(p *algorithms.Param, text string) (any, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, wrong(p, text)
}

func parseWord(p *algorithms.Param, text string) (any, error) {
	if !slices.Contains(p.Words, text) {
		return nil, wrong(p, text)
	}
	return text, nil
}

func wrong(p *algorithms.Param, text string) error {
	return &algorithms.ParamError{Name: p.Name, Reason: fmt.Sprintf("%q is not %s", text, Wanted(p))}
}

// Wanted says what values a setting takes: "a whole number from 2 to 20".
func Wanted(p *algorithms.Param) string {
	switch p.Kind {
	case algorithms.Int:
		return fmt.Sprintf("a whole number from %.0f to %.0f", p.Min, p.Max)
	case algorithms.Float:
		if p.Max == math.Nextafter(1, 0) {
			return fmt.Sprintf("a number from %v to below 1", p.Min)
		}
		return fmt.Sprintf("a number from %v to %v", p.Min, p.Max)
	case algorithms.Bool:
		return "true or false"
	case algorithms.Word:
		if len(p.Words) == 1 {
			return p.Words[0]
		}
		return strings.Join(p.Words[:len(p.Words)-1], ", ") + " or " + p.Words[len(p.Words)-1]
	}
	return "a text"
}

// Suggest returns a hint at the word that is closest to text, such as ` (did you mean
// "depth"?)`, or "".
func Suggest(text string, words []string) string { return didYouMean(text, words) }

// didYouMean returns a hint at the word that is closest to text, or "".
func didYouMean(text string, words []string) string {
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
