package ldlf

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// yeast and movie have the shapes of the field's datasets.
var (
	yeast = &dataset.Manifest{Rows: 2465, Features: 24, Labels: 18, NonZeros: 2465 * 24}
	movie = &dataset.Manifest{Rows: 7755, Features: 1869, Labels: 5, NonZeros: 7755 * 21, Sparse: true}
)

func mustResolve(t *testing.T, given param.Values, m *dataset.Manifest) *Config {
	t.Helper()
	r, err := New().Resolve(given, m)
	if err != nil {
		t.Fatal(err)
	}
	c, err := settings.Parse(r.Params)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPresets(t *testing.T) {
	dense := Config{
		Network: settings.Default().Network, Strategy: strategyJoint, Preset: "auto", Trees: 5, Depth: 7, Outputs: 64,
		Bias: true, Scaling: "standard", BatchSize: 128,
		Optimizer: "sgd", LearningRate: 2, LearningRateDecay: 0.5, Momentum: 0.9, WeightDecay: 1e-5,
		Init: "normal", InitStd: 1 / math.Sqrt(24), LeafIterations: 20, LeafBatches: 2465 / 128, LeafFirst: true,
		ValidationFraction: 0.2, Patience: 10, Refit: true, Shrink: true, Steps: 25000,
	}
	sparse := dense
	sparse.Scaling, sparse.InitStd, sparse.LeafBatches = "none", 1/math.Sqrt(21), 7755/128
	dense.Outputs, dense.LearningRate, sparse.Outputs, sparse.LearningRate = 128, 4, 128, 4
	small := dense
	small.LeafBatches, small.Outputs, small.LearningRate = 10, 64, 2
	large := dense
	large.LeafBatches, large.Outputs, large.LearningRate, large.Cosine, large.WeightDecay = 100, 128, 8, true, 0
	large.Patience, large.Refit, large.Steps, large.ValidationFraction = 1000, false, 40_000, 0.01
	some := dense
	some.Trees, some.Outputs, some.LearningRate, some.WeightDecay = 20, 512, 16, 2.5e-6
	forest, adam, deep := large, large, large
	forest.Trees, forest.Outputs, forest.LearningRate = 20, 512, 32
	adam.Optimizer, adam.LearningRate = "adam", 0.02
	deep.Optimizer, deep.LearningRate, deep.Init, deep.InitStd, deep.LeafBatches = "adam", 0.02, "he", 0, 500
	deep.Network.Features, deep.Network.Hidden = network.MLP, "128"
	unvalidated := dense
	unvalidated.ValidationFraction, unvalidated.Refit, unvalidated.Shrink = 0, false, false
	paper := Config{
		Network: settings.Default().Network, Strategy: strategyJoint, Preset: "paper", Trees: 5, Depth: 7, Outputs: 64,
		Bias: true, Scaling: "none", BatchSize: 64,
		Optimizer: "sgd", LearningRate: 0.1, LearningRateStep: 10000, LearningRateDecay: 0.5, Momentum: 0.9,
		Init: "xavier", LeafIterations: 20, LeafBatches: 100, Patience: 10, Steps: 25000,
	}
	for _, x := range []struct {
		name  string
		given param.Values
		m     *dataset.Manifest
		want  Config
	}{
		{"auto, dense", nil, yeast, dense},
		{"auto, sparse", param.Values{"preset": "auto"}, movie, sparse},
		{"auto, more trees", param.Values{"trees": int64(20)}, yeast, some},
		{"auto, few rows", nil, &dataset.Manifest{Rows: 213, Features: 24, Labels: 6, NonZeros: 213 * 24}, small},
		{"auto, many rows", nil, &dataset.Manifest{Rows: 1e6, Features: 24, Labels: 6, NonZeros: 24e6}, large},
		{"auto, many rows, more trees", param.Values{"trees": int64(20)}, &dataset.Manifest{Rows: 1e6, Features: 24,
			Labels: 6, NonZeros: 24e6}, forest},
		{"auto, many rows, adam", param.Values{"optimizer": "adam"}, &dataset.Manifest{Rows: 1e6, Features: 24, Labels: 6,
			NonZeros: 24e6}, adam},
		{"auto, many rows, mlp", param.Values{"features": "mlp"}, &dataset.Manifest{Rows: 1e6, Features: 24, Labels: 6,
			NonZeros: 24e6}, deep},
		{"auto without validation", param.Values{"validation_fraction": 0.0}, yeast, unvalidated},
		{"paper", param.Values{"preset": "paper"}, movie, paper},
	} {
		if got := mustResolve(t, x.given, x.m); *got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, *got, x.want)
		}
	}
}

// TestDecayOfNetworks: networks on sparse rows have a smaller decay in preset auto.
func TestDecayOfNetworks(t *testing.T) {
	for _, x := range []struct {
		given param.Values
		m     *dataset.Manifest
		want  float64
	}{
		{param.Values{"features": "mlp"}, yeast, 1e-3},
		{param.Values{"features": "mlp"}, movie, 3e-4},
		{param.Values{"features": "mlp", "weight_decay": 1e-2}, movie, 1e-2},
		{param.Values{"features": "mlp", "preset": "paper"}, movie, 0},
		{nil, movie, 1e-5},
	} {
		if got := mustResolve(t, x.given, x.m).WeightDecay; got != x.want {
			t.Errorf("%v: decay %v, want %v", x.given, got, x.want)
		}
	}
}

func TestGivenOverrides(t *testing.T) {
	c := mustResolve(t, param.Values{
		"preset": "paper", "trees": int64(20), "learning_rate": 5.0, "bias": false, "init": "normal", "init_std": 1.0,
		"scaling": "minmax", "steps": int64(300), "depth": int64(9),
	}, movie)
	if c.Trees != 20 || c.LearningRate != 5 || c.Bias || c.Init != "normal" || c.InitStd != 1 || c.Scaling != "minmax" ||
		c.Steps != 300 {
		t.Errorf("%+v", c)
	}
	if c.Outputs != 256 {
		t.Errorf("%d outputs for depth 9, want 256", c.Outputs)
	}
	if c := mustResolve(t, param.Values{"optimizer": "adam"}, yeast); c.LearningRate != adamRate {
		t.Errorf("Adam begins with rate %v", c.LearningRate)
	}
	if c := mustResolve(t, param.Values{"preset": "paper", "init_std": 0.5}, yeast); c.Init != "normal" {
		t.Errorf("init_std alone gives init %s", c.Init)
	}
	if c := mustResolve(t, param.Values{"init": "xavier"}, yeast); c.InitStd != 0 {
		t.Errorf("xavier with deviation %v", c.InitStd)
	}
}

// TestResolvedRepeats: the resolved settings, given again, resolve to themselves,
// so the printed command repeats a job.
func TestResolvedRepeats(t *testing.T) {
	for _, given := range []param.Values{nil, {"preset": "paper"}, {"optimizer": "adam"}} {
		first := mustResolve(t, given, movie)
		if second := mustResolve(t, settings.Values(first), yeast); *second != *first {
			t.Errorf("%+v became %+v", *first, *second)
		}
	}
}

func TestWrongSettings(t *testing.T) {
	for _, x := range []struct {
		given param.Values
		name  string
		says  string
	}{
		{param.Values{"depth": int64(40)}, "depth", "from 2 to 20"},
		{param.Values{"depth": int64(1)}, "depth", "from 2 to 20"},
		{param.Values{"outputs": int64(62)}, "outputs", "at least 63"},
		{param.Values{"depth": int64(8), "outputs": int64(64)}, "outputs", "at least 127"},
		{param.Values{"batch_size": int64(0)}, "batch_size", "from 1"},
		{param.Values{"learning_rate": -1.0}, "learning_rate", "not a number from"},
		{param.Values{"learning_rate": math.NaN()}, "learning_rate", "NaN"},
		{param.Values{"momentum": 1.0}, "momentum", "0.9999"},
		{param.Values{"optimizer": "lbfgs"}, "optimizer", "not sgd or adam"},
		{param.Values{"preset": "best"}, "preset", "not auto or paper"},
		{param.Values{"scaling": true}, "scaling", "not none, standard or minmax"},
		{param.Values{"trees": 5.5}, "trees", "whole number"},
		{param.Values{"validation_fraction": 0.7}, "validation_fraction", "to 0.5"},
		{param.Values{"init": "normal", "init_std": 0.0}, "init_std", "above 0"},
		{param.Values{"init": "xavier", "init_std": 1.0}, "init_std", "normal"},
		{param.Values{"tree": int64(5)}, "tree", "no such setting"},
		{param.Values{"refit": true, "preset": "paper"}, "refit", "validation_fraction"},
		{param.Values{"shrink": true, "preset": "paper"}, "shrink", "validation_fraction"},
		{param.Values{"trees": int64(1000), "depth": int64(17)}, "depth", "at most"},
		{param.Values{"outputs": int64(1 << 20)}, "outputs", "the feature function would have"},
	} {
		_, err := New().Resolve(x.given, movie)
		var p *param.Error
		if !errors.As(err, &p) || p.Name != x.name || !strings.Contains(p.Reason.String(), x.says) {
			t.Errorf("%v: error %v, want one of %s that says %q", x.given, err, x.name, x.says)
		}
	}
	if _, err := New().Resolve(nil, &dataset.Manifest{Rows: 9, Features: 3}); !errors.Is(err, learner.ErrNoLabels) {
		t.Errorf("without labels: error %v", err)
	}
}

// TestParams: every field of Config is a setting, described once, in JSON order.
func TestParams(t *testing.T) {
	r, err := New().Resolve(nil, yeast)
	if err != nil {
		t.Fatal(err)
	}
	if r.ValidationFraction != 0.2 || r.ValidationMin != 20 {
		t.Errorf("%+v", r)
	}
	var fields map[string]any
	if err := json.Unmarshal(r.Params, &fields); err != nil {
		t.Fatal(err)
	}
	for _, p := range New().Params() {
		if _, ok := fields[p.Name]; !ok || p.Doc == "" || p.Default == "" {
			t.Errorf("setting %q is not in the JSON form, or lacks its text", p.Name)
		}
		delete(fields, p.Name)
	}
	if len(fields) > 0 {
		t.Errorf("not described: %v", fields)
	}
}

func TestParseConfigStrict(t *testing.T) {
	good, err := settings.JSON(smallConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "{}", "[]", strings.Replace(string(good), "trees", "forest", 1),
		strings.Replace(string(good), `"depth":4`, `"depth":40`, 1)} {
		if _, err := settings.Parse([]byte(bad)); err == nil {
			t.Errorf("%.40q is accepted", bad)
		}
	}
	j := jobOf(smallConfig(), 1)
	j.Split.ValidationFraction = 0.3
	if _, err := New().NewKernel(j, yeast); err == nil {
		t.Error("a split with another validation share is accepted")
	}
}
