package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/units"
)

// derivation says what is read off a predicted distribution: the class, or the numbers of a
// scale.
type derivation struct {
	of     dataset.LabelType
	labels []string
}

// columns names what is read off.
func (d *derivation) columns() []string {
	switch {
	case d.of.Classes:
		return []string{"predicted_class"}
	case d.of.Scale != nil:
		return []string{"expected", "median", "mode"}
	}
	return nil
}

// numbers appends the numbers of a distribution over a scale, in the order of columns.
func (d *derivation) numbers(dst []float64, p []float32) []float64 {
	s := d.of.Scale
	return append(dst, s.Expected(p), s.Median(p), s.Mode(p))
}

// fields appends what is read off a distribution, as texts.
func (d *derivation) fields(record []string, p []float32) []string {
	switch {
	case d.of.Classes:
		return append(record, d.labels[dataset.Greatest(p)])
	case d.of.Scale != nil:
		var numbers [3]float64
		for _, v := range d.numbers(numbers[:0], p) {
			record = append(record, units.InFull(v))
		}
	}
	return record
}

// valueText writes a predicted value, a degree or a number, with as few digits as tell it from all others. A large number has no
// exponent.
func valueText(v float32) string {
	const large = 1e6
	if v >= large || v <= -large {
		return strconv.FormatFloat(float64(v), 'f', -1, 32)
	}
	return strconv.FormatFloat(float64(v), 'g', -1, 32)
}

// derivedArrays keeps what is read off the predictions of all rows for the arrays of an
// archive: 4 bytes a row for a class, 12 for numbers.
type derivedArrays struct {
	*derivation
	classes []int32
	numbers [3][]float32
}

// add takes a row's prediction.
func (a *derivedArrays) add(p []float32) {
	switch {
	case a.of.Classes:
		a.classes = append(a.classes, int32(dataset.Greatest(p)))
	case a.of.Scale != nil:
		var numbers [3]float64
		for i, v := range a.derivation.numbers(numbers[:0], p) {
			a.numbers[i] = append(a.numbers[i], float32(v))
		}
	}
}

// write writes the arrays: predicted_class (int64, numbers of labels), or expected, median and
// mode (float32).
func (a *derivedArrays) write(z *npy.Archive) error {
	if a.of.Classes {
		return writeInts(z, "predicted_class", a.classes)
	}
	for i, name := range a.columns() {
		if err := heldOutFloats(z, name, a.numbers[i], 1); err != nil {
			return err
		}
	}
	return nil
}

func writeInts[T int32 | uint16 | uint32](z *npy.Archive, name string, values []T) error {
	out, err := z.Ints(name, len(values))
	if err != nil {
		return err
	}
	for _, v := range values {
		if err := out.Write([]int64{int64(v)}); err != nil {
			return err
		}
	}
	return out.Flush()
}

// output is what the model predicts, and width how many values that is for a row.
func (m *model) output() algorithms.Output { return registry.Output(m.file.Algorithm) }

func (m *model) width() int {
	_, labels := m.Shape()
	return m.output().Width(labels)
}

// derivation says what is read off the model's predictions.
func (m *model) derivation() *derivation {
	d := &derivation{labels: m.classes()}
	if m.output() != algorithms.Number {
		d.of = m.provenance.LabelType
	}
	return d
}

// header names the columns of a CSV file of predictions: the row, what is predicted of it, and what is read off that.
func (m *model) header() []string {
	if m.output() == algorithms.Number {
		return []string{"row", "number"}
	}
	others := append([]string{"row"}, m.derivation().columns()...)
	return slices.Concat(others[:1], columnNames(m.classes(), others), others[1:])
}

// columnNames returns the names of the columns of labels in a file that has other columns as well. If a label has the
// name of another column, all labels have the prefix label_. So no two columns have one name, and the file is read
// with the labels of the model.
func columnNames(labels, others []string) []string {
	if !slices.ContainsFunc(labels, func(name string) bool { return slices.Contains(others, name) }) {
		return labels
	}
	prefixed := make([]string, len(labels))
	for i, name := range labels {
		prefixed[i] = "label_" + name
	}
	return prefixed
}

// typeOf returns what the labels of a file are for this model: what they were when it was
// trained or, if that was nothing but distributions, what the flags say; with the exact numbers
// of the file, if it has some.
func (m *model) typeOf(info dataset.Info) (dataset.LabelType, error) {
	t := m.provenance.LabelType
	if t.Scale == nil && !t.Classes {
		t = info.LabelType
	}
	if t.Scale == nil {
		return t, nil
	}
	s := *t.Scale
	switch {
	case info.HasValues:
		s.True = dataset.TrueValue
	case s.True == dataset.TrueValue:
		return t, fmt.Errorf("%s: the model was trained on samples with exact numbers, and its errors are measured from such numbers: name their column with --values", info.File)
	}
	t.Scale = &s
	return t, nil
}
