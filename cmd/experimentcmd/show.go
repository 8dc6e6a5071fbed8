package experimentcmd

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/overview"
	tables "github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

type listCmd struct {
	Shipped bool `help:"List the specs that are part of this program instead; experiment run takes their names."`
	connect.ServerFlags
}

// Run implements `coppice experiment list`.
func (c *listCmd) Run(a *cli.App) error {
	if c.Shipped {
		return listShipped(a)
	}
	return connect.Ask(a, c, func(cl *client.Client) ([]protocol.Experiment, error) {
		return cl.Experiments().List(a.Ctx)
	}, func(w io.Writer, all []protocol.Experiment) {
		header, owned := cli.OwnerColumn([]string{"experiment", "state", "runs", "done", "jobs", "submitted"}, len(all), func(i int) string { return cli.Owner(all[i].Owner, all[i].Private) })
		t := cli.NewTable(w, header, 3, 4, 5)
		for i, p := range all {
			t.AppendRow(owned(i, cli.Row(p.Name, string(p.State), units.Count(p.Runs), units.Count(p.Done), units.Count(p.Jobs), cli.Time(p.Submitted))))
		}
		t.Render()
	})
}

type showCmd struct {
	whatArg
	Spec bool `help:"Print the text of the spec: of a shipped spec (see experiment list --shipped), or of the last run of the experiment."`
}

// Run implements `coppice experiment show`.
func (c *showCmd) Run(a *cli.App) error {
	if ships, ok := shipped.Find(c.What); ok && c.Spec {
		return printSpec(a, ships.Name, string(ships.Text))
	}
	f, err := c.find(a, !a.JSON) // text shows no values
	if err != nil {
		return err
	}
	if c.Spec {
		return printSpec(a, f.table.Name, f.text)
	}
	return a.Print(shownExperiment{f.table.Name, f.state, experiment.Count(f.table), f.skipped, f.notes, f.table}, func(w io.Writer) {
		o := overview.Overview{Table: f.table, State: f.state, Skipped: f.skipped, Notes: f.notes, Report: "coppice experiment report " + c.said(a)}
		o.Write(w)
	})
}

// shownExperiment is an experiment as show prints it in JSON.
type shownExperiment struct {
	Name  string `json:"name"`
	State string `json:"state,omitempty"` // on a cluster
	experiment.Counts
	Skipped []string      `json:"skipped,omitempty"` // datasets
	Notes   []string      `json:"notes,omitempty"`   // what a reader must know of the results
	Table   *tables.Table `json:"table"`
}

// printSpec prints the text of a spec.
func printSpec(a *cli.App, name, text string) error {
	return a.Print(struct {
		Name string `json:"name"`
		Text string `json:"text"`
	}{name, text}, func(w io.Writer) { fmt.Fprint(w, text) })
}

type reportCmd struct {
	whatArg
	reportFlags
}

// Run implements `coppice experiment report`.
func (c *reportCmd) Run(a *cli.App) error {
	if err := c.reportFlags.check(c.What); err != nil {
		return err
	}
	f, err := c.find(a, false)
	if err != nil {
		return err
	}
	for _, text := range f.notes {
		a.Note("note: %s", text)
	}
	c.reportFlags.notes = f.notes
	return c.write(a, f.table)
}
