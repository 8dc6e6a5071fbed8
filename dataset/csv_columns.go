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
	known            known // by the model that the file is for
}

// hasHeader tells whether the first line of a file is a header: it is when it has
// no number, or when it has a name that is looked for.
func hasHeader(first []string, o *OpenOptions) bool {
	if o.Header != HeaderAuto {
		return o.Header == HeaderYes
	}
	c := csvColumns{prefixes: labelPrefixes(o), known: o.known}
	wanted := append([]string{"row_name", "name", o.RowNames, string(o.Labels.Kind)}, o.Labels.Columns...)
	numbers := false
	for _, field := range first {
		if field = strings.TrimSpace(field); isNumber(field) {
			numbers = true
		} else if field != "" && (slices.Contains(wanted, field) || c.prefix(field) != "" || c.known.feature(field) || c.known.label(field)) {
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

// labelName returns the name of the label of a column.
func (c *csvColumns) labelName(column string) string {
	if label := c.known.labels[column]; label != "" {
		return label
	}
	return strings.TrimPrefix(column, c.prefix(column))
}

// unusual lists the label columns unless each begins with one of the usual prefixes,
// by which any other file's are found as well.
func (c *csvColumns) unusual(names []string) (columns []string) {
	usual := csvColumns{prefixes: labelPrefixes(&OpenOptions{})}
	listed := false
	for _, i := range c.labels {
		columns = append(columns, names[i])
		listed = listed || usual.prefix(names[i]) == ""
	}
	if !listed {
		return nil
	}
	return columns
}

// lastColumn names the last column in LabelOptions.Columns.
const lastColumn = "last"

// chooseColumns decides what n columns are; names is nil without a header.
func chooseColumns(names []string, n int, o *OpenOptions) (csvColumns, error) {
	c := csvColumns{prefixes: labelPrefixes(o), known: o.known}
	var err error
	if c.rowName, err = c.rowNameColumn(names, n, o.RowNames); err != nil {
		return c, err
	}
	if c.labels, err = c.chooseLabels(names, n, o); err != nil {
		return c, err
	}
	for i := range n {
		if i != c.rowName && !slices.Contains(c.labels, i) && !c.known.label(nameAt(names, i)) {
			c.features = append(c.features, i)
		}
	}
	if o.NoLabels {
		c.labels = nil
	}
	return c, c.distinct(names)
}

// distinct refuses two columns of one name that are both used; an empty name is none.
func (c *csvColumns) distinct(names []string) error {
	used := slices.Concat(c.features, c.labels)
	if c.rowName >= 0 {
		used = append(used, c.rowName)
	}
	slices.Sort(used)
	seen := make(map[string]int, len(used))
	for _, i := range used {
		name := nameAt(names, i)
		if first, ok := seen[name]; ok && name != "" {
			return fmt.Errorf("columns %d and %d of the header (counted from 1) are both named %q", first+1, i+1, name)
		}
		seen[name] = i
	}
	return nil
}

func (c *csvColumns) rowNameColumn(names []string, n int, given string) (int, error) {
	if given != "" {
		return findColumn(names, n, given)
	}
	for i, name := range names {
		if c.known.feature(name) {
			continue
		}
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
	if i := c.single(names, o); single && i >= 0 {
		return []int{i}, nil
	}
	found := c.asTrained(names, width, o)
	for i, name := range names {
		if i != c.rowName && (c.known.label(name) || c.prefix(name) != "" && !c.known.feature(name)) {
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

// single finds the only label column that a model was trained on, or else the one
// that is called as the kind of its labels; -1: none.
func (c *csvColumns) single(names []string, o *OpenOptions) int {
	if s := o.schema; s != nil && len(s.LabelColumns.Names) == 1 {
		if i := slices.Index(names, s.LabelColumns.Names[0]); i >= 0 {
			return i
		}
	}
	return slices.IndexFunc(names, func(name string) bool { return name == string(o.Labels.Kind) && !c.known.feature(name) })
}

// asTrained finds the label columns of a file without a header where those stood on
// which a model was trained, if the number of columns fits.
func (c *csvColumns) asTrained(names []string, width int, o *OpenOptions) []int {
	if names != nil || o.schema == nil {
		return nil
	}
	at := o.schema.LabelColumns.Positions
	if n := o.Features + len(at); width != n || slices.ContainsFunc(at, func(i int) bool { return i < 0 || i >= n || i == c.rowName }) {
		return nil
	}
	return slices.Clone(at)
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
