package main

import (
	"math"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/spec"
)

// dataFlags say how a data file is read.
type dataFlags struct {
	Labels       string   `enum:"distributions,age,class,counts" default:"distributions" group:"data" help:"What the labels are: distributions; age, a number that becomes a Gaussian around it (see --sigma and --range); class; or counts."`
	Sigma        float64  `placeholder:"S" group:"data" help:"Standard deviation of the Gaussian of --labels age."`
	Range        string   `placeholder:"LOW:HIGH" group:"data" help:"Whole numbers that the Gaussian of --labels age covers, such as 0:69."`
	LabelColumns []string `placeholder:"C,..." group:"data" help:"Label columns of a CSV file by header, number from 0 or \"last\", or the variable of a .mat or .npz file."`
	LabelPrefix  []string `placeholder:"P,..." group:"data" help:"Columns of a CSV file that begin so are labels (default: label_, y_)."`
	LabelsFile   string   `placeholder:"FILE" group:"data" help:"The .npy file with the labels of a .npy file of features."`
	Names        string   `placeholder:"FILE" group:"data" help:"JSON file with names: {\"features\": [...], \"labels\": [...], \"rows\": [...]}."`
	RowNames     string   `placeholder:"C" group:"data" help:"Column of a CSV file with row names."`
	Header       string   `enum:"auto,yes,no" default:"auto" group:"data" help:"Whether a CSV file begins with a header line: auto, yes or no."`
	Normalize    bool     `group:"data" help:"Divide each label row by its sum."`
	Tolerance    float64  `placeholder:"T" group:"data" help:"How far from 1 the labels of a row may sum (default: 0.0001)."`
}

// open opens a data file as the flags say.
func (d *dataFlags) open(path string) (dataset.Source, dataset.Checks, error) {
	o, checks, err := d.options()
	if err != nil {
		return nil, checks, err
	}
	src, err := dataset.Open(path, o)
	return src, checks, err
}

// options checks the flags; errors are usage errors.
func (d *dataFlags) options() (o dataset.OpenOptions, c dataset.Checks, err error) {
	kind, err := dataset.ParseLabelKind(d.Labels)
	if err != nil {
		return o, c, usageError{err}
	}
	o = dataset.OpenOptions{
		Labels:     dataset.LabelOptions{Kind: kind, Columns: d.LabelColumns, Prefixes: d.LabelPrefix},
		LabelsFile: d.LabelsFile, NamesFile: d.Names, RowNames: d.RowNames,
	}
	if d.Header != "auto" {
		o.Header = dataset.Header(d.Header)
	}
	if math.IsNaN(d.Tolerance) || d.Tolerance < 0 || d.Tolerance > 1 {
		return o, c, usagef("--tolerance %v: want a number from 0 to 1", d.Tolerance)
	}
	return o, dataset.Checks{Normalize: d.Normalize, Tolerance: d.Tolerance}, d.ages(&o.Labels)
}

// ages takes --sigma and --range over, which belong to --labels age only.
func (d *dataFlags) ages(o *dataset.LabelOptions) (err error) {
	if o.Kind != dataset.Age {
		if d.Sigma != 0 || d.Range != "" {
			return usagef("--sigma and --range belong to --labels age")
		}
		return nil
	}
	if math.IsNaN(d.Sigma) || math.IsInf(d.Sigma, 0) || d.Sigma <= 0 {
		return usagef("--labels age needs --sigma with a number above 0, such as --sigma 2")
	}
	if d.Range == "" {
		return usagef("--labels age needs --range LOW:HIGH, such as --range 0:69")
	}
	if o.Low, o.High, err = dataset.ParseRange(d.Range); err != nil {
		return usageError{err}
	}
	o.Sigma = d.Sigma
	return nil
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// datasetName makes a dataset's name of a file's.
func datasetName(path string) string {
	base := filepath.Base(path)
	base = strings.TrimSuffix(base, ".gz")
	base = strings.TrimSuffix(base, filepath.Ext(base))
	name := strings.TrimLeft(unfit.ReplaceAllString(base, "_"), ".-")
	if len(name) > spec.MaxName-16 {
		name = name[:spec.MaxName-16]
	}
	if spec.CheckName(name) != nil {
		name = "data_" + name
	}
	return name
}
