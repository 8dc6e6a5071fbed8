package datasetcmd

import (
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset/write"
)

type convertCmd struct {
	Data  string `required:"" placeholder:"FILE" help:"Data file: .mat, .npz, .npy, .csv, .tsv or .libsvm; - for stdin (see --data-format); or a JSON object with the .npy file of each array."`
	Out   string `required:"" placeholder:"FILE.npz" help:"File to write: .npz; - for stdout."`
	Store bool   `seldom:"" help:"Write the arrays uncompressed."`

	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (convertCmd) Help() string {
	return `The file has the arrays features and labels, and names if the data has them. Features that are
mostly 0 are the four arrays of a CSR matrix: features_data, features_indices, features_indptr and features_shape. The
output says which flags read the type of the labels, exact numbers, intervals and groups. With these flags, the file has the
same dataset digest as the data.`
}

// converted describes a file that was converted.
type converted struct {
	*written

	Notes []string `json:"notes,omitempty"` // how the data was read
}

// Run implements `coppice dataset convert`.
func (c *convertCmd) Run(a *cli.App) error {
	if f, ok := write.FormatOf(c.Out); !(ok && f == write.NPZ || c.Out == cli.Stdout || cli.IsDirect(c.Out)) {
		return cli.Usagef("--out %s: want a name that ends in .npz", c.Out)
	}
	if err := cli.CheckNotInput("--out", c.Out, c.Data, c.Names, c.LabelsFile); err != nil {
		return err
	}
	src, checks, err := c.Open(a, c.Data)
	if err != nil {
		return err
	}
	out, err := a.CreateOutput(c.Out)
	if err != nil {
		return err
	}
	defer out.Discard()
	m := progress.New(a)
	m.Quiet = a.JSON
	how := write.NPZOptions{Store: c.Store || cli.IsDescriptor(c.Out), Lossless: true}
	rows, err := write.WriteNPZ(out, src, m.Reading(a.Ctx, "converting", checks), how)
	m.Clear()
	if err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	r := converted{writtenAs(c.Out, src), m.Notes}
	r.Rows = rows
	return a.PrintBeside(c.Out, r, r.text)
}
