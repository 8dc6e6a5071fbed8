package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// lastColumn names the last column in a list of columns.
const lastColumn = "last"

// findColumns returns the numbers, from 0, of the columns that a list names. An item of the
// list is a header, a number from 0, "last", or a range FROM:TO of two of these, both
// included. names has the headers or is nil; n is the number of columns.
func findColumns(names []string, n int, list []string) (found []int, err error) {
	for _, item := range list {
		from, to, err := findRange(names, n, item)
		if err != nil {
			return nil, err
		}
		for i := from; i <= to; i++ {
			found = append(found, i)
		}
	}
	return found, nil
}

// findRange returns the first and the last column of an item of a list.
func findRange(names []string, n int, item string) (from, to int, err error) {
	from, err = findColumn(names, n, item)
	first, last, isRange := strings.Cut(item, ":")
	if err == nil || !isRange {
		return from, from, err
	}
	if from, err = findColumn(names, n, first); err != nil {
		return 0, 0, err
	}
	if to, err = findColumn(names, n, last); err != nil {
		return 0, 0, err
	}
	if from > to {
		return 0, 0, fmt.Errorf("columns %q: the first column comes after the last; want FROM:TO", item)
	}
	return from, to, nil
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

// selectedColumns is a Source with some of the features of another Source.
type selectedColumns struct {
	Source               // the other Source
	info     Info        // of the selected features
	features []int       // the selected features by their numbers in Source, in the order asked for
	index    map[int]int // by number in Source: the index in features
}

// withColumns returns src with only the features that o asks for. It is for all kinds of
// files but CSV; columns are features here.
func withColumns(src Source, o *OpenOptions) (Source, error) {
	if len(o.FeatureColumns)+len(o.Drop) == 0 {
		return src, nil
	}
	s := &selectedColumns{Source: src, info: src.Info(), index: map[int]int{}}
	names, n := s.info.FeatureNames, s.info.Features
	c := csvColumns{used: make([]bool, n)}
	dropped, err := findColumns(names, n, o.Drop)
	if err == nil {
		err = c.use(names, dropped)
	}
	if err == nil {
		s.features, err = findColumns(names, n, o.FeatureColumns)
	}
	if err == nil {
		err = c.use(names, s.features)
	}
	if err != nil {
		return nil, pathError(s.info.File, err)
	}
	if len(o.FeatureColumns) == 0 {
		s.features = c.free()
	}
	s.describe()
	s.info.Notes = slices.Concat(s.info.Notes, o.numberNotes(names))
	return s, nil
}

// describe sets info and index from features.
func (s *selectedColumns) describe() {
	names := s.info.FeatureNames
	s.info.Features, s.info.FeatureNames, s.info.Shape = len(s.features), nil, Shape{}
	for i, old := range s.features {
		s.index[old] = i
		if names != nil {
			s.info.FeatureNames = append(s.info.FeatureNames, names[old])
		}
	}
}

// Info describes the rows with the selected features.
func (s *selectedColumns) Info() Info { return s.info }

// Scan implements Source.
func (s *selectedColumns) Scan(f func(*Row) error) error {
	var row Row
	p := selectedRow{selectedColumns: s}
	return s.Source.Scan(func(r *Row) error {
		row = *r
		if r.Sparse {
			p.sparse(r)
			row.Columns = p.columns
		} else if err := p.dense(r); err != nil {
			return err
		}
		row.Values = p.values
		return f(&row)
	})
}

// selectedRow is the selected features of one row.
type selectedRow struct {
	*selectedColumns
	columns  []uint32 // of a sparse row: as Row.Columns
	values   []float64
	selected []entry // of a sparse row, in the order of the file
}

// entry is a value of a sparse row.
type entry struct {
	column uint32
	value  float64
}

// dense sets p to the selected features of a dense row.
func (p *selectedRow) dense(r *Row) error {
	if want := p.Source.Info().Features; len(r.Values) != want {
		return rowErrorf(p.info.File, r.Number, "found %d features, want %d", len(r.Values), want)
	}
	p.values = p.values[:0]
	for _, i := range p.features {
		p.values = append(p.values, r.Values[i])
	}
	return nil
}

// sparse sets p to the selected features of a sparse row, in ascending order of columns.
func (p *selectedRow) sparse(r *Row) {
	p.selected = p.selected[:0]
	for j, column := range r.Columns {
		if i, ok := p.index[int(column)]; ok {
			p.selected = append(p.selected, entry{uint32(i), r.Values[j]})
		}
	}
	slices.SortFunc(p.selected, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
	p.columns, p.values = p.columns[:0], p.values[:0]
	for _, e := range p.selected {
		p.columns, p.values = append(p.columns, e.column), append(p.values, e.value)
	}
}
