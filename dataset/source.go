package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/units"
)

// Source is a set of rows that can be read from beginning to end, again and
// again, with the same result: a file, or a generator.
type Source interface {
	// Info describes the rows.
	Info() Info
	// Scan calls f for each row in order and stops at the first error, which it
	// returns. The Row and its slices are reused: f must not keep them.
	Scan(f func(*Row) error) error
}

// Info describes what a Source gives.
type Info struct {
	File     string // for messages; empty where there is none
	Rows     int    // -1 where only a scan can tell
	Features int
	Labels   int // 0 where the rows carry no labels

	FeatureNames []string // empty or Features long
	LabelNames   []string // empty or Labels long
	HasRowNames  bool

	// LabelType says what the labels are.
	LabelType LabelType
	// HasValues, HasIntervals and HasGroups: rows have a Value, an Interval, a Group.
	HasValues, HasIntervals, HasGroups bool
	// Shape says that the features are images.
	Shape Shape
	// LabelColumns says where in a CSV file the labels stand.
	LabelColumns LabelColumns
	// Reading says how the file was read.
	Reading Reading
	// Sparse says that rows list their columns, so that a file may end before the
	// last one.
	Sparse bool

	// Missing says what becomes of missing values.
	Missing Missing
	// CountedFrom is where a libsvm file begins to count features.
	CountedFrom Counting
	// labelFlags are how flags name the columns of labels in a CSV file; labelsListed: by --label-columns.
	labelFlags   []string
	labelsListed bool
	// defaultLabels: the labels of a CSV file are called 0, 1, 2, ..., as if they had no names.
	defaultLabels bool
	// unsure: the first line of a CSV file has numbers and was read as a row, but could
	// be a header.
	unsure bool
	// rare: so few features are not 0 that a file of them, packed as usual, would unpack to more than maxRatio
	// times its size.
	rare bool
	// missingWords counts the words that a scan took for missing values; nil: the file has no such words.
	missingWords *wordCounts
	// classNames are the names of labels that a file of classes has.
	classNames []string
	// fractions counts the rows of a scan whose ages are no whole numbers, if errors are measured from whole ones; nil: they
	// are not.
	fractions *int
	// slow: a row takes long to read, so that progress is reported after each.
	slow bool
	// Notes say how a file was read, where users might expect otherwise.
	Notes []string
}

// Said returns the Notes and, of a source that was scanned, notes about the words that were taken for missing values and about
// ages that are no whole numbers.
func (i Info) Said() []string {
	return slices.Concat(i.Notes, i.missingWords.notes(), i.fractionNote())
}

// Counting is the index of a libsvm file's first feature; empty for files of other
// kinds.
type Counting string

// The two ways to count.
const (
	FromZero Counting = "0"
	FromOne  Counting = "1"
)

// check returns an error if no dataset can have this Info.
func (i Info) check() error {
	switch {
	case i.Features < 1 || i.Features > MaxFeatures:
		return fmt.Errorf("%sfound %s features, want 1 to %s", prefix(i.File), units.Count(i.Features), units.Count(MaxFeatures))
	case i.Labels < 0 || i.Labels > MaxLabels:
		return fmt.Errorf("%sfound %d labels, want at most %d", prefix(i.File), i.Labels, MaxLabels)
	case i.Rows > MaxRows:
		return fmt.Errorf("%sfound %s samples, want at most %s", prefix(i.File), units.Count(i.Rows), units.Count(MaxRows))
	}
	if n := len(i.FeatureNames); n != 0 && n != i.Features {
		return fmt.Errorf("%sfound %d feature names for %d features", prefix(i.File), n, i.Features)
	}
	if n := len(i.LabelNames); n != 0 && n != i.Labels {
		return fmt.Errorf("%sfound %d label names for %d labels", prefix(i.File), n, i.Labels)
	}
	if err := i.Shape.check(i.Features); err != nil {
		return fmt.Errorf("%s%w", prefix(i.File), err)
	}
	if n := max(len(i.LabelColumns.Names), len(i.LabelColumns.Positions)); n > 1 && n != i.Labels {
		return fmt.Errorf("%sfound %d label columns for %d labels", prefix(i.File), n, i.Labels)
	}
	if i.HasIntervals && i.LabelType.Scale == nil {
		return fmt.Errorf("%sintervals need numeric labels", prefix(i.File))
	}
	if err := i.LabelType.check(i.Labels, i.HasValues); err != nil {
		return fmt.Errorf("%s%w", prefix(i.File), err)
	}
	if err := checkNames("feature", i.FeatureNames); err != nil {
		return fmt.Errorf("%s%w", prefix(i.File), err)
	}
	if err := checkNames("label", i.LabelNames); err != nil {
		return fmt.Errorf("%s%w", prefix(i.File), err)
	}
	if err := distinct("features", i.FeatureNames); err != nil {
		return fmt.Errorf("%s%w", prefix(i.File), err)
	}
	if err := distinct("labels", i.LabelNames); err != nil {
		return fmt.Errorf("%s%w", prefix(i.File), err)
	}
	return nil
}

// fractionNote says that a scan of the rows found ages that are no whole numbers, if errors are measured from whole ones.
func (i *Info) fractionNote() []string {
	if i.fractions == nil || *i.fractions == 0 {
		return nil
	}
	flag := "--values"
	if len(i.labelFlags) == 1 {
		flag = Option{"values", listFlag("", i.labelFlags...).Value}.String()
	}
	return []string{fmt.Sprintf("the ages of %s are not whole numbers; errors of predictions are measured from the nearest whole number, or with %s from the exact age", counted(*i.fractions, "sample"), flag)}
}

func prefix(file string) string {
	if file == "" {
		return ""
	}
	return file + ": "
}

// Row is one row as a Source gives it, before it is checked.
type Row struct {
	Number int // from 0
	// Sparse rows list the columns of Values, ascending, in Columns; the Values of
	// others are all features.
	Sparse  bool
	Columns []uint32
	Values  []float64
	Labels  []float64 // Info.Labels degrees
	Name    string
	// Value is the exact number of a row on the scale of the labels, and Interval the
	// least and the greatest that it may be, where Info says that there are such.
	Value    float64
	Interval [2]float64
	// Group is what the row belongs to, such as a person, where Info.HasGroups.
	Group string
	// LeftOut rows have a missing value and are in no dataset; only their Number
	// and Name mean anything.
	LeftOut bool

	lack   lack          // of a row that is left out
	turned bool          // the features are an image that was turned
	line   int           // in a text file, from 1
	file   *measuredFile // the text file; nil for others
	raw    []float64     // the numbers that Labels were made from; nil if there were none
	text   string        // a label as it was written, for classes
}

// namedSource is a Source with other names.
type namedSource struct {
	Source
	file string
	info Info
	rows []string
	own  bool // rows have names in Source
}

// Info describes the rows with their new names.
func (s *namedSource) Info() Info { return s.info }

// Scan implements Source.
func (s *namedSource) Scan(f func(*Row) error) error {
	if len(s.rows) == 0 {
		return s.Source.Scan(f)
	}
	n, row := 0, Row{}
	err := s.Source.Scan(func(r *Row) error {
		if r.Number >= len(s.rows) {
			return fmt.Errorf("%s: the list has %d row names, fewer than there are rows: %w", s.file, len(s.rows), ErrRowCount)
		}
		if own := strings.TrimSpace(r.Name); s.own && own != "" && own != strings.TrimSpace(s.rows[r.Number]) {
			return &RowError{File: s.info.File, Row: r.Number, Line: r.line, Column: -1, Err: ErrAmbiguous,
				Reason: fmt.Sprintf("the name of this row is %.40q, but %.40q in %s: give the names of the file, or omit \"rows\"", own, s.rows[r.Number], s.file)}
		}
		n++
		row = *r
		row.Name = s.rows[r.Number]
		return f(&row)
	})
	if err == nil && n != len(s.rows) {
		return fmt.Errorf("%s: found %d row names, want %d, one for each row: %w", s.file, len(s.rows), n, ErrRowCount)
	}
	return err
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
