package network

import (
	"fmt"
	"math/bits"

	"github.com/coppice-ldl/coppice/internal/num"
)

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

// cropSpace has the key of the streams.
type cropSpace struct{ key num.Key }

// Shapes implements Layer.
func (l *Crop) Shapes() (from, to Shape) { return l.Of, Shape{l.Of.Channels, l.Side, l.Side} }

// NewSpace implements Layer.
func (l *Crop) NewSpace(seed uint64, i int) Space {
	return &cropSpace{num.NewKey(seed, fmt.Sprintf("crop/%d", i))}
}

// Forward implements Layer.
func (l *Crop) Forward(v *Values, p *Pass, ws Space) {
	n, m := sizes(l)
	spare := [2]int{l.Of.Height - l.Side, l.Of.Width - l.Side}
	for i := range len(v.X) / n {
		down, right := spare[0]/2, spare[1]/2
		if p.Training {
			random := num.Philox(ws.(*cropSpace).key, [4]uint32{uint32(p.Step), uint32(p.Step >> 32), p.Samples[i].Row, 0})
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
