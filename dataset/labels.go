package dataset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

// LabelKind says what the labels in a file are.
type LabelKind string

// The kinds of labels.
const (
	// Distributions are label distributions already: one column for each label.
	Distributions LabelKind = ""
	// Age is one number for each row, which becomes a Gaussian around it.
	Age LabelKind = "age"
	// Class is one class name or number for each row, which becomes one-hot.
	Class LabelKind = "class"
	// Counts are non-negative counts, which are divided by their sum.
	Counts LabelKind = "counts"
)

// ParseLabelKind reads a LabelKind as flags and specs write it.
func ParseLabelKind(s string) (LabelKind, error) {
	switch k := LabelKind(s); k {
	case Distributions, Age, Class, Counts:
		return k, nil
	case "distribution", "distributions":
		return Distributions, nil
	}
	return "", fmt.Errorf("labels %q: want distributions, age, class or counts", s)
}

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
		return 0, 0, fmt.Errorf("range %q: want LOW:HIGH, two whole numbers with the lower number first, such as 0:69", s)
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

// check returns an error for options that contradict each other.
func (o *LabelOptions) check() error {
	if o.Kind == Class && o.Ordered {
		return errors.New("classes are not numeric")
	}
	if o.Kind != Age && !o.Ordered {
		return nil
	}
	if o.Kind == Age && !(o.Sigma > 0) || o.Kind == Age && math.IsInf(o.Sigma, 0) {
		return fmt.Errorf("sigma %v: want a number above 0", o.Sigma)
	}
	if o.Low >= o.High || o.High-o.Low >= MaxLabels || o.Low < -maxNumber || o.High >= maxNumber {
		return fmt.Errorf("range %d:%d: want LOW:HIGH with the lower number first, at most %d numbers, and all numbers from %d to %d", o.Low, o.High, MaxLabels, -maxNumber, maxNumber-1)
	}
	return nil
}

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

// withLabels turns the labels of src into distributions.
func withLabels(src Source, o *LabelOptions) (Source, error) {
	d := &derivedLabels{Source: src, info: src.Info(), derive: asTheyAre}
	switch o.Kind {
	case Age:
		d.useAges(o)
	case Counts:
		d.useCounts()
	case Class:
		if err := d.useClasses(o.Classes, o.order); err != nil {
			return nil, err
		}
		d.info.LabelType.Classes = true
	default:
		if !o.Ordered && !d.info.HasValues && !d.info.HasIntervals {
			return src, nil
		}
	}
	return d, d.scaled(o)
}

// asTheyAre derives nothing.
func asTheyAre(dst []float64, r *Row) error {
	copy(dst, r.Labels)
	return nil
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
		if !within(age) {
			return rowErrorf(file, r.Number, "the number %s is outside the range %d to %d; --range says which numbers can occur", units.InFull(age), o.Low, o.High)
		}
		gaussian(dst, age, o.Sigma, o.Low)
		return nil
	}
}

// gaussian sets dst[k] to exp(-(low+k-mean)²/(2 sigma²)), divided by the sum over k. It
// subtracts the greatest exponent from all, so that a small sigma does not make every
// degree 0.
func gaussian(dst []float64, mean, sigma float64, low int) {
	nearest := min(math.Floor(mean+0.5), float64(low+len(dst)-1)) - mean
	scale := 1 / (2 * float64(sigma*sigma))
	sum := 0.0
	for k := range dst {
		x := float64(low+k) - mean
		dst[k] = num.Exp(-scale * (float64(x*x) - float64(nearest*nearest)))
		sum += dst[k]
	}
	for k := range dst {
		dst[k] /= sum
	}
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
					Reason: units.InFull(v) + " is not a count",
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
func checkSingle(src Source, o *OpenOptions) error {
	info := src.Info()
	if info.Labels != 1 || o.Labels.Kind == Age || o.Labels.Kind == Class || o.schema != nil || o.Missing.keep {
		return nil
	}
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

// single says why a file with this only label column is refused, and what its values are.
func (c *columnStats) single(info *Info) string {
	name := ""
	if n := nameAt(info.LabelNames, 0); n != "" {
		name = fmt.Sprintf(", %q", n)
	}
	what := "--labels age, with --sigma and --range, reads the column as a numeric label"
	switch {
	case !c.fraction:
		what = "the values are whole numbers and may be class numbers: --labels class reads them as classes; " + what
	case c.low >= 0 && c.high <= 1:
		what = "add the other class's probability, which is 1 minus this one, as a second label column"
	}
	return fmt.Sprintf("found only one label%s; the labels of a sample sum to 1, so a single label would always be 1; %s", name, what)
}
