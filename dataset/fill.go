package dataset

import (
	"math"
	"slices"
)

// filledSource is a Source that fills, drops or refuses the missing values (NaN) of another.
type filledSource struct {
	Source
	info    Info
	missing Missing
	classes bool // labels are Row.text
	degrees bool // labels are degrees or counts, and one is above 0
	images  bool // names are names of images
}

// Info describes the rows.
func (s *filledSource) Info() Info { return s.info }

// Scan implements Source.
func (s *filledSource) Scan(f func(*Row) error) error {
	var row Row
	var values []float64
	s.info.missingWords.rows = nil
	return s.Source.Scan(func(r *Row) error {
		row = *r
		label := slices.IndexFunc(r.Labels, math.IsNaN)
		feature := slices.IndexFunc(r.Values, math.IsNaN)
		noClass := s.classes && isMissing(r.text)
		unlabelled := label >= 0 || noClass || missingBeside(&s.info, r) != ""
		if noClass {
			s.info.missingWords.add(r.text, r.Number)
		}
		if unlabelled && s.info.HasGroups && isMissing(r.Group) {
			s.info.missingWords.add(r.Group, r.Number)
		}
		switch {
		case s.missing.keep, s.missing.Drop:
			row.lack = s.lackOf(r, feature >= 0 && s.missing.Drop || unlabelled)
			row.LeftOut = row.lack != lacksNothing
		case label >= 0:
			return &RowError{
				File: s.info.File, Row: r.Number, Column: label, Kind: "label", Name: nameAt(s.info.LabelNames, label),
				Reason: "the label is missing, and missing labels cannot be filled" + dropHint,
			}
		case feature >= 0 && s.missing.Fill:
			values = append(values[:0], r.Values...)
			fill(values, s.missing.Value)
			row.Values = values
		}
		return f(&row)
	})
}

// lackOf returns what a row lacks; value: a value of it is missing.
func (s *filledSource) lackOf(r *Row, value bool) lack {
	switch {
	case s.images && isMissing(r.Name):
		return lacksImage
	case value:
		return lacksValue
	case s.degrees && len(r.Labels) > 0 && !slices.ContainsFunc(r.Labels, func(v float64) bool { return v != 0 }):
		return lacksDegrees
	}
	return lacksNothing
}

// withMissing applies o.Missing, which does not refuse missing values, to the rows of src.
func withMissing(src Source, o *OpenOptions) Source {
	s := &filledSource{Source: src, info: src.Info(), missing: o.Missing, classes: !o.NoLabels && o.Labels.Kind == Class, images: o.Images != ""}
	s.degrees = !o.NoLabels && (o.Labels.Kind == Counts || o.Labels.Kind == Distributions && !o.Missing.keep)
	if s.info.Missing = o.Missing; o.Missing.Drop {
		s.info.Rows = -1
	}
	if s.info.missingWords == nil {
		s.info.missingWords = &wordCounts{}
	}
	return s
}

func fill(values []float64, by float64) {
	for i, v := range values {
		if math.IsNaN(v) {
			values[i] = by
		}
	}
}

// byFeature is a Source whose missing features have the values of a model.
type byFeature struct {
	Source
	values []float64
}

// Scan implements Source.
func (s *byFeature) Scan(f func(*Row) error) error {
	var row Row
	var values []float64
	return s.Source.Scan(func(r *Row) error {
		if !slices.ContainsFunc(r.Values, math.IsNaN) {
			return f(r)
		}
		values = append(values[:0], r.Values...)
		for i, v := range values {
			column := i
			if r.Sparse {
				column = int(r.Columns[i])
			}
			if math.IsNaN(v) && column < len(s.values) {
				values[i] = s.values[column]
			}
		}
		row = *r
		row.Values = values
		return f(&row)
	})
}

// withFill fills the missing features of src with what the model of s keeps for them.
func withFill(src Source, s *Schema) (Source, error) {
	switch by := src.Info().Missing.By; {
	case by == "":
		return src, nil
	case s.fills() && by != s.Reading.Missing:
		return nil, optionErrorf("{missing=%s}: the model has the %s of its training samples but not the %s: give {missing=%[2]s}, as in training", by, s.Reading.Missing, by)
	case !s.fills():
		return nil, optionErrorf("{missing=%s}: the model does not have the %s of its training samples, because it was trained without missing values or with another {missing}", by, by)
	}
	return &byFeature{src, s.Fill}, nil
}
