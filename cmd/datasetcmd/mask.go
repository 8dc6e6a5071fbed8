package datasetcmd

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/masks"
	"github.com/coppice-ldl/coppice/dataset/write"
	"github.com/coppice-ldl/coppice/internal/units"
)

type maskCmd struct {
	Data       string  `required:"" placeholder:"FILE" help:"Data file with complete label distributions: .mat, .npz, .npy, .csv, .tsv, .libsvm, .arff or .parquet; - for stdin (see --data-format)."`
	Out        string  `required:"" placeholder:"FILE" help:"File to write: .csv, .csv.gz, .npz or .parquet; - for stdout."`
	Rate       float64 `placeholder:"F" help:"Fraction of the degrees to hide. Papers call the rest, 1 - F, the observed rate."`
	Unlabelled float64 `placeholder:"F" help:"Fraction of the samples that lose all of their degrees."`
	Pattern    string  `enum:"uniform,weighted,golden" default:"uniform" help:"Which degrees --rate hides. uniform: each with the same probability; weighted: a fixed number, drawn with the weights 1 - d, as PyLDL does; golden: the degrees that this documentation and its tests use, whatever the seed."`
	Seed       string  `default:"1" help:"Seed."`

	cli.FormatFlag
	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (maskCmd) Help() string {
	return `A missing degree is an empty field in CSV, and NaN in .npz. Read the file with --labels incomplete. If a sample
would have one missing degree, the degree is kept, because it follows from the others.

All samples of the file lose degrees, so a test on them has no complete labels. For cross-validation with complete
test samples, leave the file as it is, and give train the flag --mask, or a dataset of an experiment the key mask.`
}

// masked is what `coppice dataset mask` prints.
type masked struct {
	*written
	*masks.Stats

	Notes []string `json:"notes,omitempty"` // how the data was read
}

// Run implements `coppice dataset mask`.
func (c *maskCmd) Run(a *cli.App) error {
	seed, err := strconv.ParseUint(c.Seed, 10, 64)
	if err != nil {
		return cli.Usagef("{seed=%s}: want a whole number from 0 to %d", c.Seed, uint64(math.MaxUint64))
	}
	o := masks.Options{Mask: dataset.Mask{Rate: c.Rate, Unlabelled: c.Unlabelled, Golden: c.Pattern == "golden"},
		Weighted: c.Pattern == "weighted", Seed: seed}
	switch {
	case !(c.Rate >= 0 && c.Rate < 1):
		return cli.Usagef("{rate=%v}: want a number from 0 to below 1", c.Rate)
	case !(c.Unlabelled >= 0 && c.Unlabelled < 1):
		return cli.Usagef("{unlabelled=%v}: want a number from 0 to below 1", c.Unlabelled)
	case !o.Any():
		return cli.Usagef("nothing would be hidden: give {rate=F}, such as {rate=0.5}, or {unlabelled=F}")
	case c.Pattern != "uniform" && c.Rate == 0:
		return cli.Usagef("{pattern=%s} needs {rate=F}", c.Pattern)
	case o.Weighted && c.Unlabelled > 0:
		return cli.Usagef("{unlabelled} cannot be combined with {pattern=weighted}")
	}
	format, err := c.SamplesFormatOf(c.Out)
	if err != nil {
		return err
	}
	if err := cli.CheckNotInput("--out", c.Out, c.Data, c.Names, c.LabelsFile); err != nil {
		return err
	}
	src, checks, err := c.Open(a, c.Data)
	if err != nil {
		return err
	}
	m := progress.New(a)
	m.Quiet = a.JSON
	hidden, stats, err := masks.New(src, m.Reading(a.Ctx, "hiding degrees", checks), o)
	m.Clear()
	if err != nil {
		return err
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	writing := m.Reading(a.Ctx, "writing", checks)
	writing.Checks, writing.Note, writing.Warn = importer.Checks{}, nil, nil
	err = write.Write(out, format, hidden, writing, write.NPZOptions{Store: cli.IsDescriptor(c.Out)})
	m.Clear()
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	r := masked{writtenAs(c.Out, hidden), stats, m.Notes}
	return a.PrintBeside(c.Out, r, r.text)
}

func (r *masked) text(w io.Writer) {
	fmt.Fprintf(w, "%s of %s are missing (%.1f %%); %s without any, %s whose only missing degree follows from the "+
		"others\n",
		units.Count(r.Missing), units.Plural(int(r.Degrees), "degree"), 100*float64(r.Missing)/float64(r.Degrees),
		units.Plural(r.Empty, "sample"), units.Plural(r.Repaired, "sample"))
	r.written.text(w)
}
