package read

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// arrays are the arrays of a file by name.
type arrays struct {
	entries map[string]*array
	// missing makes the error for an array that the file does not have; flag names another one.
	missing   func(name, flag string, kind error) error
	advice    string // for arrays that are too large
	transpose string // how to transpose an array
}

// arraySource streams rows from a pair of arrays, and from those with a text for each row.
type arraySource struct {
	*arrays
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
func newArraySource(path string, o *OpenOptions, from *arrays) (dataset.Source, error) {
	s := &arraySource{arrays: from, info: dataset.Info{File: path}, classes: !o.NoLabels && o.Labels.Kind == dataset.Class}
	src, err := s.choose(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return src, nil
}

// choose finds the arrays that o asks for, and describes the rows.
func (s *arraySource) choose(o *OpenOptions) (src dataset.Source, err error) {
	s.name = o.featuresVariable()
	if s.sparse, err = csrOf(s.entries, s.name); err != nil {
		return nil, err
	}
	if s.features = s.entries[s.name]; s.features == nil && s.sparse == nil {
		return nil, s.missing(s.name, "--features-variable", dataset.ErrFormat)
	}
	labels := o.labelVariables()
	for _, name := range labels {
		if s.labels == nil {
			s.labels = s.entries[name]
		}
	}
	if s.labels == nil && !o.NoLabels {
		return nil, s.missing(labels[len(labels)-1], "--labels-variable", dataset.ErrNoLabels)
	}
	o.setContents(s, s.entries)
	if err := s.readFeatures(o); err != nil {
		return nil, err
	}
	if target := s.labels; target != nil {
		if err := s.readLabels(o); err != nil {
			return nil, err
		}
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("%s read from %q", o.Labels.target(s.info.Labels), target.name))
	}
	if err := s.readNames(); err != nil {
		return nil, err
	}
	return s.withBeside(o)
}

// withBeside gives the rows the exact numbers, intervals, weights and groups that o names.
func (s *arraySource) withBeside(o *OpenOptions) (dataset.Source, error) {
	b := &o.Beside
	if len(b.names()) == 0 {
		return s, nil
	}
	info := s.info
	info.HasValues, info.HasIntervals, info.HasGroups = b.Values != "", len(b.Intervals) > 0, b.Groups != ""
	info.HasWeights = b.Weights != ""
	find := func(name, flag string) (a *array, check func(n int) error, err error) {
		if a = s.entries[name]; a == nil {
			err = s.missing(name, flag, dataset.ErrFormat)
		}
		return a, func(n int) error {
			return cmp.Or(s.checkRows(name, n, 1), o.checkItems(name, n, s.advice))
		}, err
	}
	var exact [4][]float64 // weights, exact numbers, least, greatest; nil: none
	for i, name := range append([]string{b.Weights, b.Values}, b.Intervals...) {
		if name == "" {
			continue
		}
		flag := []string{"--weights", "--values", "--intervals", "--intervals"}[i]
		a, check, err := find(name, flag)
		if err == nil {
			exact[i], err = a.column(check)
		}
		if err != nil {
			return nil, err
		}
	}
	var groups *textColumn
	if b.Groups != "" {
		a, check, err := find(b.Groups, "--groups")
		if err == nil {
			groups, err = a.textColumn(check)
		}
		if err != nil {
			return nil, err
		}
	}
	change := func(r *dataset.Row) error {
		if exact[0] != nil {
			r.Weight = exact[0][r.Number]
		}
		if exact[1] != nil {
			r.Value = exact[1][r.Number]
		}
		if exact[2] != nil {
			r.Interval = [2]float64{exact[2][r.Number], exact[3][r.Number]}
		}
		if groups != nil {
			r.Group = groups.text(r.Number)
		}
		return nil
	}
	return pipelineOf(s).after(simple(func() func(*dataset.Row) error { return change }), info), nil
}

// checkRows returns an error if an array of so many rows and columns does not have a row for each row of the features.
func (s *arraySource) checkRows(name string, rows, columns int) error {
	if rows == s.info.Rows {
		return nil
	}
	return rowCountError(sides{s.name, s.info.Rows, s.info.Features}, sides{name, rows, columns}, s.transpose)
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

// numpyArrays are the arrays of an archive, or of a JSON object.
func numpyArrays(entries map[string]*array) *arrays {
	missing := func(name, flag string, kind error) error { return lackArray(entries, name, flag, kind) }
	return &arrays{entries: entries, missing: missing, advice: unpackedAdvice,
		transpose: "x.T transposes an array x in NumPy"}
}

// lackArray returns the error for an array that the file does not have. It lists the arrays
// of the file.
func lackArray(entries map[string]*array, name, flag string, err error) error {
	if entries["indptr"] != nil && entries["indices"] != nil {
		return dataset.Errorf(err, "the file is a sparse matrix of SciPy without labels; with X.tocsr() as X, write "+
			"features and labels D with %s", csrAdvice("features"))
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
		s.info.Notes = append(s.info.Notes, errtext.Sprintf(
			"each row of %q is an image of %s with %d x %d pixels (height x width)",
			s.name, dataset.Counted(s.info.Shape.Channels, "channel"), s.info.Shape.Height, s.info.Shape.Width))
	}
	return o.checkFeatures(s.info.Features, s.advice)
}

// readLabels notes the shape of the labels in Info, which already has the shape of the features.
func (s *arraySource) readLabels(o *OpenOptions) error {
	h, err := s.labels.header()
	if err != nil {
		return err
	}
	text := h.Kind == 'U' || h.Kind == 'S'
	if text && !s.classes {
		return dataset.Errorf(dataset.ErrFormat, "array %q holds texts, want numbers; {labels=class} reads texts as classes",
			s.labels.name)
	}
	if _, columns, ok := h.Dims(); s.classes && (text || ok && columns == 1) {
		s.classNames, s.labels, s.info.Labels = s.labels, nil, 1
		return s.checkTexts(s.classNames)
	}
	labelRows, labels, err := shapeOf(s.labels.name, h, dataset.MaxLabels)
	if err == nil {
		err = s.checkRows(s.labels.name, labelRows, labels)
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
		return s, fmt.Errorf("array %q has %d dimensions in Fortran order; write the array with numpy.ascontiguousarray: %w",
			name, len(h.Shape), dataset.ErrFormat)
	}
	h.Shape = []int{h.Shape[0], columns}
	return s, nil
}

// checkTexts reports an array that does not have a text for each row, or a number.
func (s *arraySource) checkTexts(a *array) error {
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
	return s.checkRows(a.name, n, 1)
}

func (s *arraySource) readNames() (err error) {
	read := func(name string, most int) (names []string) {
		if a := s.entries[name]; a != nil && err == nil {
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
	if s.rowNames = s.entries["row_names"]; s.rowNames != nil && err == nil {
		s.info.HasRowNames, err = true, s.checkTexts(s.rowNames)
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
	if a := r.classNames; a != nil && a.texts == nil {
		return arrayError(a.name, a.End())
	}
	return nil
}

// fileContents lists the variables of a .mat or .npz file, for messages.
type fileContents []string

func (h *fileContents) add(name, kind string, shape ...int) {
	if name == "" || len(*h) > maxListed { // one more than are listed
		return
	}
	dims := make([]string, len(shape))
	for i, n := range shape {
		dims[i] = fmt.Sprint(n)
	}
	*h = append(*h, fmt.Sprintf("%.100s (%s)", name, strings.TrimSpace(strings.Join(dims, " x ")+" "+kind)))
}

// missing returns an error that says that a file has no such variable, lists the variables
// of the file, and names the flag that chooses another.
func (h fileContents) missing(what, name, flag string, err error) error {
	return dataset.Errorf(err, "the file has no %s %q; it has %s; name the right one with %s", what, name, h.list(), flag)
}

func (h fileContents) list() string {
	list := strings.Join(h[:min(maxListed, len(h))], ", ")
	switch {
	case len(h) == 0:
		return "nothing"
	case len(h) > maxListed:
		return list + ", ..."
	}
	return list
}

// maxListed bounds the list.
const maxListed = 20
