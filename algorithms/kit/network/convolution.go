package network

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/internal/num"
)

// Convolution is a layer whose outputs at each position read a window of Size×Size positions of
// every channel: y[o,p] = b[o] + Σ_t W[t,o] x[t,p], where t counts (channel, row, column) of the
// window. Windows begin Padding positions outside the image, where values are 0, and are Stride
// positions apart. Its part of Θ is W (t×outputs, row-major), then b (outputs) where it has a
// bias.
type Convolution struct {
	Name, Biases          string // of W's tensor, of b's; Biases "": there is no b
	From                  Shape
	Outputs               int // channels behind it
	Size, Stride, Padding int
	Start                 Start
}

// convolutionSpace is the working memory of a Convolution.
type convolutionSpace struct {
	columns []float32 // t×positions: what each output position of one row reads
	turned  []float32 // positions×outputs: DY of one row, transposed
	ones    []float32 // positions
}

// Shapes implements Layer.
func (l *Convolution) Shapes() (from, to Shape) {
	side := func(n int) int { return max(0, n+2*l.Padding-l.Size)/l.Stride + 1 }
	return l.From, Shape{l.Outputs, side(l.From.Height), side(l.From.Width)}
}

// reads returns how many values an output reads.
func (l *Convolution) reads() int { return l.From.Channels * l.Size * l.Size }

// fits reports whether a window fits in the image with its padding.
func (l *Convolution) fits() bool {
	return l.From.Height+2*l.Padding >= l.Size && l.From.Width+2*l.Padding >= l.Size
}

// bounded reports whether what a row needs is within maxRow.
func (l *Convolution) bounded() bool {
	_, to := l.Shapes()
	return to.Size() <= maxRow && l.reads()*to.Area() <= maxRow
}

// Layout implements Layer.
func (l *Convolution) Layout() []gradient.Layer {
	return weightsAndBiases(l.Name, l.Biases, l.Outputs, l.From.Channels, l.Size, l.Size, l.Outputs)
}

// split returns W and b, which is empty where there is none.
func (l *Convolution) split(theta []float32) (w, b []float32) {
	n := l.reads() * l.Outputs
	return theta[:n:n], theta[n:]
}

// Initialise implements Layer.
func (l *Convolution) Initialise(theta []float32, key num.Key, n uint64) {
	w, _ := l.split(theta)
	l.Start.draw(w, l.Outputs, key, n)
}

// NewSpace implements Layer.
func (l *Convolution) NewSpace(uint64, int) Space {
	_, to := l.Shapes()
	s := &convolutionSpace{
		columns: make([]float32, l.reads()*to.Area()), turned: make([]float32, to.Size()), ones: make([]float32, to.Area()),
	}
	for i := range s.ones {
		s.ones[i] = 1
	}
	return s
}

// Forward implements Layer: of each output the bias, then the products by ascending t.
func (l *Convolution) Forward(v *Values, _ *Pass, ws Space) {
	s, w := ws.(*convolutionSpace), l.window()
	weights, b := l.split(v.Theta)
	n, m, area := l.From.Size(), w.to.Size(), w.to.Area()
	for i := range len(v.X) / n {
		y := v.Y[i*m : (i+1)*m]
		clear(y)
		for o, bias := range b {
			fill(y[o*area:(o+1)*area], bias)
		}
		w.gather(s.columns, v.X[i*n:(i+1)*n])
		num.AddProductT(y, weights, s.columns, l.reads(), area)
	}
}

// Backward implements Layer: sums of Θ by ascending row and position; DX by ascending output, then
// by ascending t.
func (l *Convolution) Backward(v *Values, _ *Pass, ws Space) {
	s, w := ws.(*convolutionSpace), l.window()
	weights, _ := l.split(v.Theta)
	sum, b := l.split(v.Sum)
	n, m, area := l.From.Size(), w.to.Size(), w.to.Area()
	for i := range len(v.X) / n {
		dy := v.DY[i*m : (i+1)*m]
		num.Transpose32(s.turned, l.Outputs, dy, area, l.Outputs, area)
		w.gather(s.columns, v.X[i*n:(i+1)*n])
		num.AddProduct(sum, s.columns, s.turned, area, l.Outputs)
		if len(b) > 0 {
			num.AddProduct(b, s.ones, s.turned, area, l.Outputs)
		}
		if v.DX != nil {
			clear(s.columns)
			num.AddProduct(s.columns, weights, dy, l.Outputs, area)
			w.scatter(v.DX[i*n:(i+1)*n], s.columns)
		}
	}
}

// window goes over the windows of a convolution, of one row. What number t of a window reads at all
// positions is the image of a channel, shifted.
type window struct {
	*Convolution
	to Shape
}

func (l *Convolution) window() window {
	_, to := l.Shapes()
	return window{l, to}
}

// shift is where number t of a window is: of the output at (y, x) it reads the channel at
// (y·Stride + row, x·Stride + column). Outputs from (y0, x0) to below (y1, x1) read inside the
// image, the others 0.
type shift struct {
	channel, row, column int
	y0, y1, x0, x1       int
}

// shift returns the shift number t.
func (w window) shift(t int) shift {
	area := w.Size * w.Size
	s := shift{channel: t / area, row: t%area/w.Size - w.Padding, column: t%w.Size - w.Padding}
	s.y0, s.y1 = w.inside(w.to.Height, w.From.Height, s.row)
	s.x0, s.x1 = w.inside(w.to.Width, w.From.Width, s.column)
	return s
}

// inside returns which of n outputs read one of so many values, where output i reads value
// i·Stride + shift.
func (w window) inside(n, values, shift int) (from, to int) {
	if shift < 0 {
		from = (-shift + w.Stride - 1) / w.Stride
	}
	if last := values - 1 - shift; last >= 0 {
		to = min(n, last/w.Stride+1)
	}
	return min(from, to), to
}

// plain reports whether the outputs that read inside stand in the channel as they stand in the
// output, but for a shift, row after row.
func (w window) plain() bool { return w.Stride == 1 && w.to.Width == w.From.Width }

// gather sets columns (t×positions) to what each output position reads of an image.
func (w window) gather(columns, image []float32) {
	area, width := w.to.Area(), w.to.Width
	for t := range w.reads() {
		s := w.shift(t)
		channel, dst := image[s.channel*w.From.Area():][:w.From.Area()], columns[t*area:][:area]
		clear(dst[:s.y0*width])
		clear(dst[s.y1*width:])
		if w.plain() {
			from, at, n := w.span(&s)
			copy(dst[from:from+n], channel[at:])
			w.clearSides(dst, &s)
			continue
		}
		for y := s.y0; y < s.y1; y++ {
			w.gatherRow(dst[y*width:][:width], channel[(y*w.Stride+s.row)*w.From.Width:][:w.From.Width], &s)
		}
	}
}

// span returns a range of n outputs, from the first to the last output that reads inside. from is its first
// output, and at is where its input begins in the channel. Between two rows some outputs read outside.
func (w window) span(s *shift) (from, at, n int) {
	if s.x0 == s.x1 || s.y0 == s.y1 {
		return 0, 0, 0
	}
	from = s.y0*w.to.Width + s.x0
	return from, (s.y0+s.row)*w.From.Width + s.x0 + s.column, (s.y1-1)*w.to.Width + s.x1 - from
}

// clearSides sets the outputs at the left and at the right that read outside to 0.
func (w window) clearSides(dst []float32, s *shift) {
	for y := s.y0; y < s.y1; y++ {
		row := dst[y*w.to.Width:][:w.to.Width]
		for x := range s.x0 {
			row[x] = 0
		}
		for x := s.x1; x < len(row); x++ {
			row[x] = 0
		}
	}
}

func (w window) gatherRow(dst, row []float32, s *shift) {
	clear(dst[:s.x0])
	clear(dst[s.x1:])
	for x := s.x0; x < s.x1; x++ {
		dst[x] = row[x*w.Stride+s.column]
	}
}

// scatter sets image to the sums of what columns (t×positions) has of each of its values, by
// ascending t. It changes columns that read outside.
func (w window) scatter(image, columns []float32) {
	area, width := w.to.Area(), w.to.Width
	clear(image)
	for t := range w.reads() {
		s := w.shift(t)
		channel, v := image[s.channel*w.From.Area():][:w.From.Area()], columns[t*area:][:area]
		if w.plain() {
			w.clearSides(v, &s)
			from, at, n := w.span(&s)
			num.Add32(channel[at:at+n], v[from:from+n])
			continue
		}
		for y := s.y0; y < s.y1; y++ {
			w.scatterRow(channel[(y*w.Stride+s.row)*w.From.Width:][:w.From.Width], v[y*width:][:width], &s)
		}
	}
}

func (w window) scatterRow(row, v []float32, s *shift) {
	for x := s.x0; x < s.x1; x++ {
		row[x*w.Stride+s.column] += v[x]
	}
}

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
