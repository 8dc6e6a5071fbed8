package network

import (
	"fmt"
	"math"
	"math/bits"

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

// Dropout sets a value of a row to 0 with probability Rate, and multiplies the others by
// 1/(1-Rate) (Srivastava et al. 2014). It does so in training only. Whether value j of a row is
// kept depends on the seed, the layer, the mini-batch and the original number of the row: it is
// number j mod 4 of block j/4 of the stream (key, step, row).
type Dropout struct {
	bare
	Of   Shape
	Rate float64 // at least 0, below 1
}

// dropoutSpace has what the values of the last block were multiplied by.
type dropoutSpace struct {
	key    num.Key
	factor []float32
}

// Shapes implements Layer.
func (l *Dropout) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *Dropout) NewSpace(seed uint64, i int) Space {
	return &dropoutSpace{key: num.NewKey(seed, fmt.Sprintf("dropout/%d", i))}
}

// Forward implements Layer.
func (l *Dropout) Forward(v *Values, p *Pass, ws Space) {
	copy(v.Y, v.X)
	if !p.Training {
		return
	}
	s, n := ws.(*dropoutSpace), l.Of.Size()
	s.factor = resize(s.factor, len(v.X))
	for i := range p.Samples {
		l.draw(s.factor[i*n:(i+1)*n], s.key, p.Step, p.Samples[i].Row)
	}
	num.Mul32(v.Y, s.factor)
}

// Backward implements Layer.
func (l *Dropout) Backward(v *Values, _ *Pass, ws Space) {
	if v.DX != nil {
		copy(v.DX, v.DY)
		num.Mul32(v.DX, ws.(*dropoutSpace).factor)
	}
}

// draw sets a row's factors: a value is kept where its random number is at least Rate·2³².
func (l *Dropout) draw(factor []float32, key num.Key, step uint64, row uint32) {
	least, kept := l.least(), math.Float32bits(float32(1/(1-l.Rate)))
	for block := 0; 4*block < len(factor); block++ {
		random := num.Philox(key, [4]uint32{uint32(step), uint32(step >> 32), row, uint32(block)})
		part := factor[4*block : min(4*block+4, len(factor))]
		for j := range part {
			keep := uint32(0)
			if uint64(random[j&3]) >= least {
				keep = 1
			}
			part[j] = math.Float32frombits(kept & -keep)
		}
	}
}

// least returns the least random number of a value that is kept: Rate·2³², rounded up.
func (l *Dropout) least() uint64 {
	bound := l.Rate * (1 << 32)
	n := uint64(bound)
	if float64(n) < bound {
		n++
	}
	return n
}

// Augment changes images in training only: with Flip half of them are mirrored, left to right, and
// each is then moved by up to Shift positions in each direction, where positions that come from outside
// the image are 0. What becomes of a row depends on the seed, the layer, the mini-batch and the
// original number of the row: the words of block 0 of the stream (key, step, row) are for the flip, for the move
// downwards and for that to the right. It comes before all layers with parameters, so nobody asks for
// derivatives by its inputs.
type Augment struct {
	bare
	Of    Shape
	Flip  bool
	Shift int
}

// Shapes implements Layer.
func (l *Augment) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer: it returns the key of the streams.
func (l *Augment) NewSpace(seed uint64, i int) Space {
	return num.NewKey(seed, fmt.Sprintf("augment/%d", i))
}

// Forward implements Layer.
func (l *Augment) Forward(v *Values, p *Pass, ws Space) {
	if !p.Training {
		copy(v.Y, v.X)
		return
	}
	n := l.Of.Size()
	for i := range p.Samples {
		random := num.Philox(ws.(num.Key), [4]uint32{uint32(p.Step), uint32(p.Step >> 32), p.Samples[i].Row, 0})
		flip := l.Flip && random[0]&1 == 1
		l.move(v.Y[i*n:(i+1)*n], v.X[i*n:(i+1)*n], flip, l.drawn(random[1]), l.drawn(random[2]))
	}
}

// drawn returns a whole number from -Shift to Shift.
func (l *Augment) drawn(random uint32) int {
	return upTo(2*l.Shift, random) - l.Shift
}

// move sets y to an image, mirrored or not, down and right of where it is in x.
func (l *Augment) move(y, x []float32, flip bool, down, right int) {
	width := l.Of.Width
	for line := range l.Of.Channels * l.Of.Height {
		dst, from := y[line*width:][:width], line%l.Of.Height-down
		if from < 0 || from >= l.Of.Height {
			clear(dst)
			continue
		}
		src := x[(line-down)*width:][:width]
		for i := range dst {
			at := i - right
			switch {
			case at < 0 || at >= width:
				dst[i] = 0
			case flip:
				dst[i] = src[width-1-at]
			default:
				dst[i] = src[at]
			}
		}
	}
}

// Backward implements Layer: it has nothing to do.
func (l *Augment) Backward(*Values, *Pass, Space) {}

// Crop passes a window of Side×Side positions of an image on: in training one at any place, else the
// one in the middle, or the one above and left of it where there is none. The place depends on
// the seed, the layer, the mini-batch and the original number of the row: words 0 and 1 of block 0 of
// the stream (key, step, row) are for how far down and how far right it is. It comes before all layers
// with parameters, so nobody asks for derivatives by its inputs.
type Crop struct {
	bare
	Of   Shape
	Side int
}

// Shapes implements Layer.
func (l *Crop) Shapes() (from, to Shape) { return l.Of, Shape{l.Of.Channels, l.Side, l.Side} }

// NewSpace implements Layer: it returns the key of the streams.
func (l *Crop) NewSpace(seed uint64, i int) Space {
	return num.NewKey(seed, fmt.Sprintf("crop/%d", i))
}

// Forward implements Layer.
func (l *Crop) Forward(v *Values, p *Pass, ws Space) {
	n, m := sizes(l)
	spare := [2]int{l.Of.Height - l.Side, l.Of.Width - l.Side}
	for i := range len(v.X) / n {
		down, right := spare[0]/2, spare[1]/2
		if p.Training {
			random := num.Philox(ws.(num.Key), [4]uint32{uint32(p.Step), uint32(p.Step >> 32), p.Samples[i].Row, 0})
			down, right = upTo(spare[0], random[0]), upTo(spare[1], random[1])
		}
		l.cut(v.Y[i*m:(i+1)*m], v.X[i*n:(i+1)*n], down, right)
	}
}

// upTo returns a whole number from 0 to most.
func upTo(most int, random uint32) int {
	high, _ := bits.Mul32(random, uint32(most+1))
	return int(high)
}

// cut sets y to the window of x that begins at a row and a column.
func (l *Crop) cut(y, x []float32, row, column int) {
	for c := range l.Of.Channels {
		for i := range l.Side {
			from := (c*l.Of.Height+row+i)*l.Of.Width + column
			copy(y[:l.Side], x[from:])
			y = y[l.Side:]
		}
	}
}

// Backward implements Layer: it has nothing to do.
func (l *Crop) Backward(*Values, *Pass, Space) {}
