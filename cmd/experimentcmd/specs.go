package experimentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/connect"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/datasets"
	"github.com/coppice-ldl/coppice/experiment/shipped"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// specArg names the spec of an experiment and the folder of its data.
type specArg struct {
	Spec string `arg:"" placeholder:"SPEC" help:"Spec of the experiment: a YAML file, or the name of a shipped spec (see experiment list --shipped); docs/reference/experiment-spec.md has the keys."`
	Data string `placeholder:"DIR" help:"Folder with the data files of the spec (default: the folder of the spec; of a shipped spec, this folder)."`

	NoBudget bool `help:"Ignore the budgets of the spec and do all runs."`
}

// read reads the spec. If it has mistakes, their error comes with what could be read.
func (s *specArg) read(ctx context.Context) (*experiment.Spec, error) {
	text, err := s.specText()
	if err != nil {
		return nil, err
	}
	of, err := experiment.Parse(ctx, s.Spec, text)
	if of.Data = s.Data; s.NoBudget {
		of.NoBudgets()
	}
	return of, err
}

// specText returns the text of the spec. A file comes before a shipped spec of the same name.
func (s *specArg) specText() ([]byte, error) {
	info, err := os.Stat(s.Spec)
	if err != nil || info.IsDir() {
		if ships, ok := shipped.Find(s.Spec); ok {
			return ships.Text, nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && protocol.CheckName(s.Spec) == nil && !namedAsSpec(s.Spec):
		return nil, cli.NotFound(fmt.Errorf("%s: there is neither a file nor a shipped spec of this name; coppice "+
			"experiment list --shipped lists the shipped specs", s.Spec))
	case err != nil:
		return nil, err
	case info.Size() > experiment.MaxBytes:
		return nil, cli.Usagef("%s: %s bytes; a spec of an experiment has at most %s", s.Spec, units.Count(info.Size()),
			units.Count(experiment.MaxBytes))
	}
	return read.ReadText(s.Spec)
}

// folderOf is the default folder of an experiment.
func folderOf(specFile, name string) string {
	return filepath.Join(filepath.Dir(specFile), name+".experiment")
}

// namedAsSpec reports whether a word ends as the file of a spec does.
func namedAsSpec(word string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(word))
}

// reader returns what reads the datasets of a spec. Progress is shown on m.
func (s *specArg) reader(a *cli.App, m *progress.Meter, of *experiment.Spec) *datasets.Reader {
	return &datasets.Reader{
		Spec: of, File: s.Spec,
		Flags: func(args []string) (datasets.Opener, error) {
			var flags struct {
				dataflags.DataFlags
				dataflags.ValidationFlag
			}
			parser, err := kong.New(&flags, kong.Name("dataset"), kong.Exit(func(int) {}), cli.Groups)
			if err == nil {
				_, err = parser.Parse(args)
			}
			return func(path string) (dataset.Source, importer.Checks, error) {
				return flags.OpenWith(a, path, flags.ValidationFlag)
			}, err
		},
		Options: func(checks importer.Checks) importer.Options { return m.Reading(a.Ctx, "reading data", checks) },
		Note:    func(text string) { a.Note("%s", text) },
	}
}

// shippedSpec is a shipped spec as experiment list --shipped prints it.
type shippedSpec struct {
	Name     string `json:"name"`
	Datasets int    `json:"datasets"`
	Methods  int    `json:"methods"`
	About    string `json:"about"`
}

// listShipped prints the shipped specs.
func listShipped(a *cli.App) error {
	var list []shippedSpec
	for _, s := range shipped.Specs() {
		of, err := experiment.Parse(a.Ctx, s.Name, s.Text)
		if err != nil {
			return err
		}
		list = append(list, shippedSpec{Name: s.Name, Datasets: len(of.Datasets), Methods: len(of.Methods), About: s.About})
	}
	return a.Print(list, func(w io.Writer) {
		cli.WriteTable(w, []string{"spec", "datasets", "methods", "about"}, list, func(s shippedSpec) []string {
			return []string{s.Name, units.Count(s.Datasets), units.Count(s.Methods), s.About}
		}, 2, 3)
		fmt.Fprintln(w, "\nto run one: coppice experiment run SPEC --data FOLDER; to print one: coppice experiment show "+
			"SPEC --spec")
	})
}

// nameArg names an experiment on a cluster.
type nameArg struct {
	Name string `arg:"" help:"Name of the experiment."`
}

// check refuses a spec in the place of a name, and a text that cannot be a name.
func (n *nameArg) check() error {
	if _, err := os.Stat(n.Name); err == nil && namedAsSpec(n.Name) {
		return cli.Usagef("%s is a file; give the name of the experiment, which is in the key name of its spec", n.Name)
	}
	if err := protocol.CheckName(n.Name); err != nil {
		return cli.Usagef("%q: %w", n.Name, err)
	}
	return nil
}

// changedExperiment is a command that changes an experiment.
type changedExperiment struct {
	nameArg
	connect.ChangeFlags
}

// Connect checks the name and connects to the cluster.
func (c *changedExperiment) Connect(a *cli.App) (*client.Client, error) {
	if err := c.nameArg.check(); err != nil {
		return nil, err
	}
	return c.ChangeFlags.Connect(a)
}
