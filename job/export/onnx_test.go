package export

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// labelled is a source whose labels are of a type: numbers from 10 on, targets from 0 to 1, or classes.
type labelled struct {
	dataset.Source
	kind dataset.LabelType
}

func (s labelled) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType, info.HasValues = s.kind, s.kind.Scale != nil && s.kind.Scale.True == dataset.TrueValue
	return info
}

func (s labelled) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		greatest, expected := 0, 10.0
		for i, v := range r.Labels {
			if v > r.Labels[greatest] {
				greatest = i
			}
			expected += float64(i) * v
		}
		r.Value = expected
		for i, v := range r.Labels {
			switch {
			case s.kind.Classes:
				r.Labels[i] = truth(i == greatest)
			case s.kind.Bounds != nil:
				low, high := s.kind.Bounds.Low[i], s.kind.Bounds.High[i]
				r.Labels[i] = low + math.Sqrt(v)*(high-low)
			}
		}
		return f(r)
	})
}

// train trains a small model, and decodes its file.
func train(t testing.TB, o generate.Options, kind dataset.LabelType, algorithm string,
	set map[string]string) *predict.Model {
	t.Helper()
	src, err := generate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, labelled{src, kind})
	j, err := spec.Resolve(protocol.Spec{Algorithm: algorithm, TestFraction: 0.1, Set: set}, m)
	if err != nil {
		t.Fatal(err)
	}
	outcome, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards}, local.Options{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	model, err := predict.Decode(outcome.Model)
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// rows are samples without labels.
type rows struct {
	features int
	values   []float32
}

func (s *rows) Info() dataset.Info {
	return dataset.Info{Rows: len(s.values) / s.features, Features: s.features}
}

func (s *rows) Scan(f func(*dataset.Row) error) error {
	row := dataset.Row{Values: make([]float64, s.features)}
	for i := range len(s.values) / s.features {
		row.Number = i
		for k := range row.Values {
			row.Values[k] = float64(s.values[i*s.features+k])
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	return nil
}

// samplesFor draws samples for a graph: rows of zeros, rows on the thresholds of its trees, and others, some of which
// are far away.
func samplesFor(g *graph.Graph, features, count int) *rows {
	random := rand.New(rand.NewPCG(1, uint64(features)))
	s := &rows{features, make([]float32, features*count)}
	for i := range s.values {
		if row := i / features; row > 0 && random.Float64() < 0.8 {
			s.values[i] = float32(random.NormFloat64() * math.Pow(3, float64(row%4-2)))
		}
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Op == "TreeEnsembleRegressor" {
			c := call{n: n}
			at, thresholds := c.attribute("nodes_featureids").([]int), c.attribute("nodes_values").([]float32)
			for row := 1; row < count/2; row++ {
				for range 3 {
					k := random.IntN(len(at))
					s.values[row*features+at[k]] = thresholds[k]
				}
			}
		}
	}
	return s
}

// differences exports a model, interprets the file, and returns the greatest difference from what the model predicts.
func differences(t testing.TB, m *predict.Model, count int) (most float64, size int) {
	t.Helper()
	var file bytes.Buffer
	if err := ONNX(&file, m); err != nil {
		t.Fatal(err)
	}
	g, properties := decodeONNX(t, file.Bytes())
	if properties["model_digest"] != m.File.Digest || properties["algorithm"] != m.File.Algorithm {
		t.Errorf("the properties are %v", properties)
	}
	features, _ := m.Shape()
	s := samplesFor(g, features, count)
	x := made(graph.Float32, count, features)
	for i, v := range s.values {
		x.v[i] = float64(v)
	}
	outputs := interpret(t, g, map[graph.Value]*tensor{inputFeatures: x})
	p := outputs[outputPredictions]
	at := 0
	err := m.PredictAll(s, importer.Options{}, func(b *predict.Block) error {
		for i := range b.Rows.N {
			for _, v := range b.Row(i) {
				if d := math.Abs(float64(v) - p.v[at]); !(d <= most) {
					most = d
				}
				at++
			}
		}
		return nil
	})
	if err != nil || at != len(p.v) {
		t.Fatalf("%d values are predicted, and the graph has %d: %v", at, len(p.v), err)
	}
	return most, file.Len()
}

// small has settings with which training takes less than a second, by algorithm.
var small = map[string][]map[string]string{
	"ldlf": {{"trees": "3", "depth": "4", "steps": "100", "leaf_batches": "50"},
		{"trees": "2", "depth": "2", "steps": "50", "leaf_batches": "25", "scaling": "none", "bias": "false"},
		{"trees": "2", "depth": "3", "steps": "50", "leaf_batches": "25", "features": "mlp", "hidden": "7,5"}},
	"structrf": {{"trees": "20", "min_samples": "4"}},
	"rf":       {{"trees": "20", "min_samples": "4"}},
	"dldl": {{"hidden": "8", "steps": "100"}, {"hidden": "8,4", "layer_norm": "true", "steps": "50"},
		{"hidden": "8", "steps": "50", "scaling": "minmax", "bias": "false"}},
	"aa-bp":             {{"hidden": "8", "steps": "100"}, {"hidden": "8", "steps": "50", "units": "relu"}},
	"mlp-regression":    {{"hidden": "8", "passes": "20"}},
	"cpnn":              {{"hidden": "5", "steps": "40"}, {"hidden": "5", "steps": "40", "label_input": "number"}},
	"ldlogitboost":      {{"rounds": "10"}},
	"aoso-ldlogitboost": {{"rounds": "20"}},
	"ldlboost":          {{"rounds": "20"}},
	"aa-knn":            {{"k": "5"}, {"k": "1", "scaling": "none"}},
	"ranking":           {{"loops": "3"}, {"preset": "paper", "loops": "3"}},
	"ndf":               {{"trees": "4", "max_depth": "3", "iters": "30"}, {"trees": "4", "hidden": "0", "iters": "30"}},
	"ensemble":          {{"members": "structrf:trees=20:min_samples=5,sa-bfgs,aa-knn", "inner_folds": "2"}},
}

// settingsOf returns the settings of the models that tests train of an algorithm.
func settingsOf(algorithm string) []map[string]string {
	if sets := small[algorithm]; sets != nil {
		return sets
	}
	return []map[string]string{nil}
}

// TestAlgorithms exports a small model of each algorithm, on dense and on sparse samples, and compares what the graph
// computes with what the model predicts. An algorithm without a graph must say so.
func TestAlgorithms(t *testing.T) {
	for _, a := range registry.All() {
		for i, set := range settingsOf(a.Name()) {
			for _, o := range []generate.Options{{Rows: 150, Features: 5, Labels: 4, Density: 1, Seed: 1},
				{Rows: 140, Features: 40, Labels: 3, Density: 0.1, Seed: 2}} {
				kinds := []dataset.LabelType{{}}
				switch {
				case a.Predicts() == algorithms.Number:
					kinds = []dataset.LabelType{{Scale: &dataset.Scale{Low: 10, True: dataset.TrueValue}}}
				case a.Predicts() == algorithms.Targets:
					kinds = nil
				}
				if registry.ReadsTargets(a) {
					kinds = append(kinds, dataset.LabelType{Bounds: &dataset.Bounds{Low: []float64{-3, 0, 1, 5}[:o.Labels],
						High: []float64{7, 1, 2, 6}[:o.Labels]}})
				}
				for _, kind := range kinds {
					t.Run(fmt.Sprintf("%s/%d/%v/%s", a.Name(), i, o.Density, kind.String(o.Labels)), func(t *testing.T) {
						t.Parallel()
						m := train(t, o, kind, a.Name(), set)
						most, bytes := differences(t, m, 300)
						t.Logf("difference %.2g, %d bytes", most, bytes)
						if !(most <= 2e-6*scaleOf(m)) {
							t.Errorf("the graph differs by %g", most)
						}
					})
				}
			}
		}
	}
}

// images are settings of dldl for images of 2x7x8 pixels.
var images = []map[string]string{
	{"features": "conv", "shape": "2x7x8", "steps": "20", "channels": "3,4", "hidden": "6", "layer_norm": "true"},
	{"features": "conv", "shape": "2x7x8", "steps": "20", "channels": "3", "kernel": "3", "stride": "2", "padding": "2",
		"pool": "2", "pooling": "average", "hidden": "none"},
	{"features": "conv", "shape": "2x7x8", "steps": "20", "channels": "2", "crop": "5", "pool": "1", "flip": "true",
		"shift": "1", "hidden": "4", "bias": "false"},
}

// TestImages compares networks with convolutions.
func TestImages(t *testing.T) {
	o := generate.Options{Rows: 120, Features: 2 * 7 * 8, Labels: 3, Density: 1, Seed: 3}
	for _, set := range images {
		most, bytes := differences(t, train(t, o, dataset.LabelType{}, "dldl", set), 60)
		if t.Logf("difference %.2g, %d bytes", most, bytes); !(most <= 2e-6) {
			t.Errorf("%v: the graph differs by %g", set, most)
		}
	}
}

// scaleOf returns the greatest size of what a model predicts.
func scaleOf(m *predict.Model) float64 {
	if m.Provenance.LabelType.Scale != nil || m.Provenance.LabelType.Bounds != nil {
		return 10
	}
	return 1
}

// TestNoGraph: a model without a graph is refused, and the error names another format.
func TestNoGraph(t *testing.T) {
	o := generate.Options{Rows: 150, Features: 5, Labels: 4, Density: 1, Seed: 1}
	hard := map[string]string{"trees": "2", "iters": "5", "routing": "hard"}
	for algorithm, set := range map[string]map[string]string{"ndf": hard,
		"ensemble": {"members": "sa-bfgs,ndf:trees=2:iters=5:routing=hard", "weights": "mean"}} {
		err := ONNX(new(bytes.Buffer), train(t, o, dataset.LabelType{}, algorithm, set))
		if !errors.Is(err, graph.ErrNone) || !strings.Contains(err.Error(), "the format npz") ||
			!strings.Contains(err.Error(), "routing=soft") {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}
