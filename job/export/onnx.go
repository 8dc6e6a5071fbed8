package export

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/job/predict"
)

// ONNX writes a model as an ONNX file. The graph reads samples as they are in the file of the training data: it has the
// levels of categories, the values that replace missing features, and the scaling. The graph predicts what `predict`
// writes. An error wraps graph.ErrNone if no operators describe the model.
func ONNX(w io.Writer, m *predict.Model) error {
	g, err := build(m)
	if err == nil {
		err = writeONNX(w, g, m.Provenance.Version, metadata(m, g))
	}
	if err != nil {
		return fmt.Errorf("%w; the format npz has its arrays", err)
	}
	return nil
}

// The names of the inputs and outputs. Outputs have the names of the arrays that `predict` writes to a .npz file.
const (
	inputFeatures     = "features"
	inputCategory     = "category_" // and the name of the category
	outputPredictions = "predictions"
	outputClass       = "predicted_class"
	outputExpected    = "expected"
	outputMedian      = "median"
	outputMode        = "mode"
)

// build returns the graph of a model, from its inputs to its outputs.
func build(m *predict.Model) (*graph.Graph, error) {
	d := builder{Builder: graph.New(), model: m}
	x, err := d.inputs()
	if err != nil {
		return nil, err
	}
	d.invalid = d.Op("IsNaN", d.Sum(d.Op("Sub", x, x), 1)) // the difference of infinite numbers is NaN, too
	p, err := graph.Of(m.Model, d.Builder, x)
	if err != nil {
		return nil, err
	}
	return d.Graph, d.outputs(p)
}

// builder adds what a file has before and behind the graph of a model.
type builder struct {
	*graph.Builder
	model   *predict.Model
	invalid graph.Value // of each sample: true if a feature is NaN or infinite (bool, samples×1)
}

// category is a category of the training data, in metadata.
type category struct {
	Input  string   `json:"input"`
	Name   string   `json:"name"`
	Levels []string `json:"levels"`

	at int // of its first feature
}

// categoriesOf returns the categories whose levels are features of a model.
func categoriesOf(m *predict.Model) (all []category, err error) {
	names, from := m.Provenance.FeatureNames, 0
	for _, k := range m.Provenance.Reading.Categories {
		at := slices.Index(names[min(from, len(names)):], k.Name+"="+k.Levels[0])
		if at < 0 || from+at+len(k.Levels) > len(names) {
			return nil, graph.None("the model does not say which features are the levels of category %q", k.Name)
		}
		c := category{Input: inputCategory + k.Name, Name: k.Name, Levels: k.Levels, at: from + at}
		if slices.ContainsFunc(all, func(other category) bool { return other.Input == c.Input }) {
			return nil, graph.None("two categories have the name %q", k.Name)
		}
		all, from = append(all, c), c.at+len(k.Levels)
	}
	return all, nil
}

// inputs adds the inputs, and returns the features that the model reads (float32, samples×features).
func (d *builder) inputs() (graph.Value, error) {
	features, _ := d.model.Shape()
	categories, err := categoriesOf(d.model)
	if err != nil {
		return "", err
	}
	numbers := features
	for _, k := range categories {
		numbers -= len(k.Levels)
	}
	var parts []graph.Value
	if numbers > 0 {
		parts = append(parts, d.Input(graph.Port{Name: inputFeatures, Type: graph.Float32, Columns: numbers,
			Doc: "features without categories, in the order of feature_names"}))
	}
	place := make([]int, 0, features) // of each feature its column in the parts
	used := 0                         // numbers so far
	next := numbers
	for _, k := range categories {
		for ; len(place) < k.at; used++ {
			place = append(place, used)
		}
		level := d.Input(graph.Port{Name: graph.Value(k.Input), Type: graph.String, Columns: 1, Doc: "level of " + k.Name})
		chosen := d.WithML("OneHotEncoder", graph.Attributes{"cats_strings": k.Levels, "zeros": 0}, level)
		parts = append(parts, d.Reshape(chosen, -1, len(k.Levels)))
		for range k.Levels {
			place = append(place, next)
			next++
		}
	}
	for ; len(place) < features; used++ {
		place = append(place, used)
	}
	x := parts[0]
	if len(categories) > 0 {
		x = d.Gather(d.Concat(1, parts...), 1, place...)
	}
	if fill := fillOf(d.model, features); fill != nil {
		x = d.Op("Where", d.Op("IsNaN", x), d.F32(fill, features), x)
	}
	return x, nil
}

// fillOf returns what replaces missing features of a model; nil: nothing does.
func fillOf(m *predict.Model, features int) []float32 {
	if s := m.Schema(); s.Fills() {
		fill := make([]float32, features)
		for i, v := range s.Fill {
			fill[i] = float32(v)
		}
		return fill
	}
	missing, err := dataset.ParseMissing(m.Provenance.Reading.Missing)
	if err != nil || !missing.Fill {
		return nil
	}
	return slices.Repeat([]float32{float32(missing.Value)}, features)
}

// outputs adds the outputs of predictions p.
func (d *builder) outputs(p graph.Value) error {
	bounds, err := d.model.TargetBounds()
	if err != nil {
		return err
	}
	_, labels := d.model.Shape()
	if d.model.Output() == algorithms.Number {
		labels = 1
	}
	if bounds != nil {
		p = d.unscale(p, bounds)
	}
	p = d.guard(p)
	d.Output(graph.Port{Name: outputPredictions, Type: graph.Float32, Columns: labels, Doc: docOf(d.model)}, p)
	t := d.model.Provenance.LabelType
	switch {
	case d.model.Output() == algorithms.Number || bounds != nil:
	case t.Classes:
		class := d.With("ArgMax", graph.Attributes{"axis": 1, "keepdims": 0}, p)
		invalid := d.Reshape(d.invalid, -1)
		class = d.Op("Where", invalid, d.List(-1), class)
		d.Output(graph.Port{Name: outputClass, Type: graph.Int64, Doc: "number of the greatest probability, from 0; -1 of " +
			"a sample with an invalid feature"}, class)
	case t.Scale != nil:
		d.numbers(p, float64(t.Scale.Low), labels)
	}
	return nil
}

// docOf says what the predictions are.
func docOf(m *predict.Model) string {
	switch {
	case m.Output() == algorithms.Number:
		return "predicted number"
	case m.Provenance.LabelType.Bounds != nil:
		return "predicted targets, in the order of label_names"
	}
	return "predicted probabilities, in the order of label_names"
}

// guard replaces the predictions of samples with invalid features by NaN.
func (d *builder) guard(p graph.Value) graph.Value {
	return d.Op("Where", d.invalid, d.F32([]float32{float32(math.NaN())}), p)
}

// unscale returns targets in their bounds.
func (d *builder) unscale(p graph.Value, bounds *dataset.Bounds) graph.Value {
	n := len(bounds.Low)
	ranges := make([]float64, n)
	for c, low := range bounds.Low {
		ranges[c] = bounds.High[c] - low
	}
	low := d.F64(bounds.Low, n)
	q := d.Op("Add", low, d.Op("Mul", d.Cast(p, graph.Float64), d.F64(ranges, n)))
	q = d.Op("Min", d.Op("Max", q, low), d.F64(bounds.High, n))
	return d.Cast(q, graph.Float32)
}

// numbers adds the expected number, the median and the mode of distributions over the numbers from low on.
func (d *builder) numbers(p graph.Value, low float64, labels int) {
	positions := make([]float64, labels)
	for i := range positions {
		positions[i] = float64(i)
	}
	add := func(name graph.Value, position graph.Value) {
		v := d.Op("Add", d.Number(low), d.Cast(position, graph.Float64))
		column := d.guard(d.Reshape(d.Cast(v, graph.Float32), -1, 1))
		d.Output(graph.Port{Name: name, Type: graph.Float32}, d.Reshape(column, -1))
	}
	shares := d.Cast(p, graph.Float64)
	below := graph.CumSum(d.Builder, shares, 1)
	total := d.Gather(below, 1, labels-1)
	moment := graph.OrderedSum(d.Builder, d.Op("Mul", shares, d.F64(positions, labels)), 1, labels)
	add(outputExpected, d.Op("Div", moment, total))
	reached := d.Op("GreaterOrEqual", below, d.Op("Div", total, d.Number(2)))
	first := graph.Attributes{"axis": 1, "keepdims": 1}
	add(outputMedian, d.With("ArgMax", first, d.Cast(reached, graph.Float32)))
	add(outputMode, d.With("ArgMax", first, p))
}

// metadata lists the properties of a file: names, and where the model comes from.
func metadata(m *predict.Model, g *graph.Graph) [][2]string {
	p := m.Provenance
	categories, _ := categoriesOf(m) // build has found them
	features := namesOrNumbers(p.FeatureNames, m)
	for _, k := range slices.Backward(categories) {
		features = slices.Delete(features, k.at, k.at+len(k.Levels))
	}
	if categories == nil {
		categories = []category{}
	}
	return [][2]string{
		{"algorithm", m.File.Algorithm}, {"model_digest", m.File.Digest}, {"dataset_digest", p.Job.Dataset},
		{"coppice_version", p.Version}, {"arithmetic_version", strconv.Itoa(int(m.File.Numerics))},
		{"predicts", m.Output().String()}, {"operators", jsonOf(g.Operators())},
		{"feature_names", jsonOf(features)}, {"label_names", jsonOf(m.Labels())}, {"categories", jsonOf(categories)},
		{"label_type", jsonOf(p.LabelType)}, {"missing", p.Reading.Missing}, {"hyperparameters", string(p.Job.Params)},
		{"seed", strconv.FormatUint(p.Job.Seed, 10)},
	}
}

// namesOrNumbers returns names of features; of features without names, their positions.
func namesOrNumbers(names []string, m *predict.Model) []string {
	features, _ := m.Shape()
	all := make([]string, features)
	for i := range all {
		if all[i] = fmt.Sprintf("feature_%d", i); len(names) == features && names[i] != "" {
			all[i] = names[i]
		}
	}
	return all
}

// jsonOf returns a value as JSON.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // lists of texts and numbers
	}
	return string(b)
}
