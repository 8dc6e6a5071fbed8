package dataset

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// ParseRange reads "LOW:HIGH", two integers with LOW < HIGH.
func ParseRange(s string) (low, high int, err error) {
	from, to, ok := strings.Cut(s, ":")
	if ok {
		low, err = strconv.Atoi(from)
	}
	if ok && err == nil {
		high, err = strconv.Atoi(to)
	}
	if !ok || err != nil || low >= high {
		return 0, 0, errtext.Errorf(errtext.WrongOption, "range %q: want {range:LOW:HIGH}, two whole numbers with the lower number first, such as {range:0:69}", s)
	}
	return low, high, nil
}

// LabelOptions says where a file has its labels and what they are.
type LabelOptions struct {
	Kind LabelKind
	// Columns names the label columns of a CSV file: headers, numbers from 0,
	// "last", and ranges of these, FROM:TO. Empty: see Open.
	Columns []string
	// Prefixes are those of label columns of a CSV file; empty: "label_", "y_".
	Prefixes []string
	// Sigma is the standard deviation of an Age's Gaussian, in its own unit.
	Sigma float64
	// Low and High bound the integers at which the Gaussian is taken, inclusive.
	Low, High int
	// Ordered says that the labels of Distributions and Counts are a scale: the integers
	// from Low to High.
	Ordered bool
	// Classes, where given, are the classes in their order (those of a model);
	// otherwise they are the distinct ones of the file, sorted, by value where
	// all are numbers.
	Classes []string

	order []string // of the classes that were found, if these are the same
}

// single reports whether labels are made from one column.
func (o *LabelOptions) single() bool { return o.Kind == Age || o.Kind == Class }

// derivedLabels is a Source whose labels are made from another Source's ages, classes or
// counts.
type derivedLabels struct {
	Source
	info   Info
	derive func(dst []float64, r *Row) error
}

// Info describes the rows with their new labels.
func (d *derivedLabels) Info() Info { return d.info }

// Scan implements Source.
func (d *derivedLabels) Scan(f func(*Row) error) error {
	labels, row := make([]float64, d.info.Labels), Row{}
	if d.info.fractions != nil {
		*d.info.fractions = 0
	}
	return d.Source.Scan(func(r *Row) error {
		if row = *r; r.LeftOut {
			return f(&row)
		}
		if err := d.derive(labels, r); err != nil {
			return err
		}
		row.Labels, row.raw = labels, r.raw
		return f(&row)
	})
}

// withLabels turns the labels of src into distributions, in the order of the scale that o asks for.
func withLabels(src Source, o *OpenOptions) (Source, error) {
	l := &o.Labels
	if src.Info().Labels == 1 && !l.single() && o.schema == nil && !o.Missing.keep {
		if err := checkSingle(src); err != nil {
			return nil, err
		}
	}
	if l.Ordered && l.Kind != Age && o.schema == nil { // labels of a file for a model are matched with the model's labels
		ordered, err := withScale(src, l)
		if err != nil {
			return nil, err
		}
		src = ordered
	}
	d := &derivedLabels{Source: src, info: src.Info()}
	d.derive = func(dst []float64, r *Row) error { copy(dst, r.Labels); return nil }
	switch l.Kind {
	case Age:
		d.useAges(l)
	case Counts:
		d.useCounts()
	case Class:
		if err := d.useClasses(l.Classes, l.order); err != nil {
			return nil, err
		}
		d.info.LabelType.Classes = true
	default:
		if !l.Ordered && !d.info.HasValues && !d.info.HasIntervals {
			return src, nil
		}
	}
	return d, d.scaled(l)
}

func (d *derivedLabels) useAges(o *LabelOptions) {
	file := d.info.File
	d.info.Labels, d.info.LabelNames = o.High-o.Low+1, nil // named by scaled
	within := func(age float64) bool { return age >= float64(o.Low) && age <= float64(o.High) }
	if d.info.HasValues { // the last number of the scale goes up to the next one, as each does
		within = func(age float64) bool { return age >= float64(o.Low) && age < float64(o.High+1) }
	}
	if !d.info.HasValues {
		d.info.fractions = new(int)
	}
	d.derive = func(dst []float64, r *Row) error {
		age := r.Labels[0]
		r.raw = r.Labels
		if d.info.fractions != nil && age != math.Floor(age) {
			*d.info.fractions++
		}
		if math.IsNaN(age) {
			return rowErrorf(file, r.Number, "the number is missing%s", dropHint)
		}
		if !within(age) {
			return rowErrorf(file, r.Number, "the number %s is outside the range %d to %d; {range} says which numbers can occur", units.InFull(age), o.Low, o.High)
		}
		gaussian(dst, age, o.Sigma, o.Low)
		return nil
	}
}

// scaled gives src the scale that o asks for.
func (d *derivedLabels) scaled(o *LabelOptions) error {
	if o.Kind != Age && !o.Ordered {
		if d.info.HasValues || d.info.HasIntervals {
			return errors.New("exact numbers and intervals need numeric labels: give the range of the labels as LOW:HIGH")
		}
		return nil
	}
	if n := o.High - o.Low + 1; n != d.info.Labels {
		return fmt.Errorf("%s%s found; the range %d:%d has %d numbers, and needs as many labels", prefix(d.info.File), counted(d.info.Labels, "label"), o.Low, o.High, n)
	}
	d.info.LabelType.Scale = &Scale{Low: o.Low, True: TrueExpected}
	if o.Kind == Age {
		d.info.LabelType.Scale.True = TrueMode
	}
	if d.info.HasValues {
		d.info.LabelType.Scale.True = TrueValue
	}
	if len(d.info.LabelNames) == 0 {
		for k := o.Low; k <= o.High; k++ {
			d.info.LabelNames = append(d.info.LabelNames, strconv.Itoa(k))
		}
	}
	return nil
}

func (d *derivedLabels) useCounts() {
	info := d.info
	d.derive = func(dst []float64, r *Row) error {
		sum := 0.0
		r.raw = r.Labels
		for i, v := range r.Labels {
			if !(v >= 0) || math.IsInf(v, 0) {
				return &RowError{
					File: info.File, Row: r.Number, Column: i, Kind: "label", Name: nameAt(info.LabelNames, i),
					Reason: errtext.Sprintf("%s is not a count", units.InFull(v)),
				}
			}
			sum += v
		}
		if sum == 0 {
			return rowErrorf(info.File, r.Number, "the counts sum to 0, want at least one count above 0%s", dropHint)
		}
		if math.IsInf(sum, 0) {
			return rowErrorf(info.File, r.Number, "the counts sum to %s, want a finite sum", units.InFull(sum))
		}
		for i, v := range r.Labels {
			dst[i] = v / sum
		}
		return nil
	}
}

// checkSingle refuses one label column of degrees or counts that are not 1 in every row: the degree of the only label is.
func checkSingle(src Source) error {
	info := src.Info()
	var label columnStats
	if err := src.Scan(func(r *Row) error {
		for _, v := range r.Labels {
			label.add(v)
		}
		return nil
	}); err != nil || label.seen == 0 || label.low == 1 && label.high == 1 { // a distribution over one label
		return err
	}
	return kindErrorf(ErrFormat, "%s%s", prefix(info.File), label.single(&info))
}

// withScale returns src with its labels in the order of the numbers in their names, if these are the numbers of the
// scale that o asks for. A note says that the order changed, or which numbers labels with other names are. Names that
// are other whole numbers are refused if they contradict the scale or do not ascend.
func withScale(src Source, l *LabelOptions) (Source, error) {
	info := src.Info()
	if info.Labels != l.High-l.Low+1 {
		return src, nil
	}
	if len(info.LabelNames) == 0 {
		if info.defaultLabels && l.Low != 0 {
			return withNote(src, errtext.Sprintf(`labels "0" to "%d" have the numbers %d to %d of {range}, in this order; {range=0:%[1]d} uses the numbers in their names`, info.Labels-1, l.Low, l.High)), nil
		}
		return src, nil
	}
	numbers, plain := namedNumbers(info.LabelNames)
	order, low, consecutive := numberOrder(numbers)
	switch {
	case consecutive && low == l.Low && slices.IsSorted(order):
		return src, nil
	case consecutive && low == l.Low:
		info.LabelNames, info.labelFlags = inOrder(info.LabelNames, order), inOrder(info.labelFlags, order)
		info.LabelColumns.Names, info.LabelColumns.Positions = inOrder(info.LabelColumns.Names, order), inOrder(info.LabelColumns.Positions, order)
		note := errtext.Sprintf("labels are sorted by the numbers in their names, %d to %d; the file has another order", l.Low, l.High)
		info.Notes = append(slices.Clone(info.Notes), note)
		return &orderedLabels{src, info, order}, nil
	case consecutive && plain:
		is := fmt.Sprintf("%d:%d", low, low+info.Labels-1)
		return nil, pathError(info.File, &kindError{&WaysError{
			errtext.Sprintf("labels are called %d to %d, but {range=%d:%d} gives them other numbers: {range=%s} uses the numbers in the names; to use {range=%[3]d:%d}, rename the labels",
				low, low+info.Labels-1, l.Low, l.High, is),
			[]Way{oneWay("--range", is, "labels are the numbers %s", is)},
		}, ErrAmbiguous})
	case plain && !slices.IsSorted(order) && !info.labelsListed && len(info.labelFlags) == info.Labels:
		stand, ascend := listFlag("--label-columns", info.labelFlags...), listFlag("--label-columns", inOrder(info.labelFlags, order)...)
		return nil, pathError(info.File, &WaysError{
			errtext.Sprintf("{range=%[2]d:%[3]d} needs ordered labels, but the labels (%[1]s) do not ascend: %[4]s reads them in ascending order, %[5]s in the order of the file",
				listSome(info.LabelNames), l.Low, l.High, Option{"label-columns", ascend.Value}, Option{"label-columns", stand.Value}),
			[]Way{{"labels in ascending order", []Flag{ascend}}, {"labels in the order of the file", []Flag{stand}}},
		})
	}
	return withNote(src, errtext.Sprintf("the labels, %s, have the numbers %d to %d of {range}, in this order; their names are other numbers", listSome(info.LabelNames), l.Low, l.High)), nil
}

// numberInName matches a name with one number in it.
var numberInName = regexp.MustCompile(`^(\D*)(\d{1,9})\D*$`)

// namedNumbers reads a whole number from each name; nil: one has none, or what comes before it differs. plain: the names
// are nothing but numbers.
func namedNumbers(names []string) (numbers []int, plain bool) {
	for _, name := range names {
		n, err := wholeNumber(name)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
	}
	if len(numbers) == len(names) {
		return numbers, true
	}
	numbers = nil
	before := ""
	for i, name := range names {
		m := numberInName.FindStringSubmatch(strings.TrimSpace(name))
		if m == nil || i > 0 && m[1] != before {
			return nil, false
		}
		before = m[1]
		n, _ := strconv.Atoi(m[2]) // of nine digits at most
		numbers = append(numbers, n)
	}
	return numbers, false
}

// numberOrder returns the places of numbers in ascending order, the least one, and whether they are consecutive.
func numberOrder(numbers []int) (order []int, low int, consecutive bool) {
	if len(numbers) == 0 {
		return nil, 0, false
	}
	for i := range numbers {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return numbers[a] - numbers[b] })
	low, consecutive = numbers[order[0]], true
	for k, i := range order {
		consecutive = consecutive && numbers[i] == low+k
	}
	return order, low, consecutive
}

// inOrder returns the items of list at the places of order; an empty list stays so.
func inOrder[T any](list []T, order []int) (all []T) {
	if len(list) != len(order) {
		return list
	}
	for _, i := range order {
		all = append(all, list[i])
	}
	return all
}

// orderedLabels is a Source with the labels of another Source in another order.
type orderedLabels struct {
	Source
	info  Info
	order []int // label i is label order[i] of the other Source
}

// Info describes the rows with their labels in the new order.
func (s *orderedLabels) Info() Info { return s.info }

// Scan implements Source.
func (s *orderedLabels) Scan(f func(*Row) error) error {
	labels, row := make([]float64, len(s.order)), Row{}
	return s.Source.Scan(func(r *Row) error {
		if len(r.Labels) != len(s.order) {
			return f(r)
		}
		row = *r
		for k, i := range s.order {
			labels[k] = r.Labels[i]
		}
		row.Labels = labels
		return f(&row)
	})
}

// useClasses makes one-hot labels of Row.text. order is the order of the classes if classes is empty and order has all
// that are found. If it has the names of classes that are numbers in the file, these are the classes. The file's own names of classes
// are theirs if the numbers count them.
func (d *derivedLabels) useClasses(classes, order []string) error {
	called, trained := trimmed(d.info.classNames), classes
	named := len(called) > 0 && !isNumbers(called) && (len(trained) == 0 || !isNumbers(trained))
	if len(classes) == 0 || named || len(order) == len(classes) && !isNumbers(order) {
		found, notes, err := distinctClasses(d.Source)
		if err != nil {
			return err
		}
		if base, ok := countedFrom(found, called); named && ok {
			called, found = numbered(called, found, base, len(trained) > 0)
			notes = append(notes, fmt.Sprintf("the classes are counted from %d and have the label names of the file: %s", base, listSome(called)))
		} else {
			called, notes = nil, append(notes, namesNote(called, found)...)
			if len(trained) > 0 && !(isNumbers(found) && len(found) == len(order)) {
				found, notes = classes, nil
			}
		}
		if ordered, _ := orderOf(found, order); ordered != nil && called == nil {
			found = ordered
		}
		classes, d.info.Notes = found, append(d.info.Notes[:len(d.info.Notes):len(d.info.Notes)], errtext.Literals(notes)...)
	} else {
		called = nil
	}
	known := newIdentityIndex(d.info.File, "class", classes)
	if len(known.names) != len(classes) {
		return fmt.Errorf("%sthe list of classes has a class twice", prefix(d.info.File))
	}
	if d.info.Labels, d.info.LabelNames = len(classes), classes; called != nil {
		d.info.LabelNames = called
	}
	file, of := d.info.File, d.Source.Info()
	d.derive = func(dst []float64, r *Row) error {
		if isMissing(r.text) {
			return missingClass(&of, r)
		}
		i, ok, err := known.find(strings.TrimSpace(r.text), r)
		if err != nil {
			return err
		}
		if !ok {
			return rowErrorf(file, r.Number, "the class %.100q is unknown; want one of %s", r.text, listSome(classes))
		}
		clear(dst)
		dst[i] = 1
		r.raw = append(r.raw[:0], float64(i))
		return nil
	}
	return nil
}

// countedFrom returns the number of the first name if classes are whole numbers that count names from 0 or from 1; ok is false if
// they are not, or if both fit.
func countedFrom(classes, names []string) (base int, ok bool) {
	low, high := math.MaxInt, -1
	for _, class := range classes {
		n, err := strconv.Atoi(class)
		if err != nil || n < 0 || strconv.Itoa(n) != class {
			return 0, false
		}
		low, high = min(low, n), max(high, n)
	}
	switch n := len(names); {
	case low == 0 && high < n:
		return 0, true
	case low > 0 && high == n:
		return 1, true
	}
	return 0, false
}

// numbered returns the names of the classes found, which count names from base on, and the classes; all: of every name.
func numbered(names, found []string, base int, all bool) (called, classes []string) {
	for i, name := range names {
		if class := strconv.Itoa(base + i); all || slices.Contains(found, class) {
			called, classes = append(called, name), append(classes, class)
		}
	}
	return called, classes
}

// namesNote says that names of labels in the file are not used, unless they are the classes.
func namesNote(names, found []string) []string {
	other := func(class string) bool { return !slices.Contains(names, class) }
	if len(names) == 0 || !slices.ContainsFunc(found, other) {
		return nil
	}
	return []string{fmt.Sprintf("the label names in the file are not used: they are %s, but the classes are %s", listSome(names), listSome(found))}
}

// distinctClasses scans src for its classes, sorted; the notes say what they are.
func distinctClasses(src Source) (classes, notes []string, err error) {
	info := src.Info()
	seen := newIdentities(info.File, "class")
	first, rows := "", 0
	err = src.Scan(func(r *Row) error {
		if r.LeftOut {
			return nil
		}
		if isMissing(r.text) {
			return missingClass(&info, r)
		}
		class := strings.TrimSpace(r.text)
		if rows++; !seen.add(class, r) {
			return nil
		}
		if err := checkName(class); err != nil {
			return rowErrorf(info.File, r.Number, "the class of the sample %v", err)
		}
		if rows == 1 {
			first = strings.Clone(class)
		}
		if len(seen.texts) > MaxLabels {
			return rowErrorf(info.File, r.Number, "the file has more than %d classes", MaxLabels)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if info.unsure && rows >= suspectRows && seen.texts[first].rows == 1 {
		return nil, nil, pathError(info.File, headerError(fmt.Sprintf("the first line has numbers and the class %.100q, which occurs in no other row", first)))
	}
	found, merged, err := seen.resolve()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range found {
		classes = append(classes, c.name)
	}
	if len(found) > 0 {
		notes = append(notes, classesNote(found))
	}
	if merged != nil {
		notes = append(notes, mergedNote("class", merged))
	}
	return classes, notes, nil
}

// maxCounted is how many classes a note lists.
const maxCounted = 20

// classesNote lists the classes with their numbers of rows.
func classesNote(found []identityCount) string {
	var list []string
	for _, c := range found[:min(maxCounted, len(found))] {
		list = append(list, fmt.Sprintf("%.40s (%s)", c.name, counted(c.rows, "sample")))
	}
	if n := len(found) - len(list); n > 0 {
		list = append(list, units.Count(n)+" more")
	}
	if len(found) == 1 {
		return "1 class: " + list[0]
	}
	return fmt.Sprintf("%s classes: %s", units.Count(len(found)), strings.Join(list, ", "))
}

// missingClass returns the error for a row without a class.
func missingClass(info *Info, r *Row) error {
	reason := errtext.Text("the class is empty")
	if text := strings.TrimSpace(r.text); text != "" {
		reason = errtext.Sprintf("%.40q is a missing value", text)
	}
	return &RowError{
		File: info.File, Row: r.Number, Column: 0, Kind: "label", Name: nameAt(info.LabelNames, 0), Reason: reason + dropHint,
	}
}
