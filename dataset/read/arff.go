package read

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/arff"
	"github.com/coppice-ldl/coppice/dataset/numbers"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// arffTable is an ARFF file.
type arffTable struct {
	path, called, encoding string
	attributes             []arff.Attribute
	labels                 []int        // that MEKA's relation or Mulan's list says; nil: none
	by                     errtext.Text // what says so
	told                   bool         // true if no option names other labels
	answers                []int        // labels with the levels no and yes, or false and true
}

// openARFF reads the head of a file, and the list of its labels.
func openARFF(path string, o *OpenOptions) (namedColumns, error) {
	t := &arffTable{path: path, called: o.Called, encoding: o.Encoding}
	r, file, err := t.begin()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t.attributes = r.Attributes
	if t.labels, err = r.Labels(); err != nil {
		return nil, dataset.Errorf(dataset.ErrFormat, "%w", err)
	}
	if t.labels != nil {
		t.by = "the relation's option -C"
	}
	return t, t.readLabels(o)
}

// begin opens the file behind its head.
func (t *arffTable) begin() (*arff.Reader, *measuredFile, error) {
	in, file, err := openText(t.path, t.encoding)
	if err != nil {
		return nil, nil, err
	}
	r, err := arff.NewReader(in)
	if err != nil {
		file.Close()
		return nil, nil, t.failed(err)
	}
	return r, file, nil
}

func (t *arffTable) failed(err error) error {
	if errors.Is(err, arff.ErrFormat) {
		return dataset.WithKind(err, dataset.ErrFormat)
	}
	return textError(err)
}

// readLabels finds the attributes that a list of labels names.
func (t *arffTable) readLabels(o *OpenOptions) error {
	path := pathOfLabels(t.path, o)
	if path == "" || o.NoLabels && o.Arrays.LabelsFile == "" {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && o.Arrays.LabelsFile == "" {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := arff.ReadLabels(f, func(name string, in io.Reader) (io.Reader, error) {
		known, err := ParseEncoding(name)
		if err != nil || known == encodingUTF8 {
			return in, err
		}
		e := charset(known)
		if e == nil {
			return nil, fmt.Errorf("encoding %q cannot be read", name)
		}
		return e.NewDecoder().Reader(in), nil
	})
	if err != nil {
		return dataset.Errorf(dataset.ErrFormat, "the list of labels %s: %w", path, err)
	}
	at := make(map[string]int, len(t.attributes))
	for i := range t.attributes {
		at[t.attributes[i].Name] = i
	}
	t.labels, t.by = nil, errtext.Sprintf("%s", path)
	for _, name := range names {
		i, ok := at[name]
		if !ok {
			return dataset.Errorf(dataset.ErrFormat, "the list of labels %s has %.100q, which is no attribute of the "+
				"file", path, name)
		}
		if slices.Contains(t.labels, i) {
			return dataset.Errorf(dataset.ErrFormat, "the list of labels %s has %.100q twice", path, name)
		}
		t.labels = append(t.labels, i)
	}
	slices.Sort(t.labels)
	return nil
}

func (t *arffTable) columns() (names []string) {
	for i := range t.attributes {
		names = append(names, t.attributes[i].Name)
	}
	return names
}

func (t *arffTable) refuses(column int, _ bool) errtext.Text {
	switch t.attributes[column].Kind {
	case arff.Date:
		return "dates, which are no numbers"
	case arff.Relational:
		return "relations, which cannot be read"
	}
	return ""
}

// notes says where the labels come from, if it is the file or its list of labels.
func (t *arffTable) notes() []errtext.Text {
	if !t.told {
		return nil
	}
	return []errtext.Text{"the labels are listed in " + t.by}
}

// answer returns the number of a level: 0 for no and false, 1 for yes and true, and level itself for others.
func answer(level string) string {
	switch strings.ToLower(level) {
	case "no", "false":
		return "0"
	case "yes", "true":
		return "1"
	}
	return level
}

// isAnswer reports whether an attribute has two levels, no and yes or false and true.
func isAnswer(a *arff.Attribute) bool {
	if a.Kind != arff.Nominal || len(a.Levels) != 2 {
		return false
	}
	both := strings.ToLower(a.Levels[0] + " " + a.Levels[1])
	return slices.Contains([]string{"no yes", "yes no", "false true", "true false"}, both)
}

// prepare takes labels from the file unless options name them, and reads nominal attributes whose levels are no numbers
// as categories. Labels with the levels no and yes are read as 0 and 1.
func (t *arffTable) prepare(o *OpenOptions) (*OpenOptions, int) {
	like, names := *o, t.columns()
	l := &like.Labels
	t.told = t.labels != nil && !l.Single() && len(l.Columns)+len(l.Prefixes) == 0 && !o.NoLabels
	if t.told {
		for _, i := range t.labels {
			l.Columns = append(l.Columns, strconv.Itoa(i))
			if flag := flagColumn(names, i); flag == names[i] {
				l.Columns[len(l.Columns)-1] = flag
			}
		}
	}
	var taken csvColumns
	if c, err := chooseColumns(names, len(names), &like); err == nil {
		taken = c
	}
	t.answers = nil
	for _, i := range taken.labels {
		if !l.Single() && !o.NoLabels && isAnswer(&t.attributes[i]) {
			t.answers = append(t.answers, i)
		}
	}
	if o.set.schema != nil {
		return &like, -1
	}
	like.CSV.Categories = slices.Clone(o.CSV.Categories)
	listed, _ := findColumns(names, len(names), o.CSV.Categories) // errors come later
	for _, i := range taken.features {
		a := &t.attributes[i]
		if a.Kind == arff.Nominal && !slices.Contains(listed, i) &&
			slices.ContainsFunc(a.Levels, func(level string) bool { return !numbers.Is(level) }) {
			like.CSV.Categories = append(like.CSV.Categories, flagColumn(names, i))
		}
	}
	return &like, -1
}

func (t *arffTable) each(_, _ []bool, f func(n int, record []string, r *csvRecords) error) error {
	in, file, err := t.begin()
	if err != nil {
		return pathError(t.called, err)
	}
	defer file.Close()
	r := &csvRecords{file: t.called, from: file}
	var own []string // the reader keeps parts of its record
	for n := 0; ; n++ {
		record, line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if at := (*arff.Error)(nil); errors.As(err, &at) {
			return &dataset.RowError{File: t.called, Row: n, Line: at.Line, Column: -1,
				Reason: errtext.Sprintf("%s", at.Reason), Err: dataset.ErrFormat}
		}
		if err != nil {
			return pathError(t.called, t.failed(err))
		}
		if r.line = line; len(t.answers) > 0 {
			own = append(own[:0], record...)
			for _, i := range t.answers {
				own[i] = answer(own[i])
			}
			record = own
		}
		if err := f(n, record, r); err != nil {
			return err
		}
	}
}

// pathOfLabels returns the path of the XML file with the labels of an ARFF file: the path in the options, or else the
// path of the ARFF file with the extension .xml. It returns "" for other files. The XML file may not exist.
func pathOfLabels(path string, o *OpenOptions) string {
	if o.Arrays.LabelsFile != "" {
		return o.Arrays.LabelsFile
	}
	base := strings.TrimSuffix(path, ".gz")
	if lower := strings.ToLower(base); strings.HasSuffix(lower, ".arff") {
		return base[:len(base)-len(".arff")] + ".xml"
	}
	return ""
}
