package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// csvColumns says what each column of a CSV file is.
type csvColumns struct {
	features, labels []int
	rowName          int // -1: none
	prefixes         []string
}

// hasHeader tells whether the first line of a file is a header: it is when it has
// no number, or when it has a name that is looked for.
func hasHeader(first []string, o *OpenOptions) bool {
	if o.Header != HeaderAuto {
		return o.Header == HeaderYes
	}
	c := csvColumns{prefixes: labelPrefixes(o)}
	wanted := append([]string{"row_name", "name", o.RowNames, string(o.Labels.Kind)}, o.Labels.Columns...)
	numbers := false
	for _, field := range first {
		if field = strings.TrimSpace(field); isNumber(field) {
			numbers = true
		} else if field != "" && (slices.Contains(wanted, field) || c.prefix(field) != "") {
			return true
		}
	}
	return !numbers
}

func labelPrefixes(o *OpenOptions) []string {
	if len(o.Labels.Prefixes) > 0 {
		return o.Labels.Prefixes
	}
	return []string{"label_", "y_"}
}

// prefix returns the label prefix that name begins with, where more follows.
func (c *csvColumns) prefix(name string) string {
	for _, p := range c.prefixes {
		if strings.HasPrefix(name, p) && len(name) > len(p) {
			return p
		}
	}
	return ""
}

// lastColumn names the last column in LabelOptions.Columns.
const lastColumn = "last"

// chooseColumns decides what n columns are; names is nil without a header.
func chooseColumns(names []string, n int, o *OpenOptions) (csvColumns, error) {
	c := csvColumns{prefixes: labelPrefixes(o)}
	var err error
	if c.rowName, err = rowNameColumn(names, n, o.RowNames); err != nil {
		return c, err
	}
	if c.labels, err = c.chooseLabels(names, n, o); err != nil {
		return c, err
	}
	for i := range n {
		if i != c.rowName && !slices.Contains(c.labels, i) {
			c.features = append(c.features, i)
		}
	}
	if o.NoLabels {
		c.labels = nil
	}
	return c, nil
}

func rowNameColumn(names []string, n int, given string) (int, error) {
	if given != "" {
		return findColumn(names, n, given)
	}
	for i, name := range names {
		if name == "row_name" || name == "name" || name == "" && i == 0 {
			return i, nil
		}
	}
	return -1, nil
}

func (c *csvColumns) chooseLabels(names []string, n int, o *OpenOptions) ([]int, error) {
	single := o.Labels.Kind == Age || o.Labels.Kind == Class
	width := n
	if c.rowName >= 0 {
		width--
	}
	if o.NoLabels && o.Features == width {
		return nil, nil
	}
	if len(o.Labels.Columns) > 0 {
		return c.listed(names, n, o)
	}
	if i := slices.Index(names, string(o.Labels.Kind)); single && i >= 0 {
		return []int{i}, nil
	}
	var found []int
	for i, name := range names {
		if c.prefix(name) != "" && i != c.rowName {
			found = append(found, i)
		}
	}
	switch {
	case single && len(found) > 1:
		return nil, fmt.Errorf("%d label columns where labels of kind %q are one, which has to be named", len(found), o.Labels.Kind)
	case len(found) > 0:
		return found, nil
	case single && (!o.NoLabels || o.Features == width-1):
		return []int{n - 1}, nil
	case o.NoLabels:
		return nil, nil
	}
	return nil, fmt.Errorf("no label columns: their names begin with %s, or have to be listed: %w",
		strings.Join(c.prefixes, " or "), ErrNoLabels)
}

// listed finds the columns that LabelOptions.Columns names. Without labels
// wanted, those that are missing are no fault.
func (c *csvColumns) listed(names []string, n int, o *OpenOptions) ([]int, error) {
	var found []int
	for _, name := range o.Labels.Columns {
		i, err := findColumn(names, n, name)
		if err != nil && o.NoLabels {
			continue
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(found, i) || i == c.rowName {
			return nil, fmt.Errorf("column %q is used twice", name)
		}
		found = append(found, i)
	}
	if (o.Labels.Kind == Age || o.Labels.Kind == Class) && len(found) > 1 {
		return nil, fmt.Errorf("%d label columns where labels of kind %q are one", len(found), o.Labels.Kind)
	}
	return found, nil
}

// findColumn finds a column by header, by number from 0, or as "last".
func findColumn(names []string, n int, name string) (int, error) {
	if i := slices.Index(names, name); i >= 0 {
		return i, nil
	}
	if name == lastColumn {
		return n - 1, nil
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < n {
		return i, nil
	}
	if names == nil {
		return 0, fmt.Errorf("no column %q: the file has no header; give a number from 0 to %d, or %q", name, n-1, lastColumn)
	}
	const shown = 10
	list := strings.Join(names[:min(shown, n)], ", ")
	if n > shown {
		list += ", ..."
	}
	return 0, fmt.Errorf("no column %q; the columns are %s", name, list)
}
