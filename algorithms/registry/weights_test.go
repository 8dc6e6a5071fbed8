package registry_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// weightedRows are rows of four features and three labels, with weights from 0 to 3, or each as often as its weight
// says. Degrees are multiples of 1/8, so that sums of them are exact in any order.
func weightedRows(repeated bool, kind string) *datasettest.Listed {
	l := &datasettest.Listed{Described: dataset.Info{Rows: 0, Features: 4, Labels: 3, HasWeights: !repeated}}
	if kind == "numbers" {
		l.Described.LabelType.Scale = &dataset.Scale{True: dataset.TrueExpected}
	}
	l.Described.LabelType.Incomplete = kind == "incomplete"
	for i := range 24 {
		at := float64(i)
		r := dataset.Row{Weight: float64(i * 7 % 4), Values: []float64{
			math.Round(32*math.Sin(at)) / 8, math.Round(32*math.Cos(3*at)) / 8, float64(i % 5), float64(i*i%11) / 4}}
		a, b := i*5%4+1, i*3%3+1
		r.Labels = []float64{float64(a) / 8, float64(b) / 8, float64(8-a-b) / 8}
		if kind == "incomplete" && i%3 == 1 {
			r.Labels[i%3], r.Labels[2] = math.NaN(), math.NaN()
		}
		times := 1
		if repeated {
			times, r.Weight = int(r.Weight), 1
		}
		for range times {
			r.Number = len(l.Rows)
			l.Rows = append(l.Rows, r)
		}
	}
	l.Described.Rows = len(l.Rows)
	return l
}

// trained trains an algorithm on all rows of a source.
func trained(t *testing.T, name string, set param.Values, src dataset.Source) algorithms.Model {
	t.Helper()
	return trainedBy(t, 2, name, set, src)
}

// trainedBy is trained with a number of executors.
func trainedBy(t *testing.T, executors int, name string, set param.Values, src dataset.Source) algorithms.Model {
	t.Helper()
	m, shards := datatest.Build(t, src)
	a, err := registry.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	split := dataset.Split{ValidationFraction: r.ValidationFraction, ValidationMin: r.ValidationMin}
	j := &round.Job{Algorithm: name, Numerics: round.Numerics, Seed: 1, Split: split, Params: r.Params}
	k, err := a.NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := a.NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	x := engine.NewLocal(k, datatest.Data(t, m, shards, split, nil), executors, nil)
	if err := engine.Drive(context.Background(), tr, 0, x, none); err != nil {
		t.Fatal(err)
	}
	if p := tr.Progress(); (p.Loss < 0 || p.Samples == 0) && !slices.Contains([]string{"structrf", "rf", "ldlf"}, name) {
		t.Errorf("the last training loss is %v, after %d samples", p.Loss, p.Samples) // the others may have none
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// numbersOf lists the numbers of a model, but for the samples in the nodes of trees.
func numbersOf(m algorithms.Model) (all []float64) {
	var add func(t *algorithms.Tensor)
	add = func(t *algorithms.Tensor) {
		all = append(all, t.F64...)
		for _, x := range t.F32 {
			all = append(all, float64(x))
		}
		for i := range t.Pieces {
			add(&t.Pieces[i])
		}
	}
	for _, t := range m.Tensors() {
		add(&t)
	}
	return all
}

// TestWeightsAreRepetitions trains on samples with whole weights and on the same samples, each as often as its weight
// says. Batches of gradient descent are all samples; their arithmetic is float32.
func TestWeightsAreRepetitions(t *testing.T) {
	linear := param.Values{"scaling": "standard", "l2": 0.1, "iterations": int64(20), "decay": "fixed",
		"validation_fraction": 0.0, "bias": true}
	grown := param.Values{"trees": int64(3), "bootstrap": false, "min_samples": int64(2)}
	batches := param.Values{"steps": int64(5), "validation_fraction": 0.0, "scaling": "standard"}
	boosted := param.Values{"rounds": int64(4), "leaf_rows": int64(1), "validation_fraction": 0.0}
	cases := []struct {
		name   string
		set    param.Values
		kind   string // of labels
		within float64
	}{
		{name: "sa-bfgs", set: linear, within: 1e-9},
		{name: "sa-bfgs", set: with(linear, "scaling", "minmax"), within: 1e-9},
		{name: "sa-bfgs", set: with(linear, "scaling", "none"), within: 1e-9},
		{name: "sa-bfgs", set: linear, kind: "incomplete", within: 1e-9},
		{name: "ldllc", set: linear, within: 1e-9},
		{name: "ldl-lrr", set: linear, within: 1e-9},
		{name: "ldlm", set: with(linear, "iterations", int64(3)), within: 1e-9},
		{name: "ldl-hr", set: with(linear, "iterations", int64(3)), within: 1e-9},
		{name: "ldl4c", set: with(linear, "iterations", int64(3)), within: 1e-9},
		{name: "sa-iis", set: param.Values{"scaling": "standard", "iterations": int64(5), "validation_fraction": 0.0},
			within: 1e-9},
		{name: "structrf", set: grown, within: 1e-9},
		{name: "rf", set: grown, within: 1e-9},
		{name: "structrf", set: with(grown, "step", "adaptive"), within: 1e-9},
		{name: "ldlogitboost", set: boosted, within: 1e-9},
		{name: "aoso-ldlogitboost", set: boosted, within: 1e-9},
		{name: "ldlboost", set: boosted, within: 1e-9},
		{name: "ldlboost", set: with(with(boosted, "hessian", "bound"), "grow", "leaf"), within: 1e-9},
		{name: "ldlboost", set: with(with(boosted, "bins", int64(4)), "min_gain", 0.01), within: 1e-9},
		{name: "ldlboost", set: with(boosted, "l2", 0.0), kind: "incomplete", within: 1e-9},
		{name: "dldl", set: with(with(batches, "optimizer", "sgd"), "dropout", 0.0), within: 1e-4},
		{name: "aa-bp", set: batches, within: 1e-4},
		{name: "ldlf", set: with(with(with(batches, "trees", int64(2)), "depth", int64(3)), "preset", "paper"), within: 1e-4},
		{name: "mlp-regression", set: param.Values{"passes": int64(5), "alpha": 0.0}, kind: "numbers", within: 1e-4},
	}
	for _, c := range cases {
		t.Run(fmt.Sprint(c.name, " ", c.set["scaling"], c.set["step"], c.kind), func(t *testing.T) {
			weighted, repeated := weightedRows(false, c.kind), weightedRows(true, c.kind)
			one, other := c.set, c.set
			if c.within > 1e-9 {
				one = with(c.set, "batch_size", int64(len(weighted.Rows)))
				other = with(c.set, "batch_size", int64(len(repeated.Rows)))
			}
			got, want := numbersOf(trained(t, c.name, one, weighted)), numbersOf(trained(t, c.name, other, repeated))
			if len(got) != len(want) || len(want) == 0 {
				t.Fatalf("the model has %d numbers with weights and %d with repetitions", len(got), len(want))
			}
			for i, x := range want {
				if math.Abs(got[i]-x) > c.within*max(1, math.Abs(x)) {
					t.Fatalf("number %d of the model is %v with weights and %v with repetitions", i, got[i], x)
				}
			}
		})
	}
}

// with returns a copy of values with another one.
func with(v param.Values, name string, value any) param.Values {
	all := param.Values{name: value}
	for k, x := range v {
		if k != name {
			all[k] = x
		}
	}
	return all
}

// TestWeightsOfOne: weights of 1 give the dataset without weights.
func TestWeightsOfOne(t *testing.T) {
	rows := weightedRows(false, "")
	for i := range rows.Rows {
		rows.Rows[i].Weight = 1
	}
	with, _ := datatest.Build(t, rows)
	rows.Described.HasWeights = false
	without, _ := datatest.Build(t, rows)
	if with.HasWeights || with.Digest() != without.Digest() {
		t.Errorf("the dataset with weights of 1 has the digest %s, without weights %s", with.Digest(), without.Digest())
	}
}

// TestWeightedBootstrap: bootstrap samples of a forest have no sample of weight 0, and the scale of weights has no
// effect on the model.
func TestWeightedBootstrap(t *testing.T) {
	rows := weightedRows(false, "")
	digest := func(scale float64, bootstrap bool) string {
		scaled := *rows
		scaled.Rows = slices.Clone(rows.Rows)
		for i := range scaled.Rows {
			scaled.Rows[i].Weight *= scale
		}
		set := param.Values{"trees": int64(20), "min_samples": int64(2), "bootstrap": bootstrap}
		return modelfile.Digest("structrf", trained(t, "structrf", set, &scaled).Tensors())
	}
	if a, b := digest(1, true), digest(1.0/1024, true); a != b {
		t.Errorf("the digest is %s, and with weights of a 1024th %s", a, b)
	}
	if a, b := digest(1.0/8, false), digest(1.0/1024, false); a != b {
		t.Errorf("without bootstrap, the digest is %s with weights of an eighth and %s with weights of a 1024th", a, b)
	}
	heavy := *rows
	heavy.Rows = slices.Clone(rows.Rows)
	heavy.Rows = slices.DeleteFunc(heavy.Rows, func(r dataset.Row) bool { return r.Weight == 0 })
	for i := range heavy.Rows {
		heavy.Rows[i].Number = i
	}
	heavy.Described.Rows = len(heavy.Rows)
	set := param.Values{"trees": int64(3), "min_samples": int64(2), "bootstrap": false}
	a := modelfile.Digest("structrf", trained(t, "structrf", set, rows).Tensors())
	if b := modelfile.Digest("structrf", trained(t, "structrf", set, &heavy).Tensors()); a != b {
		t.Errorf("the digest is %s with samples of weight 0 and %s without them", a, b)
	}
}

// TestScaleOfWeights: models do not depend on the sum of the weights, and neither does when training ends.
func TestScaleOfWeights(t *testing.T) {
	use, _ := registry.Weighted()
	for _, name := range use {
		set, kind := param.Values{"steps": int64(60), "validation_fraction": 0.25}, ""
		switch name {
		case "structrf", "rf":
			set = param.Values{"trees": int64(5), "min_samples": int64(2)}
		case "mlp-regression":
			set, kind = param.Values{"passes": int64(5)}, "numbers"
		case "ldlboost", "ldlogitboost", "aoso-ldlogitboost": // l2, min_gain and the gains of splits are of weights
			continue
		case "aa-bp", "dldl":
		case "ldlf":
			set = param.Values{"steps": int64(60), "validation_fraction": 0.25, "validation_margin": 0.1, "trees": int64(2),
				"patience": int64(2), "leaf_batches": int64(2), "learning_rate": 0.05}
		default:
			set = param.Values{"iterations": int64(10), "validation_fraction": 0.25}
		}
		t.Run(name, func(t *testing.T) {
			var digests []string
			for _, scale := range []float64{1, 1.0 / 1024} {
				rows := weightedRows(false, kind)
				for i := range rows.Rows {
					rows.Rows[i].Weight = (rows.Rows[i].Weight + 0.5) * scale
					degree := float64(1+i%5) / 8 // what the third feature tells, so that validations improve
					rows.Rows[i].Labels = []float64{degree, 0.125, 0.875 - degree}
				}
				digests = append(digests, modelfile.Digest(name, trained(t, name, set, rows).Tensors()))
			}
			if digests[0] != digests[1] {
				t.Errorf("the digest is %s, and with weights of a 1024th %s", digests[0], digests[1])
			}
		})
	}
}

// TestBatchesWithoutWeight: mini-batches have one sample, and most samples have the weight 0. They change nothing,
// whatever their features and labels are, and the number of executors changes nothing either.
func TestBatchesWithoutWeight(t *testing.T) {
	for name, set := range map[string]param.Values{
		"dldl":           {"steps": int64(60), "validation_fraction": 0.0},
		"aa-bp":          {"steps": int64(60), "validation_fraction": 0.25},
		"mlp-regression": {"passes": int64(5)},
		"ldlf": {"steps": int64(60), "validation_fraction": 0.25, "refit": true, "trees": int64(2), "depth": int64(3),
			"leaf_batches": int64(3), "patience": int64(2)},
	} {
		t.Run(name, func(t *testing.T) {
			kind := ""
			if name == "mlp-regression" {
				kind = "numbers"
			}
			set["batch_size"] = int64(1)
			digest := func(executors int, change float64) string {
				rows := weightedRows(false, kind)
				for i := range rows.Rows {
					r := &rows.Rows[i]
					if r.Weight = 0; i%6 == 1 {
						r.Weight = 1.5
						continue
					}
					r.Values[0] *= 1 + change // a zero stays one: defaults depend on their number
					r.Labels = []float64{0.5, 0.5 - change/64, change / 64}
				}
				return modelfile.Digest(name, trainedBy(t, executors, name, set, rows).Tensors())
			}
			want := digest(1, 0)
			if got := digest(3, 0); got != want {
				t.Errorf("the digest is %s with one executor and %s with three", want, got)
			}
			if got := digest(2, 8); got != want {
				t.Errorf("the digest is %s, and with other samples of weight 0 %s", want, got)
			}
		})
	}
}
