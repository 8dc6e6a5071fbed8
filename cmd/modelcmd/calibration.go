package modelcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/predict"
)

// calibrationFlags ask for a calibration curve.
type calibrationFlags struct {
	Calibration bool `help:"Also compare predicted with observed degrees in bins of equal counts, of each label and over all, with the expected calibration error. With --figures, a figure shows the curves."`
	Bins        int  `seldom:"" default:"10" placeholder:"N" help:"Number of bins of --calibration."`
}

// check refuses flags that contradict each other.
func (f *calibrationFlags) check(a *cli.App) error {
	if a.Given("bins") && !f.Calibration {
		return cli.Usagef("{bins} needs {calibration}")
	}
	if err := predict.CheckBins(f.Bins); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// calibration collects pairs of predictions and observations, and has their curve at the end.
type calibration struct {
	*predict.CalibrationCurve
	pairs *predict.Pairs
}

// add adds sample i of a block. A nil *calibration adds nothing.
func (c *calibration) add(p *predict.Block, i int) error {
	if c == nil {
		return nil
	}
	return c.pairs.Add(p, i)
}

// text writes the curve over all labels, and a line for each label. c may be nil.
func (c *calibration) text(w io.Writer) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "\nCalibration in %s of equal counts: expected calibration error %s,\n"+
		"the mean of |predicted - observed| over bins, weighted by counts\n", units.Plural(len(c.All.Bins), "bin"),
		cli.Measure(c.All.Error))
	t := cli.NewTable(w, []string{"from", "to", "pairs", "predicted", "observed", "difference"}, 1, 2, 3, 4, 5, 6)
	for _, b := range c.All.Bins {
		t.AppendRow(cli.Row(cli.Measure(b.Low), cli.Measure(b.High), units.Count(b.Count), cli.Measure(b.Predicted),
			cli.Measure(b.Observed), cli.Measure(b.Predicted-b.Observed)))
	}
	t.Render()
	if len(c.Labels) < 2 {
		return
	}
	fmt.Fprintln(w, "\nCalibration of each label")
	t = cli.NewTable(w, []string{"label", "expected calibration error", "predicted", "observed"}, 2, 3, 4)
	for _, l := range c.Labels[:min(mostLabels, len(c.Labels))] {
		predicted, observed := 0.0, 0.0
		for _, b := range l.Bins {
			share := float64(b.Count) / float64(l.Count)
			predicted += float64(share * b.Predicted)
			observed += float64(share * b.Observed)
		}
		if l.Count == 0 { // no degree of the label is known
			t.AppendRow(cli.Row(l.Label, "-", "-", "-"))
			continue
		}
		t.AppendRow(cli.Row(l.Label, cli.Measure(l.Error), cli.Measure(predicted), cli.Measure(observed)))
	}
	t.Render()
	if n := len(c.Labels); n > mostLabels {
		fmt.Fprintf(w, "... %s more labels; -o json has all\n", units.Count(n-mostLabels))
	}
}

// mostLabels is the number of labels whose calibration the text has.
const mostLabels = 100

// figure draws the curve over all labels, and the curves of the labels with the greatest errors. It returns nil if
// there is no pair.
func (c *calibration) figure(title string, plan *measures.Plan) (*figure.Figure, error) {
	if c.All.Count == 0 {
		return nil, nil
	}
	k := figure.Calibration{Title: title + ", calibration", X: figure.Axis{Name: "predicted degree"},
		Y: figure.Axis{Name: "observed degree"}}
	switch {
	case plan.Number:
		k.X.Name, k.Y.Name = "predicted number", "observed number"
	case plan.Bounds != nil:
		k.X.Name, k.Y.Name = "predicted, scaled", "observed, scaled"
	}
	add := func(name string, of predict.Calibration) {
		s := figure.Series{Name: strings.TrimPrefix(fmt.Sprintf("%s: ECE %.2g", name, of.Error), ": ")}
		for _, b := range of.Bins {
			s.X, s.Y = append(s.X, b.Predicted), append(s.Y, b.Observed)
		}
		k.Curves = append(k.Curves, s)
	}
	if len(c.Labels) > 1 {
		add("all labels", c.All)
	} else {
		add("", c.All)
	}
	var scaled []predict.Calibration
	for i, l := range c.Labels {
		if l.Count > 0 {
			scaled = append(scaled, c.pairs.Scaled(l, i))
		}
	}
	if most := figure.MostCurves - 1; len(scaled) > most {
		slices.SortStableFunc(scaled, func(a, b predict.Calibration) int { return cmp.Compare(b.Error, a.Error) })
		scaled = scaled[:most]
	}
	if len(c.Labels) > 1 {
		for _, l := range scaled {
			add(l.Label, l)
		}
	}
	return k.Figure()
}
