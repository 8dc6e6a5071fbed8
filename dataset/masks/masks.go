// Package masks hides degrees of complete label distributions, as papers about incomplete labels do.
package masks

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Options say which degrees are hidden.
type Options struct {
	dataset.Mask
	// Weighted hides a fixed number of degrees, ⌊rate·samples·labels⌋, drawn without replacement with the weights 1 - d
	// (as PyLDL does), so that small degrees are hidden rather than great ones. A degree of 1 is never hidden.
	Weighted bool
	Seed     uint64
}

// MaxWeighted bounds the degrees of a dataset with Options.Weighted, whose keys are in memory.
const MaxWeighted = 1 << 26

// Stats count what a mask did.
type Stats struct {
	Degrees  int64 `json:"degrees"`  // of all samples
	Missing  int64 `json:"missing"`  // degrees, after the repair
	Repaired int   `json:"repaired"` // samples whose only hidden degree follows from the others
	Empty    int   `json:"empty"`    // samples without any degree
}

// New returns the rows of src, which checks accept, without the degrees that the options hide. Rows that src leaves out
// do not appear, and the others are numbered anew, as a dataset numbers them. An error says that the labels are not
// complete distributions, or that a label would have no degree in any sample.
func New(src dataset.Source, checks importer.Options, o Options) (dataset.Source, *Stats, error) {
	info := src.Info()
	t := info.LabelType
	if t != (dataset.LabelType{}) || info.Labels < 2 {
		return nil, nil, errtext.Errorf(errtext.WrongData, "%sa mask hides degrees of distributions of at least two labels, "+
			"but there are %s of %s", dataset.Prefix(info.File), t.String(info.Labels), dataset.Counted(info.Labels, "label"))
	}
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	if o.Weighted && (o.Golden || o.Unlabelled > 0) {
		return nil, nil, fmt.Errorf("weights cannot be combined with a golden mask or with samples without labels")
	}
	first, err := importer.Measure(src, &checks)
	if err != nil {
		return nil, nil, err
	}
	checks.Note, checks.Warn = nil, nil
	m := &masked{src: src, checks: checks, o: o, info: info}
	m.info.LabelType.Incomplete, m.info.Missing.Drop = true, false
	m.info.Reading, m.info.Rows = dataset.Reading{}, first.Rows
	if o.Weighted {
		if err := m.weigh(); err != nil {
			return nil, nil, err
		}
	}
	stats, err := m.count()
	return m, stats, err
}

// masked is a Source.
type masked struct {
	src    dataset.Source
	checks importer.Options
	o      Options
	info   dataset.Info
	hidden []uint64 // a bit for each degree; nil: the mask of the options says which are hidden
}

// Info implements dataset.Source.
func (m *masked) Info() dataset.Info { return m.info }

// each calls f with each row, its number and its complete labels.
func (m *masked) each(f func(r *dataset.Row, number int, label []float32) error) error {
	number := 0
	return importer.Scan(m.src, &m.checks, "read", m.info.Rows, func(r *dataset.Row, c *importer.Checker) error {
		number++
		return f(r, number-1, c.Labels)
	})
}

// Scan implements dataset.Source.
func (m *masked) Scan(f func(*dataset.Row) error) error {
	var row dataset.Row
	labels := make([]float64, m.info.Labels)
	return m.each(func(r *dataset.Row, number int, label []float32) error {
		m.hide(label, number)
		dataset.Repair(label)
		for c, d := range label {
			labels[c] = float64(d)
		}
		row = *r
		row.Number, row.Labels, row.Raw = number, labels, nil
		return f(&row)
	})
}

// hide hides degrees of a row, and returns how many are missing.
func (m *masked) hide(label []float32, number int) int {
	if m.hidden == nil {
		return m.o.Hide(label, m.o.Seed, number)
	}
	for c := range label {
		if at := number*len(label) + c; m.hidden[at/64]>>(at%64)&1 != 0 {
			label[c] = dataset.MissingDegree
		}
	}
	return dataset.CountMissing(label)
}

// weigh draws the hidden degrees: the smallest of the keys -ln(u)/w, which come first in the order of a drawing without
// replacement with the weights w (Efraimidis and Spirakis 2006).
func (m *masked) weigh() error {
	n := m.info.Rows * m.info.Labels
	if n > MaxWeighted {
		return fmt.Errorf("%s degrees are too many for a weighted mask, want at most %s", units.Count(n),
			units.Count(MaxWeighted))
	}
	type entry struct {
		key float64
		at  int
	}
	all, key := make([]entry, 0, n), num.NewKey(m.o.Seed, "mask/weighted")
	err := m.each(func(_ *dataset.Row, number int, label []float32) error {
		for c, d := range label {
			x := num.Philox(key, [4]uint32{uint32(number), 0, uint32(c)})
			u := 1 - float64(float64((uint64(x[0])<<32|uint64(x[1]))>>11)*0x1p-53) // above 0
			if w := 1 - float64(d); w > 0 {
				all = append(all, entry{-num.Log(u) / w, number*len(label) + c})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	count := int(m.o.Rate * float64(n))
	if count > len(all) {
		return fmt.Errorf("%s degrees cannot be hidden: only %s of %s are below 1", units.Count(count),
			units.Count(len(all)), units.Count(n))
	}
	m.hidden = make([]uint64, n/64+1)
	for _, e := range all[:count] {
		m.hidden[e.at/64] |= 1 << (e.at % 64)
	}
	return nil
}

// count counts what the mask does. It returns an error if a label would have no degree.
func (m *masked) count() (*Stats, error) {
	s, observed := new(Stats), make([]int, m.info.Labels)
	err := m.each(func(_ *dataset.Row, number int, label []float32) error {
		s.Degrees += int64(len(label))
		hidden := m.hide(label, number)
		missing := dataset.Repair(label)
		s.Missing += int64(missing)
		if missing == len(label) {
			s.Empty++
		}
		if missing < hidden {
			s.Repaired++
		}
		for c, d := range label {
			if d == d {
				observed[c]++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for c, n := range observed {
		if n == 0 {
			return nil, fmt.Errorf("%sthe mask would hide the label %s in every sample; use a lower rate or another seed",
				dataset.Prefix(m.info.File), cmp.Or(dataset.NameAt(m.info.LabelNames, c), fmt.Sprint(c)))
		}
	}
	return s, nil
}
