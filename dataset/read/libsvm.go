package read

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// libsvmSource streams sparse rows from a text file (FORMAT.md).
type libsvmSource struct {
	path     string
	encoding string
	labels   bool // wanted
	classes  bool // the label is text
	missing  dataset.Missing
	kind     dataset.LabelKind
	base     uint32 // the index of the first feature: 0 or 1
	info     dataset.Info
}

// openLibsvm scans the file once for its numbers of rows, features and labels.
func openLibsvm(path string, o *OpenOptions) (dataset.Source, error) {
	s := &libsvmSource{
		path: path, encoding: o.Encoding, labels: !o.NoLabels, classes: !o.NoLabels && o.Labels.Kind == dataset.Class,
		missing: o.Missing, kind: o.Labels.Kind,
		info: dataset.Info{File: o.Called, Sparse: true, MissingWords: &dataset.WordCounts{}},
	}
	shape := indexShape{zero: o.Libsvm.ZeroBased || o.Libsvm.CountedFrom == dataset.FromZero}
	err := s.scan(func(comment string) error { return s.directive(comment, &shape) }, func(r *dataset.Row) error {
		if shape.rows == 0 {
			s.info.Labels = s.labelCount(r)
		}
		shape.add(r)
		s.info.HasRowNames = s.info.HasRowNames || r.Name != ""
		return nil
	})
	if err != nil {
		return nil, err
	}
	if shape.rows == 0 {
		return nil, fmt.Errorf("%s: the file has no samples: %w", s.info.File, dataset.ErrFormat)
	}
	if shape.zero && o.Libsvm.CountedFrom == dataset.FromOne && !o.Libsvm.ZeroBased {
		return nil, errtext.Errorf(errtext.WrongData, "%s: this file numbers features from 0, but the model's training "+
			"file numbers them from 1: add 1 to each index, or give {zero-based} if index 0 is the model's first feature: %w",
			s.info.File, dataset.ErrFormat)
	}
	s.setShape(&shape)
	if err := o.checkFeatures(s.info.Features, "number the features without gaps, or decompress the file if it is "+
		"compressed"); err != nil {
		return nil, fmt.Errorf("%s: %w", s.info.File, err)
	}
	if o.set.schema != nil { // missing features are read as 0
		s.info.Features = max(s.info.Features, 1)
	} else if len(s.info.FeatureNames) == 0 {
		s.info.Features = max(s.info.Features, o.Features)
	}
	if s.labels {
		if err := oneColumn(o, "label", s.info.Labels); err != nil {
			return nil, fmt.Errorf("%s: %w", s.info.File, err)
		}
		s.info.Notes = append(s.info.Notes, errtext.Sprintf("%s read from the first field of each line",
			o.Labels.target(s.info.Labels)))
	}
	return s, nil
}

// indexShape is what the first pass over a libsvm file finds about indices.
type indexShape struct {
	rows    int
	highest int  // the highest index; 0 if there is none
	zero    bool // the first feature has the index 0
}

func (x *indexShape) add(r *dataset.Row) {
	x.rows++
	if n := len(r.Columns); n > 0 {
		x.highest = max(x.highest, int(r.Columns[n-1]))
		x.zero = x.zero || r.Columns[0] == 0
	}
}

// setShape sets the number of features and the first index from the first pass: a file
// with an index 0 counts from 0.
func (s *libsvmSource) setShape(x *indexShape) {
	s.info.Rows, s.info.CountedFrom, s.base = x.rows, dataset.FromOne, 1
	if x.zero {
		s.info.CountedFrom, s.base = dataset.FromZero, 0
	}
	s.info.Features = max(s.info.Features, x.highest+1-int(s.base))
	switch {
	case x.zero:
		s.info.Notes = append(s.info.Notes, "features are numbered from 0")
	case x.highest > 0:
		s.info.Notes = append(s.info.Notes, errtext.Sprintf(
			"no index is 0, so features are numbered from 1 ({zero-based} numbers them from 0)"))
	}
	if s.info.Labels == 0 {
		s.info.LabelNames = nil
	}
}

func (s *libsvmSource) labelCount(r *dataset.Row) int {
	if s.classes {
		return 1
	}
	return len(r.Labels)
}

// zeroBasedComment is what scikit-learn writes into files that count from 0.
const zeroBasedComment = "Column indices are zero-based"

// directive reads a comment that describes the file.
func (s *libsvmSource) directive(comment string, x *indexShape) error {
	x.zero = x.zero || strings.TrimSpace(comment) == zeroBasedComment
	key, value, _ := strings.Cut(comment, ":")
	value = strings.TrimSpace(value)
	switch key = strings.TrimSpace(key); {
	case key == "features" && strings.Count(value, ",") >= dataset.MaxFeatures, key == "labels" &&
		strings.Count(value, ",") >= dataset.MaxLabels:
		return fmt.Errorf("%s: the comment %q has too many names; a dataset has at most %d features and %d labels: %w",
			s.info.File, key, dataset.MaxFeatures, dataset.MaxLabels, dataset.ErrFormat)
	}
	switch key {
	case "features":
		s.info.FeatureNames = splitNames(value)
		s.info.Features = max(s.info.Features, len(s.info.FeatureNames))
	case "labels":
		if s.classes {
			s.info.ClassNames = splitNames(value)
		} else if s.labels {
			s.info.LabelNames = splitNames(value)
		}
	case "columns":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > dataset.MaxFeatures {
			return fmt.Errorf("%s: the comment columns has %.40q, want a number from 1 to %d: %w", s.info.File, value,
				dataset.MaxFeatures, dataset.ErrFormat)
		}
		s.info.Features = max(s.info.Features, n)
	}
	return nil
}

func splitNames(list string) []string {
	names := strings.Split(list, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// Info implements Source.
func (s *libsvmSource) Info() dataset.Info { return s.info }

// Scan implements Source.
func (s *libsvmSource) Scan(f func(*dataset.Row) error) error {
	return s.scan(func(string) error { return nil }, func(r *dataset.Row) error {
		if n := s.labelCount(r); s.labels && n != s.info.Labels {
			var hint errtext.Text
			if s.info.ListsClasses(r.Labels) {
				hint = "; " + dataset.ClassListHint
			}
			return s.rowError(r, "found %d labels, want %d%s", n, s.info.Labels, hint)
		}
		for i := range r.Columns {
			if r.Columns[i] < s.base {
				return s.rowError(r, "this row has the feature index 0, but the first pass found no index 0: %w",
					dataset.ErrChanged)
			}
			r.Columns[i] -= s.base
		}
		return f(r)
	})
}

// scan parses each line and calls comment or f.
func (s *libsvmSource) scan(comment func(string) error, f func(*dataset.Row) error) error {
	in, file, err := openText(s.path, s.encoding)
	if err != nil {
		return pathError(s.info.File, err)
	}
	defer file.Close()
	return s.scanLines(in, comment, func(r *dataset.Row) error {
		r.File = file
		return f(r)
	})
}

func (s *libsvmSource) scanLines(in io.Reader, comment func(string) error, f func(*dataset.Row) error) error {
	b := &bounded{in: in}
	lines := bufio.NewReaderSize(b, 1<<16)
	var row dataset.Row
	for n, line := 0, 1; ; line++ {
		b.left = maxLine
		whole, err := lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF) && whole == "":
			return nil
		case errors.Is(err, io.EOF): // the last line has no end
		case errors.Is(err, errTooLong):
			return dataset.Errorf(dataset.ErrFormat, "%s: line %d has more than %s bytes, the limit for a libsvm file; write "+
				"the data as .npz or .npy", s.info.File, line, units.Count(maxLine))
		case err != nil:
			return fmt.Errorf("%s: %w", s.info.File, textError(err))
		}
		text, note, noted := strings.Cut(whole, "#")
		if text = strings.TrimSpace(text); text == "" {
			if err := comment(note); noted && err != nil {
				return err
			}
			continue
		}
		row = dataset.Row{Number: n, Sparse: true, Columns: row.Columns[:0], Values: row.Values[:0], Labels: row.Labels[:0],
			Name: strings.TrimSpace(note), Line: line}
		if err := s.parse(&row, text); err != nil {
			return err
		}
		if err := notUTF8("the name of the sample", row.Name); err != nil {
			return s.rowError(&row, "%w", err)
		}
		n++
		if err := f(&row); err != nil {
			return err
		}
	}
}

// parse reads "d1,d2,... index:value index:value".
func (s *libsvmSource) parse(row *dataset.Row, text string) error {
	first := true
	for field := range strings.FieldsSeq(text) {
		index, value, isValue := strings.Cut(field, ":")
		var err error
		switch {
		case isValue:
			if first && s.labels {
				return &dataset.RowError{File: s.info.File, Row: row.Number, Line: row.Line, Column: -1,
					Reason: "the line must begin with labels", Err: dataset.ErrNoLabels}
			}
			err = s.parseValue(row, index, value)
		case !first:
			return s.rowError(row, "found %.40q, want INDEX:VALUE", field)
		case s.labels:
			err = s.parseLabels(row, field)
		}
		if err != nil {
			return err
		}
		first = false
	}
	return nil
}

func (s *libsvmSource) parseLabels(row *dataset.Row, field string) error {
	if s.classes {
		if row.Text = field; listsNumbers(field) {
			return s.rowError(row, "%.40q are several labels, but {labels=class} reads one class for each sample: write the "+
				"probability of every class, such as 0.5,0,0.5 for two classes of three", field)
		}
		if err := notUTF8("the class of the sample", field); err != nil {
			return s.rowError(row, "%w", err)
		}
		return nil
	}
	for part := range strings.SplitSeq(field, ",") {
		v, reason := s.number(part, row.Number, valueOf(s.kind))
		if reason != "" {
			return &dataset.RowError{
				File: s.info.File, Row: row.Number, Line: row.Line, Column: len(row.Labels), Kind: "label",
				Name: dataset.NameAt(s.info.LabelNames, len(row.Labels)), Reason: reason,
			}
		}
		if row.Labels = append(row.Labels, v); len(row.Labels) > dataset.MaxLabels {
			return s.rowError(row, "the sample has more than %d labels: %w", dataset.MaxLabels, dataset.ErrFormat)
		}
	}
	return nil
}

// listsNumbers reports whether a field is several numbers with commas between them.
func listsNumbers(field string) bool {
	if !strings.Contains(field, ",") {
		return false
	}
	for part := range strings.SplitSeq(field, ",") {
		if !numbers.Is(part) {
			return false
		}
	}
	return true
}

func (s *libsvmSource) parseValue(row *dataset.Row, index, value string) error {
	i, err := strconv.ParseUint(index, 10, 32)
	if index == "qid" {
		return s.rowError(row, "qid:%.40s is the query of a sample in a ranking dataset, which cannot be read: remove qid "+
			"from each line; to read groups of samples, use a CSV file and {groups}", value)
	} else if err != nil || i > dataset.MaxFeatures {
		return s.rowError(row, "index %.40q: want a number from 0 or 1 to %d", index, dataset.MaxFeatures)
	}
	column := uint32(i)
	if n := len(row.Columns); n > 0 && row.Columns[n-1] >= column {
		if slices.Contains(row.Columns, column) {
			return s.rowError(row, "index %d occurs twice in this line: remove one of the two, because a feature has one "+
				"value in a sample", i)
		}
		return s.rowError(row, "index %d comes after %d, but indices must ascend: sort each line by index, for example in "+
			"Python with sorted(pairs, key=lambda p: int(p.split(':')[0]))", i, row.Columns[n-1])
	}
	v, reason := s.number(value, row.Number, dataset.OfFeature)
	if reason != "" {
		return s.rowError(row, "index %d: %s", i, reason)
	}
	row.Columns, row.Values = append(row.Columns, column), append(row.Values, v)
	return nil
}

// number reads a value or degree; NaN is a missing value that is not refused.
func (s *libsvmSource) number(field string, row int, what dataset.ValueOf) (v float64, reason errtext.Text) {
	switch v, reason = numbers.Parse(field); {
	case reason == "" && v == v: // most values
		return v, ""
	case !numbers.IsMissing(field):
		return v, reason
	case s.missing.Refuses() && !(what == dataset.OfDegree && s.kind == dataset.Incomplete):
		return 0, errtext.Sprintf("%.40q is a missing value%s", field, s.missing.Hint(what))
	}
	s.info.MissingWords.Add(field, row)
	return numbers.NaN, ""
}

func (s *libsvmSource) rowError(r *dataset.Row, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &dataset.RowError{File: s.info.File, Row: r.Number, Line: r.Line, Column: -1,
		Reason: errtext.Within(err.Error(), err), Err: errors.Unwrap(err)}
}
