package network

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient/gradienttest"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/num"
)

// plans are networks of each kind, of 12 features and 5 outputs.
func plans() map[string][]Layer {
	image, small := Shape{1, 3, 4}, Shape{3, 1, 2}
	return map[string][]Layer{
		"relu":     Hidden(12, 6, 5, ReLUUnits, He),
		"logistic": Hidden(12, 6, 5, LogisticUnits, Glorot),
		"without biases": {
			&Dense{Name: "hidden", From: Flat(12), Outputs: 6, Start: He},
			&ReLU{Of: Flat(6)}, &Dense{Name: "output", From: Flat(6), Outputs: 5, Start: He},
		},
		"deep": {
			&Dense{Name: "a", Biases: "a.bias", From: Flat(12), Outputs: 8, Start: He},
			&Norm{Name: "b", Of: Flat(8)}, &ReLU{Of: Flat(8)}, &Dropout{Of: Flat(8), Rate: 0.25},
			&Dense{Name: "c", Biases: "c.bias", From: Flat(8), Outputs: 7, Start: He},
			&Logistic{Of: Flat(7)}, &Dense{Name: "d", Biases: "d.bias", From: Flat(7), Outputs: 5, Start: He},
		},
		"convolution": {
			&Augment{Of: image, Flip: true, Shift: 1},
			&Convolution{Name: "a", Biases: "a.bias", From: image, Outputs: 3, Size: 3, Stride: 1, Padding: 1, Start: He},
			&Norm{Name: "b", Of: Shape{3, 3, 4}}, &ReLU{Of: Shape{3, 3, 4}}, &Pool{Of: Shape{3, 3, 4}, Size: 2},
			&Dense{Name: "c", Biases: "c.bias", From: small, Outputs: 5, Start: He},
		},
		"crop": {
			&Crop{Of: image, Side: 2},
			&Convolution{Name: "a", Biases: "a.bias", From: Shape{1, 2, 2}, Outputs: 3, Size: 2, Stride: 1, Padding: 1,
				Start: He},
			&ReLU{Of: Shape{3, 3, 3}}, &Dense{Name: "c", Biases: "c.bias", From: Shape{3, 3, 3}, Outputs: 5, Start: He},
		},
	}
}

// TestNetworks holds networks against what gradient.Function promises, on dense and sparse rows,
// scaled and not; all but one of each kind of first layer on sparse rows that are scaled alone.
func TestNetworks(t *testing.T) {
	for name, layers := range plans() {
		for _, sparse := range []bool{false, true} {
			for _, scaled := range []bool{false, true} {
				if name != "deep" && name != "convolution" && name != "crop" && !(sparse && scaled) {
					continue
				}
				t.Run(fmt.Sprintf("%s/sparse=%v/scaled=%v", name, sparse, scaled), func(t *testing.T) {
					f := New(Plan{Sparse: sparse, Scaled: scaled, Seed: 3, Layers: layers})
					gradienttest.Check(t, f, gradienttest.Options{Features: 12, Outputs: 5, Sparse: sparse, Scaled: scaled},
						func([]algorithms.Tensor) gradient.Function { return New(Plan{Layers: layers}) })
				})
			}
		}
	}
}

// TestMostRows: a network with much between its layers takes few rows at a time, to the same bits.
func TestMostRows(t *testing.T) {
	testkit.WithoutRace(t)
	large := New(Plan{Layers: Hidden(2, 200_000, 3, ReLUUnits, He)})
	if small := New(Plan{Layers: Hidden(2, 2, 3, ReLUUnits, He)}); large.MostRows() != 2 || small.MostRows() < 64 {
		t.Errorf("%d rows, and %d", large.MostRows(), small.MostRows())
	}
	if s := gradient.NewScratch(large, 3, 64); s.Block != 2 || len(s.F) != 3*64 {
		t.Errorf("a block of %d rows and %d outputs", s.Block, len(s.F))
	}
	w := &gradient.Weights{Theta: make([]float32, gradient.Parameters(large))}
	large.Initialise(w.Theta, num.NewKey(1, "test"))
	stream, ws := num.NewStream(num.NewKey(2, "test"), 0, 0), large.NewWorkspace()
	var samples []gradient.Sample
	for range 5 {
		samples = append(samples, gradient.Sample{X: drawn(stream, 2)})
	}
	all, one := make([]float32, 5*3), make([]float32, 3)
	large.Predict(all, samples, w, ws)
	for i := range samples {
		large.Predict(one, samples[i:i+1], w, ws)
		if !slices.Equal(one, all[3*i:3*i+3]) {
			t.Errorf("row %d: %v, alone %v", i, all[3*i:3*i+3], one)
		}
	}
}
