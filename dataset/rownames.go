package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// rowNameByDefault returns the column that names the rows though no flag says so: the first one called row_name or
// name, or column 0 if it has no name; -1: there is none. Features of the model, categories and label columns are none.
func (c *csvColumns) rowNameByDefault(names []string, o *OpenOptions) int {
	listed, _ := findColumns(names, c.width, slices.Concat(o.Categories, o.Labels.Columns)) // errors come later
	unnamed := func(names []string) (n int) {
		for _, name := range names {
			if name == "" {
				n++
			}
		}
		return n
	}
	for i, name := range names {
		if c.used[i] || c.known.feature(name) || slices.Contains(listed, i) {
			continue
		}
		if name == rowNameColumn || name == "name" || name == "" && i == 0 && !(o.schema != nil && unnamed(o.schema.FeatureNames) > unnamed(names[1:])) {
			return i
		}
	}
	return -1
}

// rowNameColumn is what Coppice calls a column of row names.
const rowNameColumn = "row_name"

// rowNameNote says that a column names the rows though no flag says so. It is an error if its first numbers could as well be
// those of a feature: one is no whole number, or two are equal. records has the first rows.
func (c *csvColumns) rowNameNote(names []string, records [][]string, m marks, o *OpenOptions) (string, error) {
	if !c.rowNameFound || o.schema != nil || o.Images != "" {
		return "", nil
	}
	i := c.rowName
	column := fmt.Sprintf("column %d, %q,", i, names[i])
	if names[i] == "" {
		column = fmt.Sprintf("column %d, which has no name,", i)
	}
	note := column + " has the names of the samples"
	if !aboveNumbers(records, i, m) || len(o.FeatureColumns) > 0 {
		return note, nil
	}
	asFeature := listFlag("--feature-columns", columnRanges(names, append([]int{i}, c.features...))...)
	feature := Option{"feature-columns", asFeature.Value}.String()
	unnamed := names[i] == "" && slices.Contains(names, strconv.Itoa(i)) // flags cannot name it
	doubt := noIndex(records, i, m)
	switch {
	case doubt == "" && len(c.features) == 0:
		return "", kindErrorf(ErrFormat, "%s has the names of the samples, and no column is left for features: %s makes it a feature", column, feature)
	case doubt == "" && unnamed:
		return note, nil
	case doubt == "":
		return note + "; " + feature + " makes it a feature", nil
	case unnamed:
		return "", kindErrorf(ErrAmbiguous, "%s has %s, so it may hold names of samples or a feature: call it %s in the header if it holds names, or give it another name", column, doubt, rowNameColumn)
	}
	asName := Flag{Name: "--row-names", Value: flagColumn(names, i)}
	return "", &WaysError{
		fmt.Sprintf("%s has %s, so it may hold names of samples or a feature: %s reads it as names of samples, %s makes it a feature", column, doubt, Option{"row-names", asName.Value}, feature),
		[]Way{{column + " is a feature", []Flag{asFeature}}, {column + " has the names of the samples", []Flag{asName}}},
	}
}

// noIndex says why the numbers of a column are no index of rows; empty: they are whole and differ.
func noIndex(records [][]string, i int, m marks) string {
	seen := map[float64]bool{}
	for _, record := range records {
		if i >= len(record) || isMissing(record[i]) {
			continue
		}
		v, _ := m.parse(record[i])
		if v != math.Floor(v) {
			return fmt.Sprintf("fractional numbers, such as %.40s", strings.TrimSpace(record[i]))
		}
		if seen[v] {
			return fmt.Sprintf("equal numbers, such as %.40s", strings.TrimSpace(record[i]))
		}
		seen[v] = true
	}
	return ""
}

// columnRanges lists columns as flags name them, with a range for columns next to each other.
func columnRanges(names []string, columns []int) (all []string) {
	slices.Sort(columns)
	for from := 0; from < len(columns); {
		to := from
		for to+1 < len(columns) && columns[to+1] == columns[to]+1 {
			to++
		}
		first, last := flagColumn(names, columns[from]), flagColumn(names, columns[to])
		if item := first + ":" + last; to > from+1 && !strings.Contains(first+last, ":") && !slices.Contains(names, item) {
			all = append(all, item)
		} else {
			for _, i := range columns[from : to+1] {
				all = append(all, flagColumn(names, i))
			}
		}
		from = to + 1
	}
	return all
}

// numberNotes says which items of lists of columns are headers that are numbers as well, of other columns.
func (o *OpenOptions) numberNotes(names []string) (notes []string) {
	items := slices.Concat(o.Drop, o.FeatureColumns, o.Labels.Columns, o.Categories, o.Beside.names(), []string{o.RowNames})
	seen := map[string]bool{}
	for _, item := range items {
		parts := []string{item}
		if from, to, cut := strings.Cut(item, ":"); cut && !slices.Contains(names, item) {
			parts = []string{from, to}
		}
		for _, part := range parts {
			at, number := slices.Index(names, part), -1
			if n, err := strconv.Atoi(part); err == nil {
				number = n
			}
			if at < 0 || number < 0 || number >= len(names) || number == at || seen[part] {
				continue
			}
			seen[part] = true
			notes = append(notes, fmt.Sprintf("column %s in a flag means the column with the name %q, which is column %d (counted from 0); column %d is called %q", part, part, at, number, names[number]))
		}
	}
	return notes
}
