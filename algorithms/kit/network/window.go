package network

import "github.com/coppice-ldl/coppice/internal/num"

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

// shift returns that of number t.
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

// span returns the n outputs from the first to the last one that reads inside: where they begin,
// and where what they read begins in the channel. Between two rows it has outputs that read outside.
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
