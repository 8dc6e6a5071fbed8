package uicmd

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
)

// OpenCmd is `coppice open`.
type OpenCmd struct {
	View  []string `arg:"" optional:"" help:"What to show: the number or name of a job; a word such as experiment and a name; or a section such as workers (default: the jobs)."`
	Print bool     `help:"Do not open a browser; only print the address."`

	connect.ServerFlags
}

// Views of the page: of one thing, with the section that has it, and of all.
var (
	things = map[string]string{"job": "jobs", "experiment": "experiments", "dataset": "datasets", "model": "models",
		"worker": "workers"}
	sections = []string{"jobs", "experiments", "datasets", "models", "workers", "coordinators", "audit", "submit"}
)

// viewPath returns the path of a view below the root of the page.
func viewPath(view []string) (string, error) {
	switch {
	case len(view) == 0:
		return "", nil
	case len(view) == 1 && slices.Contains(sections, view[0]):
		return "/" + view[0], nil
	case len(view) == 1 && things[view[0]] == "" && view[0] != "":
		return "/jobs/" + url.PathEscape(view[0]), nil
	case len(view) == 2 && things[view[0]] != "" && view[1] != "":
		return "/" + things[view[0]] + "/" + escapeName(view[1]), nil
	}
	return "", cli.Usagef("%q is no view of the page: want the number or name of a job; job, experiment, dataset, model "+
		"or worker and a name; or one of %s", strings.Join(view, " "), strings.Join(sections, ", "))
}

// escapeName escapes a name for a path. The name of a model of a fold has a slash.
func escapeName(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// Run implements `coppice open`.
func (c *OpenCmd) Run(a *cli.App) error {
	path, err := viewPath(c.View)
	if err != nil {
		return err
	}
	cl, err := c.Connect(a)
	if err != nil {
		return err
	}
	address, err := connect.PageURL(a.Ctx, cl, path)
	if err != nil {
		return err
	}
	if err := a.Print(pageAt{URL: address}, func(w io.Writer) { fmt.Fprintln(w, address) }); err != nil {
		return err
	}
	if client.UsesTLS(cl) {
		a.Note("the page asks for a token; coppice token create makes one")
	}
	if !c.Print {
		openOrSay(a, address, address)
	}
	return nil
}
