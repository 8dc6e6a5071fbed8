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
	value, group     int // of exact numbers and of groups; -1: none
	interval         []int
	prefixes         []string
	known            knownColumns // by the model that the file is for

	used []bool // columns that are something already, or dropped
}

// hasHeader reports whether the first line of a file is a header: a line without numbers,
// with a name that o or the schema asks for, or that counts the columns. A line that could
// also be a row is an error.
func hasHeader(first []string, m marks, o *OpenOptions) (bool, error) {
	if o.Header != HeaderAuto {
		return o.Header == HeaderYes, nil
	}
	c := csvColumns{prefixes: labelPrefixes(o), known: o.known}
	wanted := slices.Concat([]string{"row_name", "name", o.RowNames, string(o.Labels.Kind)}, o.Labels.Columns, o.FeatureColumns, o.Drop, o.Beside.names())
	numbers := false
	for _, field := range first {
		if field = strings.TrimSpace(field); isFieldNumber(field, m) {
			numbers = true
		} else if field != "" && (slices.Contains(wanted, field) || c.prefix(field) != "" || c.known.feature(field) || c.known.label(field)) {
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

// counts reports whether the numbers of a line are 0, 1, 2, ...: the header of a data frame
// without names. Beside other fields two numbers are enough.
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
	return false, kindErrorf(ErrFormat, "line 1 counts columns, 0, 1, ...: --header yes says that it is a header, --header no that it is a row")
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

// unusual lists the label columns, or none if each begins with one of the usual prefixes:
// these are found in any other file as well.
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

// chooseColumns decides what n columns are; names is nil without a header.
func chooseColumns(names []string, n int, o *OpenOptions) (csvColumns, error) {
	c := csvColumns{width: n, rowName: -1, prefixes: labelPrefixes(o), known: o.known, used: make([]bool, n)}
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
		err = c.chooseBeside(names, o)
	}
	if err == nil {
		if o.Images != "" {
			err = c.chooseImages(names, o.RowNames)
		} else {
			err = c.chooseRowName(names, o.RowNames)
		}
	}
	if err == nil {
		c.labels, err = c.chooseLabels(names, o)
	}
	if err == nil {
		err = c.use(names, c.labels)
	}
	if err == nil {
		err = c.useValue(names)
	}
	for i := range n {
		if !c.used[i] && len(o.FeatureColumns) == 0 && o.Images == "" && !c.known.label(nameAt(names, i)) && !c.known.beside[nameAt(names, i)] {
			c.features = append(c.features, i)
		}
	}
	if o.NoLabels {
		c.labels = nil
	}
	if err == nil {
		err = c.distinct(names)
	}
	return c, err
}

// use marks columns as used.
func (c *csvColumns) use(names []string, columns []int) error {
	for _, i := range columns {
		if c.used[i] {
			return fmt.Errorf("column %d %q (counted from 0) is used twice", i, nameAt(names, i))
		}
		c.used[i] = true
	}
	return nil
}

// distinct refuses two used columns with the same name, unless the name is empty.
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
			return fmt.Errorf("columns %d and %d of the header (counted from 0) are both named %q", first, i, name)
		}
		seen[name] = i
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
		if !c.known.feature(name) && (name == "row_name" || name == "name" || name == "" && i == 0) && !c.used[i] {
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
	if i := c.single(names, o); single && i >= 0 {
		return []int{i}, nil
	}
	found := c.asTrained(names, free, o)
	for i, name := range names {
		if !c.used[i] && (c.known.label(name) || c.prefix(name) != "" && !c.known.feature(name)) {
			found = append(found, i)
		}
	}
	switch {
	case single && len(found) > 1:
		return nil, fmt.Errorf("--labels %s needs one label column, the file has %d: name it with --label-columns", o.Labels.Kind, len(found))
	case len(found) > 0:
		return found, nil
	case single && len(free) > 0 && (!o.NoLabels || o.Features == len(free)-1):
		return free[len(free)-1:], nil
	case o.NoLabels:
		return nil, nil
	}
	return nil, kindErrorf(ErrNoLabels, "no label columns found: name them %s..., or list them with --label-columns; %s",
		strings.Join(c.prefixes, "... or "), columnList(names, c.width))
}

// single finds the only label column that a model was trained on, or else the column whose
// name is the kind of the labels ("age"); -1: none.
func (c *csvColumns) single(names []string, o *OpenOptions) int {
	if s := o.schema; s != nil && len(s.LabelColumns.Names) == 1 {
		if i := slices.Index(names, s.LabelColumns.Names[0]); i >= 0 {
			return i
		}
	}
	return slices.IndexFunc(names, func(name string) bool { return name == string(o.Labels.Kind) && !c.known.feature(name) })
}

// asTrained finds the label columns of a file without a header: the positions that the model
// was trained on, if the number of columns is the same.
func (c *csvColumns) asTrained(names []string, free []int, o *OpenOptions) []int {
	if names != nil || o.schema == nil {
		return nil
	}
	at := o.schema.LabelColumns.Positions
	taken := func(i int) bool { return i < 0 || i >= len(c.used) || c.used[i] }
	if len(free) != o.Features+len(at) || slices.ContainsFunc(at, taken) {
		return nil
	}
	return slices.Clone(at)
}

// listed finds the columns that LabelOptions.Columns names. Missing ones are an error only
// if labels are wanted.
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
		return nil, fmt.Errorf("--labels %s needs one label column, --label-columns lists %d", o.Labels.Kind, len(found))
	}
	return found, nil
}
