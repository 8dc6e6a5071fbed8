package network

import (
	"math"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// normEpsilon is added to the variance of a row.
const normEpsilon = 1e-5

// Norm is layer normalisation (Eq. 4 of Ba et al. 2016): y = γ (x - mean)/sqrt(variance + ε) + β,
// with the mean and the variance of all values of the row, ε = 1e-5, and γ and β for each
// channel: for each unit where there is no image. Its part of Θ is γ, which begins at 1, then β. Sums
// are float64, by ascending value.
type Norm struct {
	Name string // of γ's tensor; β's ends in .bias
	Of   Shape
}

// normSpace has the mean of each row of the last block and 1/sqrt(variance + ε).
type normSpace struct {
	mean, scale []float64
	g           []float64 // of one row: derivatives of the loss by the normalised values
}

// Shapes implements Layer.
func (l *Norm) Shapes() (from, to Shape) { return l.Of, l.Of }

// Layout implements Layer.
func (l *Norm) Layout() []gradient.Layer {
	return []gradient.Layer{
		{Name: l.Name, Dims: []int{l.Of.Channels}, Bias: true},
		{Name: l.Name + ".bias", Dims: []int{l.Of.Channels}, Bias: true},
	}
}

// Initialise implements Layer.
func (l *Norm) Initialise(theta []float32, _ num.Key, _ uint64) {
	for c := range l.Of.Channels {
		theta[c] = 1
	}
}

// NewSpace implements Layer.
func (l *Norm) NewSpace(uint64, int) Space { return new(normSpace) }

// Forward implements Layer.
func (l *Norm) Forward(v *Values, _ *Pass, ws Space) {
	s, n := ws.(*normSpace), l.Of.Size()
	rows := len(v.X) / n
	s.mean, s.scale = resize(s.mean, rows), resize(s.scale, rows)
	for i := range rows {
		x := v.X[i*n : (i+1)*n]
		s.mean[i], s.scale[i] = moments(x)
		l.normalise(v.Y[i*n:(i+1)*n], x, v.Theta, s.mean[i], s.scale[i])
	}
}

// moments returns the mean of a row's values and 1/sqrt(variance + ε).
func moments(x []float32) (mean, scale float64) {
	mean = num.Sum64(x) / float64(len(x))
	squares := 0.0
	for _, y := range x {
		e := float64(y) - mean
		squares += float64(e * e)
	}
	return mean, 1 / math.Sqrt(squares/float64(len(x))+normEpsilon)
}

func (l *Norm) normalise(y, x, theta []float32, mean, scale float64) {
	area, channels := l.Of.Area(), l.Of.Channels
	for c := range channels {
		gain, bias := float64(theta[c]), float64(theta[channels+c])
		for i := c * area; i < (c+1)*area; i++ {
			y[i] = float32(float64(gain*((float64(x[i])-mean)*scale)) + bias)
		}
	}
}

// Backward implements Layer.
func (l *Norm) Backward(v *Values, _ *Pass, ws Space) {
	s, n := ws.(*normSpace), l.Of.Size()
	s.g = resize(s.g, n)
	for i := range s.mean {
		x, dy := v.X[i*n:(i+1)*n], v.DY[i*n:(i+1)*n]
		g, gx := l.sum(v, x, dy, s.mean[i], s.scale[i], s.g)
		if v.DX == nil {
			continue
		}
		g, gx = g/float64(n), gx/float64(n)
		for j, y := range x {
			normal := (float64(y) - s.mean[i]) * s.scale[i]
			v.DX[i*n+j] = float32(s.scale[i] * (s.g[j] - g - float64(gx*normal)))
		}
	}
}

// sum adds a row's derivatives by γ and β, sets by to those by the normalised values, and returns the
// sum of these and that of their products with the values.
func (l *Norm) sum(v *Values, x, dy []float32, mean, scale float64, by []float64) (g, gx float64) {
	area, channels := l.Of.Area(), l.Of.Channels
	for c := range channels {
		gain, toGain, toBias := float64(v.Theta[c]), 0.0, 0.0
		for i := c * area; i < (c+1)*area; i++ {
			normal, d := (float64(x[i])-mean)*scale, float64(dy[i])
			toGain += float64(d * normal)
			toBias += d
			by[i] = float64(d * gain)
			g += by[i]
			gx += float64(by[i] * normal)
		}
		v.Sum[c] += float32(toGain)
		v.Sum[channels+c] += float32(toBias)
	}
	return g, gx
}
