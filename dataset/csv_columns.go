package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// csvColumns says what each column of a CSV file is.
type csvColumns struct {
	width            int // columns of the file
	features, labels []int
	rowName          int // -1: none
	prefixes         []string

	used []bool // columns that are something already, or dropped
}

// hasHeader tells whether the first line of a file is a header: it is when it has
// no number, or when it has a name that is looked for, or when it counts the
// columns. What may as well be a row is refused.
func hasHeader(first []string, m marks, o *OpenOptions) (bool, error) {
	if o.Header != HeaderAuto {
		return o.Header == HeaderYes, nil
	}
	c := csvColumns{prefixes: labelPrefixes(o)}
	wanted := slices.Concat([]string{"row_name", "name", o.RowNames, string(o.Labels.Kind)}, o.Labels.Columns, o.FeatureColumns, o.Drop)
	numbers := false
	for _, field := range first {
		if field = strings.TrimSpace(field); isFieldNumber(field, m) {
			numbers = true
		} else if field != "" && (slices.Contains(wanted, field) || c.prefix(field) != "") {
			return true, nil
		}
	}
	if numbers && counts(first, m) {
		return countsColumns(first)
	}
	return !numbers, nil
}

func isFieldNumber(field string, m marks) bool {
	_, reason := m.parse(field)
	return reason == ""
}

// counts tells whether the numbers of a line are 0, 1, 2, ...: so data frames
// without names write their header. Two numbers are enough beside other fields.
func counts(first []string, m marks) bool {
	n := 0
	for _, field := range first {
		if !isFieldNumber(field, m) {
			continue
		}
		if field != strconv.Itoa(n) {
			return false
		}
		n++
	}
	return n > 2 || n == 2 && len(first) > 2
}

func countsColumns(first []string) (bool, error) {
	if first[0] == "" {
		return true, nil
	}
	return false, sentencef(ErrFormat, "line 1 counts columns, 0, 1, ...: --header yes says that it is a header, --header no that it is a row")
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

// chooseColumns decides what n columns are; names is nil without a header.
func chooseColumns(names []string, n int, o *OpenOptions) (csvColumns, error) {
	c := csvColumns{width: n, rowName: -1, prefixes: labelPrefixes(o), used: make([]bool, n)}
	dropped, err := findColumns(names, n, o.Drop)
	if err == nil {
		err = c.use(names, dropped)
	}
	if err == nil {
		c.features, err = findColumns(names, n, o.FeatureColumns)
	}
	if err == nil {
		err = c.use(names, c.features)
	}
	if err == nil {
		err = c.chooseRowName(names, o.RowNames)
	}
	if err == nil {
		c.labels, err = c.chooseLabels(names, o)
	}
	if err == nil {
		err = c.use(names, c.labels)
	}
	for i := range n {
		if !c.used[i] && len(o.FeatureColumns) == 0 {
			c.features = append(c.features, i)
		}
	}
	if o.NoLabels {
		c.labels = nil
	}
	return c, err
}

// use marks columns as used.
func (c *csvColumns) use(names []string, columns []int) error {
	for _, i := range columns {
		if c.used[i] {
			return fmt.Errorf("column %d %q is used twice", i, nameAt(names, i))
		}
		c.used[i] = true
	}
	return nil
}

// free lists the columns that are not used.
func (c *csvColumns) free() (all []int) {
	for i, used := range c.used {
		if !used {
			all = append(all, i)
		}
	}
	return all
}

func (c *csvColumns) chooseRowName(names []string, given string) error {
	if given != "" {
		i, err := findColumn(names, c.width, given)
		if err != nil {
			return err
		}
		c.rowName = i
		return c.use(names, []int{i})
	}
	for i, name := range names {
		if (name == "row_name" || name == "name" || name == "" && i == 0) && !c.used[i] {
			c.rowName, c.used[i] = i, true
			return nil
		}
	}
	return nil
}

func (c *csvColumns) chooseLabels(names []string, o *OpenOptions) ([]int, error) {
	single := o.Labels.Kind == Age || o.Labels.Kind == Class
	free := c.free()
	if o.NoLabels && (len(o.FeatureColumns) > 0 || o.Features == len(free)) {
		return nil, nil
	}
	if len(o.Labels.Columns) > 0 {
		return c.listed(names, o)
	}
	if i := slices.Index(names, string(o.Labels.Kind)); single && i >= 0 {
		return []int{i}, nil
	}
	var found []int
	for i, name := range names {
		if c.prefix(name) != "" && !c.used[i] {
			found = append(found, i)
		}
	}
	switch {
	case single && len(found) > 1:
		return nil, fmt.Errorf("%d label columns where labels of kind %q are one, which has to be named", len(found), o.Labels.Kind)
	case len(found) > 0:
		return found, nil
	case single && len(free) > 0 && (!o.NoLabels || o.Features == len(free)-1):
		return free[len(free)-1:], nil
	case o.NoLabels:
		return nil, nil
	}
	return nil, sentencef(ErrNoLabels, "no label columns: their names begin with %s, or they are listed (--label-columns); %s",
		strings.Join(c.prefixes, " or "), columnList(names, c.width))
}

// listed finds the columns that LabelOptions.Columns names. Without labels
// wanted, those that are missing are no fault.
func (c *csvColumns) listed(names []string, o *OpenOptions) (found []int, err error) {
	for _, item := range o.Labels.Columns {
		columns, err := findColumns(names, c.width, []string{item})
		if err != nil && o.NoLabels {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, columns...)
	}
	if (o.Labels.Kind == Age || o.Labels.Kind == Class) && len(found) > 1 {
		return nil, fmt.Errorf("%d label columns where labels of kind %q are one", len(found), o.Labels.Kind)
	}
	return found, nil
}
