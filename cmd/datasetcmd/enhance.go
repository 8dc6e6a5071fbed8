package datasetcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/enhance"
)

type enhanceCmd struct {
	File      string   `arg:"" placeholder:"FILE" help:"Data file, or - for stdin."`
	Method    string   `enum:"lp,km,glle,logical" default:"lp" help:"lp: label propagation; km: distances from the centres of labels in kernel space; glle: graph Laplacian label enhancement; logical: the logical labels as they are."`
	Normalise string   `enum:"softmax,sum" default:"softmax" help:"How distributions are made of scores. softmax: their softmax; sum: negative scores become 0, then all are divided by their sum."`
	Binarise  *float64 `placeholder:"T" help:"The labels are distributions: make logical labels of them, by falling probability until their sum exceeds T, and compare the result with the distributions. Papers use 0.5."`
	Truth     string   `placeholder:"FILE" help:"File with the true distributions of the same samples, in the same order, to compare the result with. It is read with the same flags."`
	Out       string   `placeholder:"FILE" help:"File to write: .csv, .csv.gz, .npz or .parquet; - for stdout. With --binarise or --truth, it may be left out."`

	cli.FormatFlag
	cli.ThreadsFlag
	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (enhanceCmd) Help() string {
	return `Logical labels say which labels of a sample are relevant: 1, or 0. A label enhancement makes a distribution of them, with
the help of the features. The file that is written has the same samples with these distributions as labels, and every
algorithm can be trained on it. Without --binarise, labels that are not 0 are relevant.

If the true distributions are known, the command prints how near the result is to them, as means over all samples. Two lines
for comparison need no features: L / sum, the relevant labels with equal probabilities, and softmax(L). Published tables mix
normalisations and print the reverse K-L divergence: docs/guides/enhance-labels.md.

lp and km take at most 20,000 samples. glle takes at most 5,000, and a matrix of all pairs of samples in memory.`
}

// enhanced is what `coppice dataset enhance` prints.
type enhanced struct {
	Method    string      `json:"method"`
	Normalise string      `json:"normalise"`
	Binarise  *float64    `json:"binarise,omitempty"`
	Samples   int         `json:"samples"`
	Relevant  float64     `json:"relevant_labels"` // mean number in a sample
	Seconds   float64     `json:"seconds"`
	Recovery  []recovered `json:"recovery,omitempty"` // the result, then L / sum and softmax(L); none without a truth
	Written   *written    `json:"written,omitempty"`
	Notes     []string    `json:"notes,omitempty"`
}

// recovered says how near distributions are to the true distributions.
type recovered struct {
	Of string `json:"of"`
	enhance.Recovery
}

// Run implements `coppice dataset enhance`.
func (c *enhanceCmd) Run(a *cli.App) error {
	switch {
	case c.Binarise != nil && c.Truth != "":
		return cli.Usagef("{binarise} compares with the labels of the file, and {truth} with another file: give only " +
			"one of them")
	case c.Binarise != nil && !(*c.Binarise > 0 && *c.Binarise < 1):
		return cli.Usagef("{binarise=%v}: want a number above 0 and below 1", *c.Binarise)
	case c.Out == "" && c.Binarise == nil && c.Truth == "":
		return cli.Usagef("nothing to write and nothing to compare with: give {out=FILE}, {binarise=0.5} or " +
			"{truth=FILE}")
	}
	err := cmp.Or(c.ThreadsFlag.Check(), cli.CheckNotInput("--out", c.Out, c.File, c.Truth, c.Names, c.LabelsFile))
	if err != nil {
		return err
	}
	if c.Out != "" {
		if _, err := c.SamplesFormatOf(c.Out); err != nil {
			return err
		}
	}
	e := &round.Enhance{Method: c.Method, Normalise: c.Normalise}
	if c.Binarise != nil {
		e.Binarise = *c.Binarise
	}
	m := progress.New(a)
	m.Quiet = a.JSON
	src, data, truth, err := c.read(a, m)
	if err != nil {
		return err
	}
	r := &enhanced{Method: c.Method, Normalise: c.Normalise, Binarise: c.Binarise, Samples: data.Manifest.Rows}
	began := time.Now()
	p, logical, err := enhance.Run(a.Ctx, e, data, c.Number(), func(done, of int) {
		m.Show(fmt.Sprintf("enhancing labels: %d %%", 100*done/of))
	})
	m.Clear()
	in := dataset.Prefix(src.Info().File)
	if about, ok := errors.AsType[*param.Error](err); ok {
		return cli.BadData(fmt.Errorf("%s%s", in, about.Reason))
	}
	if about, ok := errors.AsType[*errtext.Error](err); ok { // without the round and the task
		return cli.BadData(errtext.Errorf(errtext.WrongData, "%s%w", in, about))
	}
	if err != nil {
		return err
	}
	r.Seconds = time.Since(began).Seconds()
	for _, l := range logical {
		r.Relevant += float64(l) / float64(data.Manifest.Rows)
	}
	if labels := data.Manifest.Labels; truth != nil {
		r.Recovery = []recovered{
			{c.Method + ", " + c.Normalise, enhance.Recovered(truth, p, labels)},
			{"L / sum", enhance.Recovered(truth, enhance.Trivial(logical, labels, enhance.Sum), labels)},
			{"softmax(L)", enhance.Recovered(truth, enhance.Trivial(logical, labels, enhance.Softmax), labels)},
		}
	}
	r.Notes = m.Notes
	if c.Out == "" {
		return a.Print(r, r.text)
	}
	out := newRelabelled(src, data.Manifest, p)
	if err := writeData(a, c.Out, &c.FormatFlag, out); err != nil {
		return err
	}
	r.Written = writtenAs(c.Out, out)
	r.Written.Rows = data.Manifest.Rows
	return a.PrintBeside(c.Out, r, r.text)
}

// read reads the data, and the true distributions by sample, then by label; nil: they are not known.
func (c *enhanceCmd) read(a *cli.App, m *progress.Meter) (src dataset.Source, data *dataset.Data, truth []float32,
	err error) {
	build := func(path string, logical bool) (dataset.Source, *dataset.Data, error) {
		src, checks, err := c.Open(a, path)
		if err != nil {
			return nil, nil, err
		}
		checks.Normalize = checks.Normalize || logical
		manifest, shards, err := importer.Build(src, m.Reading(a.Ctx, "reading data", checks))
		m.Clear()
		if err != nil {
			return nil, nil, err
		}
		return src, enhance.AllOf(manifest, shards), nil
	}
	if src, data, err = build(c.File, c.Binarise == nil); err != nil {
		return nil, nil, nil, err
	}
	if by := data.Manifest.Fill(); by != "" {
		return nil, nil, nil, cli.Usagef("{missing=%s}: want drop or a number, because an enhancement of a file has no "+
			"training samples", by)
	}
	of := data
	switch {
	case c.Binarise != nil:
	case c.Truth == "":
		return src, data, nil, nil
	default:
		if _, of, err = build(c.Truth, false); err != nil {
			return nil, nil, nil, err
		}
		if t, d := of.Manifest, data.Manifest; t.Rows != d.Rows || t.Labels != d.Labels {
			return nil, nil, nil, cli.BadData(fmt.Errorf("%s has %s with %s, but %s has %s with %s", c.Truth,
				units.Plural(t.Rows, "sample"), units.Plural(t.Labels, "label"), c.File, units.Plural(d.Rows, "sample"),
				units.Plural(d.Labels, "label")))
		}
	}
	return src, data, enhance.LabelsOf(of), nil
}

func (r *enhanced) text(w io.Writer) {
	fmt.Fprintf(w, "%s enhanced by %s with %s in %s; %.2f relevant labels in a sample\n", units.Plural(r.Samples,
		"sample"), r.Method, r.Normalise, units.Duration(r.Seconds), r.Relevant)
	if r.Recovery != nil {
		fmt.Fprintf(w, "\nMeans over all samples, compared with the true distributions\n")
		header := []string{"", "Chebyshev", "Clark", "Canberra", "K-L", "reverse K-L", "Cosine", "Intersection"}
		cli.WriteTable(w, header, r.Recovery, func(v recovered) []string {
			row := []string{v.Of}
			for _, x := range []float64{v.Chebyshev, v.Clark, v.Canberra, v.KL, v.ReverseKL, v.Cosine, v.Intersection} {
				row = append(row, fmt.Sprintf("%.4f", x))
			}
			return row
		}, 1, 2, 3, 4, 5, 6, 7)
		fmt.Fprintln(w, "better is lower, but higher for Cosine and Intersection; tables of papers print the reverse K-L")
	}
	if r.Written != nil {
		if r.Recovery != nil {
			fmt.Fprintln(w)
		}
		r.Written.text(w)
	}
}

// relabelled is a source with other labels.
type relabelled struct {
	dataset.Source
	place  map[int]int // of each row of the file among the samples; nil if no row is left out
	labels []float32   // by sample, then by label
	of     int         // labels of a sample
}

func newRelabelled(src dataset.Source, m *dataset.Manifest, labels []float32) *relabelled {
	r := &relabelled{Source: src, labels: labels, of: m.Labels}
	if rows := m.FileRow(); rows != nil {
		r.place = make(map[int]int)
		for i, row := range rows {
			r.place[row] = i
		}
	}
	return r
}

// Scan implements dataset.Source.
func (r *relabelled) Scan(f func(*dataset.Row) error) error {
	degrees := make([]float64, r.of)
	return r.Source.Scan(func(row *dataset.Row) error {
		at := row.Number
		if r.place != nil {
			var ok bool
			if at, ok = r.place[at]; !ok { // it is left out for missing values
				return f(row)
			}
		}
		for c := range degrees {
			degrees[c] = float64(r.labels[at*r.of+c])
		}
		with := *row
		with.Labels = degrees
		return f(&with)
	})
}
