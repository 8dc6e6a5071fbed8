package read

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// hasHeader reports whether the first line of a file is a header: a line without numbers, with a name that a flag or
// the features of the model have, or that counts the columns. A usual name, or a label of the model, beside
// numbers above numbers makes it one only if namedHeader says so. A line that could also be a row is an error; rest has
// records after it.
func hasHeader(first []string, rest [][]string, m numbers.Marks, o *OpenOptions) (bool, error) {
	if o.CSV.Header != dataset.HeaderAuto {
		return o.CSV.Header == dataset.HeaderYes, nil
	}
	if o.CSV.Images != "" && slices.ContainsFunc(first, isImageName) {
		return false, nil
	}
	c := csvColumns{prefixes: o.Labels.LabelPrefixes(), known: o.set.known}
	listed := slices.Concat([]string{o.CSV.RowNames}, o.Labels.Columns, o.FeatureColumns, o.Drop, o.CSV.Categories, o.Beside.names())
	var usual []int // columns with a usual name, or one of a label
	number := false
	for i, field := range first {
		switch field = strings.TrimSpace(field); {
		case numbers.IsField(field, m):
			number = true
		case field == "":
		case slices.Contains(listed, field), c.known.feature(field):
			return true, nil
		case field == "row_name", field == "name", o.Labels.IsTarget(field), c.prefix(field) != "", c.known.label(field):
			usual = append(usual, i)
		}
	}
	if !number {
		return true, nil
	}
	if len(usual) > 0 {
		if header, err := namedHeader(first, rest, usual, m, o); header || err != nil {
			return header, err
		}
	}
	switch counting := counts(first, m); {
	case counting && first[0] == "":
		return true, nil
	case counting:
		return false, headerError("the first line has the numbers 0, 1, ... and may number the columns")
	}
	if doubt := headerDoubt(first, rest, m, listed); doubt != "" {
		return false, headerError(doubt)
	}
	return false, nil
}

// counts reports whether the numbers of a line are 0, 1, 2, ...: the header of a data frame
// without names. Beside other fields two numbers are enough.
func counts(first []string, m numbers.Marks) bool {
	n := 0
	for _, field := range first {
		if !numbers.IsField(field, m) {
			continue
		}
		if field != strconv.Itoa(n) {
			return false
		}
		n++
	}
	return n > 2 || n == 2 && len(first) > 2
}

// headerDoubt says why a first record with numbers, which is read as a row, could be a header; empty: it is a
// row. rest has records after it, and listed the columns that flags name.
func headerDoubt(first []string, rest [][]string, m numbers.Marks, listed []string) string {
	if len(rest) == 0 {
		return ""
	}
	for i, field := range first {
		if !numbers.IsMissing(field) && !numbers.IsField(field, m) && aboveNumbers(rest, i, m) {
			return fmt.Sprintf("the first line has the text %.40q above numbers and could be a header", strings.TrimSpace(field))
		}
	}
	seen := make(map[string]bool, len(first)) // a header's fields differ and none is empty, but for the last ones
	for _, field := range first[:filled(first)] {
		if field = strings.TrimSpace(field); field == "" || seen[field] {
			return ""
		}
		seen[field] = true
	}
	far := farFromRest(first, rest, m)
	switch named := namedByNumber(first, listed); {
	case named > 1 || named == 1 && far:
		return "the first line has the numbers by which options name columns, and could be a header"
	case far:
		return "the first line has numbers far from the numbers below, and could be a header"
	case evenlySpaced(first) && !slices.ContainsFunc(rest, evenlySpaced):
		return "only the first line has evenly spaced whole numbers, and could be a header"
	}
	return ""
}

// headerError is the error for a first line that could be a header or a row.
func headerError(doubt string) error {
	return &dataset.WaysError{Text: errtext.Sprintf("%s: give {header=yes} if it is a header, {header=no} if it is a row", doubt), Ways: headerWays}
}

// namedHeader reports whether a first record with numbers is a header because of its fields in the columns usual, which
// are usual names or labels of the model. It is an error if these could also be classes of a row; false without an
// error: they are no reason to take it for a header.
func namedHeader(first []string, rest [][]string, usual []int, m numbers.Marks, o *OpenOptions) (bool, error) {
	s := o.set.schema
	again := slices.ContainsFunc(usual, func(i int) bool { // a column has the text of the first line once more
		field := strings.TrimSpace(first[i])
		return slices.ContainsFunc(rest, func(record []string) bool { return i < len(record) && strings.TrimSpace(record[i]) == field })
	})
	if again || byNumber(o.Labels.Columns) || s != nil && len(s.LabelColumns.Positions) > 0 {
		return false, nil
	}
	above, named := 0, 0 // numbers above numbers; names of features of the model
	for i, field := range first {
		if numbers.IsField(field, m) && aboveNumbers(rest, i, m) {
			above++
			if o.set.known.feature(strings.TrimSpace(field)) {
				named++
			}
		}
	}
	switch {
	case above == named: // also if there are none
		return true, nil
	case slices.ContainsFunc(usual, func(i int) bool { return aboveNumbers(rest, i, m) }):
		return true, nil
	case counts(first, m) && (above > 2 || first[0] == ""):
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
func farFromRest(first []string, rest [][]string, m numbers.Marks) bool {
	compared, far := 0, 0
	for i, field := range first {
		v, reason := m.Parse(field)
		if reason != "" || v != v {
			continue
		}
		low, high, n := math.Inf(1), math.Inf(-1), 0
		for _, record := range rest {
			if i >= len(record) || numbers.IsMissing(record[i]) {
				continue
			}
			if x, reason := m.Parse(record[i]); reason == "" && x == x {
				low, high, n = min(low, x), max(high, x), n+1
			}
		}
		if n < 3 { // the range of so few says little
			continue
		}
		compared++
		if wide := max(high-low, math.Abs(low), math.Abs(high)); v > high+wide || v < low-wide {
			far++
		}
	}
	return far > 0 && 3*far >= compared && (far > 1 || compared == 1)
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
