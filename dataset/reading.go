package dataset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Reading says how a data file was read: the options that were given, and the columns that
// were ignored. A dataset and its models keep it, so that OpenFor reads later files in the
// same way. Like names it is no part of a dataset's digest.
type Reading struct {
	// Kind is the kind of the file: "csv", "libsvm", "npz", "npy", "mat", "arff" or "parquet".
	Kind string `json:"kind,omitempty"`
	// Columns is the number of columns of a CSV file, or of features of another file before
	// some were chosen.
	Columns int `json:"columns,omitempty"`
	// Dropped lists the columns of a CSV file with a header that were dropped. It is empty if
	// Chosen is true: only the columns that are named for something were read.
	Dropped []DroppedColumn `json:"dropped,omitempty"`
	Chosen  bool            `json:"chosen,omitempty"`

	// Categories are the columns of a CSV file that became features, with their levels.
	Categories []Category `json:"categories,omitempty"`

	Labels         LabelKind `json:"labels,omitempty"`
	LabelColumns   []string  `json:"label_columns,omitempty"`
	LabelPrefix    []string  `json:"label_prefix,omitempty"`
	Sigma          float64   `json:"sigma,omitempty"`
	Range          string    `json:"range,omitempty"`
	Bounds         []string  `json:"bounds,omitempty"`
	Normalize      bool      `json:"normalize,omitempty"`
	Tolerance      float64   `json:"tolerance,omitempty"`
	Values         string    `json:"values,omitempty"`
	Intervals      []string  `json:"intervals,omitempty"`
	Groups         string    `json:"groups,omitempty"`
	Weights        string    `json:"weights,omitempty"`
	RowNames       string    `json:"row_names,omitempty"`
	ReadColumns    []string  `json:"read_columns,omitempty"` // {columns}
	FeatureColumns []string  `json:"feature_columns,omitempty"`
	Drop           []string  `json:"drop,omitempty"`
	Header         Header    `json:"header,omitempty"`
	Delimiter      string    `json:"delimiter,omitempty"`
	Decimal        string    `json:"decimal,omitempty"`
	Thousands      string    `json:"thousands,omitempty"`
	Encoding       string    `json:"encoding,omitempty"`
	Missing        string    `json:"missing,omitempty"`

	FeaturesVariable string `json:"features_variable,omitempty"`
	LabelsVariable   string `json:"labels_variable,omitempty"`
	ZeroBased        bool   `json:"zero_based,omitempty"`
	DataFormat       string `json:"data_format,omitempty"`
	Shape            Shape  `json:"shape,omitzero"`
	// Files lists the options that named other files: "names", "labels_file", "images".
	Files []string `json:"files,omitempty"`
}

// DroppedColumn is a column of a CSV file that was dropped.
type DroppedColumn struct {
	Name string `json:"name"`
	At   int    `json:"at"` // its position, from 0
}

// MaxDropped bounds Reading.Dropped.
const MaxDropped = 1024

// Option is an option of a Reading as a flag of the command line gives it.
type Option struct {
	Name  string // of the flag, without dashes
	Value string // empty for a flag that is true
}

// Text returns the option as a place of a text.
func (o Option) Text() errtext.Text { return errtext.Option(o.Name, o.Value) }

// String writes the option as a flag, as a shell reads it.
func (o Option) String() string { return o.Text().String() }

// Options lists the options that were given, in the order of the flags.
func (r *Reading) Options() (all []Option) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, Option{name, value})
		}
	}
	list := func(name string, items []string) { add(name, ListFlag(name, items...).Value) }
	number := func(v float64) string {
		if v == 0 {
			return ""
		}
		return units.InFull(v)
	}
	yes := func(name string, given bool) {
		if given {
			all = append(all, Option{Name: name})
		}
	}
	add("labels", string(r.Labels))
	list("label-columns", r.LabelColumns)
	list("label-prefix", r.LabelPrefix)
	add("sigma", number(r.Sigma))
	add("range", r.Range)
	list("bounds", r.Bounds)
	add("values", r.Values)
	list("intervals", r.Intervals)
	add("groups", r.Groups)
	add("weights", r.Weights)
	add("row-names", r.RowNames)
	add("header", string(r.Header))
	list("columns", r.ReadColumns)
	list("feature-columns", r.FeatureColumns)
	list("drop", r.Drop)
	var categories []string
	for _, k := range r.Categories {
		categories = append(categories, k.Name)
	}
	list("categories", categories)
	add("delimiter", r.Delimiter)
	add("decimal", r.Decimal)
	add("thousands", r.Thousands)
	add("encoding", r.Encoding)
	add("missing", r.Missing)
	add("features-variable", r.FeaturesVariable)
	add("labels-variable", r.LabelsVariable)
	yes("zero-based", r.ZeroBased)
	add("data-format", r.DataFormat)
	add("shape", r.Shape.String())
	yes("normalize", r.Normalize)
	add("tolerance", number(r.Tolerance))
	for _, f := range r.Files {
		if name := strings.ReplaceAll(f, "_", "-"); f == "images" {
			add(name, "DIR")
		} else {
			add(name, "FILE")
		}
	}
	return all
}

// check returns an error if no file was read so. It bounds what a manifest may hold.
func (r *Reading) check() error {
	if _, err := ParseLabelKind(string(r.Labels)); err != nil {
		return err
	}
	if r.Columns < 0 || len(r.Dropped) > MaxDropped || len(r.Files) > 3 {
		return fmt.Errorf("%d columns, %d dropped columns and %d other files are not possible", r.Columns, len(r.Dropped),
			len(r.Files))
	}
	all := 0
	for _, k := range r.Categories {
		if all += len(k.Levels); len(k.Levels) == 0 || k.At < 0 || k.At >= r.Columns {
			return fmt.Errorf("the category %.40q with %d levels is not possible", k.Name, len(k.Levels))
		}
		if err := errors.Join(CheckName(k.Name), checkNames("level", k.Levels)); err != nil {
			return err
		}
	}
	if all > MaxLabels {
		return fmt.Errorf("the categories have too many levels: %d", all)
	}
	for _, p := range r.Dropped {
		if err := CheckName(p.Name); err != nil || p.At < 0 || p.At >= r.Columns {
			return fmt.Errorf("the dropped column %.40q at position %d of %d is not possible", p.Name, p.At, r.Columns)
		}
	}
	return nil
}

// Category is a column of a CSV file that became features: one for each of its levels, which is
// 1 in the rows of that level and 0 in the others.
type Category struct {
	Name   string   `json:"name"` // from the header, or the position of the column
	At     int      `json:"at"`   // the position of the column, from 0
	Levels []string `json:"levels"`
}

// Header says whether a CSV file has a header line.
type Header string

// The values of Header.
const (
	HeaderAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// LabelKind says what the labels in a file are.
type LabelKind string

// The kinds of labels.
const (
	// Distributions are label distributions already: one column for each label.
	Distributions LabelKind = ""
	// Age is one number for each row, which becomes a Gaussian around it.
	Age LabelKind = "age"
	// Class is one class name or number for each row, which becomes one-hot.
	Class LabelKind = "class"
	// Counts are non-negative counts, which are divided by their sum.
	Counts LabelKind = "counts"
	// Incomplete are label distributions in which degrees may be missing.
	Incomplete LabelKind = "incomplete"
	// Bounded are targets in bounds: a real number for each label.
	Bounded LabelKind = "bounded"
)

// ParseLabelKind reads a LabelKind as flags and specs write it.
func ParseLabelKind(s string) (LabelKind, error) {
	switch k := LabelKind(s); k {
	case Distributions, Age, Class, Counts, Incomplete, Bounded:
		return k, nil
	case "distribution", "distributions":
		return Distributions, nil
	}
	return "", fmt.Errorf("labels %q: want distributions, incomplete, age, class, counts or bounded", s)
}

// LabelColumns says which columns of a CSV file were read as labels, if their names do not
// say so. It is empty for other kinds of files.
type LabelColumns struct {
	// from the header, unless there are several that begin with label_ or y_
	Names     []string `json:"names,omitempty"`
	Positions []int    `json:"positions,omitempty"` // from 0, where there is no header
	// Beside names the columns with exact numbers, intervals, groups and weights, from the header.
	Beside []string `json:"beside,omitempty"`
}

// Schema is the features that a model reads and the labels that it predicts, in the model's
// order.
type Schema struct {
	Features, Labels int

	FeatureNames []string // empty, or Features long; "" for a feature without a name
	LabelNames   []string // empty, or Labels long
	// LabelColumns says which columns of the file that was trained on were labels.
	LabelColumns LabelColumns
	// Bounds are the bounds of targets that were given in training; nil: there are none.
	Bounds *Bounds
	// Shape is that of the images that the model was trained on; the zero value: of none.
	Shape Shape
	// Reading says how the file that was trained on was read.
	Reading Reading
	// Fill takes the place of missing features with Missing.By, which is Reading.Missing; empty, or Features long.
	Fill []float64
}
