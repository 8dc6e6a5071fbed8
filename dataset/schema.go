package dataset

import "strings"

// Schema is the features that a model reads and the labels that it predicts, in the model's
// order.
type Schema struct {
	Features, Labels int

	FeatureNames []string // empty, or Features long; "" for a feature without a name
	LabelNames   []string // empty, or Labels long
	// LabelColumns says which columns of the file that was trained on were labels.
	LabelColumns LabelColumns
	// Shape is that of the images that the model was trained on; the zero value: of none.
	Shape Shape
}

// LabelColumns says which columns of a CSV file were read as labels, if their names do not
// say so. It is empty for other kinds of files.
type LabelColumns struct {
	Names     []string `json:"names,omitempty"`     // from the header, unless they begin with label_ or y_
	Positions []int    `json:"positions,omitempty"` // from 0, where there is no header
	// Beside names the columns with exact numbers, intervals and groups, from the header.
	Beside []string `json:"beside,omitempty"`
}

func (c *LabelColumns) count() int { return max(len(c.Names), len(c.Positions)) }

// OpenFor is Open for a model: rows have the features and, unless o.NoLabels, the labels of s
// in the order of s. If both the file and s have names, columns are matched by name, and the
// names must be the same; otherwise columns are matched by position. Label columns that s
// knows need not be in LabelOptions.Columns. A sparse file without names may have fewer
// features than s: the others are 0.
func OpenFor(path string, o OpenOptions, s *Schema) (Source, *Matching, error) {
	o.Features, o.schema = s.Features, s
	o.known = s.known(labelPrefixes(&o))
	if o.Images != "" && o.Shape == (Shape{}) {
		o.Shape = s.Shape
	}
	if o.Labels.Kind == Class {
		o.Labels.Classes = s.LabelNames
	}
	src, err := Open(path, o)
	if err != nil {
		return nil, nil, err
	}
	return project(src, s, !o.NoLabels)
}

// knownColumns are the names of columns of a CSV file that a schema knows.
type knownColumns struct {
	features map[string]bool
	labels   map[string]string // names of labels by column; "": the label has the column's name
	beside   map[string]bool   // columns beside features and labels, which are neither
}

// known returns the columns that s knows. Labels are known by the columns that were trained
// on and by their names, with or without a prefix. A name that a feature also has is the
// feature's.
func (s *Schema) known(prefixes []string) knownColumns {
	k := knownColumns{make(map[string]bool), make(map[string]string), make(map[string]bool)}
	for _, name := range s.FeatureNames {
		k.features[name] = true
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
	return k
}

func (k *knownColumns) feature(column string) bool { return column != "" && k.features[column] }

func (k *knownColumns) label(column string) bool {
	_, ok := k.labels[column]
	return ok
}

// inNumbers reports whether a line of numbers, which looks like a row of data, has the
// names of all features.
func (k *knownColumns) inNumbers(line []string, m marks) bool {
	names := make(map[string]bool, len(line))
	for _, field := range line {
		if !isFieldNumber(field, m) {
			return false
		}
		names[strings.TrimSpace(field)] = true
	}
	for name := range k.features {
		if !names[name] {
			return false
		}
	}
	return len(k.features) > 0
}
