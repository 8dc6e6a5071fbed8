package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	trees "github.com/coppice-ldl/coppice/algorithms/kit/forest"
	figures "github.com/coppice-ldl/coppice/experiment/figure"
)

// examinedNode is what `coppice inspect node` prints.
type examinedNode struct {
	Dataset     string              `json:"dataset"`
	Algorithm   string              `json:"algorithm"`
	Seed        uint64              `json:"seed"`
	Tree        int                 `json:"tree"`
	Path        string              `json:"path"` // empty: the root
	Rows        int                 `json:"samples"`
	Samples     int                 `json:"samples_drawn"`
	Classes     []uint64            `json:"classes"` // samples of each class label
	Split       nodeSplit           `json:"split"`
	Best        nodeSplit           `json:"best"`
	BestVisited *nodeSplit          `json:"best_visited"` // null: none that is visited has a gain
	Evaluations gainEvaluations     `json:"gain_evaluations"`
	Feature     int                 `json:"feature"` // whose thresholds are listed
	FeatureName string              `json:"feature_name,omitempty"`
	Thresholds  []examinedThreshold `json:"thresholds"`
	Features    []examinedFeature   `json:"features"`

	featureNames []string
	width        int // features of the dataset that figures show
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
	Left      int     `json:"left"` // samples below it
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

// newExaminedNode puts names to what was found.
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

// nameOf returns the name of a feature, or nothing.
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
		classes = append(classes, count(samples))
	}
	at := n.listed()
	pairs(w, [][2]string{
		{"node", n.title()},
		{"samples", fmt.Sprintf("%s, drawn %s in all", count(n.Rows), plural(n.Samples, "time"))},
		{"samples by class", strings.Join(classes, ", ")},
		{"split of the tree", split(n.Split)},
		{"best of all thresholds", split(n.Best)},
		{"best visited threshold", visited},
		{"thresholds", fmt.Sprintf("%s; the adaptive step visits %s", count(n.Evaluations.Exhaustive), count(n.Evaluations.Adaptive))},
		{"thresholds of " + n.called(n.Feature), fmt.Sprintf("%s; %s are visited (-o csv lists them)", count(at.Thresholds), count(at.Visited))},
	})
	fmt.Fprintln(w)
	t := newTable(w, []string{"feature", "name", "thresholds", "visited", "greatest gain"}, 1, 3, 4, 5)
	for _, f := range n.Features[:min(maxColumnsShown, len(n.Features))] {
		t.AppendRow(rowOf(strconv.Itoa(f.Feature), f.FeatureName, count(f.Thresholds), count(f.Visited), fmt.Sprintf("%.6g", f.Gain)))
	}
	t.Render()
	if more := len(n.Features) - maxColumnsShown; more > 0 {
		fmt.Fprintf(w, "and %s more; -o json lists all\n", count(more))
	}
}

// listed is the feature whose thresholds are listed.
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
