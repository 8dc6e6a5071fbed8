package read

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// Columns says what the columns of a table are if they are read with some options.
type Columns struct {
	Features, Labels []int
	Numbers          []int  // from which numbers are read: features, labels, exact numbers and intervals
	Category, Used   []bool // by column: it is a category; an option or its name says what it is
	RowName          int    // the column with the names of the rows; -1: none
}

// csvColumns says what each column of a CSV file is.
type csvColumns struct {
	width            int // columns of the file
	features, labels []int
	rowName          int   // -1: none
	rowNameFound     bool  // no flag says that rowName names the rows
	passed           []int // label columns that are not read: features are wanted only
	value, group     int   // of exact numbers and of groups; -1: none
	weight           int   // of weights; -1: none
	interval         []int
	prefixes         []string
	known            knownColumns // by the model that the file is for
	categories       []*levels    // by column, nil for a column that is no category; nil: there are none

	used []bool // columns that are something already, or dropped
}

// prefix returns the label prefix that name begins with, where more follows.
func (c *csvColumns) prefix(name string) string { return prefixOf(c.prefixes, name) }

// labelName returns the name of the label of a column.
func (c *csvColumns) labelName(column string) string {
	if label := c.known.labels[column]; label != "" {
		return label
	}
	return strings.TrimPrefix(column, c.prefix(column))
}

// chooseColumns decides what n columns are; names is nil without a header.
func chooseColumns(names []string, n int, o *OpenOptions) (csvColumns, error) {
	c := csvColumns{width: n, rowName: -1, value: -1, group: -1, weight: -1, prefixes: o.Labels.LabelPrefixes(),
		known: o.set.known, used: make([]bool, n)}
	_, err := c.take(names, o.Drop)
	if err == nil {
		c.features, err = c.take(names, o.FeatureColumns)
	}
	if err == nil && len(o.Beside.names()) > 0 {
		err = c.chooseBeside(names, o)
	}
	if err == nil {
		if o.CSV.Images != "" {
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
	if err == nil && c.value >= 0 && !c.used[c.value] { // the exact number is not the label
		err = c.use(names, []int{c.value})
	}
	for i := range n {
		if !c.used[i] && len(o.FeatureColumns) == 0 && o.CSV.Images == "" && !c.known.passes(names, i) {
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
	if err == nil && len(o.CSV.Categories)+len(o.set.categories) > 0 {
		err = c.chooseCategories(names, o)
	}
	return c, err
}

// chooseBeside finds the columns that o names, except that the exact numbers are still free:
// they may be the label.
func (c *csvColumns) chooseBeside(names []string, o *OpenOptions) error {
	var err error
	find := func(flag, name string) int {
		i, failed := findColumn(names, c.width, name)
		if failed != nil && err == nil {
			err = fmt.Errorf("%s: %w", flag, failed)
		}
		return i
	}
	if o.Beside.Values != "" {
		c.value = find("--values", o.Beside.Values)
	}
	var taken []int
	for _, name := range o.Beside.Intervals {
		c.interval = append(c.interval, find("--intervals", name))
		taken = c.interval
	}
	if o.Beside.Groups != "" {
		c.group = find("--groups", o.Beside.Groups)
		taken = append(slices.Clone(taken), c.group)
	}
	if o.Beside.Weights != "" {
		c.weight = find("--weights", o.Beside.Weights)
		taken = append(slices.Clone(taken), c.weight)
	}
	if c.value >= 0 && o.Labels.Kind != dataset.Age {
		taken = append(slices.Clone(taken), c.value)
	}
	if err != nil {
		return err
	}
	return c.use(names, taken)
}

// take finds the columns that a list names and marks them as used.
func (c *csvColumns) take(names, list []string) ([]int, error) {
	found, err := findColumns(names, len(c.used), list)
	if err == nil {
		err = c.use(names, found)
	}
	return found, err
}

// use marks columns as used.
func (c *csvColumns) use(names []string, columns []int) error {
	for _, i := range columns {
		if c.used[i] {
			return fmt.Errorf("column %d %q (counted from 0) is used twice", i, dataset.NameAt(names, i))
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
		name := dataset.NameAt(names, i)
		if first, ok := seen[name]; ok && name != "" {
			text := errtext.Sprintf("columns %d and %d (counted from 0) are both named %q: drop one of them with {drop=%d} or "+
				"{drop=%d}", first, i, name, i, first)
			return &dataset.WaysError{Text: text, Ways: []dataset.Way{
				oneWay("--drop", strconv.Itoa(i), "%q is column %d", name, first), oneWay("--drop", strconv.Itoa(first),
					"%q is column %d", name, i),
			}}
		}
		seen[name] = i
	}
	return nil
}

// distinctLabels refuses two label columns of one label, such as x with predictions next to label_x with the truth.
func (c *csvColumns) distinctLabels(names []string) error {
	first := make(map[string]int)
	for _, i := range c.labels {
		label := c.labelName(dataset.NameAt(names, i))
		if at, ok := first[label]; ok && label != "" {
			return dataset.Errorf(dataset.ErrAmbiguous, "%s are both label %q: list the label columns with {label-columns}, "+
				"or leave a column out with {drop}",
				nameList(names, []int{at, i}), label)
		}
		first[label] = i
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

// chooseRowName finds the column that names the rows: the column that o names, otherwise the first column called
// row_name or name, otherwise column 0 if it has no name. Features of the model, categories and label columns are none.
func (c *csvColumns) chooseRowName(names []string, o *OpenOptions) error {
	if o.CSV.RowNames != "" {
		i, err := findColumn(names, c.width, o.CSV.RowNames)
		if err != nil {
			return err
		}
		c.rowName = i
		return c.use(names, []int{i})
	}
	listed, _ := findColumns(names, c.width, slices.Concat(o.CSV.Categories, o.Labels.Columns)) // errors come later
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
		if name == rowNameColumn || name == "name" || name == "" && i == 0 &&
			!(o.set.schema != nil && unnamed(o.set.schema.FeatureNames) > unnamed(names[1:])) {
			c.rowName, c.rowNameFound, c.used[i] = i, true, true
			return nil
		}
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
	var targets []int
	if o.Labels.Single() && len(o.Labels.Prefixes) == 0 {
		var err error
		if targets, err = c.targets(names, o); err != nil || len(targets) == 1 {
			return targets, err
		}
	}
	var found []int
	// the positions that the model was trained on, if there are as many columns
	if s := o.set.schema; s != nil && names == nil {
		at := s.LabelColumns.Positions
		taken := func(i int) bool { return i < 0 || i >= len(c.used) || c.used[i] }
		if len(free) == o.Features+len(at) && !slices.ContainsFunc(at, taken) {
			found = slices.Clone(at)
		}
	}
	for i, name := range names {
		if !c.used[i] && (c.known.label(name) || c.prefix(name) != "" && !c.known.feature(name)) {
			found = append(found, i)
		}
	}
	switch {
	case o.Labels.Single() && !o.NoLabels && len(targets)+len(found) != 1:
		return nil, c.targetError(names, append(targets, found...), o)
	case len(found) > 0:
		return found, c.checkPrefixes(names, found, o)
	case o.NoLabels:
		return nil, nil
	}
	return nil, dataset.Errorf(dataset.ErrNoLabels, "no label columns found: rename them to %s..., or list them with "+
		"{label-columns}; %s",
		strings.Join(c.prefixes, "... or "), columnList(names, c.width))
}

// targets lists the columns that may be the only label column by their names: the column that a model was
// trained on, or else all with a usual name. A y next to an x is a coordinate if there is another one.
func (c *csvColumns) targets(names []string, o *OpenOptions) (found []int, err error) {
	if s := o.set.schema; s != nil && len(s.LabelColumns.Names) == 1 && names != nil {
		trained := s.LabelColumns.Names[0]
		i := slices.Index(names, trained)
		if i < 0 {
			i = slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, trained) })
		}
		if i >= 0 && !c.used[i] {
			return []int{i}, nil
		}
		if !o.NoLabels && o.Labels.Kind == s.Reading.Labels {
			err := errtext.Errorf(errtext.WrongData, "the model was trained with the %s in column %q, and this file has no "+
				"such column: name the column of the %s with {label-columns}; %s",
				o.Labels.Kind, trained, o.Labels.Kind, columnList(names, c.width))
			if o.set.validates != "" {
				err = errtext.Errorf(errtext.WrongData, "%s has the %s in column %q, and this file has no such column; %s",
					o.set.validates, o.Labels.Kind, trained, columnList(names, c.width))
			}
			return nil, dataset.WithKind(err, dataset.ErrNoLabels, dataset.ErrAmbiguous)
		}
	}
	for i, name := range names {
		if o.Labels.IsTarget(name) && !c.used[i] && !c.known.feature(name) {
			found = append(found, i)
		}
	}
	if hasX := slices.ContainsFunc(names, func(name string) bool {
		return strings.EqualFold(name, "x")
	}); hasX && len(found) > 1 {
		found = slices.DeleteFunc(found, func(i int) bool { return strings.EqualFold(names[i], "y") })
	}
	return found, nil
}

// targetError is the error for a file in which no column, or each of several, may be the only label column.
func (c *csvColumns) targetError(names []string, found []int, o *OpenOptions) error {
	advice := errtext.Sprintf("name the label column with {label-columns}")
	if len(found) > 0 {
		var ways []dataset.Way
		for _, i := range found {
			ways = append(ways, oneWay("--label-columns", flagColumn(names, i), "the %s is in column %d, %q", o.Labels.Kind, i,
				dataset.NameAt(names, i)))
		}
		return &dataset.WaysError{Text: errtext.Sprintf(
			"{labels=%s} needs one label column, but several have a usual name (%s): %s", o.Labels.Kind, nameList(names, found),
			advice), Ways: ways}
	}
	err := errtext.Errorf(errtext.WrongData, "{labels=%s} needs one label column, but no column is called %s, %s: %s; %s",
		o.Labels.Kind, o.Labels.Kind,
		strings.Join(targetNames[:len(targetNames)-1], ", ")+" or "+targetNames[len(targetNames)-1], advice,
		columnList(names, c.width))
	return dataset.WithKind(err, dataset.ErrNoLabels, dataset.ErrAmbiguous)
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
	var texts []errtext.Text
	var ways []dataset.Way
	for at, columns := range byPrefix {
		texts = append(texts, errtext.Sprintf("{label-prefix=%s} reads %s as labels", c.prefixes[at],
			nameList(names, columns)))
		ways = append(ways, oneWay("--label-prefix", c.prefixes[at], "the labels are %s", nameList(names, columns)))
	}
	return &dataset.WaysError{Text: errtext.Sprintf("some column names begin with %s, both prefixes of labels: %s",
		strings.Join(c.prefixes, " and with "), errtext.Join(texts, ", ")), Ways: ways}
}

// flagColumn returns how flags name a column: by its name, or by its number if it has none of its own.
func flagColumn(names []string, i int) string {
	name, number := dataset.NameAt(names, i), strconv.Itoa(i)
	if name == "" || slices.Index(names, name) != i || strings.TrimSpace(name) != name ||
		slices.Contains(names[i+1:], name) {
		return number
	}
	return name
}

// nameList lists columns by their names, for messages.
func nameList(names []string, columns []int) string {
	const shown = 8
	var list []string
	for _, i := range columns[:min(shown, len(columns))] {
		if name := dataset.NameAt(names, i); name != "" {
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
	if o.Labels.Single() && len(found) > 1 {
		return nil, errtext.Errorf(errtext.WrongData, "{labels=%s} needs one label column, but {label-columns} lists %d",
			o.Labels.Kind, len(found))
	}
	return found, nil
}

// lastColumn names the last column in a list of columns.
const lastColumn = "last"

// findColumns returns the numbers, from 0, of the columns that a list names. An item of the
// list is a header, a number from 0, "last", or a range FROM:TO of two of these, both
// included. names has the headers or is nil; n is the number of columns.
func findColumns(names []string, n int, list []string) (found []int, err error) {
	for _, item := range list {
		from, err := findColumn(names, n, item)
		to := from
		if first, last, isRange := strings.Cut(item, ":"); err != nil && isRange {
			if from, err = findColumn(names, n, first); err == nil {
				to, err = findColumn(names, n, last)
			}
			if err == nil && from > to {
				err = fmt.Errorf("columns %q: the first column comes after the last; want FROM:TO", item)
			}
		}
		if err != nil {
			return nil, err
		}
		for i := from; i <= to; i++ {
			found = append(found, i)
		}
	}
	return found, nil
}

// findColumn returns the number of a column, given its header, its number or "last".
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
	return 0, fmt.Errorf("no column %q; %s", name, columnList(names, n))
}

// columnList says which columns there are, for messages.
func columnList(names []string, n int) string {
	if names == nil {
		return fmt.Sprintf("the file has no header: name columns by their numbers, 0 to %d, or %q", n-1, lastColumn)
	}
	const shown = 10
	list := strings.Join(names[:min(shown, n)], ", ")
	if n > shown {
		list += ", ..."
	}
	return "the columns are " + list
}

// rowNameColumn is what Coppice calls a column of row names.
const rowNameColumn = "row_name"

// rowNameNote says that a column names the rows though no flag says so; records has the first rows.
func (c *csvColumns) rowNameNote(names []string, records [][]string, m numbers.Marks,
	o *OpenOptions) (errtext.Text, error) {
	i := c.rowName
	column := fmt.Sprintf("column %d, %q,", i, names[i])
	if names[i] == "" {
		column = fmt.Sprintf("column %d, which has no name,", i)
	}
	note := errtext.Sprintf("%s has the names of the samples", column)
	if !aboveNumbers(records, i, m) || len(o.FeatureColumns) > 0 {
		return note, nil
	}
	if len(c.features) == 0 {
		return "", dataset.Errorf(dataset.ErrFormat, "%s has the names of the samples, and no column is left for features: "+
			"{feature-columns} lists the features", column)
	}
	return note + errtext.Sprintf("; {feature-columns} lists it if it is a feature"), nil
}

// numberNotes says which items of lists of columns are headers that are numbers as well, of other columns.
func (o *OpenOptions) numberNotes(names []string) (notes []errtext.Text) {
	items := slices.Concat(o.Drop, o.FeatureColumns, o.Labels.Columns, o.CSV.Categories, o.Beside.names(),
		[]string{o.CSV.RowNames})
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
			notes = append(notes, errtext.Sprintf("column %s in an option means the column with the name %q, which is column "+
				"%d (counted from 0); column %d is called %q", part, part, at, number, names[number]))
		}
	}
	return notes
}

// chooseImages takes no column as a feature: the row names are the names of images. Two columns with usual names are
// refused, unless flags take one as a label.
func (c *csvColumns) chooseImages(names []string, o *OpenOptions) error {
	if o.CSV.RowNames != "" {
		return c.chooseRowName(names, o)
	}
	var found []int
	for i, name := range names {
		if isImageColumn(name) && !c.used[i] && !slices.Contains(o.Labels.Columns, name) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return c.chooseRowName(names, o)
	case 1:
		c.rowName = found[0]
		return c.use(names, found)
	}
	return imagesError(names, found)
}

// imagesError is the error for several columns that may each name the images.
func imagesError(names []string, found []int) error {
	var ways []dataset.Way
	for _, i := range found {
		ways = append(ways, oneWay("--row-names", flagColumn(names, i), "column %d, %q, names the images", i,
			dataset.NameAt(names, i)))
	}
	return &dataset.WaysError{Text: errtext.Sprintf("several columns may have the names of the images (%s): name the "+
		"right column with {row-names}", nameList(names, found)), Ways: ways}
}

// levels finds the levels of a category by the texts of a file.
type levels struct {
	dataset.Category
	known *identity.Index
}

// chooseCategories finds the columns that are categories: o names some, whose levels are not known yet,
// and the model names the others.
func (c *csvColumns) chooseCategories(names []string, o *OpenOptions) error {
	found, err := findColumns(names, c.width, o.CSV.Categories)
	if err != nil {
		return errtext.Errorf(errtext.WrongData, "{categories}: %w", err)
	}
	for _, i := range found {
		if !slices.Contains(c.features, i) {
			return errtext.Errorf(errtext.WrongData, "{categories}: column %d %q (counted from 0) is not a feature", i,
				dataset.NameAt(names, i))
		}
		c.category(i, dataset.Category{Name: cmp.Or(dataset.NameAt(names, i), strconv.Itoa(i)), At: i})
	}
	for i := range o.set.categories {
		if k := o.set.categories[i]; slices.Contains(c.features, k.At) {
			c.category(k.At, k)
		}
	}
	return nil
}

// category notes that column i is a category.
func (c *csvColumns) category(i int, k dataset.Category) {
	if c.categories == nil {
		c.categories = make([]*levels, c.width)
	}
	c.categories[i] = &levels{Category: k}
}

// only returns o with all columns dropped that {columns} does not list.
func (o *OpenOptions) only(names []string, n int) (*OpenOptions, error) {
	if len(o.Columns) == 0 {
		return o, nil
	}
	found, err := findColumns(names, n, o.Columns)
	if err != nil {
		return nil, errtext.Errorf(errtext.WrongData, "{columns}: %w", err)
	}
	listed := make([]bool, n)
	for _, i := range found {
		listed[i] = true
	}
	for _, item := range slices.Concat(o.Labels.Columns, o.FeatureColumns, o.CSV.Categories, o.Beside.names(),
		[]string{o.CSV.RowNames}) {
		named, err := findColumns(names, n, []string{item})
		if i := slices.IndexFunc(named, func(i int) bool { return !listed[i] }); item != "" && err == nil && i >= 0 {
			return nil, errtext.Errorf(errtext.WrongData, "{columns} does not list column %d %q (counted from 0), which "+
				"another option names: add it to {columns}", named[i], dataset.NameAt(names, named[i]))
		}
	}
	like := *o
	like.Drop = slices.Clone(o.Drop)
	dropped, err := findColumns(names, n, o.Drop)
	if err != nil {
		return nil, err
	}
	for i, yes := range listed {
		if !yes && !slices.Contains(dropped, i) {
			like.Drop = append(like.Drop, flagColumn(names, i))
		}
	}
	return &like, nil
}
