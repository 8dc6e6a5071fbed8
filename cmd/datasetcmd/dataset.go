// Package datasetcmd has the commands of datasets and data files: they import, show, inspect, convert and generate.
package datasetcmd

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cmd is `coppice dataset`.
type Cmd struct {
	Import   importCmd   `cmd:"" help:"Import a data file into a cluster."`
	List     listCmd     `cmd:"" help:"List the datasets of a cluster."`
	Show     showCmd     `cmd:"" help:"Describe a dataset of a cluster."`
	Inspect  inspectCmd  `cmd:"" help:"Describe a data file and warn of possible mistakes; nothing is imported."`
	Share    shareCmd    `cmd:"" help:"Let all users of a cluster read one of your datasets."`
	Delete   deleteCmd   `cmd:"" help:"Delete a dataset of a cluster; refused while a job needs the dataset."`
	Convert  convertCmd  `cmd:"" help:"Write a data file as .npz, without changes to its dataset."`
	Enhance  enhanceCmd  `cmd:"" help:"Make label distributions of logical labels, and compare them with the true distributions."`
	Generate generateCmd `cmd:"" help:"Write a generated dataset to a file."`
	Mask     maskCmd     `cmd:"" help:"Write a data file without some of its label degrees, for experiments with incomplete labels."`
	Fetch    fetchCmd    `cmd:"" help:"Fetch public datasets by name."`
	Patches  patchesCmd  `cmd:"" help:"Cut images with a class for each pixel into patches; each patch is a sample."`
}

type importCmd struct {
	Data string `required:"" placeholder:"FILE" help:"Data file: .mat, .npz, .npy, .csv, .tsv, .libsvm, .arff or .parquet; - for stdin (see --data-format); or a JSON object with the .npy file of each array. Or a folder or a quoted pattern of .parquet files."`
	Name string `placeholder:"NAME" help:"Name of the dataset (default: the name of the file)."`

	connect.SharedFlag
	connect.ChangeFlags
	dataflags.DataFlags
	dataflags.ValidationFlag
}

// Run implements `coppice dataset import`.
func (c *importCmd) Run(a *cli.App) error {
	if c.Name == "" {
		c.Name = dataflags.DatasetName(c.Data)
	}
	if err := protocol.CheckName(c.Name); err != nil {
		return cli.Usagef("{name=%s}: %w", c.Name, err)
	}
	if err := c.ValidationFlag.Check(c.Data); err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	src, checks, err := c.OpenWith(a, c.Data, c.ValidationFlag)
	if err != nil {
		return err
	}
	m := progress.New(a)
	m.Quiet = a.JSON
	d, err := cl.Datasets().Import(a.Ctx, protocol.DatasetPut{Name: c.Name, Shared: c.Shared}, src,
		m.Reading(a.Ctx, "reading data", checks))
	m.Clear()
	if err != nil {
		return err
	}
	if c.Shared && d.Private {
		connect.NoteNotShared(a, "dataset", d.Name)
	}
	info := describeDataset(d)
	info.Notes = m.Notes
	return a.Print(info, func(w io.Writer) {
		fmt.Fprintf(w, "imported %s: %s\ndigest %s\n", d.Name, d.Manifest, d.Digest)
	})
}

// origin says who imported a dataset, and when.
type origin struct {
	Owner    string `json:"owner,omitempty"`   // empty: nobody
	Private  bool   `json:"private,omitempty"` // true if only the owner and admins may read the samples
	Imported int64  `json:"imported"`          // Unix seconds
}

// datasetInfo is a dataset as the commands print it.
type datasetInfo struct {
	origin

	Name         string             `json:"name"`
	Digest       string             `json:"digest"`
	Rows         int                `json:"samples"`
	Features     int                `json:"features"`
	Labels       int                `json:"labels"`
	Sparse       bool               `json:"sparse"`
	NonZeros     int64              `json:"non_zeros"`
	Shape        string             `json:"shape,omitempty"` // of images
	Shards       int                `json:"shards"`
	Bytes        int64              `json:"bytes"`
	LabelType    *dataset.LabelType `json:"label_type,omitempty"` // nil for plain distributions
	Values       bool               `json:"has_values,omitempty"`
	Intervals    bool               `json:"has_intervals,omitempty"`
	Weights      bool               `json:"has_weights,omitempty"`
	Groups       []string           `json:"groups,omitempty"`
	Validation   int                `json:"validation_samples,omitempty"` // of a file of their own, among the samples
	LabelNames   []string           `json:"label_names,omitempty"`
	FeatureNames []string           `json:"feature_names,omitempty"`
	MeanLabel    []float64          `json:"mean_label,omitempty"`
	Reading      *dataset.Reading   `json:"reading,omitempty"`          // only of show
	Missing      string             `json:"missing"`                    // refuse, drop, mean, median or a number
	CountedFrom  string             `json:"counted_from,omitempty"`     // of a libsvm file: 0 or 1
	LeftOut      int                `json:"left_out,omitempty"`         // number of samples
	LeftOutRows  dataflags.LeftOut  `json:"left_out_samples,omitempty"` // row numbers, only of show
	Notes        []string           `json:"notes,omitempty"`            // notes and warnings of import
}

func describeDataset(d *protocol.Dataset) *datasetInfo {
	m := d.Manifest
	info := &datasetInfo{
		Name: d.Name, Digest: d.Digest, Rows: m.Rows, Features: m.Features, Labels: m.Labels, Sparse: m.Sparse,
		NonZeros: m.NonZeros, Shards: len(m.Shards), Bytes: m.Bytes(), origin: origin{d.Owner, d.Private, d.Time},
		LabelNames: m.LabelNames, FeatureNames: m.FeatureNames, MeanLabel: m.MeanLabel,
		Missing: cmp.Or(m.Missing, "refuse"), CountedFrom: string(m.CountedFrom), LeftOut: m.FileRows() - m.Rows,
		Values: m.HasValues, Intervals: m.HasIntervals, Weights: m.HasWeights, Shape: m.Shape.String(),
	}
	if m.LabelType != (dataset.LabelType{}) {
		info.LabelType = &m.LabelType
	}
	if m.Groups != nil {
		info.Groups = m.Groups.Names
	}
	if m.Validation != nil {
		info.Validation = m.Validation.Rows
	}
	return info
}

type listCmd struct {
	connect.ListFlags
	Sort string `placeholder:"KEY" help:"Order of the list: name (the default), time or samples. A - before the word sorts in descending order, as in --sort=-time."`

	connect.ServerFlags
}

// Run implements `coppice dataset list`.
func (c *listCmd) Run(a *cli.App) error {
	var q protocol.DatasetQuery
	if err := c.Query(&q.ListQuery, q.Params(), c.Sort); err != nil {
		return err
	}
	return connect.Ask(a, c, func(cl *client.Client) ([]*datasetInfo, error) {
		sets, err := cl.Datasets().Choose(a.Ctx, q)
		infos := []*datasetInfo{}
		for i := range sets {
			infos = append(infos, describeDataset(&sets[i]))
		}
		return infos, err
	}, func(w io.Writer, infos []*datasetInfo) {
		owner := func(d *datasetInfo) string { return cli.Owner(d.Owner, d.Private) }
		cli.WriteOwned(w, []string{"name", "samples", "features", "labels", "storage", "size", "imported", "digest"}, infos,
			owner, func(d *datasetInfo) []string {
				return []string{d.Name, units.Count(d.Rows), units.Count(d.Features), units.Count(d.Labels), d.storage(),
					units.Format(d.Bytes), cli.Time(d.Imported), cli.ShortDigest(d.Digest)}
			}, 2, 3, 4, 6)
	})
}

func (d *datasetInfo) storage() string {
	if d.Sparse {
		return "sparse"
	}
	return "dense"
}

type showCmd struct {
	Name string `arg:"" help:"Name of the dataset."`

	connect.ServerFlags
}

// Run implements `coppice dataset show`.
func (c *showCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	set, err := cl.Datasets().Get(a.Ctx, c.Name)
	if err != nil {
		return err
	}
	d := describeDataset(set)
	d.LeftOutRows, d.Reading = set.Manifest.LeftOutRows(), &set.Manifest.Reading
	labels, groups := set.Manifest.LabelType.String(d.Labels), "none"
	if d.Intervals {
		labels += ", with intervals"
	}
	samples, weights := units.Count(d.Rows), "none"
	if d.Validation > 0 {
		samples += fmt.Sprintf("; %s of them validate", units.Count(d.Validation))
	}
	if d.Weights {
		weights = "one for each sample"
	}
	if n := len(d.Groups); n > 0 {
		groups = fmt.Sprintf("%s: %s", units.Count(n), cli.NameList(d.Groups))
	}
	return a.Print(d, func(w io.Writer) {
		cli.WritePairs(w, [][2]string{
			{"name", d.Name},
			{"digest", d.Digest},
			{"samples", samples},
			{"features", units.Count(d.Features)},
			{"shape", cmp.Or(d.Shape, "none")},
			{"feature names", cli.NameList(d.FeatureNames)},
			{"labels", units.Count(d.Labels)},
			{"label names", cli.NameList(d.LabelNames)},
			{"labels are", labels},
			{"read with", cmp.Or(dataflags.ReadingFlags(&set.Manifest.Reading), "no flags")},
			{"dropped", dataflags.Dropped(&set.Manifest.Reading)},
			{"categories", dataflags.Categories(&set.Manifest.Reading)},
			{"groups", groups},
			{"weights", weights},
			{"storage", fmt.Sprintf("%s, %.3g %% non-zero", d.storage(), 100*set.Manifest.Density())},
			{"shards", fmt.Sprintf("%s, %s", units.Count(d.Shards), units.Format(d.Bytes))},
			{"imported", cli.Time(d.Imported)},
			{"owner", cmp.Or(cli.Owner(d.Owner, d.Private), "none")},
			{"missing", strings.TrimSuffix(d.Missing+"; "+d.LeftOutRows.String(), "; ")},
			{"mean label", meanLine(set.Manifest)},
		})
	})
}

// meanLine writes the mean label distribution, at most 20 labels of it.
func meanLine(m *dataset.Manifest) string {
	var parts []string
	for i, v := range m.MeanLabel {
		if i == 20 {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, fmt.Sprintf("%s: %.4f", m.LabelName(i), v))
	}
	return strings.Join(parts, ", ")
}

type shareCmd struct {
	Name string `arg:"" help:"Name of the dataset."`

	connect.ChangeFlags
}

// Run implements `coppice dataset share`.
func (c *shareCmd) Run(a *cli.App) error {
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	d, err := cl.Datasets().Share(a.Ctx, c.Name)
	if err != nil {
		return err
	}
	return a.Print(describeDataset(d), func(w io.Writer) { fmt.Fprintf(w, "all users may read dataset %s\n", d.Name) })
}

type deleteCmd struct {
	Name string `arg:"" help:"Name of the dataset."`

	connect.ChangeFlags
}

// Run implements `coppice dataset delete`.
func (c *deleteCmd) Run(a *cli.App) error {
	return connect.Ask(a, c, func(cl *client.Client) (map[string]string, error) {
		return map[string]string{"deleted": c.Name}, cl.Datasets().Delete(a.Ctx, c.Name)
	}, func(w io.Writer, _ map[string]string) {
		fmt.Fprintf(w, "deleted %s\n%s\n", c.Name, connect.FreedLater())
	})
}
