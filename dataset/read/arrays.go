package read

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// arraySource streams rows from a pair of arrays, and from those with a text for each row.
type arraySource struct {
	info             dataset.Info
	features, labels *array     // either may be nil
	sparse           *csrMatrix // the features, if features is nil
	name             string     // of the features
	rowNames         *array
	classes          bool // Row.text is wanted
	classNames       *array
}

// newArraySource makes a Source of the arrays "features", "labels" (or another,
// see labelVariables) and those with names.
func newArraySource(path string, o *OpenOptions, entries map[string]*array) (dataset.Source, error) {
	wanted := o.featuresVariable()
	s := &arraySource{
		info: dataset.Info{File: path}, features: entries[wanted], name: wanted,
		classes: !o.NoLabels && o.Labels.Kind == dataset.Class,
	}
	for _, name := range o.labelVariables() {
		if s.labels == nil {
			s.labels = entries[name]
		}
	}
	var err error
	if s.sparse, err = csrOf(entries, wanted); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.features == nil && s.sparse == nil {
		return nil, fmt.Errorf("%s: %w", path, lackArray(entries, wanted, "--features-variable", dataset.ErrFormat))
	}
	if labels := o.labelVariables(); s.labels == nil && !o.NoLabels {
		return nil, fmt.Errorf("%s: %w", path, lackArray(entries, labels[len(labels)-1], "--labels-variable", dataset.ErrNoLabels))
	}
	o.setContents(s, entries)
	target := s.labels
	if err = s.readFeatures(o); err == nil && s.labels != nil {
		err = s.readLabels(o)
	}
	if target != nil {
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("%s read from %q", o.Labels.target(s.info.Labels), target.name))
	}
	if err == nil {
		err = s.readNames(entries)
	}
	var src dataset.Source = s
	if beside := (besideArrays{}); err == nil {
		if beside, err = o.besideArrays(entries, &s.info); err == nil {
			src, err = withBeside(s, &o.Beside, beside, func(name, flag string) error { return lackArray(entries, name, flag, dataset.ErrFormat) })
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return src, nil
}

// setContents notes what the arrays are read as.
func (o *OpenOptions) setContents(s *arraySource, entries map[string]*array) {
	for _, name := range []string{"feature_names", "label_names", "row_names"} {
		if a := entries[name]; a != nil {
			a.wanted = asTexts
		}
	}
	if a := entries[o.Beside.Groups]; a != nil {
		a.wanted = asEither
	}
	if s.labels != nil && s.classes {
		s.labels.wanted = asEither
	}
}

// lackArray returns the error for an array that the file does not have. It lists the arrays
// of the file.
func lackArray(entries map[string]*array, name, flag string, err error) error {
	if entries["indptr"] != nil && entries["indices"] != nil {
		return dataset.Errorf(err, "the file is a sparse matrix of SciPy without labels; with X.tocsr() as X, write features and labels D with %s", csrAdvice("features"))
	}
	var h fileContents
	for _, known := range slices.Sorted(maps.Keys(entries)) {
		if len(h) > maxListed {
			break
		}
		head, err := entries[known].header()
		if other := (*npy.TypeError)(nil); errors.As(err, &other) {
			h.add(known, other.Type, other.Shape...)
		} else if err != nil {
			h.add(known, "unreadable")
		} else {
			h.add(known, head.Type(), head.Shape...)
		}
	}
	return h.missing("array", name, flag, err)
}

// readFeatures notes the shape of the features in Info.
func (s *arraySource) readFeatures(o *OpenOptions) error {
	images := false
	if s.sparse != nil {
		var err error
		if s.info.Rows, s.info.Features, err = s.sparse.dimensions(); err != nil {
			return err
		}
	} else {
		h, err := s.features.header()
		if err != nil {
			return err
		}
		images, s.name = len(h.Shape) == 4, s.features.name
		if s.info.Shape, err = imageShape(s.name, h); err != nil {
			return err
		}
		if s.info.Rows, s.info.Features, err = shapeOf(s.name, h, dataset.MaxFeatures); err != nil {
			return err
		}
	}
	if images { // whose channels might stand last
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("each row of %q is an image of %s with %d x %d pixels (height x width)",
			s.name, dataset.Counted(s.info.Shape.Channels, "channel"), s.info.Shape.Height, s.info.Shape.Width))
	}
	return o.checkFeatures(s.info.Features, unpackedAdvice)
}

// readLabels notes the shape of the labels in Info, which already has the shape of the features.
func (s *arraySource) readLabels(o *OpenOptions) error {
	h, err := s.labels.header()
	if err != nil {
		return err
	}
	text := h.Kind == 'U' || h.Kind == 'S'
	if text && !s.classes {
		return dataset.Errorf(dataset.ErrFormat, "array %q holds texts, want numbers; {labels=class} reads texts as classes", s.labels.name)
	}
	if _, columns, ok := h.Dims(); s.classes && (text || ok && columns == 1) {
		s.classNames, s.labels, s.info.Labels = s.labels, nil, 1
		return s.checkTexts(s.classNames, s.name, s.classNames.name)
	}
	labelRows, labels, err := shapeOf(s.labels.name, h, dataset.MaxLabels)
	if err == nil && labelRows != s.info.Rows {
		err = rowCountError(sides{s.name, s.info.Rows, s.info.Features}, sides{s.labels.name, labelRows, labels}, numpyTranspose)
	}
	if err == nil {
		err = oneColumn(o, s.labels.name, labels)
	}
	s.info.Labels = labels
	return err
}

// imageShape returns the shape of the rows of an array of three dimensions (rows x height x
// width) or four (rows x channels x height x width), whose header it makes one of two. Others have none.
func imageShape(name string, h *npy.Header) (s dataset.Shape, err error) {
	switch sides := h.Shape; len(sides) {
	case 3:
		s = dataset.Shape{Channels: 1, Height: sides[1], Width: sides[2]}
	case 4:
		s = dataset.Shape{Channels: sides[1], Height: sides[2], Width: sides[3]}
	default:
		return s, nil
	}
	columns, err := dataset.Volume([]int{s.Channels, s.Height, s.Width}, dataset.MaxFeatures)
	switch {
	case err != nil:
		return s, fmt.Errorf("array %q of shape %v: %w: %w", name, h.Shape, err, dataset.ErrFormat)
	case h.Fortran:
		return s, fmt.Errorf("array %q has %d dimensions in Fortran order; write the array with numpy.ascontiguousarray: %w", name, len(h.Shape), dataset.ErrFormat)
	}
	h.Shape = []int{h.Shape[0], columns}
	return s, nil
}

// checkTexts reports an array that does not have a text for each row, or a number; messages call the
// two arrays features and texts.
func (s *arraySource) checkTexts(a *array, features, texts string) error {
	r, err := a.begin()
	if err != nil {
		return err
	}
	defer r.Close()
	n, err := 0, error(nil)
	if a == s.classNames {
		n, err = r.Column()
	} else {
		n, err = r.Texts()
	}
	if err != nil {
		return arrayError(a.name, err)
	}
	if n != s.info.Rows {
		return rowCountError(sides{features, s.info.Rows, s.info.Features}, sides{texts, n, 1}, numpyTranspose)
	}
	return nil
}

func (s *arraySource) readNames(entries map[string]*array) (err error) {
	read := func(name string, most int) (names []string) {
		if a := entries[name]; a != nil && err == nil {
			names, err = readStrings(a, func(n int) error {
				if n > most {
					return fmt.Errorf("array %q has %d names, want at most %d: %w", name, n, most, dataset.ErrFormat)
				}
				return nil
			})
		}
		return names
	}
	s.info.FeatureNames = read("feature_names", s.info.Features)
	if labels := read("label_names", dataset.MaxLabels); s.classes {
		s.info.ClassNames = labels
	} else if s.info.Labels > 0 {
		s.info.LabelNames = labels
	}
	if s.rowNames = entries["row_names"]; s.rowNames != nil && err == nil {
		s.info.HasRowNames, err = true, s.checkTexts(s.rowNames, "features", "row_names")
	}
	return err
}

// Info implements Source.
func (s *arraySource) Info() dataset.Info { return s.info }

// arrayRows are the arrays of a source while it is read; each may be nil.
type arrayRows struct {
	features, labels     *matrixReader
	sparse               *csrReader // the features, if features is nil
	rowNames, classNames *openArray
}

// Scan implements Source.
func (s *arraySource) Scan(f func(*dataset.Row) error) error {
	r, err := s.begin()
	defer r.close()
	if err != nil {
		return err
	}
	var row dataset.Row
	for i := range s.info.Rows {
		row.Number = i
		if err := s.read(&row, r); err != nil {
			return fmt.Errorf("%s: row %d (counted from 0): %w", s.info.File, i, err)
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	if err := r.end(); err != nil {
		return fmt.Errorf("%s: %w", s.info.File, err)
	}
	return nil
}

// begin opens the arrays. The caller closes r, also after an error.
func (s *arraySource) begin() (r *arrayRows, err error) {
	r = new(arrayRows)
	if s.sparse != nil {
		r.sparse, err = s.sparse.begin(s.info.Features)
	} else {
		r.features, err = s.features.matrix(s.info.Features)
	}
	if err == nil && s.labels != nil {
		r.labels, err = s.labels.matrix(s.info.Labels)
	}
	if err == nil && s.rowNames != nil {
		r.rowNames, err = s.rowNames.begin()
	}
	if err == nil && s.classNames != nil {
		r.classNames, err = s.classNames.begin()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", s.info.File, err)
	}
	return r, err
}

func (r *arrayRows) close() {
	for _, m := range []*matrixReader{r.features, r.labels} {
		if m != nil {
			m.Close()
		}
	}
	all := []*openArray{r.rowNames, r.classNames}
	if r.sparse != nil {
		all = append(all, r.sparse.data, r.sparse.indices, r.sparse.indptr)
	}
	for _, a := range all {
		if a != nil {
			a.Close()
		}
	}
}

// read reads the next row.
func (s *arraySource) read(row *dataset.Row, r *arrayRows) (err error) {
	if row.Sparse = r.sparse != nil; row.Sparse {
		row.Columns, row.Values, err = r.sparse.next()
	} else {
		row.Values, err = r.features.next()
	}
	if err != nil {
		return err
	}
	if r.labels != nil {
		if row.Labels, err = r.labels.next(); err != nil {
			return err
		}
	}
	if r.rowNames != nil {
		if row.Name, err = r.rowNames.text(); err != nil {
			return err
		}
	}
	if r.classNames != nil {
		row.Text, err = r.classNames.text()
	}
	return err
}

// end reports bytes after the last row.
func (r *arrayRows) end() error {
	for _, m := range []*matrixReader{r.features, r.labels} {
		if m != nil && m.columns == nil {
			if err := arrayError(m.name, m.End()); err != nil {
				return err
			}
		}
	}
	if r.sparse != nil {
		if err := r.sparse.end(); err != nil {
			return err
		}
	}
	if a := r.classNames; a != nil {
		return arrayError(a.name, a.End())
	}
	return nil
}
