package traincmd

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

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
	Node nodeCmd `cmd:"" help:"Show the gain of each threshold at a node of a tree, and which thresholds the adaptive step visits."`
}

type nodeCmd struct {
	Data         string   `required:"" placeholder:"FILE" help:"Data file, or - for stdin."`
	Algorithm    string   `enum:"structrf,rf" default:"structrf" help:"Algorithm of the forest: structrf or rf."`
	Set          []string `sep:"none" placeholder:"KEY=VALUE" help:"A setting of the algorithm, as for training; may be repeated."`
	Seed         string   `placeholder:"N" help:"Seed of the forest (default: 1)."`
	TestFraction string   `placeholder:"F" help:"Fraction of the samples to hold out, as for training."`

	Tree    int    `default:"0" placeholder:"N" help:"Number of the tree, counted from 0."`
	Path    string `empty:"" placeholder:"LR..." help:"Path from the root to the node: a letter for each split, L (the value is below the threshold) or R (default: the root)."`
	Feature string `placeholder:"F" help:"Feature whose thresholds are shown, by name or by number from 0 (default: the feature of the node's split)."`

	Plot       string `placeholder:"FILE" help:"Draw the gains and visits of the feature to FILE: .svg or .png."`
	VisitsPlot string `placeholder:"FILE" help:"Draw the number of visits of each feature to FILE: .svg or .png."`

	dataflags.DataFlags
}

// Help implements kong's HelpProvider.
func (nodeCmd) Help() string {
	return `The tree is grown down to the node, on all samples that are not held out. With the flags of coppice train, it is the tree
that coppice train --local grows and that coppice model show --tree prints. First every threshold is tried, whatever the
setting step says; then the thresholds of the adaptive step (settings alpha and beta). -o csv has a line for each threshold
of the feature; -o json also has the other features. The figures of --plot and --visits-plot correspond to Fig. 5 and 6
of Chen et al. 2018.`
}

func (*nodeCmd) Outputs() []string { return []string{cli.CSV} }

// Run implements `coppice inspect node`.
func (c *nodeCmd) Run(a *cli.App) error {
	if c.Tree < 0 {
		return cli.Usagef("{tree=%d}: trees are counted from 0", c.Tree)
	}
	plots, err := c.plots()
	defer func() {
		for _, p := range plots {
			p.file.Discard()
		}
	}()
	if err != nil {
		return err
	}
	flags := Cmd{SpecFlags: jobcmd.SpecFlags{Data: c.Data, Algorithm: c.Algorithm, Set: c.Set, Seed: c.Seed, TestFraction: c.TestFraction}, DataFlags: c.DataFlags}
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
	n, err := c.examine(a, job, data)
	if err != nil {
		return err
	}
	n.Dataset, n.Algorithm, n.Seed = name, c.Algorithm, job.Seed
	for _, p := range plots {
		f, err := p.of(n)
		if err != nil {
			return err
		}
		if err := p.file.Draw(f); err != nil {
			return err
		}
	}
	if a.Output == cli.CSV {
		return n.csv(a.Data)
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
	if err := cli.CheckDistinct(cli.OutputFlag{Flag: "--plot", Path: c.Plot}, cli.OutputFlag{Flag: "--visits-plot", Path: c.VisitsPlot}); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		flag, CommandPath string
		of                func(n *examinedNode) (*figures.Figure, error)
	}{{"--plot", c.Plot, (*examinedNode).gains}, {"--visits-plot", c.VisitsPlot, (*examinedNode).visits}} {
		if p.CommandPath == "" {
			continue
		}
		if err := cli.CheckNotInput(p.flag, p.CommandPath, c.Data, c.LabelsFile, c.Names); err != nil {
			return plots, err
		}
		file, err := results.CreateFigure(p.flag, p.CommandPath)
		if err != nil {
			return plots, err
		}
		plots = append(plots, nodePlot{file, p.of})
	}
	return plots, nil
}

// examine grows the tree down to the node.
func (c *nodeCmd) examine(a *cli.App, job *round.Job, data *local.Data) (*examinedNode, error) {
	if job.Folds > 0 || job.Split.Folds > 0 {
		return nil, cli.Usagef("--set folds: a node is shown for a single model; leave folds out")
	}
	if by := data.Manifest.Fill(); by != "" {
		return nil, cli.Usagef("--missing %s: want drop or a number, because a node is shown for samples without missing values", by)
	}
	at := trees.NodeAt{Tree: c.Tree, Path: c.Path, Feature: -1}
	if c.Feature != "" {
		var err error
		if at.Feature, err = featureNumber(c.Feature, data.Manifest); err != nil {
			return nil, err
		}
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
	examiner, ok := kernel.(trees.NodeExaminer)
	if !ok {
		return nil, cli.Usagef("--algorithm %s: want an algorithm with decision trees, such as structrf or rf", job.Algorithm)
	}
	found, err := examiner.ExamineNode(a.Ctx, opened.Data, at)
	if errors.Is(err, trees.ErrNode) {
		return nil, cli.Usage(err)
	}
	if err != nil {
		return nil, err
	}
	return newExaminedNode(found, at, data.Manifest.FeatureNames, data.Manifest.Features), nil
}

// featureNumber finds a feature by its name, or else by its number.
func featureNumber(text string, m *dataset.Manifest) (int, error) {
	if i := slices.Index(m.FeatureNames, text); i >= 0 {
		return i, nil
	}
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n >= 0 && n < m.Features:
		return n, nil
	case m.FeatureNames == nil || err == nil:
		return 0, cli.Usagef("--feature %s: want a number from 0 to %d", text, m.Features-1)
	}
	return 0, cli.Usagef("--feature %s: no feature has this name; the features are %s", text, cli.NameList(m.FeatureNames))
}

// examinedNode is what `coppice inspect node` prints.
type examinedNode struct {
	Dataset     string              `json:"dataset"`
	Algorithm   string              `json:"algorithm"`
	Seed        uint64              `json:"seed"`
	Tree        int                 `json:"tree"`
	Path        string              `json:"path"` // empty for the root
	Rows        int                 `json:"samples"`
	Samples     int                 `json:"samples_drawn"`
	Classes     []uint64            `json:"classes"` // number of samples of each class
	Split       nodeSplit           `json:"split"`
	Best        nodeSplit           `json:"best"`
	BestVisited *nodeSplit          `json:"best_visited"` // null if no visited threshold has a gain
	Evaluations gainEvaluations     `json:"gain_evaluations"`
	Feature     int                 `json:"feature"` // the feature of Thresholds
	FeatureName string              `json:"feature_name,omitempty"`
	Thresholds  []examinedThreshold `json:"thresholds"`
	Features    []examinedFeature   `json:"features"`

	featureNames []string
	width        int // number of features of the dataset
}

// gainEvaluations counts thresholds of all features.
type gainEvaluations struct {
	Exhaustive int `json:"exhaustive"`
	Adaptive   int `json:"adaptive"`
}

type nodeSplit struct {
	Feature     int     `json:"feature"`
	FeatureName string  `json:"feature_name,omitempty"`
	Threshold   float64 `json:"threshold"`
	Gain        float64 `json:"gain"`
}

type examinedThreshold struct {
	Threshold float64 `json:"threshold"`
	Left      int     `json:"left"` // number of samples below it
	Gain      float64 `json:"gain"`
	Visited   bool    `json:"visited"`
}

type examinedFeature struct {
	Feature     int     `json:"feature"`
	FeatureName string  `json:"feature_name,omitempty"`
	Thresholds  int     `json:"thresholds"`
	Visited     int     `json:"visited"`
	Gain        float64 `json:"gain"` // the greatest
}

// newExaminedNode adds names to the found values.
func newExaminedNode(g *trees.NodeGains, at trees.NodeAt, names []string, features int) *examinedNode {
	n := &examinedNode{
		Tree: at.Tree, Path: at.Path, Rows: g.Rows, Samples: g.Samples, Classes: g.Classes, Feature: g.Feature,
		featureNames: names, width: features,
	}
	n.FeatureName = n.nameOf(g.Feature)
	named := func(s trees.NodeSplit) nodeSplit {
		return nodeSplit{s.Feature, n.nameOf(s.Feature), s.Threshold, s.Gain}
	}
	n.Split, n.Best = named(g.Split), named(g.Best)
	if g.Visited != nil {
		visited := named(*g.Visited)
		n.BestVisited = &visited
	}
	for _, f := range g.Features {
		n.Features = append(n.Features, examinedFeature{f.Feature, n.nameOf(f.Feature), f.Thresholds, f.Visited, f.Gain})
		n.Evaluations.Exhaustive += f.Thresholds
		n.Evaluations.Adaptive += f.Visited
	}
	for _, t := range g.Thresholds {
		n.Thresholds = append(n.Thresholds, examinedThreshold(t))
	}
	return n
}

// nameOf returns the name of a feature, or an empty text.
func (n *examinedNode) nameOf(feature int) string {
	if feature < len(n.featureNames) {
		return n.featureNames[feature]
	}
	return ""
}

// called names a feature in texts.
func (n *examinedNode) called(feature int) string {
	if name := n.nameOf(feature); name != "" {
		return name
	}
	return fmt.Sprintf("feature %d", feature)
}

// title names the node in texts.
func (n *examinedNode) title() string {
	return fmt.Sprintf("%s, %s of tree %d", n.Dataset, trees.NodeName(n.Path), n.Tree)
}

// maxFeaturesShown bounds the features that the text lists.
const maxFeaturesShown = 30

func (n *examinedNode) text(w io.Writer) {
	split := func(s nodeSplit) string {
		return fmt.Sprintf("%s < %.6g, gain %.6g nats", n.called(s.Feature), s.Threshold, s.Gain)
	}
	visited := "no visited threshold has a gain"
	if n.BestVisited != nil {
		visited = split(*n.BestVisited)
	}
	var classes []string
	for _, samples := range n.Classes {
		classes = append(classes, units.Count(samples))
	}
	at := n.listed()
	cli.WritePairs(w, [][2]string{
		{"node", n.title()},
		{"samples", fmt.Sprintf("%s, drawn %s in all", units.Count(n.Rows), units.Plural(n.Samples, "time"))},
		{"samples by class", strings.Join(classes, ", ")},
		{"split of the tree", split(n.Split)},
		{"best of all thresholds", split(n.Best)},
		{"best visited threshold", visited},
		{"thresholds", fmt.Sprintf("%s; the adaptive step visits %s", units.Count(n.Evaluations.Exhaustive), units.Count(n.Evaluations.Adaptive))},
		{"thresholds of " + n.called(n.Feature), fmt.Sprintf("%s; %s are visited (-o csv lists them)", units.Count(at.Thresholds), units.Count(at.Visited))},
	})
	fmt.Fprintln(w)
	t := cli.NewTable(w, []string{"feature", "name", "thresholds", "visited", "greatest gain"}, 1, 3, 4, 5)
	for _, f := range n.Features[:min(maxFeaturesShown, len(n.Features))] {
		t.AppendRow(cli.Row(strconv.Itoa(f.Feature), f.FeatureName, units.Count(f.Thresholds), units.Count(f.Visited), fmt.Sprintf("%.6g", f.Gain)))
	}
	t.Render()
	if more := len(n.Features) - maxFeaturesShown; more > 0 {
		fmt.Fprintf(w, "and %s more; -o json lists all\n", units.Count(more))
	}
}

// listed returns the feature of Thresholds.
func (n *examinedNode) listed() examinedFeature {
	for _, f := range n.Features {
		if f.Feature == n.Feature {
			return f
		}
	}
	return examinedFeature{}
}

// csv writes a line for each threshold of the feature.
func (n *examinedNode) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{{"feature", "threshold", "left", "gain", "visited"}}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	name := n.nameOf(n.Feature)
	if name == "" {
		name = strconv.Itoa(n.Feature)
	}
	for _, t := range n.Thresholds {
		visited := "0"
		if t.Visited {
			visited = "1"
		}
		lines = append(lines, []string{name, number(t.Threshold), strconv.Itoa(t.Left), number(t.Gain), visited})
	}
	return out.WriteAll(lines)
}

// gains draws the gains of the feature, as Fig. 5 of Chen et al. 2018.
func (n *examinedNode) gains() (*figures.Figure, error) {
	g := figures.Gains{Title: n.title(), X: figures.Axis{Name: n.called(n.Feature)}}
	for _, t := range n.Thresholds {
		g.Thresholds, g.Gains, g.Visited = append(g.Thresholds, t.Threshold), append(g.Gains, t.Gain), append(g.Visited, t.Visited)
	}
	return g.Figure()
}

// visits draws the visits of each feature, as Fig. 6 of Chen et al. 2018.
func (n *examinedNode) visits() (*figures.Figure, error) {
	v := figures.Visits{Title: n.title(), Counts: make([]int, n.width)}
	for _, f := range n.Features {
		v.Counts[f.Feature] = f.Visited
	}
	return v.Figure()
}
