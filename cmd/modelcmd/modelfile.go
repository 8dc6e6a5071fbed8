package modelcmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/predict"
)

// optionsFor returns how a command reads a file for a model: as the flags say, and otherwise as the file of the model
// was read. d has the flags about labels; if it is nil, no labels are read.
func optionsFor(m *predict.Model, f *dataflags.FileFlags, d *dataflags.DataFlags) (o read.OpenOptions,
	checks importer.Checks, err error) {
	r := &m.Provenance.Reading
	var taken []dataset.Option
	take := func(name, value string) { taken = append(taken, dataset.Option{Name: name, Value: value}) }
	if f.Labels == "" && r.Labels != "" {
		if f.Labels = string(r.Labels); d != nil {
			take("labels", f.Labels)
		}
	}
	if f.Missing == "" && m.Provenance.Missing != "" {
		f.Missing = m.Provenance.Missing
		take("missing", f.Missing)
	}
	if d == nil {
		o, err = f.Options()
		o.NoLabels = true
	} else {
		if err := checkRange(m, d.Range); err != nil {
			return o, checks, err
		}
		labelsAsTrained(m, d, take)
		o, checks, err = d.Options()
	}
	o.Libsvm.CountedFrom, o.AsTrained = m.Provenance.CountedFrom, taken
	return o, checks, err
}

// checkRange refuses a --range that differs from the range of the model. An empty text is no --range.
func checkRange(m *predict.Model, given string) error {
	scale := m.Provenance.LabelType.Scale
	if given == "" || scale == nil {
		return nil
	}
	_, labels := m.Shape()
	low, high, err := dataflags.ParseRange(given)
	if own := fmt.Sprintf("%d:%d", scale.Low, scale.Low+labels-1); err == nil &&
		(low != scale.Low || high != scale.Low+labels-1) {
		return cli.Usagef("{range=%s}: the model predicts numbers from the range %s: leave {range} out, or give {range=%s}",
			given, own, own)
	}
	return err
}

// labelsAsTrained sets flags about labels that are not given to their values for the file of the model, if the labels
// are of the same kind.
func labelsAsTrained(m *predict.Model, d *dataflags.DataFlags, take func(name, value string)) {
	r := &m.Provenance.Reading
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

// labelsError adds to an error about the labels of a file the flags that may help.
func labelsError(m *predict.Model, kind dataset.LabelKind, err error) error {
	if !errors.Is(err, dataset.ErrNoLabels) && !errors.Is(err, dataset.ErrOtherLabels) {
		return err
	}
	_, labels := m.Shape()
	switch t := m.Provenance.LabelType; {
	case t.Classes && kind != dataset.Class:
		return errtext.Errorf(errtext.WrongRequest, "%w; the model predicts classes: give {labels=class}, and name the "+
			"column of classes with {label-columns}", err)
	case t.Scale != nil && kind != dataset.Age:
		return errtext.Errorf(errtext.WrongRequest, "%w; the model predicts numbers: give {labels=age} {range=%d:%d}, "+
			"{sigma} as for training, and name the column of numbers with {label-columns}", err,
			t.Scale.Low, t.Scale.Low+labels-1)
	}
	return err
}

// writeMatching says how columns were matched, if a reader may doubt it.
func writeMatching(w io.Writer, f *read.Matching) {
	writeMatch(w, "features", f.Features)
	if f.Labels != nil {
		writeMatch(w, "labels", f.Labels)
	}
}

func writeMatch(w io.Writer, what string, m *read.Match) {
	switch {
	case m.By == read.ByPosition:
		fmt.Fprintf(w, "%s are matched with the model by position: %s\n", what, m.Why)
	case m.Moved > 0:
		moved := "1 is"
		if m.Moved > 1 {
			moved = units.Count(m.Moved) + " are"
		}
		fmt.Fprintf(w, "%s are matched with the model by name: %s elsewhere in the file\n", what, moved)
	}
	if m.Filled > 0 {
		fmt.Fprintf(w, "%s: the file has %s fewer than the model; the missing values are set to 0\n", what,
			units.Count(m.Filled))
	}
}
