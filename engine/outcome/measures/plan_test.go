package measures

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
)

// rowsOf makes rows of true distributions.
func rowsOf(labels int, d ...float32) *dataset.Rows {
	return &dataset.Rows{N: len(d) / labels, Features: 1, Labels: labels, D: d}
}

// read sums up rows with their predictions, in two shards, and reads the sums.
func read(p *Plan, r *dataset.Rows, predicted [][]float32) (Report, *Added) {
	sums, other := make([]float64, p.Width()), make([]float64, p.Width())
	for i, v := range predicted {
		to := sums
		if i%2 == 1 {
			to = other
		}
		p.Add(to, r, i, v)
	}
	for i, v := range other {
		sums[i] += v
	}
	return p.Read(sums)
}

// Worked out on paper: rows of the classes a, a, b, c; predicted a, b, b, b.
func TestClassesByHand(t *testing.T) {
	p := &Plan{Labels: 4, Type: dataset.LabelType{Classes: true}}
	r := rowsOf(4, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0)
	_, got := read(p, r, [][]float32{{1, 0, 0, 0}, {.25, .5, .25, 0}, {0, .5, .5, 0}, {.2, .8, 0, 0}})
	c := got.Classes
	loss := -(math.Log(1) + math.Log(.25) + math.Log(.5) + math.Log(MinPrediction)) / 4
	for _, f := range []struct {
		what      string
		got, want float64
	}{
		{"accuracy", c.Accuracy.Mean, .5}, {"its deviation", c.Accuracy.Std, .5},
		{"mean recall", c.MeanRecall.Mean, (.5 + 1 + 0) / 3},              // class d is not in the truth
		{"mean Jaccard", c.MeanJaccard.Mean, (1.0/2 + 1.0/3 + 0.0/1) / 3}, // a: 1 of 2, b: 1 of 3, c: 0 of 1
		{"log loss", c.LogLoss.Mean, loss},
	} {
		if math.Abs(f.got-f.want) > 1e-12 {
			t.Errorf("%s is %v, want %v", f.what, f.got, f.want)
		}
	}
	if d := cmp.Diff([][]float64{{1, 1, 0, 0}, {0, 1, 0, 0}, {0, 1, 0, 0}, {0, 0, 0, 0}}, c.Confusion); d != "" {
		t.Error(d)
	}
}

// Worked out on paper: true numbers 20 and 22.5 on a scale from 20.
func TestScaleByHand(t *testing.T) {
	p := &Plan{Labels: 4, Type: dataset.LabelType{Scale: &dataset.Scale{Low: 20, True: dataset.TrueValue}}}
	r := rowsOf(4, 1, 0, 0, 0, 0, 0, 1, 0)
	r.Value = []float64{20, 22.5}
	_, got := read(p, r, [][]float32{{.5, 0, 0, .5}, {0, .25, .25, .5}})
	// Row 0: expected 21.5, median 20, mode 20. Row 1: 22.25, 22, 23.
	s := got.Scale
	for _, f := range []struct {
		what string
		got  Errors
		mae  Stat
		cs   []float64
	}{
		{"expected", s.Expected, Stat{.875, .625}, []float64{0, .5, 1}},
		{"median", s.Median, Stat{.25, .25}, []float64{.5, 1, 1}},
		{"mode", s.Mode, Stat{.25, .25}, []float64{.5, 1, 1}},
	} {
		if d := cmp.Diff(f.mae, f.got.MAE, cmpopts.EquateApprox(0, 1e-12)); d != "" {
			t.Errorf("%s: %s", f.what, d)
		}
		if d := cmp.Diff(f.cs, f.got.Scores[:3]); d != "" || f.got.Scores[MaxScore] != 1 || len(f.got.Scores) != 11 {
			t.Errorf("%s: %s: %v", f.what, d, f.got.Scores)
		}
	}
}

// A number is compared as it is and floored; an error of exactly a whole number counts.
func TestNumberByHand(t *testing.T) {
	p := &Plan{Labels: 4, Type: dataset.LabelType{Scale: &dataset.Scale{Low: 0, True: dataset.TrueMode}}, Number: true}
	r := rowsOf(4, 0, 0, 1, 0, 1, 0, 0, 0)
	ten, got := read(p, r, [][]float32{{3.75}, {-.5}}) // of 2 and 0
	n := got.Number
	if n.Number.MAE.Mean != (1.75+.5)/2 || n.Floored.MAE.Mean != 1 || n.Floored.MAE.Std != 0 {
		t.Errorf("%+v", n)
	}
	if d := cmp.Diff([]float64{0, .5, 1}, n.Number.Scores[:3]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{0, 1, 1}, n.Floored.Scores[:3]); d != "" {
		t.Error(d)
	}
	if !math.IsNaN(ten[0].Mean) {
		t.Errorf("measures of distributions: %v", ten)
	}
}

// TestClassesAgainstTwin computes recall and Jaccard from the list of rows, class by class.
func TestClassesAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.IntRange(2, 5).Draw(t, "labels")
		n := rapid.IntRange(1, 12).Draw(t, "rows")
		var d []float32
		var predicted [][]float32
		var truth, chosen []int
		for range n {
			c := rapid.IntRange(0, labels-1).Draw(t, "class")
			one := make([]float32, labels)
			one[c] = 1
			p := rapid.SliceOfN(rapid.SampledFrom([]float32{0, .125, .25, 1}), labels, labels).Draw(t, "shares")
			best := 0
			for i := range p {
				if p[i] > p[best] {
					best = i
				}
			}
			d, predicted, truth, chosen = append(d, one...), append(predicted, p), append(truth, c), append(chosen, best)
		}
		recall, jaccard, present, right := 0.0, 0.0, 0.0, 0.0
		for c := range labels {
			hits, in, either := 0.0, 0.0, 0.0
			for i := range n {
				switch {
				case truth[i] == c && chosen[i] == c:
					hits, in, either = hits+1, in+1, either+1
				case truth[i] == c:
					in, either = in+1, either+1
				case chosen[i] == c:
					either++
				}
			}
			if right += hits; in > 0 {
				present++
				recall, jaccard = recall+hits/in, jaccard+hits/either
			}
		}
		_, got := read(&Plan{Labels: labels, Type: dataset.LabelType{Classes: true}}, rowsOf(labels, d...), predicted)
		c := got.Classes
		if !near(c.Accuracy.Mean, right/float64(n)) || !near(c.MeanRecall.Mean, recall/present) ||
			!near(c.MeanJaccard.Mean, jaccard/present) {
			t.Errorf("%+v; accuracy %v, recall %v, Jaccard %v", c, right/float64(n), recall/present, jaccard/present)
		}
		for i, row := range c.Confusion {
			for j, have := range row {
				want := 0.0
				for k := range n {
					if truth[k] == i && chosen[k] == j {
						want++
					}
				}
				if have != want {
					t.Errorf("confusion of %d with %d: %v, want %v", i, j, have, want)
				}
			}
		}
	})
}

// TestManyClasses: beyond MaxConfusion there is no matrix, and all else.
func TestManyClasses(t *testing.T) {
	for _, labels := range []int{MaxConfusion, MaxConfusion + 1} {
		d := make([]float32, labels)
		d[labels-1] = 1
		p := &Plan{Labels: labels, Type: dataset.LabelType{Classes: true}}
		_, got := read(p, rowsOf(labels, d...), [][]float32{d})
		if c := got.Classes; c.Accuracy.Mean != 1 || c.MeanRecall.Mean != 1 ||
			(len(c.Confusion) > 0) != (labels == MaxConfusion) {
			t.Errorf("%d classes: %+v", labels, c)
		}
		if labels > MaxConfusion && p.Width() != Width+2+3*labels {
			t.Errorf("%d sums of %d classes", p.Width(), labels)
		}
	}
}

// TestAddedOverFolds: means of folds with their deviation, and summed matrices; JSON keeps
// all of it.
func TestAddedOverFolds(t *testing.T) {
	p := &Plan{Labels: 2, Type: dataset.LabelType{Classes: true}}
	_, a := read(p, rowsOf(2, 1, 0, 0, 1), [][]float32{{1, 0}, {0, 1}})
	_, b := read(p, rowsOf(2, 1, 0, 0, 1), [][]float32{{1, 0}, {1, 0}})
	all := AddedOverFolds([]*Added{a, b})
	if all.Classes.Accuracy != (Stat{.75, .25}) || all.Classes.MeanRecall.Mean != .75 {
		t.Errorf("%+v", all.Classes)
	}
	if d := cmp.Diff([][]float64{{2, 0}, {1, 1}}, all.Classes.Confusion); d != "" {
		t.Error(d)
	}
	s := &Plan{Labels: 2, Type: dataset.LabelType{Scale: &dataset.Scale{True: dataset.TrueMode}}}
	_, x := read(s, rowsOf(2, 1, 0), [][]float32{{1, 0}})
	_, y := read(s, rowsOf(2, 1, 0), [][]float32{{0, 1}})
	scale := AddedOverFolds([]*Added{x, y}).Scale
	if scale.Mode.MAE != (Stat{.5, .5}) || scale.Mode.Scores[0] != .5 || scale.Mode.Scores[1] != 1 {
		t.Errorf("%+v", scale.Mode)
	}
	if AddedOverFolds([]*Added{a, x}) != nil || AddedOverFolds([]*Added{nil, nil}) != nil || AddedOverFolds(nil) != nil {
		t.Error("folds of different kinds")
	}
	for _, one := range []*Added{a, x, all, {Scale: scale}} {
		text, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		back := new(Added)
		if err := json.Unmarshal(text, back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(one, back, cmpopts.EquateNaNs()); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}
