package main

import (
	"errors"
	"slices"
	"strconv"

	trees "github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	figures "github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/job/local"
)

type inspectWhatCmd struct {
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

	dataFlags
}

// Help implements kong's HelpProvider.
func (nodeCmd) Help() string {
	return `The tree is grown down to the node, on all samples that are not held out. With the flags of coppice train, it is the tree
that coppice train --local grows and that coppice model show --tree prints. First every threshold is tried, whatever the
setting step says; then the thresholds of the adaptive step (settings alpha and beta). -o csv has a line for each threshold
of the feature; -o json also has the other features. The figures of --plot and --visits-plot correspond to Fig. 5 and 6
of Chen et al. 2018.`
}

func (*nodeCmd) outputs() []string { return []string{outputCSV} }

// Run implements `coppice inspect node`.
func (c *nodeCmd) Run(a *app) error {
	plots, err := c.plots()
	defer plots.discard()
	if err != nil {
		return err
	}
	flags := trainCmd{specFlags: specFlags{Data: c.Data, Algorithm: c.Algorithm, Set: c.Set, Seed: c.Seed, TestFraction: c.TestFraction}, dataFlags: c.dataFlags}
	file, err := flags.read()
	if err != nil {
		return err
	}
	m := newMeter(a.stderr)
	defer m.clear()
	name, data, err := flags.load(a, m, file)
	if err != nil {
		return err
	}
	m.clear()
	job, err := flags.resolve(a, file, data)
	if err != nil {
		return err
	}
	n, err := c.examine(a, job, data)
	if err != nil {
		return err
	}
	n.Dataset, n.Algorithm, n.Seed = name, c.Algorithm, job.Seed
	if err := plots.draw(n); err != nil {
		return err
	}
	if a.output == outputCSV {
		return n.csv(a.data)
	}
	return a.print(n, n.text)
}

// nodePlot is a figure of a node that goes to a file.
type nodePlot struct {
	file *figureFile
	of   func(n *examinedNode) (*figures.Figure, error)
}

type nodePlots []nodePlot

// plots begins the files of the figures, which must be discarded, also after an error.
func (c *nodeCmd) plots() (plots nodePlots, err error) {
	if err := apart(outputFlag{"--plot", c.Plot}, outputFlag{"--visits-plot", c.VisitsPlot}); err != nil {
		return nil, err
	}
	for _, p := range []struct {
		flag, path string
		of         func(n *examinedNode) (*figures.Figure, error)
	}{{"--plot", c.Plot, (*examinedNode).gains}, {"--visits-plot", c.VisitsPlot, (*examinedNode).visits}} {
		if p.path == "" {
			continue
		}
		if err := notAnInput(p.flag, p.path, c.Data, c.LabelsFile, c.Names); err != nil {
			return plots, err
		}
		file, err := createFigure(p.flag, p.path)
		if err != nil {
			return plots, err
		}
		plots = append(plots, nodePlot{file, p.of})
	}
	return plots, nil
}

func (plots nodePlots) discard() {
	for _, p := range plots {
		p.file.discard()
	}
}

// draw draws the figures of a node.
func (plots nodePlots) draw(n *examinedNode) error {
	for _, p := range plots {
		f, err := p.of(n)
		if err != nil {
			return err
		}
		if err := p.file.draw(f); err != nil {
			return err
		}
	}
	return nil
}

// examine grows the tree down to the node.
func (c *nodeCmd) examine(a *app, job *round.Job, data *local.Data) (*examinedNode, error) {
	if job.Folds > 0 || job.Split.Folds > 0 {
		return nil, usagef("--set folds: a node is shown for a single model; leave folds out")
	}
	if by := data.Manifest.Fill(); by != "" {
		return nil, usagef("--missing %s: want drop or a number, because a node is shown for samples without missing values", by)
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
		return nil, usagef("--algorithm %s: want an algorithm with decision trees, such as structrf or rf", job.Algorithm)
	}
	found, err := examiner.ExamineNode(a.ctx, opened.Data, at)
	if errors.Is(err, trees.ErrNode) {
		return nil, usageError{err}
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
		return 0, usagef("--feature %s: want a number from 0 to %d", text, m.Features-1)
	}
	return 0, usagef("--feature %s: no feature has this name; the features are %s", text, nameList(m.FeatureNames))
}
