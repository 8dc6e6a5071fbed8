package modelcmd

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/dataflags"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/job/explain"
	"github.com/coppice-ldl/coppice/job/predict"
)

// explanation is what `coppice model explain` prints.
type explanation struct {
	ModelDigest string                 `json:"model_digest"`
	Algorithm   string                 `json:"algorithm"`
	Method      string                 `json:"method"`
	Data        string                 `json:"data,omitempty"`
	Labels      []string               `json:"labels"`
	Gains       *explain.Gains         `json:"importance,omitempty"`
	Permuted    *explain.Permuted      `json:"permutation,omitempty"`
	SHAP        *shapSummary           `json:"shap,omitempty"`
	Path        *explain.TreePath      `json:"path,omitempty"`
	Splits      *explain.SoftSplits    `json:"splits,omitempty"`
	Weights     *explain.LinearWeights `json:"weights,omitempty"`
	Matched     *read.Matching         `json:"matched,omitempty"`
	LeftOut     dataflags.LeftOut      `json:"left_out,omitempty"` // rows of the file
	Unseen      *dataflags.Unseen      `json:"unseen,omitempty"`   // with --unseen ignore
	Notes       []string               `json:"notes,omitempty"`    // how the file was read
	Out         string                 `json:"out,omitempty"`

	top    int // things in the text; 0: all
	checks importer.Checks
}

// shapSummary sums up SHAP values of samples.
type shapSummary struct {
	Samples    int           `json:"samples"`
	Background string        `json:"background"` // what a sample is compared with
	SumsTo     string        `json:"sums_to"`    // what the values of a sample sum to
	Base       []float64     `json:"base_values"`
	Difference float64       `json:"largest_difference"` // of base values and sums from predictions
	Features   []shapFeature `json:"features"`
	Sample     *shapSample   `json:"sample,omitempty"`
	// Number is the expected value of the number that a forest of ordinal labels predicts.
	Number *float64 `json:"base_number,omitempty"`

	x     *explain.Explainer
	low   float64 // the number of the first label, if there is a Number
	drawn shapDrawn
}

// shapFeature has the means of the absolute SHAP values of a feature.
type shapFeature struct {
	Feature string    `json:"feature"`
	Mean    float64   `json:"mean_abs"` // sum over the labels, of targets in fractions of their bounds
	Labels  []float64 `json:"label_mean_abs"`
	Number  *float64  `json:"number_mean_abs,omitempty"` // of the expected number of ordinal labels
}

// shapSample has the SHAP values of one sample.
type shapSample struct {
	Sample   string       `json:"sample"` // its name, or its row number in the file
	Output   []float64    `json:"output"` // base values and all SHAP values, added up
	Features []shapValues `json:"features"`
	Number   *float64     `json:"number_output,omitempty"` // the expected number
}

// shapValues has the SHAP values of a feature of a sample.
type shapValues struct {
	Feature string    `json:"feature"`
	Value   float64   `json:"value"` // of the feature
	SHAP    []float64 `json:"shap"`  // by label
	Number  *float64  `json:"number_shap,omitempty"`
}

// shapDrawn has the first samples, for figures.
type shapDrawn struct {
	values []float64 // samples×features×labels
	x      []float32 // samples×features
	n      int
}

// The bounds of shapDrawn.
const (
	mostSwarm      = 500
	mostSwarmBytes = 64 << 20
)

func newSHAPSummary(m *predict.Model, x *explain.Explainer) *shapSummary {
	s := &shapSummary{Background: x.Background(), SumsTo: x.Sum(), Base: x.Base, x: x}
	scale := m.Provenance.LabelType.Scale
	if scale != nil && !x.Scores {
		s.low = float64(scale.Low)
		base := s.number(x.Base)
		s.Number = &base
	}
	for _, name := range explain.FeatureNames(m) {
		f := shapFeature{Feature: name, Labels: make([]float64, x.Labels)}
		if s.Number != nil {
			f.Number = new(float64)
		}
		s.Features = append(s.Features, f)
	}
	return s
}

// number returns the sum of numbers of ordinal labels, each times a value.
func (s *shapSummary) number(values []float64) (sum float64) {
	for c, v := range values {
		sum += (s.low + float64(c)) * v
	}
	return sum
}

// add adds the values of a block.
func (s *shapSummary) add(b *explain.Explained) error {
	x := s.x
	width := x.Features * x.Labels
	for i := range b.Rows.N {
		values := b.Values[i*width:][:width]
		d, err := x.Difference(values, b.Predictions[i*x.Labels:][:x.Labels])
		if err != nil {
			return err
		}
		s.Difference = max(s.Difference, d)
		for k, v := range values {
			s.Features[k/x.Labels].Labels[k%x.Labels] += math.Abs(v)
		}
		for f := range s.Features {
			if s.Number != nil {
				*s.Features[f].Number += math.Abs(s.number(values[f*x.Labels:][:x.Labels]))
			}
		}
		if s.drawn.n < mostSwarm && 8*(s.drawn.n+1)*width <= mostSwarmBytes {
			s.drawn.n++
			s.drawn.values = append(s.drawn.values, values...)
			s.drawn.x = append(s.drawn.x, b.Features(i)...)
		}
	}
	s.Samples += b.Rows.N
	return nil
}

// finish computes the means.
func (s *shapSummary) finish() {
	for f := range s.Features {
		own := &s.Features[f]
		for c := range own.Labels {
			own.Labels[c] /= float64(max(1, s.Samples))
			own.Mean += own.Labels[c] * s.x.Weight(c)
		}
		if own.Number != nil {
			*own.Number /= float64(max(1, s.Samples))
		}
	}
}

// one explains the sample of a block with one sample.
func (s *shapSummary) one(b *explain.Block) error {
	x := s.x
	found := x.NewLane().Block(b)
	if err := s.add(found); err != nil {
		return err
	}
	s.finish()
	row := &shapSample{Sample: b.Name(0), Output: slices.Clone(x.Base)}
	features := found.Features(0)
	for f := range s.Features {
		own := found.Values[f*x.Labels:][:x.Labels]
		values := shapValues{Feature: s.Features[f].Feature, Value: float64(features[f]), SHAP: own}
		if s.Number != nil {
			number := s.number(own)
			values.Number = &number
		}
		row.Features = append(row.Features, values)
		for c, v := range own {
			row.Output[c] += v
		}
	}
	if s.Sample = row; s.Number != nil {
		number := s.number(row.Output)
		row.Number = &number
	}
	return nil
}

// limit returns how many of n things the text shows.
func (e *explanation) limit(n int) int {
	if e.top == 0 {
		return n
	}
	return min(n, e.top)
}

// mostLabelColumns is the number of labels that have columns in the text.
const mostLabelColumns = 8

// labelColumns returns the labels that have columns, and whether these are all labels.
func (e *explanation) labelColumns() (names []string, all bool) {
	if len(e.Labels) > mostLabelColumns {
		return nil, false
	}
	return e.Labels, true
}

// text writes the explanation as text.
func (e *explanation) text(w io.Writer) {
	all := true
	switch {
	case e.Gains != nil:
		all = e.gainsText(w)
	case e.Permuted != nil:
		all = e.permutedText(w)
	case e.SHAP != nil:
		all = e.shapText(w)
	case e.Path != nil:
		e.pathText(w)
	case e.Splits != nil:
		e.splitsText(w)
	case e.Weights != nil:
		all = e.weightsText(w)
	}
	if !all {
		fmt.Fprintf(w, "\nthe model has %s; -o json has the values of each label\n", units.Plural(len(e.Labels), "label"))
	}
	for _, text := range []string{e.LeftOut.String(), e.Unseen.String()} {
		if text != "" {
			fmt.Fprintf(w, "\n%s\n", text)
		}
	}
	if e.Matched != nil {
		writeMatching(w, e.Matched)
	}
	if e.Out != "" {
		fmt.Fprintf(w, "\nSHAP values of each sample: %s\n", cli.OutputName(e.Out))
	}
}

// short writes a number with four significant digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// shorts writes numbers with four significant digits.
func shorts(values []float64) (texts []string) {
	for _, v := range values {
		texts = append(texts, short(v))
	}
	return texts
}

// withError writes a mean and its standard error.
func withError(m *explain.Mean) string {
	if m.StandardError == nil {
		return short(m.Mean)
	}
	return short(m.Mean) + " ± " + strconv.FormatFloat(*m.StandardError, 'g', 2, 64)
}

// featureTable writes a table with a row for each of the first things of an order.
func (e *explanation) featureTable(w io.Writer, header []string, order []int, row func(i int) []string) {
	right := make([]int, len(header)-1)
	for i := range right {
		right[i] = i + 2
	}
	shown := e.limit(len(order))
	cli.WriteTable(w, header, order[:shown], row, right...)
	if rest := len(order) - shown; rest > 0 {
		fmt.Fprintf(w, "%s more; --top 0 lists all\n", units.Count(rest))
	}
}

func (e *explanation) gainsText(w io.Writer) (all bool) {
	g := e.Gains
	fmt.Fprintf(w, "Importance of features in %s of %s\n", units.Plural(g.Trees, "tree"), cli.ShortDigest(e.ModelDigest))
	labels, all := e.labelColumns()
	header := append([]string{"feature", "splits", "gain", "importance"}, labels...)
	used := 0
	for i := range g.Features {
		if g.Features[i].Splits > 0 {
			used++
		}
	}
	order := explain.Order(len(g.Features), func(i int) float64 { return g.Features[i].Gain })
	order = slices.DeleteFunc(order, func(i int) bool { return g.Features[i].Splits == 0 })
	e.featureTable(w, header, order, func(i int) []string {
		x := &g.Features[i]
		row := []string{x.Feature, units.Count(x.Splits), withError(&explain.Mean{Mean: x.Gain,
			StandardError: x.StandardError}), fmt.Sprintf("%.4f", x.Importance)}
		if all {
			for _, v := range x.Labels {
				row = append(row, fmt.Sprintf("%.4f", v))
			}
		}
		return row
	})
	if rest := len(g.Features) - used; rest > 0 {
		fmt.Fprintf(w, "%s without splits\n", units.Plural(rest, "feature"))
	}
	fmt.Fprintf(w, "\ngain: mean over the trees; %s\nimportance: fraction of all gains\n", g.Unit)
	if all {
		fmt.Fprintln(w, "each label: fraction of the explained variance of the label's leaves")
	}
	return all
}

func (e *explanation) permutedText(w io.Writer) (all bool) {
	p := e.Permuted
	samples := units.Plural(p.Samples, "sample")
	if p.Samples < p.Of {
		samples = fmt.Sprintf("%s of %s, drawn with seed %d,", units.Count(p.Samples), units.Plural(p.Of, "sample"), p.Seed)
	}
	fmt.Fprintf(w, "Rise of the losses on %s if a feature is permuted: mean and standard error of %s\n", samples,
		units.Plural(p.Repeats, "repeat"))
	labels, all := e.labelColumns()
	header, loss := []string{"feature"}, "MAE "+short(p.MAE)
	if p.KL != nil {
		header, loss = append(header, "K-L"), "K-L "+short(*p.KL)+", "+loss
	}
	header = append(header, "MAE")
	if p.NumberMAE != nil {
		header, loss = append(header, "MAE of the number"), loss+", MAE of the expected number "+short(*p.NumberMAE)
	}
	several := len(labels) > 1
	if several {
		header = append(header, labels...)
	}
	order := explain.Order(len(p.Features), func(i int) float64 { return p.Features[i].Rise() })
	e.featureTable(w, header, order, func(i int) []string {
		x := &p.Features[i]
		row := []string{x.Feature}
		if x.KL != nil {
			row = append(row, withError(x.KL))
		}
		row = append(row, withError(&x.MAE))
		if x.NumberMAE != nil {
			row = append(row, withError(x.NumberMAE))
		}
		if several {
			for c := range x.LabelMAE {
				row = append(row, short(x.LabelMAE[c].Mean))
			}
		}
		return row
	})
	fmt.Fprintf(w, "\nwithout permutations: %s\n", loss)
	if several {
		fmt.Fprintln(w, "each label: rise of its mean absolute error")
	}
	return all
}

func (e *explanation) shapText(w io.Writer) (all bool) {
	s := e.SHAP
	labels, all := e.labelColumns()
	order := explain.Order(len(s.Features), func(i int) float64 { return s.Features[i].Mean })
	header := []string{"feature"}
	var row func(i int) []string
	if x := s.Sample; x != nil {
		fmt.Fprintf(w, "SHAP values of sample %s\n", x.Sample)
		header = append(header, "value", "sum of absolute values")
		row = func(i int) []string {
			v := &x.Features[i]
			cells := []string{v.Feature, short(v.Value), short(s.Features[i].Mean)}
			if v.Number != nil {
				cells = append(cells, short(*v.Number))
			}
			return append(cells, shorts(v.SHAP[:len(labels)])...)
		}
	} else {
		fmt.Fprintf(w, "Mean absolute SHAP values of %s\n", units.Plural(s.Samples, "sample"))
		header = append(header, "all labels")
		row = func(i int) []string {
			f := &s.Features[i]
			cells := []string{f.Feature, short(f.Mean)}
			if f.Number != nil {
				cells = append(cells, short(*f.Number))
			}
			return append(cells, shorts(f.Labels[:len(labels)])...)
		}
	}
	if s.Number != nil {
		header = append(header, "expected number")
	}
	e.featureTable(w, append(header, labels...), order, row)
	if x := s.Sample; x != nil {
		var base, output []string
		if s.Number != nil {
			base, output = append(base, "number "+short(*s.Number)), append(output, "number "+short(*x.Number))
		}
		base, output = append(base, shorts(s.Base[:len(labels)])...), append(output, shorts(x.Output[:len(labels)])...)
		if len(base) > 0 {
			fmt.Fprintf(w, "\nbase values: %s\noutput:      %s\n", strings.Join(base, ", "), strings.Join(output, ", "))
		}
	}
	fmt.Fprintf(w, "\nthe values of a sample and a label sum to %s\nbackground: %s\n", s.SumsTo, s.Background)
	fmt.Fprintf(w, "sums differ from predictions by at most %.1e\n", s.Difference)
	return all
}

// distribution writes the greatest values of a distribution with their labels.
func (e *explanation) distribution(values []float64) string {
	const most = 6
	var parts []string
	order := explain.Order(len(values), func(c int) float64 { return values[c] })
	for _, c := range order[:min(most, len(order))] {
		parts = append(parts, fmt.Sprintf("%s %.3f", e.Labels[c], values[c]))
	}
	if len(order) > most {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}

func (e *explanation) pathText(w io.Writer) {
	p := e.Path
	fmt.Fprintf(w, "Path of sample %s through tree %d of %s", p.Sample, p.Tree, units.Plural(p.Trees, "tree"))
	if p.Label != "" {
		fmt.Fprintf(w, ", which is about %s", p.Label)
	}
	fmt.Fprintln(w)
	if p.Leaf.Probability != nil {
		cli.WriteTable(w, []string{"node", "output unit", "branch", "probability"}, p.Steps, func(s explain.Step) []string {
			return []string{fmt.Sprint(s.Node), fmt.Sprint(*s.Unit), side(s.Left), fmt.Sprintf("%.4f", *s.Probability)}
		}, 1, 2, 4)
		fmt.Fprintf(w, "\nleaf %d, the most probable, with probability %.4f: %s\n", p.Leaf.Node, *p.Leaf.Probability,
			e.distribution(p.Leaf.Values))
		return
	}
	cli.WriteTable(w, []string{"node", "test", "value", "branch", "samples", "gain"}, p.Steps,
		func(s explain.Step) []string {
			return []string{fmt.Sprint(s.Node), fmt.Sprintf("%s < %.6g", s.Feature, *s.Threshold),
				fmt.Sprintf("%.6g", *s.Value), side(s.Left), units.Count(s.Samples), short(s.Gain)}
		}, 1, 3, 5, 6)
	fmt.Fprintf(w, "\nleaf %d, %s: ", p.Leaf.Node, units.Plural(p.Leaf.Samples, "training sample"))
	switch {
	case p.Label != "":
		fmt.Fprintf(w, "adds %s to the sum of %s\n", short(p.Leaf.Values[0]), p.Label)
	case p.Leaf.Adds:
		fmt.Fprintf(w, "adds to the sums: %s\n", e.distribution(p.Leaf.Values))
	default:
		fmt.Fprintln(w, e.distribution(p.Leaf.Values))
	}
}

func side(left bool) string {
	if left {
		return "left"
	}
	return "right"
}

func (e *explanation) splitsText(w io.Writer) {
	s := e.Splits
	fmt.Fprintf(w, "Splits that divide %s with the most certainty\n", units.Plural(s.Samples, "sample"))
	header := []string{"tree", "node", "information", "certainty", "reached", "left", "left mean", "right mean"}
	shown := e.limit(len(s.Splits))
	cli.WriteTable(w, header, s.Splits[:shown], func(x explain.SoftSplit) []string {
		return []string{fmt.Sprint(x.Tree), fmt.Sprint(x.Node), fmt.Sprintf("%.4f", x.Information),
			fmt.Sprintf("%.4f", x.Certainty), fmt.Sprintf("%.4f", x.Reached), fmt.Sprintf("%.4f", x.Left),
			e.distribution(x.LeftMean), e.distribution(x.RightMean)}
	}, 1, 2, 3, 4, 5, 6)
	if rest := len(s.Splits) - shown; rest > 0 {
		fmt.Fprintf(w, "%s more; --top 0 lists all\n", units.Count(rest))
	}
	fmt.Fprintln(w, "\ninformation, in bits: 1 if half of the samples go left, and each with certainty")
	fmt.Fprintln(w, "certainty: mean probability of the more probable branch")
	if len(s.Splits) > 0 && len(s.Splits[0].Features) > 0 {
		fmt.Fprintln(w, "-o json has the features with the greatest weights of each split")
	}
}

func (e *explanation) weightsText(w io.Writer) (all bool) {
	l := e.Weights
	fmt.Fprintf(w, "Weights of %s, in units of the features as samples have them\n", cli.ShortDigest(e.ModelDigest))
	labels, all := e.labelColumns()
	header := append([]string{"feature"}, labels...)
	deviations := len(l.Features) > 0 && l.Features[0].Deviation != nil
	if deviations {
		header = append(header, "standard deviation")
	}
	if !all {
		header = append(header, "greatest weight")
	}
	order := explain.Order(len(l.Features), l.Size)
	e.featureTable(w, header, order, func(i int) []string {
		x := &l.Features[i]
		row := []string{x.Feature}
		if all {
			row = append(row, shorts(x.Weights)...)
		}
		if deviations {
			row = append(row, short(*x.Deviation))
		}
		if !all {
			row = append(row, short(l.Size(i)))
		}
		return row
	})
	if all {
		fmt.Fprintf(w, "\nintercept: %s\n", strings.Join(shorts(l.Intercept), ", "))
	}
	fmt.Fprintf(w, "scores become predictions by: %s\n", l.Link)
	if deviations {
		fmt.Fprintln(w, "order: greatest weight times the standard deviation of the feature")
	} else {
		fmt.Fprintln(w, "order: greatest weight; with --data, times the standard deviation of the feature")
	}
	return all
}
