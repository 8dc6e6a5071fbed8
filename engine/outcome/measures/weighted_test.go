package measures_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// TestAddWeighted: the sums of rows with whole weights are the sums of the same rows, each as often as its weight says.
// A row of weight 0 adds nothing, even if a measure of it is infinite.
func TestAddWeighted(t *testing.T) {
	r := &dataset.Rows{N: 3, Features: 1, Labels: 2, D: []float32{1, 0, 0, 1, 1, 0}, Weight: []float64{2, 0, 3}}
	p := &measures.Plan{Labels: 2, Type: dataset.LabelType{Classes: true}, More: true}
	predicted := [][]float32{{0.75, 0.25}, {1, 0}, {0.25, 0.75}}
	got, want, one := make([]float64, p.Width()), make([]float64, p.Width()), make([]float64, p.Width())
	for i, row := range predicted {
		p.AddWeighted(got, one, r, i, row)
		for range int(r.Weight[i]) {
			p.Add(want, r, i, row)
		}
	}
	if got[0] != 5 {
		t.Errorf("the weights sum to %v, want 5", got[0])
	}
	for i, x := range want {
		if !(math.Abs(got[i]-x) <= 1e-12*max(1, math.Abs(x))) {
			t.Errorf("sum %d is %v, want %v", i, got[i], x)
		}
	}
}

// TestScaleOfWeights: measures do not depend on the sum of the weights.
func TestScaleOfWeights(t *testing.T) {
	bounds := &dataset.Bounds{Low: []float64{0}, High: []float64{1}}
	for what, p := range map[string]*measures.Plan{
		"numbers": {Labels: 2, Type: dataset.LabelType{Scale: &dataset.Scale{True: dataset.TrueExpected}}},
		"targets": {Labels: 1, Type: dataset.LabelType{Bounds: bounds}, Bounds: bounds},
	} {
		var seen []string
		for _, scale := range []float64{1, 1.0 / 64} {
			r := &dataset.Rows{N: 3, Features: 1, Labels: p.Labels, D: []float32{0.25, 0.75, 0.5, 0.5, 0.5, 0.5}[:3*p.Labels],
				Weight: []float64{4 * scale, 8 * scale, 4 * scale}}
			sums, one := make([]float64, p.Width()), make([]float64, p.Width())
			for i := range r.N {
				p.AddWeighted(sums, one, r, i, []float32{0.375, 0.625}[:p.Labels])
			}
			_, added := p.Read(sums)
			text, err := json.Marshal(added)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, string(text))
		}
		if seen[0] != seen[1] {
			t.Errorf("%s: %s, with less weight %s", what, seen[0], seen[1])
		}
	}
}

// TestWeightedConfusion: a confusion matrix has the sums of weights as they are. If these are whole, its JSON has whole
// numbers.
func TestWeightedConfusion(t *testing.T) {
	p := &measures.Plan{Labels: 2, Type: dataset.LabelType{Classes: true}}
	for want, weights := range map[string][]float64{
		"[[0.75,0.125],[0,1.5]]": {0.25, 1.5, 0.125, 0.5},
		"[[3,40000000],[0,1]]":   {1, 1, 4e7, 2},
	} {
		r := &dataset.Rows{N: 4, Features: 1, Labels: 2, D: []float32{1, 0, 0, 1, 1, 0, 1, 0}, Weight: weights}
		sums, one := make([]float64, p.Width()), make([]float64, p.Width())
		for i, row := range [][]float32{{0.75, 0.25}, {0, 1}, {0.25, 0.75}, {1, 0}} {
			p.AddWeighted(sums, one, r, i, row)
		}
		_, added := p.Read(sums)
		text, err := json.Marshal(added.Classes.Confusion)
		if err != nil || string(text) != want {
			t.Errorf("the matrix is %s (%v), want %s", text, err, want)
		}
		both := measures.AddedOverFolds([]*measures.Added{added, added})
		for i, line := range both.Classes.Confusion {
			for j, v := range line {
				if v != 2*added.Classes.Confusion[i][j] {
					t.Errorf("over two equal folds, field %d of line %d is %v", j, i, v)
				}
			}
		}
	}
}
