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
	if kind == "targets" {
		l.Described.LabelType.Bounds = &dataset.Bounds{Low: []float64{0}, High: []float64{1}}
	}
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

// lossless are the algorithms that may have no training loss, or no number of samples.
var lossless = []string{"structrf", "rf", "ldlf", "ldlsf", "winldl", "quadratic", "pt-bayes", "pt-svm", "ldsvr"}

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
	if p := tr.Progress(); (p.Loss < 0 || p.Samples == 0) && !slices.Contains(lossless, name) {
		t.Errorf("the last training loss is %v, after %d samples", p.Loss, p.Samples)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// predictionsOf lists what a model predicts of the rows of a source.
func predictionsOf(t *testing.T, model algorithms.Model, src dataset.Source) (all []float64) {
	t.Helper()
	m, shards := datatest.Build(t, src)
	scratch, dst := model.NewScratch(), make([]float32, m.Labels)
	for _, shard := range shards {
		for at := range shard.N {
			model.Predict(dst, []dataset.RowRef{{Pos: uint32(at)}}, func(uint32) *dataset.Rows { return shard }, scratch)
			for _, x := range dst {
				all = append(all, float64(x))
			}
		}
	}
	return all
}

// meanDistance returns the mean distance between two rows of weight above 0.
func meanDistance(l *datasettest.Listed) float64 {
	sum, count := 0.0, 0.0
	for i, a := range l.Rows {
		for _, b := range l.Rows[:i] {
			if a.Weight == 0 || b.Weight == 0 {
				continue
			}
			squares := 0.0
			for k, x := range a.Values {
				squares += (x - b.Values[k]) * (x - b.Values[k])
			}
			sum, count = sum+math.Sqrt(squares), count+1
		}
	}
	return sum / count
}

// numbersOf lists the numbers of a tensor of a model, or of all if name is empty, but for the samples in the nodes of
// trees.
func numbersOf(m algorithms.Model, name string) (all []float64) {
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
		if name == "" || t.Name == name {
			add(&t)
		}
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
	fitted := param.Values{"scaling": "standard", "steps": int64(20), "validation_fraction": 0.0}
	boosted := param.Values{"rounds": int64(4), "leaf_rows": int64(1), "validation_fraction": 0.0}
	cases := []struct {
		name   string
		set    param.Values
		kind   string // of labels
		within float64
		// also are settings with repetitions, which follow from both sources; nil: none.
		also func(weighted, repeated *datasettest.Listed) param.Values
		// whole is true if all rows are in one evaluation, without mini-batches.
		whole bool
		// predicts is true if predictions are compared, since the numbers of the model follow from single rows, too.
		predicts bool
		tensor   string // that is compared; "": all
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
		{name: "ldl-ldm", set: with(with(without(linear, "l2"), "l1", 0.5), "clusters", int64(1)), within: 1e-9},
		{name: "df-ldl", set: with(with(linear, "k", int64(1)), "min_samples", int64(1)), within: 1e-9, predicts: true},
		{name: "cpnn", set: fitted, within: 1e-9},
		{name: "cpnn", set: with(fitted, "label_input", "number"), within: 1e-9},
		{name: "gld-bfgs", set: linear, kind: "targets", within: 1e-9},
		{name: "gld-bfgs", set: with(with(linear, "stages", int64(3)), "stage_iterations", int64(5)), kind: "targets",
			within: 1e-9},
		{name: "ldlsf", set: param.Values{"scaling": "standard", "iterations": int64(20)}, within: 1e-9},
		{name: "winldl", set: param.Values{"scaling": "standard"}, within: 1e-9},
		{name: "winldl", set: param.Values{"scaling": "standard"}, kind: "incomplete", within: 1e-9},
		{name: "quadratic", set: param.Values{"ridge": 1e-6}, kind: "numbers", within: 1e-9},
		{name: "pt-bayes", set: param.Values{"smoothing": 0.1}, within: 1e-9},
		{name: "pt-svm", set: param.Values{"scaling": "standard", "gamma": 1.0, "validation_fraction": 0.0}, within: 1e-9,
			tensor: "weights"}, // the folds of the sigmoids follow from the numbers of samples
		{name: "ldsvr", set: param.Values{"scaling": "none", "landmarks": int64(0)}, within: 1e-6, whole: true,
			predicts: true, also: func(weighted, repeated *datasettest.Listed) param.Values {
				return param.Values{"width": meanDistance(weighted) / meanDistance(repeated)}
			}},
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
			if c.within > 1e-9 && !c.whole {
				one = with(c.set, "batch_size", int64(len(weighted.Rows)))
				other = with(c.set, "batch_size", int64(len(repeated.Rows)))
			}
			if c.also != nil {
				for name, value := range c.also(weighted, repeated) {
					other = with(other, name, value)
				}
			}
			got := numbersOf(trained(t, c.name, one, weighted), c.tensor)
			want := numbersOf(trained(t, c.name, other, repeated), c.tensor)
			if c.predicts {
				got = predictionsOf(t, trained(t, c.name, one, weighted), weighted)
				want = predictionsOf(t, trained(t, c.name, other, repeated), weighted)
			}
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

// without returns a copy of values without one.
func without(v param.Values, name string) param.Values {
	all := with(v, name, nil)
	delete(all, name)
	return all
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
		set, kind := param.Values{"iterations": int64(10), "validation_fraction": 0.25}, ""
		switch name {
		case "ldlboost", "ldlogitboost", "aoso-ldlogitboost": // l2, min_gain and the gains of splits are of weights
			continue
		case "ldl-ldm", "ldlsf", "winldl", "pt-svm", "ldsvr": // penalties are of the sum of the losses, not of their mean
			continue
		case "ensemble": // has no kernel
			continue
		case "structrf", "rf", "ndf":
			set = param.Values{"trees": int64(5), "min_samples": int64(2)}
		case "mlp-regression":
			set, kind = param.Values{"passes": int64(5)}, "numbers"
		case "quadratic":
			set, kind = nil, "numbers"
		case "gld-bfgs":
			kind = "targets"
		case "ldl-scl":
			set = param.Values{"iterations": int64(10), "clusters": int64(3)}
		case "pt-bayes":
			set = param.Values{"validation_fraction": 0.25}
		case "aa-bp", "dldl", "cpnn":
			set = param.Values{"steps": int64(60), "validation_fraction": 0.25}
		case "ldlf":
			set = param.Values{"steps": int64(60), "validation_fraction": 0.25, "validation_margin": 0.1, "trees": int64(2),
				"patience": int64(2), "leaf_batches": int64(2), "learning_rate": 0.05}
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

// TestSamplesWithoutWeight: most samples have the weight 0, and mini-batches have one sample. They change nothing,
// whatever their features and labels are, and the number of executors changes nothing either.
func TestSamplesWithoutWeight(t *testing.T) {
	linear := param.Values{"iterations": int64(10), "validation_fraction": 0.25}
	trees := param.Values{"trees": int64(3), "min_samples": int64(2)}
	boosted := param.Values{"rounds": int64(3), "leaf_rows": int64(1), "validation_fraction": 0.0}
	iterated := param.Values{"iterations": int64(10)}
	batches := map[string]param.Values{
		"dldl":           {"steps": int64(60), "validation_fraction": 0.0},
		"aa-bp":          {"steps": int64(60), "validation_fraction": 0.25},
		"mlp-regression": {"passes": int64(5)},
		"ldlf": {"steps": int64(60), "validation_fraction": 0.25, "refit": true, "trees": int64(2), "depth": int64(3),
			"leaf_batches": int64(3), "patience": int64(2)},
	}
	all := map[string]param.Values{
		"structrf": trees, "rf": trees, "ndf": trees,
		"cpnn":    {"steps": int64(20), "validation_fraction": 0.25},
		"sa-bfgs": linear, "sa-iis": linear, "ldl-ldm": with(linear, "clusters", int64(2)), "ldl-lrr": linear,
		"ldllc": linear, "ldl4c": linear, "ldl-hr": linear, "ldlm": linear, "gld-bfgs": linear,
		"df-ldl":  with(with(linear, "k", int64(1)), "min_samples", int64(1)),
		"ldl-scl": with(iterated, "clusters", int64(2)), "ldlsf": iterated, "winldl": iterated, "ldsvr": iterated,
		"pt-bayes": {"validation_fraction": 0.25}, "pt-svm": {"validation_fraction": 0.25}, "quadratic": nil,
		"ldlboost": boosted, "ldlogitboost": boosted, "aoso-ldlogitboost": boosted,
	}
	for name, set := range batches {
		all[name] = with(set, "batch_size", int64(1))
	}
	use, _ := registry.Weighted()
	for _, name := range use {
		set, ok := all[name]
		if !ok && name != "ensemble" { // it has no kernel: TestContract trains its members
			t.Errorf("%s is not tested", name)
		}
		if !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			kind := map[string]string{"mlp-regression": "numbers", "quadratic": "numbers", "gld-bfgs": "targets"}[name]
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
			for _, executors := range []int{2, 5} {
				if got := digest(executors, 0); got != want {
					t.Errorf("the digest is %s with one executor and %s with %d", want, got, executors)
				}
			}
			if got := digest(2, 8); got != want {
				t.Errorf("the digest is %s, and with other samples of weight 0 %s", want, got)
			}
		})
	}
}

// TestUnweighted: algorithms that cannot use weights say why.
func TestUnweighted(t *testing.T) {
	err := registry.CheckWeights("aa-knn")
	datasettest.MustContain(t, err, "aa-knn cannot use the weights of samples, because it has no loss: ",
		"; all algorithms but edl-lrl, incomldl, ranking, aa-knn, gld-knn use weights; ")
	if err := registry.CheckWeights("df-ldl"); err != nil {
		t.Error(err)
	}
}
