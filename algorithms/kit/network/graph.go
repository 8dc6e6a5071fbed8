package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Graph returns the outputs of a feature function under some weights (float32, samples×outputs). x has the samples as
// they are. Values between layers are matrices with a row for each sample.
func Graph(b *graph.Builder, f gradient.Function, w *gradient.Weights, x graph.Value) (graph.Value, error) {
	x = w.Input.Graph(b, x)
	switch f := f.(type) {
	case *gradient.Linear:
		return dense(b, x, w.Theta, f.Features, f.Outputs), nil
	case *Network:
		theta := w.Theta
		for _, l := range f.Layers {
			n := parameters(l)
			var err error
			if x, err = layerGraph(b, l, theta[:n:n], x); err != nil {
				return "", err
			}
			theta = theta[n:]
		}
		return x, nil
	}
	return "", graph.None("its feature function is not a network")
}

// dense returns xW + b. Theta has W (inputs×outputs), then b, if there is one.
func dense(b *graph.Builder, x graph.Value, theta []float32, inputs, outputs int) graph.Value {
	w, biases := theta[:inputs*outputs], theta[inputs*outputs:]
	y := b.Op("MatMul", x, b.F32(w, inputs, outputs))
	if len(biases) > 0 {
		y = b.Op("Add", y, b.F32(biases, outputs))
	}
	return y
}

// layerGraph returns the outputs of a layer in a prediction.
func layerGraph(b *graph.Builder, l Layer, theta []float32, x graph.Value) (graph.Value, error) {
	from, to := l.Shapes()
	image := func(x graph.Value) graph.Value { return b.Reshape(x, 0, from.Channels, from.Height, from.Width) }
	flat := func(x graph.Value) graph.Value { return b.Reshape(x, 0, to.Size()) }
	switch l := l.(type) {
	case *Dense:
		return dense(b, x, theta, from.Size(), l.Outputs), nil
	case *Convolution:
		w, biases := l.split(theta)
		turned := make([]float32, len(w)) // outputs×window
		num.Transpose32(turned, l.reads(), w, l.Outputs, l.reads(), l.Outputs)
		inputs := []graph.Value{image(x), b.F32(turned, l.Outputs, from.Channels, l.Size, l.Size)}
		if len(biases) > 0 {
			inputs = append(inputs, b.F32(biases, l.Outputs))
		}
		return flat(b.With("Conv", graph.Attributes{"kernel_shape": []int{l.Size, l.Size},
			"strides": []int{l.Stride, l.Stride}, "pads": []int{l.Padding, l.Padding, l.Padding, l.Padding}}, inputs...)), nil
	case *ReLU:
		return b.Op("Relu", x), nil
	case *Logistic:
		return b.Op("Sigmoid", x), nil
	case *Pool:
		op := "MaxPool"
		if l.Average {
			op = "AveragePool"
		}
		sides := []int{l.Size, l.Size}
		return flat(b.With(op, graph.Attributes{"kernel_shape": sides, "strides": sides}, image(x))), nil
	case *Norm:
		return l.graph(b, theta, x), nil
	case *Crop:
		down, right := (from.Height-l.Side)/2, (from.Width-l.Side)/2
		window := b.Op("Slice", image(x), b.List(down, right), b.List(down+l.Side, right+l.Side), b.List(2, 3))
		return flat(window), nil
	case *Dropout, *Augment: // they change nothing in predictions
		return x, nil
	}
	return "", graph.None("its network has a layer of another kind")
}

// graph returns the normalised values of samples, computed in float64.
func (l *Norm) graph(b *graph.Builder, theta []float32, x graph.Value) graph.Value {
	area, channels := l.Of.Area(), l.Of.Channels
	gains, biases := make([]float64, l.Of.Size()), make([]float64, l.Of.Size())
	for i := range gains {
		gains[i], biases[i] = float64(theta[i/area]), float64(theta[channels+i/area])
	}
	x = b.Cast(x, graph.Float64)
	by := b.Op("Sub", x, b.Mean(x, 1))
	variance := b.Mean(b.Op("Mul", by, by), 1)
	scale := b.Op("Div", b.Number(1), b.Op("Sqrt", b.Op("Add", variance, b.Number(normEpsilon))))
	normal := b.Op("Mul", b.F64(gains, len(gains)), b.Op("Mul", by, scale))
	return b.Cast(b.Op("Add", normal, b.F64(biases, len(biases))), graph.Float32)
}
