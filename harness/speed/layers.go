package speed

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/scaling"
	"github.com/coppice-ldl/coppice/engine/round"
)

// layersAgreement is how far the mean size of a peer's gradient may be off Coppice's, as a share: both
// have the same weights, rows and derivatives, so that only roundings differ.
const layersAgreement = 1e-3

// Layers are dense layers with rectifiers between them, whose forward and backward pass is measured
// without a loss.
type Layers struct {
	Sides   []int // features, tasks of each layer
	Batch   int
	Repeats int // of the pass in a run
}

// Convolved is a convolution alone, which keeps the size of its images.
type Convolved struct {
	Channels, Side, Outputs, Kernel int
	Inputs                          bool // derivatives by its inputs are wanted: other layers stand before it
	Batch, Block                    int  // rows, and rows that are taken at once
	Repeats                         int
}

// The layers of the tables.
var (
	PaperLayers = Layers{Sides: []int{243, 256, 64}, Batch: 128, Repeats: 100}
	FirstImages = Convolved{Channels: 1, Side: 32, Outputs: 16, Kernel: 3, Batch: 128, Block: 32, Repeats: 5}
	LaterImages = Convolved{Channels: 16, Side: 32, Outputs: 16, Kernel: 3, Inputs: true, Batch: 128, Block: 32,
		Repeats: 2}
)

// What numbers are drawn for: seeds that peers have too.
const (
	seedWeights = 0 // and the number of the layer
	seedRows    = 10
	seedOutputs = 20 // derivatives by outputs
)

// numbers returns n values from -1 to 1 that only their place and the seed decide.
func numbers(seed uint32, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		h := (uint32(i) + seed<<24) * 2654435761
		h = (h ^ h>>15) * 2246822519
		h = (h ^ h>>13) * 3266489917
		h ^= h >> 16
		v[i] = float32(float64(h)/(1<<31) - 1)
	}
	return v
}

// weights returns the n weights of layer number i, each of whose outputs reads so many values; their variance is He's.
func weights(i, n, reads int) []float32 {
	v, bound := numbers(seedWeights+uint32(i), n), float32(math.Sqrt(6/float64(reads)))
	for j := range v {
		v[j] *= bound
	}
	return v
}

// meanSize returns the mean of the values' sizes.
func meanSize(v []float32) (sum float64) {
	for _, x := range v {
		sum += math.Abs(float64(x))
	}
	return sum / float64(len(v))
}

// passes makes a case of a pass that is repeated; gradient returns the sums of the last one.
func passes(repeats int, job Job, pass func(), gradient func() []float32) Case {
	return Case{
		Of: []string{"forward and backward"}, Agreement: layersAgreement, Unshown: true,
		Run: func(context.Context) (Figures, error) {
			began := time.Now()
			for range repeats {
				pass()
			}
			return Figures{Seconds: []float64{time.Since(began).Seconds() / float64(repeats)}, Loss: meanSize(gradient())}, nil
		},
		Jobs: map[string]Job{PeerTorch: job},
	}
}

// Case measures the layers.
func (l Layers) Case() Case {
	f, theta := l.network()
	last := len(l.Sides) - 1
	samples := make([]gradient.Sample, l.Batch)
	for i, x := 0, numbers(seedRows, l.Batch*l.Sides[0]); i < l.Batch; i++ {
		samples[i] = gradient.Sample{Row: uint32(i), X: x[i*l.Sides[0] : (i+1)*l.Sides[0]]}
	}
	w, dy, y := &gradient.Weights{Theta: theta}, numbers(seedOutputs, l.Batch*l.Sides[last]),
		make([]float32, l.Batch*l.Sides[last])
	p, ws, shape := new(round.Partial), f.NewWorkspace(), f.GradientShape()
	shape.F64 += gradient.GradientAt
	pass := func() {
		w.Version++ // as behind a step
		p.Reset(shape)
		f.Begin(p, new(round.Task), samples, l.Batch, ws)
		f.Forward(y, samples, w, 0, ws)
		f.Backward(p, dy, samples, w, ws)
	}
	sums := func() []float32 {
		g := make([]float32, len(theta))
		f.Gradient(g, 0, p, 1, &scaling.Values{})
		return g
	}
	job := Job{"kind": "dense", "sides": l.Sides, "batch": l.Batch, "repeats": l.Repeats, "inputs": false}
	return passes(l.Repeats, job, pass, sums)
}

// network returns the network and its Θ.
func (l Layers) network() (f *network.Network, theta []float32) {
	var all []network.Layer
	for i, outputs := range l.Sides[1:] {
		name, inputs := fmt.Sprint("dense", i+1), l.Sides[i]
		if i > 0 {
			all = append(all, &network.ReLU{Of: network.Flat(inputs)})
		}
		all = append(all, &network.Dense{Name: name, Biases: name + ".bias", From: network.Flat(inputs), Outputs: outputs})
		theta = append(append(theta, weights(i, inputs*outputs, inputs)...), make([]float32, outputs)...)
	}
	return network.New(network.Plan{Layers: all}), theta
}

// Case measures the convolution.
func (c Convolved) Case() Case {
	l := &network.Convolution{
		Name: "a", Biases: "b", From: network.Shape{Channels: c.Channels, Height: c.Side, Width: c.Side}, Outputs: c.Outputs,
		Size: c.Kernel, Stride: 1, Padding: (c.Kernel - 1) / 2,
	}
	reads := c.Channels * c.Kernel * c.Kernel
	theta := append(weights(0, reads*c.Outputs, reads), make([]float32, c.Outputs)...)
	n, m := c.Channels*c.Side*c.Side, c.Outputs*c.Side*c.Side
	x, dy := numbers(seedRows, c.Batch*n), numbers(seedOutputs, c.Batch*m)
	v := &network.Values{Y: make([]float32, c.Block*m), Theta: theta, Sum: make([]float32, len(theta))}
	if c.Inputs {
		v.DX = make([]float32, c.Block*n)
	}
	p, space := new(network.Pass), l.NewSpace(0, 0)
	pass := func() {
		p.Version++
		clear(v.Sum)
		for from := 0; from < c.Batch; from += c.Block {
			v.X, v.DY = x[from*n:(from+c.Block)*n], dy[from*m:(from+c.Block)*m]
			l.Forward(v, p, space)
			l.Backward(v, p, space)
		}
	}
	job := Job{
		"kind": "convolution", "channels": c.Channels, "side": c.Side, "outputs": c.Outputs, "kernel": c.Kernel,
		"batch":   c.Batch,
		"repeats": c.Repeats, "inputs": c.Inputs,
	}
	return passes(c.Repeats, job, pass, func() []float32 { return v.Sum })
}
