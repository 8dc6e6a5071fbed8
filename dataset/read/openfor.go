package read

import (
	"slices"

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
	taken := slices.Clone(o.AsTrained)
	o.Features, o.set.schema, o.set.taken = s.Features, s, &taken
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
	note := o.note()
	advise := func(err error) error {
		if note == "" {
			return err
		}
		return errtext.Errorf(errtext.WrongData, "%w; %s", err, note)
	}
	if err != nil {
		return nil, nil, advise(err)
	}
	p = withNote(p, note)
	p.advise = advise
	return p, m, nil
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
