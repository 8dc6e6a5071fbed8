package read

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
)

// filling fills, drops or refuses missing values (NaN).
type filling struct {
	info    dataset.Info
	missing dataset.Missing
	classes bool // labels are Row.text
	degrees bool // labels are degrees or counts, and one is above 0
	images  bool // names are names of images
}

// begin begins a scan.
func (s *filling) begin() func(*dataset.Row) error {
	var values []float64
	s.info.MissingWords.Rows = nil
	return func(r *dataset.Row) error {
		label := slices.IndexFunc(r.Labels, math.IsNaN)
		feature := slices.IndexFunc(r.Values, math.IsNaN)
		noClass := s.classes && numbers.IsMissing(r.Text)
		unlabelled := label >= 0 || noClass || importer.MissingBeside(&s.info, r) != ""
		if noClass {
			s.info.MissingWords.Add(r.Text, r.Number)
		}
		if unlabelled && s.info.HasGroups && numbers.IsMissing(r.Group) {
			s.info.MissingWords.Add(r.Group, r.Number)
		}
		switch {
		case s.missing.Keep, s.missing.Drop:
			r.Lack = s.lackOf(r, feature >= 0 && s.missing.Drop || unlabelled)
			r.LeftOut = r.Lack != dataset.LacksNothing
		case label >= 0:
			return &dataset.RowError{
				File: s.info.File, Row: r.Number, Column: label, Kind: "label", Name: dataset.NameAt(s.info.LabelNames, label),
				Reason: "the label is missing, and missing labels cannot be filled" + dataset.DropHint,
			}
		case feature >= 0 && s.missing.Fill:
			values = append(values[:0], r.Values...)
			for i, v := range values {
				if math.IsNaN(v) {
					values[i] = s.missing.Value
				}
			}
			r.Values = values
		}
		return nil
	}
}

// lackOf returns what a row lacks; value: a value of it is missing.
func (s *filling) lackOf(r *dataset.Row, value bool) dataset.Lack {
	switch {
	case s.images && numbers.IsMissing(r.Name):
		return dataset.LacksImage
	case value:
		return dataset.LacksValue
	case s.degrees && len(r.Labels) > 0 && !slices.ContainsFunc(r.Labels, func(v float64) bool { return v != 0 }):
		return dataset.LacksDegrees
	}
	return dataset.LacksNothing
}

// withMissing applies o.Missing, which does not refuse missing values, to the rows of p.
func withMissing(p *pipeline, o *OpenOptions) *pipeline {
	s := &filling{info: p.info, missing: o.Missing, classes: !o.NoLabels && o.Labels.Kind == dataset.Class, images: o.CSV.Images != ""}
	s.degrees = !o.NoLabels && (o.Labels.Kind == dataset.Counts || o.Labels.Kind == dataset.Distributions && !o.Missing.Keep)
	if s.info.Missing = o.Missing; o.Missing.Drop {
		s.info.Rows = -1
	}
	if s.info.MissingWords == nil {
		s.info.MissingWords = &dataset.WordCounts{}
	}
	return p.after(simple(s.begin), s.info)
}

// withFill fills the missing features of p with what the model of s keeps for them.
func withFill(p *pipeline, s *dataset.Schema) (*pipeline, error) {
	switch by := p.info.Missing.By; {
	case by == "":
		return p, nil
	case s.Fills() && by != s.Reading.Missing:
		return nil, dataset.OptionErrorf("{missing=%s}: the model has the %s of its training samples but not the %s: give {missing=%[2]s}, as in training", by, s.Reading.Missing, by)
	case !s.Fills():
		return nil, dataset.OptionErrorf("{missing=%s}: the model does not have the %s of its training samples, because it was trained without missing values or with another {missing}", by, by)
	}
	return p.after(simple(func() func(*dataset.Row) error {
		var values []float64
		return func(r *dataset.Row) error {
			if !slices.ContainsFunc(r.Values, math.IsNaN) {
				return nil
			}
			values = append(values[:0], r.Values...)
			for i, v := range values {
				column := i
				if r.Sparse {
					column = int(r.Columns[i])
				}
				if math.IsNaN(v) && column < len(s.Fill) {
					values[i] = s.Fill[column]
				}
			}
			r.Values = values
			return nil
		}
	}), p.info), nil
}
