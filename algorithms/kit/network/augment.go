package network

import (
	"fmt"
	"math/bits"

	"github.com/coppice-ldl/coppice/internal/num"
)

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
