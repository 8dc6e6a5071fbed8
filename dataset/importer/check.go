package importer

import (
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// DefaultTolerance is how far from 1 the sum of a row's label degrees may be by default. It
// allows for the rounding of up to a hundred degrees to float32 or to six decimals.
const DefaultTolerance = 1e-4

// SumRounding is how far from 1 the sum of a distribution may be because its degrees were rounded to float32. Such
// degrees stay as they are, so that a file that was written from a dataset is read as the same dataset.
const SumRounding = 0x1p-23

// Checks says what a row must satisfy.
type Checks struct {
	// Normalize divides the label degrees of each row by their sum.
	Normalize bool
	// Tolerance is the greatest distance from 1 of the sum of a row's label degrees;
	// 0: DefaultTolerance.
	Tolerance float64
}

// Checker checks rows and converts them to float32. Its slices have the last checked row.
type Checker struct {
	info      dataset.Info
	normalize bool
	tolerance float64

	columns  []uint32  // of a sparse row's non-zeros
	values   []float32 // every value of a dense row, the non-zeros of a sparse one
	Labels   []float32
	sparse   bool
	NonZeros int
	rescaled int // rows, so far, whose labels summed to 1 within the tolerance only
	Missing  int // degrees of the row that are missing
	repaired int // rows, so far, with one missing degree

	spare []float32 // the values in the other storage form, see stored
}

// check converts row r, or returns an error that says what is wrong with the row.
func (c *Checker) check(r *dataset.Row) error {
	c.sparse, c.NonZeros = r.Sparse, 0
	c.columns, c.values, c.Labels = c.columns[:0], c.values[:0], c.Labels[:0]
	if c.sparse {
		if err := c.checkSparse(r); err != nil {
			return err
		}
	} else {
		if len(r.Values) != c.info.Features {
			return dataset.RowErrorf(c.info.File, r.Number, "found %d features, want %d", len(r.Values), c.info.Features)
		}
		c.values = sized(c.values, len(r.Values))
		zeros, bad := 0, float32(0)
		for i, v := range r.Values {
			x := float32(v)
			bad += x - x // NaN once a value is not finite
			if x == 0 {
				x = 0 // -0 too
				zeros++
			}
			c.values[i] = x
		}
		if c.NonZeros = len(r.Values) - zeros; bad != 0 {
			if err := c.badFeature(r); err != nil {
				return err
			}
		}
	}
	if err := c.checkLabels(r); err != nil {
		return err
	}
	return CheckBeside(&c.info, r)
}

// missing is a missing feature in a row of float32, with one bit pattern wherever it comes from.
var missing = math.Float32frombits(0x7fc00000)

// fills reports whether missing features are filled later.
func (c *Checker) fills() bool { return c.info.Missing.By != "" }

func (c *Checker) checkSparse(r *dataset.Row) error {
	for i, v := range r.Values {
		column := int(r.Columns[i])
		if column >= c.info.Features || i > 0 && r.Columns[i-1] >= r.Columns[i] {
			return dataset.RowErrorf(c.info.File, r.Number, "column numbers must ascend and be below %d, found %d",
				c.info.Features, column)
		}
		x := float32(v)
		if x != x && c.fills() {
			x = missing
		} else if x-x != 0 { // NaN or infinite
			return c.badFeature(r)
		}
		if x != 0 {
			c.NonZeros++
			c.values, c.columns = append(c.values, x), append(c.columns, uint32(column))
		}
	}
	return nil
}

// badFeature returns the error about the first value of r that is not finite as float32. Missing
// features that are filled later are none.
func (c *Checker) badFeature(r *dataset.Row) error {
	for i, v := range r.Values {
		if x := float32(v); x != x && c.fills() {
			c.values[i] = missing // of a dense row
		} else if x-x != 0 {
			column := i
			if c.sparse {
				column = int(r.Columns[i])
			}
			return c.columnError(r, "feature", column, c.info.FeatureNames, NotFinite(v, c.info.Missing.Hint(dataset.OfFeature)))
		}
	}
	return nil
}

func (c *Checker) checkLabels(r *dataset.Row) error {
	if len(r.Labels) != c.info.Labels {
		return dataset.RowErrorf(c.info.File, r.Number, "found %d labels, want %d", len(r.Labels), c.info.Labels)
	}
	if c.info.Labels == 0 {
		return nil
	}
	if c.Missing = 0; c.info.LabelType.Incomplete && slices.ContainsFunc(r.Labels, math.IsNaN) {
		return c.checkObserved(r)
	}
	if b := c.info.LabelType.Bounds; b != nil {
		return c.checkTargets(r, b)
	}
	sum, negative := 0.0, -1
	for i, d := range r.Labels {
		if x := float32(d); x-x != 0 {
			what := dataset.OfDegree
			if c.info.LabelType.Classes || c.info.LabelType.Scale != nil {
				what = dataset.OfLabel
			}
			return c.columnError(r, "label", i, c.info.LabelNames, NotFinite(d, c.info.Missing.Hint(what)))
		}
		if d < 0 && negative < 0 {
			negative = i
		}
		sum += d
	}
	if negative >= 0 {
		clipped, bad := ClippedSum(r.Labels, sum, c.tolerance)
		if bad >= 0 {
			return c.columnError(r, "label", bad, c.info.LabelNames,
				errtext.Sprintf("%v is negative; the probability of a label must be 0 or more; {labels=bounded} reads "+
					"targets that are real numbers", r.Labels[bad]))
		}
		sum = clipped
	}
	off := math.Abs(sum - 1)
	if sum == 0 || off > c.tolerance && !(c.normalize && sum > 0) {
		return c.sumError(r, sum)
	}
	divisor := 1.0
	if c.normalize {
		divisor = sum
	} else if off > SumRounding {
		divisor = sum
		c.rescaled++
	}
	for _, d := range r.Labels {
		c.Labels = append(c.Labels, dataset.PositiveZero(max(d, 0)/divisor))
	}
	return nil
}

// checkObserved converts the labels of a row in which degrees are missing: the others are in [0, 1] and sum to at most
// 1, and stay as they are. If only one is missing, it becomes 1 less the others.
func (c *Checker) checkObserved(r *dataset.Row) error {
	sum := 0.0
	for i, d := range r.Labels {
		switch {
		case math.IsNaN(d):
			c.Labels = append(c.Labels, dataset.MissingDegree)
			continue
		case math.IsInf(d, 0) || d < -min(c.tolerance, DefaultTolerance) || d > 1+c.tolerance:
			return c.columnError(r, "label", i, c.info.LabelNames,
				errtext.Sprintf("{:%v} is no probability; the probability of a label must be from 0 to 1", d))
		}
		sum += d
		c.Labels = append(c.Labels, dataset.PositiveZero(min(max(d, 0), 1)))
	}
	if sum > 1+min(c.tolerance, DefaultTolerance) {
		return dataset.RowErrorf(c.info.File, r.Number, "the labels that are not missing sum to %.6g, want at most 1", sum)
	}
	missing := dataset.CountMissing(c.Labels)
	if c.Missing = dataset.Repair(c.Labels); c.Missing < missing {
		c.repaired++
	}
	return nil
}

// checkTargets converts the targets of a row, which lie in the bounds that are given.
func (c *Checker) checkTargets(r *dataset.Row, b *dataset.Bounds) error {
	for i, q := range r.Labels {
		if x := float32(q); x-x != 0 {
			return c.columnError(r, "label", i, c.info.LabelNames, NotFinite(q, c.info.Missing.Hint(dataset.OfLabel)))
		}
		if b.Given() {
			if low, high := b.Of(i); q < low || q > high {
				return c.columnError(r, "label", i, c.info.LabelNames, errtext.Sprintf("the target %s is outside the bounds "+
					"%s to %s; {bounds} says which targets can occur", units.InFull(q), units.InFull(low), units.InFull(high)))
			}
		}
		c.Labels = append(c.Labels, dataset.PositiveZero(q))
	}
	return nil
}

// ClippedSum returns the sum of labels without the negative ones, which rounding may have left: they are 0 within the
// tolerance, as a fraction of the sum. bad is the first that is not, or -1.
func ClippedSum(labels []float64, sum, tolerance float64) (clipped float64, bad int) {
	least := -min(tolerance, DefaultTolerance) * math.Abs(sum)
	for i, d := range labels {
		if !(d >= least) || math.IsInf(d, 0) {
			return 0, i
		}
		clipped += max(d, 0)
	}
	return clipped, -1
}

// sumError is the error about labels that do not sum to 1.
func (c *Checker) sumError(r *dataset.Row, sum float64) error {
	if sum == 0 {
		return dataset.RowErrorf(c.info.File, r.Number, "every label of this sample is 0; the labels of a sample must sum "+
			"to 1%s", dataset.DropHint)
	}
	hint := errtext.Sprintf("{normalize} divides the labels of each sample by their sum")
	if c.info.ListsClasses(r.Labels) {
		hint = dataset.ClassListHint
	} else if !slices.ContainsFunc(r.Labels, func(v float64) bool { return v != 0 && v != 1 }) {
		hint = errtext.Sprintf("{labels=counts} reads logical labels, which are 1 or 0; ") + hint
	}
	return dataset.RowErrorf(c.info.File, r.Number, "the labels sum to %.6g, want 1 within %g; %s", sum, c.tolerance, hint)
}

func (c *Checker) columnError(r *dataset.Row, kind string, column int, names []string, reason errtext.Text) error {
	return &dataset.RowError{
		File: c.info.File, Row: r.Number, Column: column,
		Kind: kind, Name: dataset.NameAt(names, column), Reason: reason,
	}
}

// NotFinite says what is wrong with a value; hint is advice about a missing one.
func NotFinite(v float64, hint errtext.Text) errtext.Text {
	if math.IsNaN(v) {
		return "NaN is not a finite number" + hint
	}
	if math.IsInf(v, 0) {
		return errtext.Sprintf("{:%v} is not a finite number", v)
	}
	return errtext.Sprintf("%v is too large for a float32", v)
}

// Stored returns the checked features in the form of a dense or a sparse shard; columns is
// nil for dense.
func (c *Checker) Stored(sparse bool) (columns []uint32, values []float32) {
	switch {
	case sparse == c.sparse:
		return c.columns, c.values
	case sparse:
		c.spare, c.columns = c.spare[:0], c.columns[:0]
		for i, x := range c.values {
			if x != 0 {
				c.columns = append(c.columns, uint32(i))
				c.spare = append(c.spare, x)
			}
		}
		return c.columns, c.spare
	}
	if c.spare == nil {
		c.spare = make([]float32, c.info.Features)
	}
	clear(c.spare)
	for i, column := range c.columns {
		c.spare[column] = c.values[i]
	}
	return nil, c.spare
}

// MissingBeside names the exact number, interval, group or weight that a row lacks; empty: it lacks none.
func MissingBeside(i *dataset.Info, r *dataset.Row) string {
	switch {
	case i.HasValues && math.IsNaN(r.Value):
		return "the exact number of the sample"
	case i.HasIntervals && math.IsNaN(r.Interval[0]):
		return "the lower end of the sample's interval"
	case i.HasIntervals && math.IsNaN(r.Interval[1]):
		return "the upper end of the sample's interval"
	case i.HasGroups && numbers.IsMissing(r.Group):
		return "the group of the sample"
	case i.HasWeights && math.IsNaN(r.Weight):
		return "the weight of the sample"
	}
	return ""
}

// CheckBeside returns an error that says what is wrong with the numbers, the name, the group and the weight of a row.
func CheckBeside(i *dataset.Info, r *dataset.Row) error {
	if what := MissingBeside(i, r); what != "" {
		return dataset.RowErrorf(i.File, r.Number, "%s is missing%s", what, dataset.DropHint)
	}
	s := i.LabelType.Scale
	if i.HasValues {
		if v, high := r.Value, s.Low+i.Labels-1; !(v >= float64(s.Low) && v < float64(high+1)) {
			return dataset.RowErrorf(i.File, r.Number, "the exact number %s is outside the range %d to %d", units.InFull(v),
				s.Low, high)
		}
	}
	if i.HasIntervals {
		if err := checkInterval(r, i.HasValues); err != nil {
			return dataset.RowErrorf(i.File, r.Number, "%v", err)
		}
	}
	if i.HasWeights && !dataset.ValidWeight(r.Weight) {
		return dataset.RowErrorf(i.File, r.Number, "the weight of the sample is {:%v}; a weight must be a number from 0 "+
			"to %g", r.Weight, dataset.MaxWeight)
	}
	if err := dataset.CheckName(r.Name); err != nil {
		return dataset.RowErrorf(i.File, r.Number, "the name of the sample %v", err)
	}
	if i.HasGroups && len(r.Group) > maxGroupName {
		return dataset.RowErrorf(i.File, r.Number, "the name of the sample's group has %d bytes, at most %d are allowed",
			len(r.Group), maxGroupName)
	}
	return nil
}

func checkInterval(r *dataset.Row, valued bool) error {
	switch low, high := r.Interval[0], r.Interval[1]; {
	case low-low != 0 || high-high != 0:
		return fmt.Errorf("the interval from %s to %s is not finite", units.InFull(low), units.InFull(high))
	case low > high:
		return fmt.Errorf("the interval begins at %s, which is above its end, %s", units.InFull(low), units.InFull(high))
	case valued && (r.Value < low || r.Value > high):
		return fmt.Errorf("the exact number %s is outside the sample's interval, %s to %s", units.InFull(r.Value),
			units.InFull(low), units.InFull(high))
	}
	return nil
}

// maxGroupName bounds the name of a group, in bytes.
const maxGroupName = 100
