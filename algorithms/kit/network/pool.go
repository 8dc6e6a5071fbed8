package network

// Pool makes one value of each window of Size×Size positions of an image: the greatest, or with
// Average the mean. Windows do not overlap; what is left at the right and at the bottom is not
// read. Of equal values the first in the order of rows is the greatest one.
type Pool struct {
	bare
	Of      Shape
	Size    int
	Average bool
}

// poolSpace has the position, in X, of the greatest value of each window of the last block.
type poolSpace struct{ at []uint32 }

// Shapes implements Layer.
func (l *Pool) Shapes() (from, to Shape) {
	return l.Of, Shape{l.Of.Channels, l.Of.Height / l.Size, l.Of.Width / l.Size}
}

// NewSpace implements Layer.
func (l *Pool) NewSpace(uint64, int) Space { return new(poolSpace) }

// Forward implements Layer.
func (l *Pool) Forward(v *Values, _ *Pass, ws Space) {
	s := ws.(*poolSpace)
	if !l.Average {
		s.at = resize(s.at, len(v.Y))
	}
	l.lines(len(v.X)/l.Of.Size(), func(to, end, from int) {
		for ; to < end; to, from = to+1, from+l.Size {
			if l.Average {
				v.Y[to] = l.mean(v.X, from)
				continue
			}
			at := l.greatest(v.X, from)
			s.at[to], v.Y[to] = uint32(at), v.X[at]
		}
	})
}

// Backward implements Layer.
func (l *Pool) Backward(v *Values, _ *Pass, ws Space) {
	if v.DX == nil {
		return
	}
	clear(v.DX)
	if !l.Average {
		for i, at := range ws.(*poolSpace).at {
			v.DX[at] = v.DY[i]
		}
		return
	}
	l.lines(len(v.DX)/l.Of.Size(), func(to, end, from int) {
		for ; to < end; to, from = to+1, from+l.Size {
			d := v.DY[to] / float32(l.Size*l.Size)
			for y := range l.Size {
				fill(v.DX[from+y*l.Of.Width:][:l.Size], d)
			}
		}
	})
}

// lines calls do for each line of windows of some rows: the numbers of their values behind the layer go from
// to to below end, the first value before the layer has the number from.
func (l *Pool) lines(rows int, do func(to, end, from int)) {
	_, out := l.Shapes()
	to := 0
	for image := range rows * l.Of.Channels {
		for y := range out.Height {
			do(to, to+out.Width, image*l.Of.Area()+y*l.Size*l.Of.Width)
			to += out.Width
		}
	}
}

// greatest returns where the greatest value of a window is.
func (l *Pool) greatest(v []float32, from int) int {
	at, most := from, v[from]
	for y := range l.Size {
		row := from + y*l.Of.Width
		for x, value := range v[row:][:l.Size] {
			if value > most {
				at, most = row+x, value
			}
		}
	}
	return at
}

// mean returns the mean of a window, summed in the order of rows.
func (l *Pool) mean(v []float32, from int) float32 {
	sum := float32(0)
	for y := range l.Size {
		for _, x := range v[from+y*l.Of.Width:][:l.Size] {
			sum += x
		}
	}
	return sum / float32(l.Size*l.Size)
}
