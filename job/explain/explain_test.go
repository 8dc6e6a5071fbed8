package explain

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/maxent"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
)

// table is a source of rows in memory.
type table struct {
	x, d [][]float64
	fail int // number of the row at which reading fails; 0: never
}

var errTable = errors.New("the table has ended")

// Info implements dataset.Source.
func (s *table) Info() dataset.Info {
	return dataset.Info{Rows: len(s.x), Features: len(s.x[0]), Labels: len(s.d[0]), File: "table"}
}

// Scan implements dataset.Source.
func (s *table) Scan(do func(*dataset.Row) error) error {
	for i := range s.x {
		if s.fail > 0 && i == s.fail {
			return errTable
		}
		if err := do(&dataset.Row{Number: i, Values: slices.Clone(s.x[i]), Labels: slices.Clone(s.d[i])}); err != nil {
			return err
		}
	}
	return nil
}

// linearModel returns a linear model, and samples with distributions that it nearly predicts. A feature with the
// weight 0 is not used. zeros is the fraction of values that are 0.
func linearModel(seed uint64, rows, features, labels int, unused []int, zeros float64) (*predict.Model, *table) {
	s := num.NewStream(num.NewKey(seed, "test"), 0, 0)
	m := &maxent.Model{Features: features, Labels: labels}
	for i := range (features + 1) * labels {
		w := s.Normal()
		if slices.Contains(unused, i/labels) {
			w = 0
		}
		m.Weights = append(m.Weights, w)
	}
	src := new(table)
	for range rows {
		x, scores := make([]float64, features), make([]float64, labels)
		for k := range x {
			if s.Float64() >= zeros {
				x[k] = float64(float32(s.Normal()))
			}
			for c := range scores {
				scores[c] += x[k] * m.Weights[k*labels+c]
			}
		}
		for c := range scores {
			scores[c] += m.Weights[features*labels+c] + 0.1*s.Normal()
		}
		softmax(scores)
		src.x, src.d = append(src.x, x), append(src.d, scores)
	}
	return &predict.Model{Model: m, File: &modelfile.File{Algorithm: "sa-bfgs"},
		Provenance: &pipeline.Provenance{Job: &round.Job{Algorithm: "sa-bfgs"}}}, src
}

// losses computes the mean losses of a linear model on samples, slowly: K-L, MAE, the errors of labels, and the error
// of the expected number, where the first label is 5.
func losses(m *predict.Model, src *table, x [][]float64) []float64 {
	l := m.Model.(*maxent.Model)
	sums := make([]float64, 3+l.Labels)
	for i := range x {
		scores := slices.Clone(l.Weights[l.Features*l.Labels:])
		for k, v := range x[i] {
			for c := range scores {
				scores[c] += v * l.Weights[k*l.Labels+c]
			}
		}
		softmax(scores)
		sums[0] += measures.KL(src.d[i], scores)
		for c := range scores {
			e := math.Abs(src.d[i][c] - scores[c])
			sums[2+c] += e
			sums[1] += e / float64(l.Labels)
		}
		number := 0.0
		for c := range scores {
			number += float64(5+c) * (src.d[i][c] - scores[c])
		}
		sums[2+l.Labels] += math.Abs(number)
	}
	for k := range sums {
		sums[k] /= float64(len(x))
	}
	return sums
}

// TestPermutation: a loss rises by as much as if all permuted samples were predicted anew. Samples are dense and
// sparse, and the number of threads does not matter.
func TestPermutation(t *testing.T) {
	for _, zeros := range []float64{0, 0.9} {
		const rows, features, labels = 700, 6, 3 // more than a block
		m, src := linearModel(7, rows, features, labels, []int{2}, zeros)
		m.Provenance.FeatureNames = []string{"a", "k=x", "b", "c", "k=y", "k"}
		m.Provenance.Reading.Categories = []dataset.Category{{Name: "k", Levels: []string{"x", "y"}}}
		m.Provenance.LabelType.Scale = &dataset.Scale{Low: 5}
		groups := [][]int{{0}, {1, 4}, {2}, {3}, {5}}
		o := Permuting{Repeats: 3, Seed: 5}
		got, err := o.Permute(m, src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		base := losses(m, src, src.x)
		if math.Abs(*got.KL-base[0]) > 1e-6 || math.Abs(*got.NumberMAE-base[2+labels]) > 1e-6 ||
			math.Abs(got.MAE-base[1]) > 1e-6 || got.Samples != rows || got.Of != rows {
			t.Errorf("K-L %v and MAE %v of %d samples, want %v", *got.KL, got.MAE, got.Samples, base)
		}
		if len(got.Features) != len(groups) || got.Features[1].Feature != "k" || got.Features[4].Feature != "k" {
			t.Fatalf("%+v", got.Features)
		}
		for f, group := range groups {
			var rises [][]float64
			for repeat := range o.Repeats {
				order := num.NewPermutation(num.NewKey(o.Seed, "explain/permutation"), uint64(repeat), uint32(group[0]), rows)
				x := make([][]float64, rows)
				for i := range x {
					x[i] = slices.Clone(src.x[i])
					for _, k := range group {
						x[i][k] = src.x[order.At(uint64(i))][k]
					}
				}
				rises = append(rises, losses(m, src, x))
			}
			mean := func(k int) float64 { return (rises[0][k]+rises[1][k]+rises[2][k])/3 - base[k] }
			own := got.Features[f]
			if math.Abs(own.KL.Mean-mean(0)) > 1e-6 || math.Abs(own.MAE.Mean-mean(1)) > 1e-6 ||
				math.Abs(own.LabelMAE[1].Mean-mean(3)) > 1e-6 || math.Abs(own.NumberMAE.Mean-mean(2+labels)) > 1e-6 {
				t.Errorf("feature %d: %v, %v, want %v, %v", f, own.KL.Mean, own.MAE.Mean, mean(0), mean(1))
			}
			a, b, c := rises[0][0]-base[0]-mean(0), rises[1][0]-base[0]-mean(0), rises[2][0]-base[0]-mean(0)
			if want := math.Sqrt((a*a + b*b + c*c) / 2 / 3); math.Abs(*own.KL.StandardError-want) > 1e-6 {
				t.Errorf("feature %d: the standard error is %v, want %v", f, *own.KL.StandardError, want)
			}
		}
		if unused := got.Features[2]; unused.KL.Mean != 0 && math.Abs(unused.KL.Mean) > 1e-12 {
			t.Errorf("a feature without weight: %v", unused.KL)
		}
		m.Threads = 4
		again, err := o.Permute(m, src, importer.Options{})
		if diff := cmp.Diff(got, again); err != nil || diff != "" {
			t.Errorf("on 4 threads: %v %s", err, diff)
		}
	}
}

// TestDrawnSamples: of a long file, a permutation draws exactly as many samples as it may.
func TestDrawnSamples(t *testing.T) {
	m, src := linearModel(3, 1500, 2, 2, nil, 0)
	for _, most := range []int{2, 999, 1499, 1500, 2000, 0} {
		got, err := Permuting{Repeats: 1, Seed: 1, Samples: most}.Permute(m, src, importer.Options{})
		want := most
		if most == 0 || most > 1500 {
			want = 1500
		}
		if err != nil || got.Samples != want || got.Of != 1500 || got.Features[0].KL.StandardError != nil {
			t.Errorf("at most %d: %d of %d samples, %v", most, got.Samples, got.Of, err)
		}
	}
	src.x, src.d = src.x[:1], src.d[:1]
	if _, err := (Permuting{Repeats: 1}).Permute(m, src, importer.Options{}); err == nil {
		t.Error("one sample was permuted")
	}
}

// sumOfTrees is a model of trees.
type sumOfTrees struct {
	forest.Ensemble
	of *forest.Additive
}

// Tensors implements algorithms.Model.
func (s *sumOfTrees) Tensors() []algorithms.Tensor { return nil }

// Predict implements algorithms.Model.
func (s *sumOfTrees) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	s.EachSums(refs, shard, scratch, func(from int, sums []float64) {
		for at := 0; at < len(sums); at += s.of.Labels {
			s.of.Outputs(sums[at:at+s.of.Labels], true)
			if s.of.Scores {
				softmax(sums[at : at+s.of.Labels])
			}
			for c, v := range sums[at : at+s.of.Labels] {
				dst[from*s.of.Labels+at+c] = float32(v)
			}
		}
	})
}

// Additive implements forest.Adds.
func (s *sumOfTrees) Additive() *forest.Additive { return s.of }

// treeModel returns a model of trees.
func treeModel(a *forest.Additive) *predict.Model {
	s := &sumOfTrees{of: a}
	s.Join(a.Trees, a.Features, a.Labels)
	return &predict.Model{Model: s, File: &modelfile.File{Algorithm: "rf"},
		Provenance: &pipeline.Provenance{Job: &round.Job{Algorithm: "rf"}}}
}

// TestEachSample: a file has the SHAP values of each of its samples, in order, on any number of threads. They sum to
// the predictions.
func TestEachSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const features, labels = 3, 2
		a := drawAdditive(t, features, labels, 4)
		a.Scores = rapid.Bool().Draw(t, "scores")
		m := treeModel(a)
		m.Threads = rapid.IntRange(1, 3).Draw(t, "threads")
		e, err := NewExplainer(m)
		if err != nil {
			t.Fatal(err)
		}
		_, src := linearModel(1, rapid.SampledFrom([]int{1, 255, 700}).Draw(t, "rows"), features, labels, nil, 0)
		at, lane, want := 0, e.NewLane(), make([]float64, features*labels)
		err = e.Each(m, src, importer.Options{}, func(x *Explained) error {
			for i := range x.Rows.N {
				if int(x.Rows.Row[i]) != at {
					return fmt.Errorf("sample %d comes as number %d", x.Rows.Row[i], at)
				}
				lane.Explain(want, x.Rows, i)
				got := x.Values[i*len(want):][:len(want)]
				d, err := e.Difference(got, x.Predictions[i*labels:][:labels])
				if err != nil || d > 1e-6 || !slices.Equal(got, want) {
					return fmt.Errorf("sample %d: %v, want %v, %w, difference %v", at, got, want, err, d)
				}
				at++
			}
			return nil
		})
		if err != nil || at != len(src.x) {
			t.Fatalf("%d samples, %v", at, err)
		}
	})
}

// TestFailures: errors of the file and of the caller end the work.
func TestFailures(t *testing.T) {
	tree := new(forest.Tree)
	tree.Reset(2)
	tree.SetSamples(0, 1)
	tree.Leaf(0)
	m := treeModel(&forest.Additive{Features: 3, Labels: 2, Trees: []*forest.Tree{tree}, Start: make([]float64, 2),
		Factor: 1})
	m.Threads = 2
	e, err := NewExplainer(m)
	if err != nil {
		t.Fatal(err)
	}
	_, src := linearModel(1, 3000, 3, 2, nil, 0)
	own := errors.New("the disk is full")
	err = e.Each(m, src, importer.Options{}, func(*Explained) error { return own })
	if !errors.Is(err, own) {
		t.Errorf("%v, want %v", err, own)
	}
	src.fail = 2000
	if err = e.Each(m, src, importer.Options{}, func(*Explained) error { return nil }); !errors.Is(err, errTable) {
		t.Errorf("%v, want %v", err, errTable)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src.fail = 0
	for _, rows := range []int{100, 3000} { // 100 are read before the first is explained
		few := &table{x: src.x[:rows], d: src.d[:rows]}
		err = e.Each(m, few, importer.Options{Context: ctx}, func(*Explained) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d samples: %v, want %v", rows, err, context.Canceled)
		}
	}
	linear, src := linearModel(1, 3000, 3, 2, nil, 0)
	if _, err := (Permuting{Repeats: 2}).Permute(linear, src, importer.Options{Context: ctx}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("permutations: %v, want %v", err, context.Canceled)
	}
	if _, err := e.Difference([]float64{1, 2, 3, 4, 5, 6}, []float32{0, 0}); err == nil {
		t.Error("wrong sums were accepted")
	}
	if _, err := NewGains(&predict.Model{Model: new(maxent.Model), File: m.File, Provenance: m.Provenance}); err == nil {
		t.Error("a linear model has gains")
	}
}

// TestGains: the gains of splits are added by feature, and the explained variances of all features add up to the
// variance of the leaves over the training samples.
func TestGains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAdditive(t, 4, 2, 4)
		a.Sums = rapid.Bool().Draw(t, "sums")
		g, err := NewGains(treeModel(a))
		if err != nil {
			t.Fatal(err)
		}
		want, splits, variances := make([]float64, 4), 0, make([]float64, 2)
		explained := make([]float64, 4*2)
		for i, tree := range a.Trees {
			label, all := a.Label(i)
			addExplained(explained, a, tree, label, all)
			root := float64(tree.Samples(0))
			for c := range tree.Labels {
				mean, square := 0.0, 0.0
				for n := range tree.Nodes() {
					f, left, split := tree.Test(n)
					if split && c == 0 {
						splits++
						weight := 1.0
						if !a.Sums {
							weight = float64(tree.Samples(n)) / root
						}
						want[f] += weight / float64(len(a.Trees))
					} else if !split {
						v := a.Factor * float64(tree.Distribution(int(left))[c])
						mean += v * float64(tree.Samples(n)) / root
						square += v * v * float64(tree.Samples(n)) / root
					}
				}
				at := label
				if all {
					at = c
				}
				variances[at] += square - mean*mean
			}
		}
		sum := 0.0
		for f, x := range g.Features {
			splits -= x.Splits
			sum += x.Importance
			if math.Abs(x.Gain-want[f]) > 1e-12 {
				t.Fatalf("feature %d has the gain %v, want %v", f, x.Gain, want[f])
			}
			for c := range variances {
				variances[c] -= explained[f*2+c]
			}
		}
		if splits != 0 || math.Abs(sum-1) > 1e-12 && sum != 0 || math.Abs(variances[0])+math.Abs(variances[1]) > 1e-9 {
			t.Fatalf("%d splits too few, importances sum to %v, variances are %v too small", splits, sum, variances)
		}
	})
}

// TestPath: the leaf of a path is what a forest of the tree alone predicts.
func TestPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawAdditive(t, 3, 2, 5)
		m := treeModel(a)
		x := make([]float32, 3)
		for k := range x {
			x[k] = float32(rapid.IntRange(-3, 3).Draw(t, "x"))
		}
		b := &Block{Rows: &dataset.Rows{N: 1, Features: 3, X: x, Row: []uint32{9}}}
		n := rapid.IntRange(0, len(a.Trees)-1).Draw(t, "tree")
		p, err := NewPath(m, b, n)
		if err != nil || p.Sample != "9" || p.Trees != len(a.Trees) {
			t.Fatalf("%+v, %v", p, err)
		}
		tree := a.Trees[n]
		if got, want := fmt.Sprint(p.Leaf.Values), fmt.Sprint(expected(tree, 0, x, 7, tree.Labels)); got != want {
			t.Fatalf("the leaf is %s, want %s", got, want)
		}
		for _, s := range p.Steps {
			if s.Left != (*s.Value < *s.Threshold) {
				t.Fatalf("%+v", s)
			}
		}
		if _, err := NewPath(m, b, len(a.Trees)); err == nil {
			t.Fatal("a tree that does not exist")
		}
	})
}

var _ ldlf.Router = (*soft)(nil)

// soft is a tree with soft splits of the first feature: split n goes left with the probability p[n] of the value 0, and
// otherwise with the rest.
type soft struct {
	maxent.Model
	p      []float32
	leaves [][]float32
}

func (s *soft) SoftTrees() (trees, splits, leaves int) { return 1, len(s.p), len(s.leaves) }
func (s *soft) SoftLeaf(_, leaf int) []float32         { return s.leaves[leaf] }
func (s *soft) NewScratch() any                        { return nil }
func (s *soft) UnitOf(_, split int) (int, []float64, []float64) {
	return split + 10, []float64{1, -3}, []float64{2, -1}
}

func (s *soft) Route(left []float32, rows *dataset.Rows, pos int, _ any) {
	for n, p := range s.p {
		if left[n] = p; value(rows, pos, 0) != 0 {
			left[n] = 1 - p
		}
	}
}

// TestSoftSplits: information and certainty of splits, by hand.
func TestSoftSplits(t *testing.T) {
	s := &soft{Model: maxent.Model{Features: 2, Labels: 2}, p: []float32{1, 0.5, 0.75},
		leaves: [][]float32{{1, 0}, {0, 1}, {0.5, 0.5}, {0, 1}}}
	m := &predict.Model{Model: s, File: &modelfile.File{Algorithm: "ldlf"}, Provenance: &pipeline.Provenance{
		Job: &round.Job{}}, Threads: 2}
	src := &table{x: [][]float64{{0, 0}, {1, 0}, {0, 0}, {1, 0}}, d: slices.Repeat([][]float64{{1, 0}}, 4)}
	got, err := NewSoftSplits(m, src, importer.Options{})
	if err != nil || got.Samples != 4 || len(got.Splits) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	features := []UnitWeight{{"feature 1", -1}, {"feature 0", 2}}
	want := []SoftSplit{
		{Tree: 0, Node: 0, Unit: 10, Reached: 1, Left: 0.5, Certainty: 1, Information: 1, LeftMean: []float64{0.5, 0.5},
			RightMean: []float64{0.125, 0.875}, Features: features},
		{Node: 1, Unit: 11, Reached: 0.5, Left: 0.5, Certainty: 0.5, LeftMean: []float64{1, 0}, RightMean: []float64{0, 1},
			Features: features},
		{Node: 2, Unit: 12, Reached: 0.5, Left: 0.25, Certainty: 0.75, LeftMean: []float64{0.5, 0.5},
			RightMean: []float64{0, 1}, Features: features},
	}
	for i := range want {
		if d := math.Abs(got.Splits[i].Information - want[i].Information); d > 1e-12 {
			t.Errorf("split %d: information %v", i, got.Splits[i].Information)
		}
		got.Splits[i].Information = want[i].Information
	}
	if diff := cmp.Diff(want, got.Splits); diff != "" {
		t.Error(diff)
	}
	p, err := NewPath(m, &Block{Rows: &dataset.Rows{N: 1, Features: 2, X: []float32{1, 0}, Row: []uint32{0}}}, 0)
	if err != nil || p.Leaf.Node != 6 || *p.Leaf.Probability != 0.75 || len(p.Steps) != 2 || p.Steps[0].Left ||
		*p.Steps[1].Probability != 0.75 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestWeights: the weights give the scores of the predictions, and the standard deviations of features are right.
func TestWeights(t *testing.T) {
	m, src := linearModel(2, 600, 4, 3, nil, 0.5)
	w, err := NewWeights(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AddDeviations(src, importer.Options{}); err != nil {
		t.Fatal(err)
	}
	for k, f := range w.Features {
		mean, square := 0.0, 0.0
		for _, x := range src.x {
			mean += x[k] / 600
		}
		for _, x := range src.x {
			square += (x[k] - mean) * (x[k] - mean) / 600
		}
		if math.Abs(*f.Deviation-math.Sqrt(square)) > 1e-9 || f.Feature != fmt.Sprintf("feature %d", k) {
			t.Errorf("%s: %v, want %v", f.Feature, *f.Deviation, math.Sqrt(square))
		}
	}
	b, err := FindRow(src, "599", importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	scores, predicted := slices.Clone(w.Intercept), make([]float32, 3)
	for k, x := range b.Features(0) {
		for c, v := range w.Features[k].Weights {
			scores[c] += float64(x) * v
		}
	}
	softmax(scores)
	m.Predict(predicted, refsOf(1), func(uint32) *dataset.Rows { return b.Rows }, m.NewScratch())
	for c, p := range scores {
		if math.Abs(p-float64(predicted[c])) > 1e-6 {
			t.Errorf("label %d: %v, want %v", c, p, predicted[c])
		}
	}
	if _, err := FindRow(src, "600", importer.Options{}); err == nil {
		t.Error("a sample that does not exist")
	}
}
