package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// model is a decoded model file.
type model struct {
	algorithms.Model
	file       *modelfile.File
	provenance *pipeline.Provenance
	threads    int  // to predict on; 0 means 1
	store      bool // true if predictions in a .npz file are not compressed
}

func openModel(path string) (*model, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := decodeModel(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func decodeModel(b []byte) (*model, error) {
	file, m, err := registry.Model(b)
	if err != nil {
		return nil, err
	}
	p := new(pipeline.Provenance)
	if len(file.Provenance) > 0 {
		if err := json.Unmarshal(file.Provenance, p); err != nil {
			return nil, fmt.Errorf("%w: provenance: %w", modelfile.ErrCorrupt, err)
		}
	}
	if p.Job == nil {
		return nil, fmt.Errorf("%w: the file does not say which job made the model", modelfile.ErrCorrupt)
	}
	return &model{Model: m, file: file, provenance: p}, nil
}

// classes returns the names of the labels that the model predicts.
func (m *model) classes() []string {
	_, labels := m.Shape()
	if len(m.provenance.LabelNames) == labels {
		return m.provenance.LabelNames
	}
	return defaultLabels(labels)
}

// defaultLabels returns names for labels without names.
func defaultLabels(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = "label_" + strconv.Itoa(i)
	}
	return names
}

// output returns what the model predicts, and width the number of values for a sample.
func (m *model) output() algorithms.Output { return registry.Output(m.file.Algorithm) }

func (m *model) width() int {
	_, labels := m.Shape()
	return m.output().Width(labels)
}

// schema describes the files that the model reads.
func (m *model) schema() *dataset.Schema {
	s := &dataset.Schema{
		FeatureNames: m.provenance.FeatureNames, LabelNames: m.provenance.LabelNames, LabelColumns: m.provenance.LabelColumns,
		Shape: m.provenance.Shape, Reading: m.provenance.Reading, Fill: m.provenance.Fill,
	}
	s.Features, s.Labels = m.Shape()
	return s
}

// reads returns how a command reads a file: as the flags say, and otherwise as the file of the model was read. d has
// the flags about labels; if it is nil, no labels are read.
func (m *model) reads(f *fileFlags, d *dataFlags) (o dataset.OpenOptions, checks dataset.Checks, err error) {
	r := &m.provenance.Reading
	var taken []dataset.Option
	take := func(name, value string) { taken = append(taken, dataset.Option{Name: name, Value: value}) }
	if f.Labels == "" && r.Labels != "" {
		if f.Labels = string(r.Labels); d != nil {
			take("labels", f.Labels)
		}
	}
	if f.Missing == "" && m.provenance.Missing != "" {
		f.Missing = m.provenance.Missing
		take("missing", f.Missing)
	}
	if d == nil {
		o, err = f.options()
		o.NoLabels = true
	} else {
		if err := m.checkRange(d.Range); err != nil {
			return o, checks, err
		}
		m.readsLabels(d, take)
		o, checks, err = d.options()
	}
	o.CountedFrom, o.AsTrained = m.provenance.CountedFrom, taken
	return o, checks, err
}

// checkRange refuses a --range that differs from the range of the model. An empty text is no --range.
func (m *model) checkRange(given string) error {
	scale := m.provenance.LabelType.Scale
	if given == "" || scale == nil {
		return nil
	}
	_, labels := m.Shape()
	low, high, err := parseRange(given)
	if own := fmt.Sprintf("%d:%d", scale.Low, scale.Low+labels-1); err == nil && (low != scale.Low || high != scale.Low+labels-1) {
		return usagef("{range=%s}: the model predicts numbers from the range %s: leave {range} out, or give {range=%s}", given, own, own)
	}
	return err
}

// readsLabels sets flags about labels that are not given to their values for the file of the model, if the labels are
// of the same kind.
func (m *model) readsLabels(d *dataFlags, take func(name, value string)) {
	r := &m.provenance.Reading
	if kind, err := dataset.ParseLabelKind(d.Labels); err != nil || kind != r.Labels {
		return
	}
	if d.Sigma == 0 && r.Sigma != 0 {
		d.Sigma = r.Sigma
		take("sigma", units.InFull(r.Sigma))
	}
	if d.Range == "" && r.Range != "" {
		d.Range = r.Range
		take("range", r.Range)
	}
	if !d.Normalize && r.Normalize {
		d.Normalize = true
		take("normalize", "")
	}
	if d.Tolerance == 0 && r.Tolerance != 0 {
		d.Tolerance = r.Tolerance
		take("tolerance", units.InFull(r.Tolerance))
	}
}

// readAs adds to an error about the labels of a file the flags that may help.
func (m *model) readAs(kind dataset.LabelKind, err error) error {
	if !errors.Is(err, dataset.ErrNoLabels) && !errors.Is(err, dataset.ErrOtherLabels) {
		return err
	}
	_, labels := m.Shape()
	switch t := m.provenance.LabelType; {
	case t.Classes && kind != dataset.Class:
		return errtext.Errorf(errtext.WrongRequest, "%w; the model predicts classes: give {labels=class}, and name the column of classes with {label-columns}", err)
	case t.Scale != nil && kind != dataset.Age:
		return errtext.Errorf(errtext.WrongRequest, "%w; the model predicts numbers: give {labels=age} {range=%d:%d}, {sigma} as for training, and name the column of numbers with {label-columns}", err,
			t.Scale.Low, t.Scale.Low+labels-1)
	}
	return err
}

// writeMatching says how columns were matched, if a reader may doubt it.
func writeMatching(w io.Writer, f *dataset.Matching) {
	writeMatch(w, "features", f.Features)
	if f.Labels != nil {
		writeMatch(w, "labels", f.Labels)
	}
}

func writeMatch(w io.Writer, what string, m *dataset.Match) {
	switch {
	case m.By == dataset.ByPosition:
		fmt.Fprintf(w, "%s are matched with the model by position: %s\n", what, m.Why)
	case m.Moved > 0:
		moved := "1 is"
		if m.Moved > 1 {
			moved = units.Count(m.Moved) + " are"
		}
		fmt.Fprintf(w, "%s are matched with the model by name: %s elsewhere in the file\n", what, moved)
	}
	if m.Filled > 0 {
		fmt.Fprintf(w, "%s: the file has %s fewer than the model; the missing values are set to 0\n", what, units.Count(m.Filled))
	}
}

// typeOf returns the type of the labels of a file for this model. It is the type that the model was trained on. For
// plain distributions, it is the type that the flags say. Exact numbers of the file are used.
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
		return t, errtext.Errorf(errtext.WrongRequest, "%s: the model was trained on samples with exact numbers, and its errors are measured from such numbers: name their column with {values}", info.File)
	}
	t.Scale = &s
	return t, nil
}

// leftOut has the row numbers of the samples that a command left out because of missing values.
type leftOut []int

const maxLeftOutShown = 20

func (l *leftOut) add(row int) { *l = append(*l, row) }

// String says how many samples were left out, and which; empty if there are none.
func (l leftOut) String() string {
	if len(l) == 0 {
		return ""
	}
	var numbers []string
	for _, row := range l[:min(maxLeftOutShown, len(l))] {
		numbers = append(numbers, fmt.Sprint(row))
	}
	if len(l) > maxLeftOutShown {
		numbers = append(numbers, "...")
	}
	return fmt.Sprintf("left out because of missing values: %s (rows counted from 0: %s)", units.Plural(len(l), "sample"), strings.Join(numbers, ", "))
}

// tell prints the notes about how a file was read.
func tellReading(a *app, src dataset.Source) {
	if a.json { // JSON has the notes
		return
	}
	for _, note := range src.Info().Said() {
		a.note("%s: %s", src.Info().File, note)
	}
}
