package read

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/featurestats"
	"github.com/coppice-ldl/coppice/dataset/identity"
	"github.com/coppice-ldl/coppice/dataset/numbers"
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
		return 0, 0, errtext.Errorf(errtext.WrongOption,
			"range %q: want {range:LOW:HIGH}, two whole numbers with the lower number first, such as {range:0:69}", s)
	}
	return low, high, nil
}

// valueOf says what a label of this kind is.
func valueOf(kind dataset.LabelKind) dataset.ValueOf {
	if kind == dataset.Distributions || kind == dataset.Incomplete {
		return dataset.OfDegree
	}
	return dataset.OfLabel
}

// derivedLabels makes labels of the ages, classes or counts of a pipeline.
type derivedLabels struct {
	from   *pipeline
	info   dataset.Info // of the rows with their new labels
	derive func(dst []float64, r *dataset.Row) error
}

// begin begins a scan.
func (d *derivedLabels) begin() func(*dataset.Row) error {
	labels := make([]float64, d.info.Labels)
	if d.info.Fractions != nil {
		*d.info.Fractions = 0
	}
	return func(r *dataset.Row) error {
		if r.LeftOut {
			return nil
		}
		if err := d.derive(labels, r); err != nil {
			return err
		}
		r.Labels = labels
		return nil
	}
}

// withLabels turns the labels of p into distributions, in the order of the scale that o asks for.
func withLabels(p *pipeline, o *OpenOptions) (*pipeline, error) {
	l := &o.Labels
	if l.Kind == dataset.Incomplete {
		info := p.info
		info.LabelType.Incomplete = true
		return p.described(info), nil
	}
	if l.Kind == dataset.Bounded {
		return withBounds(p, o)
	}
	if p.info.Labels == 1 && !l.Single() && o.set.schema == nil && !o.Missing.Keep {
		if err := checkSingle(p); err != nil {
			return nil, err
		}
	}
	// labels of a file for a model are matched with the model's labels
	if l.Ordered && l.Kind != dataset.Age && o.set.schema == nil {
		ordered, err := withScale(p, l)
		if err != nil {
			return nil, err
		}
		p = ordered
	}
	d := &derivedLabels{from: p, info: p.info}
	d.derive = func(dst []float64, r *dataset.Row) error { copy(dst, r.Labels); return nil }
	switch l.Kind {
	case dataset.Age:
		d.useAges(l)
	case dataset.Counts:
		d.useCounts()
	case dataset.Class:
		if err := d.useClasses(l.Classes, l.order); err != nil {
			return nil, err
		}
		d.info.LabelType.Classes = true
	default:
		if !l.Ordered && !d.info.HasValues && !d.info.HasIntervals {
			return p, nil
		}
	}
	if err := d.scaled(l); err != nil {
		return nil, err
	}
	return p.after(simple(d.begin), d.info), nil
}

func (d *derivedLabels) useAges(o *LabelOptions) {
	file := d.info.File
	d.info.Labels, d.info.LabelNames = o.High-o.Low+1, nil // named by scaled
	within := func(age float64) bool { return age >= float64(o.Low) && age <= float64(o.High) }
	if d.info.HasValues { // the last number of the scale goes up to the next one, as each does
		within = func(age float64) bool { return age >= float64(o.Low) && age < float64(o.High+1) }
	}
	if !d.info.HasValues {
		d.info.Fractions = new(int)
	}
	d.derive = func(dst []float64, r *dataset.Row) error {
		age := r.Labels[0]
		r.Raw = r.Labels
		if d.info.Fractions != nil && age != math.Floor(age) {
			*d.info.Fractions++
		}
		if math.IsNaN(age) {
			return dataset.RowErrorf(file, r.Number, "the number is missing%s", dataset.DropHint)
		}
		if !within(age) {
			return dataset.RowErrorf(file, r.Number, "the number %s is outside the range %d to %d; {range} says which numbers "+
				"can occur", units.InFull(age), o.Low, o.High)
		}
		dataset.Gaussian(dst, age, o.Sigma, o.Low)
		return nil
	}
}

// scaled gives the labels the scale that o asks for.
func (d *derivedLabels) scaled(o *LabelOptions) error {
	if o.Kind != dataset.Age && !o.Ordered {
		if d.info.HasValues || d.info.HasIntervals {
			return errors.New("exact numbers and intervals need numeric labels: give the range of the labels as LOW:HIGH")
		}
		return nil
	}
	if n := o.High - o.Low + 1; n != d.info.Labels {
		return fmt.Errorf("%s%s found; the range %d:%d has %d numbers, and needs as many labels", dataset.Prefix(d.info.File),
			dataset.Counted(d.info.Labels, "label"), o.Low, o.High, n)
	}
	d.info.LabelType.Scale = &dataset.Scale{Low: o.Low, True: dataset.TrueExpected}
	if o.Kind == dataset.Age {
		d.info.LabelType.Scale.True = dataset.TrueMode
	}
	if d.info.HasValues {
		d.info.LabelType.Scale.True = dataset.TrueValue
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
	d.derive = func(dst []float64, r *dataset.Row) error {
		sum := 0.0
		r.Raw = r.Labels
		for i, v := range r.Labels {
			if !(v >= 0) || math.IsInf(v, 0) {
				return &dataset.RowError{
					File: info.File, Row: r.Number, Column: i, Kind: "label", Name: dataset.NameAt(info.LabelNames, i),
					Reason: errtext.Sprintf("%s is not a count", units.InFull(v)),
				}
			}
			sum += v
		}
		if sum == 0 {
			return dataset.RowErrorf(info.File, r.Number, "the counts sum to 0, want at least one count above 0%s",
				dataset.DropHint)
		}
		if math.IsInf(sum, 0) {
			return dataset.RowErrorf(info.File, r.Number, "the counts sum to %s, want a finite sum", units.InFull(sum))
		}
		for i, v := range r.Labels {
			dst[i] = v / sum
		}
		return nil
	}
}

// checkSingle refuses one label column of degrees or counts that are not 1 in every row: the degree of the only label
// is.
func checkSingle(src dataset.Source) error {
	info := src.Info()
	var label featurestats.Column
	if err := src.Scan(func(r *dataset.Row) error {
		for _, v := range r.Labels {
			label.Add(v)
		}
		return nil
	}); err != nil || label.Seen == 0 || label.Low == 1 && label.High == 1 { // a distribution over one label
		return err
	}
	return dataset.Errorf(dataset.ErrFormat, "%s%s", dataset.Prefix(info.File), label.Single(&info))
}

// withScale returns p with its labels in the order of the numbers that are their names, if these are the numbers of the
// scale that o asks for. A note says that the order changed, or which numbers labels with other names are. Names that
// are consecutive whole numbers of another scale are refused.
func withScale(p *pipeline, l *LabelOptions) (*pipeline, error) {
	info := p.info
	if info.Labels != l.High-l.Low+1 {
		return p, nil
	}
	if len(info.LabelNames) == 0 {
		if info.DefaultLabels && l.Low != 0 {
			return withNote(p,
				errtext.Sprintf(
					`labels "0" to "%d" have the numbers %d to %d of {range}, in this order; {range=0:%[1]d} uses the numbers in their names`, info.Labels-1, l.Low, l.High)), nil
		}
		return p, nil
	}
	numbers := numberNames(info.LabelNames)
	order, low, consecutive := numberOrder(numbers)
	switch {
	case consecutive && low == l.Low && slices.IsSorted(order):
		return p, nil
	case consecutive && low == l.Low:
		info.LabelNames, info.LabelFlags = inOrder(info.LabelNames, order), inOrder(info.LabelFlags, order)
		info.LabelColumns.Names, info.LabelColumns.Positions = inOrder(info.LabelColumns.Names, order),
			inOrder(info.LabelColumns.Positions, order)
		note := errtext.Sprintf("labels are sorted by the numbers in their names, %d to %d; the file has another order",
			l.Low, l.High)
		info.Notes = append(slices.Clone(info.Notes), note)
		return p.after(simple(func() func(*dataset.Row) error {
			labels := make([]float64, len(order))
			return func(r *dataset.Row) error {
				if len(r.Labels) != len(order) {
					return nil
				}
				for k, i := range order {
					labels[k] = r.Labels[i]
				}
				r.Labels = labels
				return nil
			}
		}), info), nil
	case consecutive:
		is := fmt.Sprintf("%d:%d", low, low+info.Labels-1)
		return nil, pathError(info.File, dataset.WithKind(&dataset.WaysError{
			Text: errtext.Sprintf("labels are called %d to %d, but {range=%d:%d} gives them other numbers: {range=%s} uses "+
				"the numbers in the names; to use {range=%[3]d:%d}, rename the labels",
				low, low+info.Labels-1, l.Low, l.High, is),
			Ways: []dataset.Way{oneWay("--range", is, "labels are the numbers %s", is)},
		}, dataset.ErrAmbiguous))
	}
	return withNote(p, errtext.Sprintf("the labels, %s, have the numbers %d to %d of {range}, in this order; their "+
		"names are other numbers", dataset.ListSome(info.LabelNames), l.Low, l.High)), nil
}

// numberNames reads names that are whole numbers; nil: one is none.
func numberNames(names []string) (numbers []int) {
	for _, name := range names {
		n, err := wholeNumber(name)
		if err != nil {
			return nil
		}
		numbers = append(numbers, n)
	}
	return numbers
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

// useClasses makes one-hot labels of Row.text. order is the order of the classes if classes is empty and order has all
// that are found. If it has the names of classes that are numbers in the file, these are the classes. The file's own
// names of classes are theirs if the numbers count them.
func (d *derivedLabels) useClasses(classes, order []string) error {
	called, trained := dataset.Trimmed(d.info.ClassNames), classes
	named := len(called) > 0 && !identity.AreNumbers(called) && (len(trained) == 0 || !identity.AreNumbers(trained))
	if len(classes) == 0 || named || len(order) == len(classes) && !identity.AreNumbers(order) {
		found, notes, err := distinctClasses(d.from)
		if err != nil {
			return err
		}
		if base, ok := countedFrom(found, called); named && ok {
			called, found = numbered(called, found, base, len(trained) > 0)
			notes = append(notes, fmt.Sprintf("the classes are counted from %d and have the label names of the file: %s", base,
				dataset.ListSome(called)))
		} else {
			other := func(class string) bool { return !slices.Contains(called, class) }
			if len(called) > 0 && slices.ContainsFunc(found, other) {
				notes = append(notes, fmt.Sprintf("the label names in the file are not used: they are %s, but the classes are %s",
					dataset.ListSome(called), dataset.ListSome(found)))
			}
			called = nil
			if len(trained) > 0 && !(identity.AreNumbers(found) && len(found) == len(order)) {
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
	known := identity.NewIndex(d.info.File, "class", classes)
	if len(known.Names) != len(classes) {
		return fmt.Errorf("%sthe list of classes has a class twice", dataset.Prefix(d.info.File))
	}
	if d.info.Labels, d.info.LabelNames = len(classes), classes; called != nil {
		d.info.LabelNames = called
	}
	file, of := d.info.File, d.from.info
	d.derive = func(dst []float64, r *dataset.Row) error {
		if numbers.IsMissing(r.Text) {
			return missingClass(&of, r)
		}
		i, ok, err := known.Find(strings.TrimSpace(r.Text), r)
		if err != nil {
			return err
		}
		if !ok {
			return dataset.RowErrorf(file, r.Number, "the class %.100q is unknown; want one of %s", r.Text,
				dataset.ListSome(classes))
		}
		clear(dst)
		dst[i] = 1
		r.Raw = append(r.Raw[:0], float64(i))
		return nil
	}
	return nil
}

// countedFrom returns the number of the first name if classes are whole numbers that count names from 0 or from 1; ok
// is false if they are not, or if both fit.
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

// distinctClasses scans src for its classes, sorted; the notes say what they are.
func distinctClasses(src dataset.Source) (classes, notes []string, err error) {
	info := src.Info()
	seen := identity.NewSet(info.File, "class")
	err = src.Scan(func(r *dataset.Row) error {
		if r.LeftOut {
			return nil
		}
		if numbers.IsMissing(r.Text) {
			return missingClass(&info, r)
		}
		class := strings.TrimSpace(r.Text)
		if !seen.Add(class, r) {
			return nil
		}
		if err := dataset.CheckName(class); err != nil {
			return dataset.RowErrorf(info.File, r.Number, "the class of the sample %v", err)
		}
		if len(seen.Texts) > dataset.MaxLabels {
			return dataset.RowErrorf(info.File, r.Number, "the file has more than %d classes", dataset.MaxLabels)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	found, merged, err := seen.Resolve()
	if err != nil {
		return nil, nil, err
	}
	for _, c := range found {
		classes = append(classes, c.Name)
	}
	if len(found) > 0 {
		notes = append(notes, classesNote(found))
	}
	if merged != nil {
		notes = append(notes, identity.MergedNote("class", merged))
	}
	return classes, notes, nil
}

// maxCounted is how many classes a note lists.
const maxCounted = 20

// classesNote lists the classes with their numbers of rows.
func classesNote(found []identity.Count) string {
	var list []string
	for _, c := range found[:min(maxCounted, len(found))] {
		list = append(list, fmt.Sprintf("%.40s (%s)", c.Name, dataset.Counted(c.Rows, "sample")))
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
func missingClass(info *dataset.Info, r *dataset.Row) error {
	reason := errtext.Text("the class is empty")
	if text := strings.TrimSpace(r.Text); text != "" {
		reason = errtext.Sprintf("%.40q is a missing value", text)
	}
	return &dataset.RowError{
		File: info.File, Row: r.Number, Column: 0, Kind: "label", Name: dataset.NameAt(info.LabelNames, 0), Reason: reason +
			dataset.DropHint,
	}
}
