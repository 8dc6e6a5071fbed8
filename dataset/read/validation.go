package read

import (
	"cmp"
	"errors"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// WithValidation returns the rows of training, then the rows of a file of validation samples. Row.Validation is true
// for the second ones. The file is read with the options of training, and like a file read for a model: it needs
// the same columns by name, the same labels and no other levels of categories. It has groups, exact numbers, intervals
// and weights in the same columns. Options that name another file of training do not apply.
func WithValidation(training dataset.Source, path string, o OpenOptions) (dataset.Source, error) {
	info := training.Info()
	s := &dataset.Schema{Features: info.Features, Labels: info.Labels, FeatureNames: info.FeatureNames,
		LabelNames: info.LabelNames, LabelColumns: info.LabelColumns, Bounds: info.LabelType.Bounds, Shape: info.Shape,
		Reading: info.Reading}
	o.NamesFile, o.Arrays.LabelsFile, o.Called = "", "", ""
	if IsNamedArrays(path) {
		o.Called = "the validation arrays"
	}
	o.Libsvm.CountedFrom, o.set.validates = info.CountedFrom, cmp.Or(info.File, "the data")
	if _, err := FormatOf(path, OpenOptions{}); err == nil {
		o.Format = ""
	}
	own, _, err := openLike(path, o, s, func(p *pipeline) (*pipeline, error) { return p, nil })
	if err != nil {
		return nil, err
	}
	v := own.Info()
	if !info.LabelType.Same(&v.LabelType) {
		return nil, errtext.Errorf(errtext.WrongData, "%sthe labels are %s, but %s has %s", dataset.Prefix(v.File),
			v.LabelType.String(v.Labels), info.File, info.LabelType.String(info.Labels))
	}
	for _, has := range []struct {
		what     string
		of, here bool
	}{{"exact numbers", info.HasValues, v.HasValues}, {"intervals", info.HasIntervals, v.HasIntervals},
		{"groups", info.HasGroups, v.HasGroups}, {"weights", info.HasWeights, v.HasWeights}} {
		if has.of != has.here {
			return nil, errtext.Errorf(errtext.WrongData, "%sonly one of this file and %s has %s of the samples",
				dataset.Prefix(v.File), info.File, has.what)
		}
	}
	info.Validation, info.Slow = &v, info.Slow || v.Slow
	if info.Rows >= 0 && v.Rows >= 0 {
		info.Rows += v.Rows
	} else {
		info.Rows = -1
	}
	return &validated{training: training, validation: own, info: info}, nil
}

// validated are the rows of a file, and then validation rows of another one.
type validated struct {
	training, validation dataset.Source
	info                 dataset.Info
}

// Info implements Source.
func (s *validated) Info() dataset.Info { return s.info }

// Scan implements Source. An error of f about a validation row names its own file, and its row there.
func (s *validated) Scan(f func(*dataset.Row) error) error {
	first := 0
	err := s.training.Scan(func(r *dataset.Row) error {
		first = r.Number + 1
		return f(r)
	})
	if err != nil {
		return err
	}
	return s.validation.Scan(func(r *dataset.Row) error {
		own := *r
		own.Number, own.Validation = r.Number+first, true
		if !s.info.HasRowNames {
			own.Name = ""
		}
		err := f(&own)
		if at := (*dataset.RowError)(nil); errors.As(err, &at) && at.Row == own.Number {
			at.File, at.Row = s.info.Validation.File, r.Number
		}
		return err
	})
}
