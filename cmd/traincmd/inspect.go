package traincmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	trees "github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/cmd/jobcmd"
	"github.com/coppice-ldl/coppice/cmd/progress"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	figures "github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/local"
)

// InspectCmd is `coppice inspect`.
type InspectCmd struct {
	Node nodeCmd `cmd:"" help:"Show the gain of each threshold at the root of a tree, and which thresholds the adaptive step visits."`
}

type nodeCmd struct {
	Data         string   `required:"" placeholder:"FILE" help:"Data file, or - for stdin."`
	Set          []string `sep:"none" placeholder:"KEY=VALUE" help:"A setting of the algorithm, as for training; may be repeated."`
	Seed         string   `placeholder:"N" help:"Seed of the forest (default: 1)."`
	TestFraction string   `placeholder:"F" help:"Fraction of the samples to hold out, as for training."`

	Plot       string `placeholder:"FILE" help:"Draw the gains and visits of the feature to FILE: .svg, .png or .pdf."`
	VisitsPlot string `placeholder:"FILE" help:"Draw the number of visits of each feature to FILE: .svg, .png or .pdf."`

	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (nodeCmd) Help() string {
	return `The tree is the first tree of structrf, on all samples that are not held out. First every threshold is tried, whatever the
setting step says; then the thresholds of the adaptive step (settings alpha and beta). -o json lists the thresholds of the
feature on which the root splits. The figures of --plot and --visits-plot correspond to Fig. 5 and 6 of Chen et al. 2018.`
}

// Run implements `coppice inspect node`.
func (c *nodeCmd) Run(a *cli.App) error {
	plots, err := c.plots()
	defer func() {
		for _, p := range plots {
			p.file.Discard()
		}
	}()
	if err != nil {
		return err
	}
	flags := Cmd{SpecFlags: jobcmd.SpecFlags{Data: c.Data, Algorithm: "structrf", Set: c.Set, Seed: c.Seed,
		TestFraction: c.TestFraction}, DataFlags: c.DataFlags}
	file, err := flags.Read()
	if err != nil {
		return err
	}
	m := progress.New(a)
	defer m.Clear()
	name, data, job, err := flags.load(a, m, file)
	if err != nil {
		return err
	}
	m.Clear()
	n, err := examine(job, data)
	if err != nil {
		return err
	}
	n.Dataset = name
	for _, p := range plots {
		f, err := p.of(n)
		if err != nil {
			return err
		}
		if err := p.file.Draw(f); err != nil {
			return err
		}
	}
	return a.Print(n, n.text)
}

// nodePlot is a figure of a node with its file.
type nodePlot struct {
	file *results.FigureFile
	of   func(n *examinedNode) (*figures.Figure, error)
}

// plots creates the files of the figures. The caller discards them, also after an error.
func (c *nodeCmd) plots() (plots []nodePlot, err error) {
	if err := cli.CheckDistinct(cli.OutputFlag{Flag: "--plot", Path: c.Plot}, cli.OutputFlag{Flag: "--visits-plot",
		Path: c.VisitsPlot}); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		flag, path string
		of         func(n *examinedNode) (*figures.Figure, error)
	}{{"--plot", c.Plot, (*examinedNode).gains}, {"--visits-plot", c.VisitsPlot, (*examinedNode).visits}} {
		if p.path == "" {
			continue
		}
		if err := cli.CheckNotInput(p.flag, p.path, c.Data, c.LabelsFile, c.Names); err != nil {
			return plots, err
		}
		file, err := results.CreateFigure(p.flag, p.path)
		if err != nil {
			return plots, err
		}
		plots = append(plots, nodePlot{file, p.of})
	}
	return plots, nil
}

// examine finds the split of the root.
func examine(job *round.Job, data *local.Data) (*examinedNode, error) {
	if job.Folds > 0 || job.Split.Folds > 0 {
		return nil, cli.Usagef("--set folds: a node is shown for a single model; leave folds out")
	}
	if by := data.Manifest.Fill(); by != "" {
		return nil, cli.Usagef("--missing %s: want drop or a number, because a node is shown for samples without missing "+
			"values", by)
	}
	opened, err := local.Open(job, data)
	if err != nil {
		return nil, err
	}
	algorithm, err := registry.Find(job.Algorithm)
	if err != nil {
		return nil, err
	}
	kernel, err := algorithm.NewKernel(job, data.Manifest)
	if err != nil {
		return nil, err
	}
	examiner, ok := kernel.(trees.RootExaminer)
	if !ok {
		return nil, fmt.Errorf("%s has no decision trees", job.Algorithm)
	}
	found, err := examiner.ExamineRoot(opened.Data)
	if errors.Is(err, trees.ErrLeaf) {
		return nil, cli.Usage(err)
	}
	if err != nil {
		return nil, err
	}
	n := &examinedNode{Seed: job.Seed, RootGains: found, manifest: data.Manifest}
	for _, f := range found.Features {
		n.Evaluations.Exhaustive += f.Thresholds
		n.Evaluations.Adaptive += f.Visited
	}
	return n, nil
}

// examinedNode is what `coppice inspect node` prints.
type examinedNode struct {
	Dataset string `json:"dataset"`
	Seed    uint64 `json:"seed"`
	*trees.RootGains
	Evaluations gainEvaluations `json:"gain_evaluations"`

	manifest *dataset.Manifest
}

// gainEvaluations counts thresholds of all features.
type gainEvaluations struct {
	Exhaustive int `json:"exhaustive"`
	Adaptive   int `json:"adaptive"`
}

// called names a feature in texts.
func (n *examinedNode) called(feature int) string {
	return cmp.Or(n.manifest.FeatureName(feature), fmt.Sprintf("feature %d", feature))
}

// title names the node in texts.
func (n *examinedNode) title() string { return n.Dataset + ", the root of the first tree" }

func (n *examinedNode) text(w io.Writer) {
	split := func(s trees.NodeSplit) string {
		return fmt.Sprintf("%s < %.6g, gain %.6g nats", n.called(s.Feature), s.Threshold, s.Gain)
	}
	visited := "no visited threshold has a gain"
	if n.Visited != nil {
		visited = split(*n.Visited)
	}
	cli.WritePairs(w, [][2]string{
		{"node", n.title()},
		{"samples", units.Count(n.Rows)},
		{"split of the tree", split(n.Split)},
		{"best of all thresholds", split(n.Best)},
		{"best visited threshold", visited},
		{"thresholds", fmt.Sprintf("%s; the adaptive step visits %s", units.Count(n.Evaluations.Exhaustive),
			units.Count(n.Evaluations.Adaptive))},
	})
}

// gains draws the gains of the feature, as Fig. 5 of Chen et al. 2018.
func (n *examinedNode) gains() (*figures.Figure, error) {
	g := figures.Gains{Title: n.title(), X: figures.Axis{Name: n.called(n.Split.Feature)}}
	for _, t := range n.Thresholds {
		g.Thresholds, g.Gains, g.Visited = append(g.Thresholds, t.Threshold), append(g.Gains, t.Gain),
			append(g.Visited, t.Visited)
	}
	return g.Figure()
}

// visits draws the visits of each feature, as Fig. 6 of Chen et al. 2018.
func (n *examinedNode) visits() (*figures.Figure, error) {
	v := figures.Visits{Title: n.title(), Counts: make([]int, n.manifest.Features)}
	for _, f := range n.Features {
		v.Counts[f.Feature] = f.Visited
	}
	return v.Figure()
}
