package dataset

import (
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/dataset/npy"
)

// arraySource streams rows from a pair of arrays in C order.
type arraySource struct {
	info             Info
	features, labels *array // labels may be nil
	rowNames         []string
	classes          bool // Row.text is wanted
	classNames       []string
}

// newArraySource makes a Source of the arrays "features", "labels" (or another,
// see labelVariables) and those with names. Arrays in Fortran order are read
// into memory.
func newArraySource(path string, o *OpenOptions, entries map[string]*array) (Source, error) {
	wanted := o.featuresVariable()
	s := &arraySource{
		info: Info{File: path}, features: entries[wanted],
		classes: !o.NoLabels && o.Labels.Kind == Class,
	}
	for _, name := range o.labelVariables() {
		if s.labels == nil {
			s.labels = entries[name]
		}
	}
	if s.features == nil {
		return nil, fmt.Errorf("%s: %w", path, lackArray(entries, wanted, "--features-variable", ErrFormat))
	}
	if labels := o.labelVariables(); s.labels == nil && !o.NoLabels {
		return nil, fmt.Errorf("%s: %w", path, lackArray(entries, labels[len(labels)-1], "--labels-variable", ErrNoLabels))
	}
	fortran, err := s.readShapes(o)
	if err == nil {
		err = s.readNames(entries)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if fortran {
		return s.load()
	}
	return s, nil
}

// lackArray says that there is no array of a name, and which there are.
func lackArray(entries map[string]*array, name, flag string, err error) error {
	if entries["indptr"] != nil && entries["indices"] != nil {
		return sentencef(err, "a sparse matrix of SciPy; write features and labels with scikit-learn's dump_svmlight_file, "+
			"or with NumPy: savez(..., features=X.toarray(), labels=...)")
	}
	var h holdings
	for _, known := range slices.Sorted(maps.Keys(entries)) {
		if head, err := entries[known].header(); err != nil {
			h.add(known, "unreadable")
		} else {
			h.add(known, head.Type(), head.Shape...)
		}
	}
	return h.lack("array", name, flag, err)
}

// readShapes fills in Info and reports whether an array is in Fortran order.
func (s *arraySource) readShapes(o *OpenOptions) (fortran bool, err error) {
	h, err := s.features.header()
	if err != nil {
		return false, err
	}
	rows, columns, err := shapeOf(s.features.name, h, MaxFeatures)
	if err != nil {
		return false, err
	}
	s.info.Rows, s.info.Features, fortran = rows, columns, h.Fortran && columns > 1
	if s.labels == nil {
		return fortran, nil
	}
	if h, err = s.labels.header(); err != nil {
		return false, err
	}
	if s.classes && (h.Kind == 'U' || h.Kind == 'S') {
		return fortran, s.readClassNames(rows)
	}
	labelRows, labels, err := shapeOf(s.labels.name, h, MaxLabels)
	if err == nil && labelRows != rows {
		err = rowCountError(s.features.name, rows, s.labels.name, labelRows)
	}
	if err == nil {
		err = oneColumn(o, s.labels.name, labels)
	}
	s.info.Labels = labels
	return fortran || h.Fortran && labels > 1, err
}

func shapeOf(name string, h *npy.Header, limit int) (rows, columns int, err error) {
	rows, columns, ok := h.Dims()
	if !ok {
		return 0, 0, fmt.Errorf("%q has %d dimensions, two are expected: %w", name, len(h.Shape), ErrFormat)
	}
	if h.Kind == 'U' || h.Kind == 'S' {
		return 0, 0, fmt.Errorf("%q holds strings, numbers are expected: %w", name, ErrFormat)
	}
	return rows, columns, checkSize(name, rows, columns, limit)
}

func (s *arraySource) readClassNames(rows int) (err error) {
	s.classNames, err = readStrings(s.labels)
	if err == nil && len(s.classNames) != rows {
		err = rowCountError(s.features.name, rows, s.labels.name, len(s.classNames))
	}
	s.labels, s.info.Labels = nil, 1
	return err
}

func (s *arraySource) readNames(entries map[string]*array) (err error) {
	read := func(name string) (names []string) {
		if a := entries[name]; a != nil && err == nil {
			names, err = readStrings(a)
		}
		return names
	}
	s.info.FeatureNames = read("feature_names")
	if labels := read("label_names"); s.info.Labels > 0 {
		s.info.LabelNames = labels
	}
	s.rowNames = read("row_names")
	if s.info.HasRowNames = s.rowNames != nil; s.info.HasRowNames && err == nil && len(s.rowNames) != s.info.Rows {
		err = rowCountError(s.features.name, s.info.Rows, "row_names", len(s.rowNames))
	}
	return err
}

func readStrings(a *array) ([]string, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	all, err := r.ReadStrings()
	return all, arrayError(a.name, err)
}

// load reads the arrays into memory.
func (s *arraySource) load() (Source, error) {
	t := &tableSource{info: s.info, classes: s.classes, rowNames: s.rowNames, classNames: s.classNames}
	dense, err := loadArray[float32](s.features, s.info.Rows, s.info.Features)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.info.File, err)
	}
	t.features = &table{rows: s.info.Rows, columns: s.info.Features, dense: dense}
	if s.labels != nil {
		t.labels, err = loadArray[float64](s.labels, s.info.Rows, s.info.Labels)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.info.File, err)
	}
	return t, nil
}

func loadArray[T float32 | float64](a *array, rows, columns int) ([]T, error) {
	r, err := a.begin()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	values, err := readColumns[T](rows, columns, !r.Fortran, r.read)
	if err == nil {
		err = arrayError(a.name, r.End())
	}
	return values, err
}

// Info implements Source.
func (s *arraySource) Info() Info { return s.info }

// Scan implements Source.
func (s *arraySource) Scan(f func(*Row) error) error {
	features, err := s.features.begin()
	if err != nil {
		return fmt.Errorf("%s: %w", s.info.File, err)
	}
	defer features.Close()
	var labels *openArray
	if s.labels != nil {
		if labels, err = s.labels.begin(); err != nil {
			return fmt.Errorf("%s: %w", s.info.File, err)
		}
		defer labels.Close()
	}
	return s.scan(features, labels, f)
}

func (s *arraySource) scan(features, labels *openArray, f func(*Row) error) error {
	var row Row
	for i := range s.info.Rows {
		row.Number = i
		err := readRow(features, &row.Values, s.info.Features)
		if err == nil && labels != nil {
			err = readRow(labels, &row.Labels, s.info.Labels)
		}
		if err != nil {
			return fmt.Errorf("%s: row %d (counted from 0): %w", s.info.File, i, err)
		}
		s.nameRow(&row)
		if err := f(&row); err != nil {
			return err
		}
	}
	err := arrayError(features.name, features.End())
	if err == nil && labels != nil {
		err = arrayError(labels.name, labels.End())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.info.File, err)
	}
	return nil
}

func (s *arraySource) nameRow(row *Row) {
	if s.rowNames != nil {
		row.Name = s.rowNames[row.Number]
	}
	switch {
	case s.classNames != nil:
		row.text = s.classNames[row.Number]
	case s.classes:
		row.text = classText(row.Labels[0])
	}
}

// readRow reads n values; memory grows as they come.
func readRow(r *openArray, dst *[]float64, n int) error {
	if cap(*dst) >= n {
		*dst = (*dst)[:n]
		return r.read(*dst)
	}
	values, err := readColumns[float64](1, n, true, r.read)
	*dst = values
	return err
}
