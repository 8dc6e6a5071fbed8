package experimentcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/internal/units"
)

type foldsCmd struct {
	specArg
	Out string `required:"" placeholder:"DIR" help:"Folder for the files: DATASET.csv, or DATASET-repeat-R.csv if folds are repeated."`
}

// written is a file of folds, as JSON has it.
type written struct {
	Dataset string `json:"dataset"`
	Repeat  int    `json:"repeat"`
	Folds   int    `json:"folds"`
	Only    []int  `json:"only,omitempty"` // the folds that are run; empty: all
	Rows    int    `json:"rows"`
	File    string `json:"file"`
}

// Help implements kong.HelpProvider.
func (*foldsCmd) Help() string {
	return "Each file says which fold tests each sample, so that another program can train on the same folds. " +
		"The report has its predictions as a method with the key external; see docs/guides/own-methods.md. " +
		"train --split reads such a file, too."
}

// Run implements `coppice experiment folds`.
func (c *foldsCmd) Run(a *cli.App) error {
	s, err := c.read(a.Ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	m, files := progress.New(a), []written{}
	err = c.reader(a, m, s).Folds(a.Ctx, func(d *experiment.Dataset, of *dataset.Manifest, repeat int,
		list *dataset.SplitList) error {
		name := d.Name + ".csv"
		if d.Folds.Repeats > 1 {
			name = fmt.Sprintf("%s-repeat-%d.csv", d.Name, repeat)
		}
		w := written{Dataset: d.Name, Repeat: repeat, Folds: list.Folds, Only: d.Folds.Only, Rows: of.Rows,
			File: filepath.Join(c.Out, name)}
		files = append(files, w)
		return writeFolds(a.Ctx, w.File, of, list)
	})
	m.Clear()
	if err != nil {
		return err
	}
	return a.Print(files, func(w io.Writer) {
		cli.WriteTable(w, []string{"dataset", "repeat", "folds", "samples", "file"}, files, func(f written) []string {
			return []string{f.Dataset, fmt.Sprint(f.Repeat), fmt.Sprint(f.Folds), units.Count(f.Rows), f.File}
		}, 2, 3, 4)
	})
}

// writeFolds writes the file of one division.
func writeFolds(ctx context.Context, path string, m *dataset.Manifest, list *dataset.SplitList) error {
	f, err := (&cli.OutputFlag{Flag: "--out", Path: path}).CreateCSV("a split file")
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := read.WriteSplit(m, f, list); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return f.Commit()
}
