package network

import (
	"fmt"

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

// augmentSpace has the key of the streams.
type augmentSpace struct{ key num.Key }

// Shapes implements Layer.
func (l *Augment) Shapes() (from, to Shape) { return l.Of, l.Of }

// NewSpace implements Layer.
func (l *Augment) NewSpace(seed uint64, i int) Space {
	return &augmentSpace{num.NewKey(seed, fmt.Sprintf("augment/%d", i))}
}

// Forward implements Layer.
func (l *Augment) Forward(v *Values, p *Pass, ws Space) {
	if !p.Training {
		copy(v.Y, v.X)
		return
	}
	n := l.Of.Size()
	for i := range p.Samples {
		random := num.Philox(ws.(*augmentSpace).key, [4]uint32{uint32(p.Step), uint32(p.Step >> 32), p.Samples[i].Row, 0})
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

// trainsOnly reports whether a layer does nothing but in training.
func trainsOnly(l Layer) bool {
	switch l.(type) {
	case *Dropout, *Augment:
		return true
	}
	return false
}
