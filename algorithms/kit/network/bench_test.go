package network

import (
	"fmt"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// BenchmarkStep measures Forward and Backward of a mini-batch on one core: a multi-layer perceptron, and
// a convolution of 3x3 to 16 channels of images of 32x32 with a pooling to one value for each.
func BenchmarkStep(b *testing.B) {
	image := Shape{16, 32, 32}
	for _, c := range []struct {
		name   string
		rows   int
		layers []Layer
	}{
		{"dense 243-256-64", 128, Hidden(243, 256, 64, ReLUUnits, He)},
		{"convolution 3x3x16 on 1x32x32", 32, []Layer{
			&Convolution{Name: "a", Biases: "b", From: Shape{1, 32, 32}, Outputs: 16, Size: 3, Stride: 1, Padding: 1, Start: He},
			&ReLU{Of: image}, &Pool{Of: image, Size: 32, Average: true}, &Dense{Name: "c", Biases: "d", From: Flat(16),
				Outputs: 10},
		}},
		{"convolution 3x3x16 on 16x32x32", 32, []Layer{
			&Convolution{Name: "a", Biases: "b", From: image, Outputs: 16, Size: 3, Stride: 1, Padding: 1, Start: He},
			&ReLU{Of: image}, &Pool{Of: image, Size: 2}, &Dense{Name: "c", Biases: "d", From: Shape{16, 16, 16}, Outputs: 10},
		}},
		{"digits", 64, (&Config{
			Features: Conv, Shape: "1x8x8", Channels: "16,32", Kernel: 3, Stride: 1, Padding: 1, Pool: 2, Pooling: "max",
			Hidden: "128", Dropout: 0.5,
		}).Layers(64, true, Output{Units: 64})},
	} {
		b.Run(fmt.Sprintf("%s/rows=%d", c.name, c.rows), func(b *testing.B) {
			benchmarkStep(b, New(Plan{Layers: c.layers}), c.rows)
		})
	}
}

func benchmarkStep(b *testing.B, f *Network, rows int) {
	s := num.NewStream(num.NewKey(1, "bench"), 0, 0)
	from, _ := f.Layers[0].Shapes()
	_, to := f.Layers[len(f.Layers)-1].Shapes()
	w := &gradient.Weights{Theta: drawn(s, gradient.Parameters(f))}
	var samples []gradient.Sample
	for i := range rows {
		samples = append(samples, gradient.Sample{Row: uint32(i), X: drawn(s, from.Size())})
	}
	df, out, p, ws := drawn(s, rows*to.Size()), make([]float32, rows*to.Size()), new(round.Partial), f.NewWorkspace()
	shape := f.GradientShape()
	shape.F64 += gradient.GradientAt
	p.Reset(shape)
	step := func(i int) {
		w.Version++
		f.Begin(p, new(round.Task), samples, rows, ws)
		f.Forward(out, samples, w, uint64(i), ws)
		f.Backward(p, df, samples, w, ws)
	}
	step(0)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		step(i)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}
