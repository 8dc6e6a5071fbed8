package read

import (
	"errors"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// OpenFor is Open for a model: rows have the features and, unless o.NoLabels, the labels of s
// in the order of s. If both the file and s have names, columns are matched by name, and the
// names must be the same; otherwise columns are matched by position. Label columns that s
// knows need not be in LabelOptions.Columns. A sparse file without names may have fewer
// features than s: the others are 0. The file is read as s.Reading says, except for what o
// gives: o.Labels, o.Missing and o.CountedFrom are taken from o alone.
func OpenFor(path string, o OpenOptions, s *dataset.Schema) (dataset.Source, *Matching, error) {
	taken, line := slices.Clone(o.AsTrained), firstLine{}
	o.Features, o.set.schema, o.set.taken, o.set.header = s.Features, s, &taken, &line
	o.Missing.Model = s
	o.likeTraining(path)
	o.set.known = knownColumnsOf(s, o.Labels.LabelPrefixes())
	if o.CSV.Images != "" && o.Shape == (dataset.Shape{}) {
		o.Shape = s.Shape
	}
	if o.Labels.Kind == dataset.Class {
		o.Labels.Classes = s.LabelNames
	}
	src, err := Open(path, o)
	var p *pipeline
	var m *Matching
	if err == nil {
		p, m, err = project(src, s, !o.NoLabels)
	}
	if err == nil {
		p, err = withFill(p, s)
	}
	note, hint := o.note(overrides), headerHint(s, &line, &o.set.known)
	if err == nil {
		return withNote(p, note).advised(o.remedy(), hint), m, nil
	}
	if hint != "" {
		err = errtext.Errorf(errtext.WrongData, "%w; %s", err, hint)
	}
	if note != "" {
		err = errtext.Errorf(errtext.WrongData, "%w; %s", err, o.remedy())
	}
	return nil, nil, err
}

// advised returns a pipeline whose errors say what may be wrong with the file: with remedy, how the file was read, and
// hint in errors about the first row. Each may be empty.
func (p *pipeline) advised(remedy, hint errtext.Text) *pipeline {
	next := *p
	next.advise = func(err error, own bool) error {
		if own && remedy != "" {
			err = errtext.Errorf(errtext.WrongData, "%w; %s", err, remedy)
		}
		if row := (*dataset.RowError)(nil); hint != "" && errors.As(err, &row) && row.Row == 0 {
			err = errtext.Errorf(errtext.WrongData, "%w; %s", err, hint)
		}
		return err
	}
	return &next
}

// headerHint says what to do about a file that seems to lack the header that the model's file had; empty: it does not.
func headerHint(s *dataset.Schema, line *firstLine, known *knownColumns) errtext.Text {
	if !line.read || s.Reading.Kind != familyNames[csvFiles] || len(s.LabelColumns.Positions) > 0 {
		return ""
	}
	if line.names != nil {
		named := func(name string) bool { // a class of a row is no name of a column
			label := slices.Contains(s.LabelColumns.Names, name) || s.Reading.Labels != dataset.Class && known.label(name)
			return label || known.feature(name) || known.beside[name] || known.passed[name]
		}
		if slices.ContainsFunc(line.names, named) {
			return ""
		}
		return errtext.Sprintf("the first line has no column name of the model: give {header=no} if the first line is a row")
	}
	return errtext.Sprintf("the training file had a header, but this file is read without a header: add a first line with the column names of the training file%s", columnsOfFile(s))
}

// columnsOfFile lists the names of the columns of the model's file that are known.
func columnsOfFile(s *dataset.Schema) string {
	var names []string
	for i := range s.Reading.Categories {
		names = append(names, s.Reading.Categories[i].Name)
	}
	for _, name := range s.FeatureNames {
		if !slices.ContainsFunc(s.Reading.Categories, func(k dataset.Category) bool { return strings.HasPrefix(name, k.Name+"=") }) {
			names = append(names, name)
		}
	}
	if len(s.LabelColumns.Names) > 0 {
		names = append(names, s.LabelColumns.Names...)
	} else if s.Reading.Labels == dataset.Distributions || s.Reading.Labels == dataset.Counts {
		for _, name := range s.LabelNames {
			names = append(names, "label_"+name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + dataset.ListSome(names)
}

// known returns the columns that s knows. Labels are known by the columns that were trained
// on and by their names, with or without a prefix. A name that a feature also has is the
// feature's.
func knownColumnsOf(s *dataset.Schema, prefixes []string) knownColumns {
	k := knownColumns{
		features: make(map[string]bool), labels: make(map[string]string), beside: make(map[string]bool),
		passed: make(map[string]bool), passedAt: make(map[int]string), width: s.Reading.Columns, chosen: s.Reading.Chosen,
	}
	for _, name := range s.FeatureNames {
		k.features[name] = true
	}
	for i := range s.Reading.Categories {
		k.features[s.Reading.Categories[i].Name] = true
	}
	add := func(column, label string) {
		if column != "" && !k.features[column] {
			k.labels[column] = label
		}
	}
	for _, name := range s.LabelNames {
		for _, p := range prefixes {
			add(p+name, name)
		}
		add(name, name)
	}
	for i, column := range s.LabelColumns.Names {
		add(column, "")
		if len(s.LabelNames) == len(s.LabelColumns.Names) {
			add(column, s.LabelNames[i])
		}
	}
	for _, column := range s.LabelColumns.Beside {
		if column != "" && !k.features[column] {
			k.beside[column] = true
		}
	}
	for _, p := range s.Reading.Dropped {
		if p.Name == "" || k.features[p.Name] {
			k.passedAt[p.At] = p.Name
		} else {
			k.passed[p.Name] = true
		}
	}
	return k
}
