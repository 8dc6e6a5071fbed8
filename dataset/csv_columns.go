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
	rowName          int   // -1: none
	rowNameFound     bool  // no flag says that rowName names the rows
	passed           []int // label columns that are not read: features are wanted only
	value, group     int   // of exact numbers and of groups; -1: none
	interval         []int
	prefixes         []string
	known            knownColumns // by the model that the file is for
	categories       []*levels    // by column, nil for a column that is no category; nil: there are none
	coordinate       int          // a column y next to an x that is not the target because there is another; -1: none

	used []bool // columns that are something already, or dropped
}

// hasHeader reports whether the first line of a file is a header: a line without numbers, with a name that a flag or
// the features of the model have, or that counts the columns. A usual name, or a label of the model, beside
// numbers above numbers makes it one only if namedHeader says so. A line that could also be a row is an error; rest has
// records after it.
func hasHeader(first []string, rest [][]string, m marks, o *OpenOptions) (bool, error) {
	if o.Header != HeaderAuto {
		return o.Header == HeaderYes, nil
	}
	if o.Images != "" && slices.ContainsFunc(first, isImageName) {
		return false, nil
	}
	c := csvColumns{prefixes: labelPrefixes(o), known: o.known}
	listed := slices.Concat([]string{o.RowNames}, o.Labels.Columns, o.FeatureColumns, o.Drop, o.Categories, o.Beside.names())
	var usual []int // columns with a usual name, or one of a label
	numbers := false
	for i, field := range first {
		switch field = strings.TrimSpace(field); {
		case isFieldNumber(field, m):
			numbers = true
		case field == "":
		case slices.Contains(listed, field), c.known.feature(field):
			return true, nil
		case field == "row_name", field == "name", o.Labels.isTarget(field), c.prefix(field) != "", c.known.label(field):
			usual = append(usual, i)
		}
	}
	if !numbers {
		return true, nil
	}
	if len(usual) > 0 {
		if header, err := namedHeader(first, rest, usual, m, o); header || err != nil {
			return header, err
		}
	}
	if counts(first, m) {
		return countsColumns(first)
	}
	if doubt := headerDoubt(first, rest, m, listed); doubt != "" {
		return false, headerError(doubt)
	}
	return false, nil
}

func isFieldNumber(field string, m marks) bool {
	_, ok := m.value(field)
	return ok
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
	return false, headerError("the first line has the numbers 0, 1, ... and may number the columns")
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

// unusual lists the label columns, or none if there are several and each begins with one of the usual
// prefixes: these are found in any other file as well.
func (c *csvColumns) unusual(names []string) (columns []string) {
	usual := csvColumns{prefixes: labelPrefixes(&OpenOptions{})}
	listed := false
	for _, i := range c.labels {
		columns = append(columns, names[i])
		listed = listed || usual.prefix(names[i]) == "" || len(c.labels) == 1
	}
	if !listed {
		return nil
	}
	return columns
}

// chooseColumns decides what n columns are; names is nil without a header.
func chooseColumns(names []string, n int, o *OpenOptions) (csvColumns, error) {
	c := csvColumns{width: n, rowName: -1, coordinate: -1, prefixes: labelPrefixes(o), known: o.known, used: make([]bool, n)}
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
			err = c.chooseImages(names, o)
		} else {
			err = c.chooseRowName(names, o)
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
		if !c.used[i] && len(o.FeatureColumns) == 0 && o.Images == "" && !c.known.passes(names, i) {
			c.features = append(c.features, i)
		}
	}
	if o.NoLabels {
		c.labels, c.passed = nil, c.labels
	}
	if err == nil {
		err = c.distinct(names)
	}
	if err == nil {
		err = c.distinctLabels(names)
	}
	if err == nil {
		err = c.chooseCategories(names, o)
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
			text := fmt.Sprintf("columns %d and %d (counted from 0) are both named %q: drop one of them with --drop %d or --drop %d", first, i, name, i, first)
			return &WaysError{text, []Way{
				oneWay("--drop", strconv.Itoa(i), "%q is column %d", name, first), oneWay("--drop", strconv.Itoa(first), "%q is column %d", name, i),
			}}
		}
		seen[name] = i
	}
	return nil
}

// distinctLabels refuses two label columns of one label, such as x with predictions next to label_x with the truth.
func (c *csvColumns) distinctLabels(names []string) error {
	var prefixed, plain []int
	first := make(map[string]int)
	twice := ""
	for _, i := range c.labels {
		name := nameAt(names, i)
		if c.prefix(name) != "" {
			prefixed = append(prefixed, i)
		} else {
			plain = append(plain, i)
		}
		label := c.labelName(name)
		if at, ok := first[label]; ok && label != "" && twice == "" {
			twice = fmt.Sprintf("%s are both label %q", nameList(names, []int{at, i}), label)
		}
		first[label] = i
	}
	if twice == "" {
		return nil
	}
	var ways []Way
	var texts []string
	for _, columns := range [][]int{prefixed, plain} {
		if len(columns) < 2 {
			return &WaysError{text: fmt.Sprintf("%s: list the label columns with --label-columns, or leave a column out with --drop", twice)}
		}
		var list []string
		for _, i := range columns {
			list = append(list, flagColumn(names, i))
		}
		way := Way{"the labels are " + nameList(names, columns), []Flag{listFlag("--label-columns", list...)}}
		ways = append(ways, way)
		texts = append(texts, Option{"label-columns", way.Flags[0].Value}.String()+" takes "+nameList(names, columns))
	}
	return &WaysError{twice + ": " + strings.Join(texts, ", "), ways}
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

func (c *csvColumns) chooseRowName(names []string, o *OpenOptions) error {
	if given := o.RowNames; given != "" {
		i, err := findColumn(names, c.width, given)
		if err != nil {
			return err
		}
		c.rowName = i
		return c.use(names, []int{i})
	}
	if i := c.rowNameByDefault(names, o); i >= 0 {
		c.rowName, c.rowNameFound, c.used[i] = i, true, true
	}
	return nil
}

func (c *csvColumns) chooseLabels(names []string, o *OpenOptions) ([]int, error) {
	free := c.free()
	if o.NoLabels && (len(o.FeatureColumns) > 0 || o.Features == len(free)) {
		return nil, nil
	}
	if len(o.Labels.Columns) > 0 {
		return c.listed(names, o)
	}
	targets, err := c.targets(names, o)
	if err != nil {
		return nil, err
	}
	if len(targets) == 1 {
		return targets, nil
	}
	found := c.asTrained(names, free, o)
	for i, name := range names {
		if !c.used[i] && (c.known.label(name) || c.prefix(name) != "" && !c.known.feature(name)) {
			found = append(found, i)
		}
	}
	switch {
	case o.Labels.single() && !o.NoLabels && len(targets)+len(found) != 1:
		return nil, c.targetError(names, append(targets, found...), o)
	case len(found) > 0:
		return found, c.checkPrefixes(names, found, o)
	case o.NoLabels:
		return nil, nil
	}
	return nil, kindErrorf(ErrNoLabels, "no label columns found: rename them to %s..., or list them with --label-columns; %s",
		strings.Join(c.prefixes, "... or "), columnList(names, c.width))
}

// targetNames are the usual names, in small or capital letters, of a column with one class or one age a row.
// The kind itself is one more.
var targetNames = []string{"label", "target", "y"}

// isTarget reports whether name is a usual name of the only label column.
func (o *LabelOptions) isTarget(name string) bool {
	return o.single() && (strings.EqualFold(name, string(o.Kind)) || slices.ContainsFunc(targetNames, func(s string) bool { return strings.EqualFold(name, s) }))
}

// targets lists the columns that may be the only label column by their names: the column that a model was
// trained on, or else all with a usual name. A y next to an x is a coordinate if there is another one:
// openCSV refuses the file if that y is text.
func (c *csvColumns) targets(names []string, o *OpenOptions) (found []int, err error) {
	if !o.Labels.single() || len(o.Labels.Prefixes) > 0 {
		return nil, nil
	}
	if s := o.schema; s != nil && len(s.LabelColumns.Names) == 1 && names != nil {
		trained := s.LabelColumns.Names[0]
		i := slices.Index(names, trained)
		if i < 0 {
			i = slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, trained) })
		}
		if i >= 0 && !c.used[i] {
			return []int{i}, nil
		}
		if !o.NoLabels && o.Labels.Kind == s.Reading.Labels {
			err := fmt.Errorf("the model was trained with the %s in column %q, and this file has no such column: name the column of the %s with --label-columns; %s",
				o.Labels.Kind, trained, o.Labels.Kind, columnList(names, c.width))
			return nil, &kindError{&kindError{err, ErrNoLabels}, ErrAmbiguous}
		}
	}
	for i, name := range names {
		if o.Labels.isTarget(name) && !c.used[i] && !c.known.feature(name) {
			found = append(found, i)
		}
	}
	if hasX := slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, "x") }); hasX && len(found) > 1 {
		if at := slices.IndexFunc(found, func(i int) bool { return strings.EqualFold(names[i], "y") }); at >= 0 {
			c.coordinate = found[at]
			found = slices.Delete(found, at, at+1)
		}
	}
	return found, nil
}

// targetError is the error for a file in which no column, or each of several, may be the only label column.
func (c *csvColumns) targetError(names []string, found []int, o *OpenOptions) error {
	const advice = "name the label column with --label-columns"
	if len(found) > 0 {
		var ways []Way
		for _, i := range found {
			ways = append(ways, oneWay("--label-columns", flagColumn(names, i), "the %s is in column %d, %q", o.Labels.Kind, i, nameAt(names, i)))
		}
		return &WaysError{fmt.Sprintf("--labels %s needs one label column, but several have a usual name (%s): %s", o.Labels.Kind, nameList(names, found), advice), ways}
	}
	err := fmt.Errorf("--labels %s needs one label column, but no column is called %s, %s: %s; %s", o.Labels.Kind, o.Labels.Kind,
		strings.Join(targetNames[:len(targetNames)-1], ", ")+" or "+targetNames[len(targetNames)-1], advice, columnList(names, c.width))
	return &kindError{&kindError{err, ErrNoLabels}, ErrAmbiguous}
}

// checkPrefixes refuses label columns that begin with different prefixes, if nobody asked for both and no
// model knows them.
func (c *csvColumns) checkPrefixes(names []string, found []int, o *OpenOptions) error {
	if len(o.Labels.Prefixes) > 0 || names == nil {
		return nil
	}
	byPrefix := make([][]int, len(c.prefixes))
	for _, i := range found {
		if at := slices.Index(c.prefixes, c.prefix(names[i])); at >= 0 && !c.known.label(names[i]) {
			byPrefix[at] = append(byPrefix[at], i)
		}
	}
	if slices.ContainsFunc(byPrefix, func(columns []int) bool { return len(columns) == 0 }) {
		return nil
	}
	var texts []string
	var ways []Way
	for at, columns := range byPrefix {
		texts = append(texts, fmt.Sprintf("--label-prefix %s reads %s as labels", c.prefixes[at], nameList(names, columns)))
		ways = append(ways, oneWay("--label-prefix", c.prefixes[at], "the labels are %s", nameList(names, columns)))
	}
	return &WaysError{fmt.Sprintf("some column names begin with %s, both prefixes of labels: %s", strings.Join(c.prefixes, " and with "), strings.Join(texts, ", ")), ways}
}

// flagColumn returns how flags name a column: by its name, or by its number if it has none of its own.
func flagColumn(names []string, i int) string {
	name, number := nameAt(names, i), strconv.Itoa(i)
	if name == "" || slices.Index(names, name) != i || strings.TrimSpace(name) != name || slices.Contains(names[i+1:], name) {
		return number
	}
	return name
}

// nameList lists columns by their names, for messages.
func nameList(names []string, columns []int) string {
	const shown = 8
	var list []string
	for _, i := range columns[:min(shown, len(columns))] {
		if name := nameAt(names, i); name != "" {
			list = append(list, strconv.Quote(name))
		} else {
			list = append(list, fmt.Sprintf("column %d", i))
		}
	}
	if n := len(columns) - shown; n > 0 {
		list = append(list, fmt.Sprintf("%d more", n))
	}
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
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
	if o.Labels.single() && len(found) > 1 {
		return nil, fmt.Errorf("--labels %s needs one label column, but --label-columns lists %d", o.Labels.Kind, len(found))
	}
	return found, nil
}
