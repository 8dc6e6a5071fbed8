package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// headerDoubt says why a first record with numbers, which is read as a row, could be a header; empty: it is a
// row. rest has records after it, and listed the columns that flags name.
func headerDoubt(first []string, rest [][]string, m marks, listed []string) string {
	if len(rest) == 0 {
		return ""
	}
	if at := textAboveNumbers(first, rest, m); at >= 0 {
		return fmt.Sprintf("the first line has the text %.40q above numbers and could be a header", strings.TrimSpace(first[at]))
	}
	if !distinctFields(first) {
		return ""
	}
	far := farFromRest(first, rest, m)
	switch named := namedByNumber(first, listed); {
	case named > 1 || named == 1 && far:
		return "the first line has the numbers by which flags name columns, and could be a header"
	case far:
		return "the first line has numbers far from the numbers below, and could be a header"
	case evenlySpaced(first) && !slices.ContainsFunc(rest, evenlySpaced):
		return "only the first line has evenly spaced whole numbers, and could be a header"
	}
	return ""
}

// headerError is the error for a first line that could be a header or a row.
func headerError(doubt string) error {
	return &WaysError{doubt + ": give --header yes if it is a header, --header no if it is a row", headerWays}
}

// namedHeader reports whether a first record with numbers is a header because of its fields in the columns usual, which
// are usual names or labels of the model. It is an error if these could also be classes of a row; false without an
// error: they are no reason to take it for a header.
func namedHeader(first []string, rest [][]string, usual []int, m marks, o *OpenOptions) (bool, error) {
	s := o.schema
	again := slices.ContainsFunc(usual, func(i int) bool { return fieldAgain(first[i], rest, i) })
	if again || byNumber(o.Labels.Columns) || s != nil && len(s.LabelColumns.Positions) > 0 {
		return false, nil
	}
	numbers, named := 0, 0 // numbers above numbers; names of features of the model
	for i, field := range first {
		if isFieldNumber(field, m) && aboveNumbers(rest, i, m) {
			numbers++
			if o.known.feature(strings.TrimSpace(field)) {
				named++
			}
		}
	}
	switch {
	case numbers == named: // also if there are none
		return true, nil
	case slices.ContainsFunc(usual, func(i int) bool { return aboveNumbers(rest, i, m) }):
		return true, nil
	case counts(first, m) && (numbers > 2 || first[0] == ""):
		return true, nil
	}
	return false, headerError(fmt.Sprintf("the first line has numbers and %.40q, which may be the name of a column or a class", strings.TrimSpace(first[usual[0]])))
}

// byNumber reports whether a list of columns names all of them by numbers.
func byNumber(list []string) bool {
	for _, item := range list {
		from, to, isRange := strings.Cut(item, ":")
		if _, err := strconv.Atoi(from); err != nil {
			return false
		}
		if _, err := strconv.Atoi(to); isRange && err != nil && to != lastColumn {
			return false
		}
	}
	return len(list) > 0
}

// fieldAgain reports whether column i of rest has the text of a field.
func fieldAgain(field string, rest [][]string, i int) bool {
	field = strings.TrimSpace(field)
	return slices.ContainsFunc(rest, func(record []string) bool { return i < len(record) && strings.TrimSpace(record[i]) == field })
}

// textAboveNumbers returns the first column with text in first and numbers only in rest; -1: none.
func textAboveNumbers(first []string, rest [][]string, m marks) int {
	for i, field := range first {
		if !isMissing(field) && !isFieldNumber(field, m) && aboveNumbers(rest, i, m) {
			return i
		}
	}
	return -1
}

// aboveNumbers reports whether column i of rest has numbers and no other values.
func aboveNumbers(rest [][]string, i int, m marks) bool {
	numbers := false
	for _, record := range rest {
		if i >= len(record) || isMissing(record[i]) {
			continue
		}
		if numbers = isFieldNumber(record[i], m); !numbers {
			return false
		}
	}
	return numbers
}

// distinctFields reports whether the fields of a record differ and none is empty, but for the last ones.
func distinctFields(record []string) bool {
	seen := make(map[string]bool, len(record))
	for _, field := range record[:filled(record)] {
		if field = strings.TrimSpace(field); field == "" || seen[field] {
			return false
		}
		seen[field] = true
	}
	return true
}

// namedByNumber counts the whole numbers that name columns if all of them are fields of first; else it
// returns 0.
func namedByNumber(first, listed []string) (n int) {
	for _, item := range listed {
		for name := range strings.SplitSeq(item, ":") {
			if _, err := strconv.Atoi(name); err != nil {
				continue
			}
			if !slices.ContainsFunc(first, func(field string) bool { return strings.TrimSpace(field) == name }) {
				return 0
			}
			n++
		}
	}
	return n
}

// farFromRest reports whether a third or more of the numbers of first, and more than one of them if there are
// several, are farther from the range of their columns in rest than that range is wide or from 0.
func farFromRest(first []string, rest [][]string, m marks) bool {
	numbers, far := 0, 0
	for i, field := range first {
		v, reason := m.parse(field)
		if reason != "" || v != v {
			continue
		}
		low, high, n := math.Inf(1), math.Inf(-1), 0
		for _, record := range rest {
			if i >= len(record) || isMissing(record[i]) {
				continue
			}
			if x, reason := m.parse(record[i]); reason == "" && x == x {
				low, high, n = min(low, x), max(high, x), n+1
			}
		}
		if n < 3 { // the range of so few says little
			continue
		}
		numbers++
		if wide := max(high-low, math.Abs(low), math.Abs(high)); v > high+wide || v < low-wide {
			far++
		}
	}
	return far > 0 && 3*far >= numbers && (far > 1 || numbers == 1)
}

// evenlySpaced reports whether a record has four or more whole numbers and nothing else, each greater than
// the one before by the same.
func evenlySpaced(record []string) bool {
	const least = 4
	record = record[:filled(record)]
	if len(record) < least {
		return false
	}
	var before, step int
	for i, field := range record {
		v, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || i == 1 && v <= before || i > 1 && v-before != step {
			return false
		}
		before, step = v, v-before
	}
	return true
}

// filled returns the number of fields of a record up to the last one that is not blank.
func filled(record []string) int {
	n := len(record)
	for n > 0 && strings.TrimSpace(record[n-1]) == "" {
		n--
	}
	return n
}

// realColumns returns how many columns records have up to the last one with a value, and whether
// some records have empty ones after it.
func realColumns(records [][]string) (n int, cut bool) {
	widest := 0
	for _, record := range records {
		n, widest = max(n, filled(record)), max(widest, len(record))
	}
	return n, n > 0 && n < widest
}
