package network

import "github.com/coppice-ldl/coppice/internal/num"

// window goes over the windows of a convolution, of one row.
type window struct{ *Convolution }

// gather sets columns (t×positions) to what each output position reads of an image.
func (w window) gather(columns, image []float32) {
	_, to := w.Shapes()
	for t := range w.reads() {
		channel, row, column := w.place(t)
		plane := image[channel*w.From.Area():][:w.From.Area()]
		for y := range to.Height {
			dst := columns[(t*to.Height+y)*to.Width:][:to.Width]
			if source := y*w.Stride + row - w.Padding; source < 0 || source >= w.From.Height {
				clear(dst)
			} else {
				w.gatherRow(dst, plane[source*w.From.Width:][:w.From.Width], column-w.Padding)
			}
		}
	}
}

// place returns the channel of number t, and its place in a window.
func (w window) place(t int) (channel, row, column int) {
	area := w.Size * w.Size
	return t / area, t % area / w.Size, t % w.Size
}

// inside returns which outputs of a row of n read inside a row of the image, where output x reads
// position x·Stride + shift.
func (w window) inside(n, shift int) (from, to int) {
	if shift < 0 {
		from = (-shift + w.Stride - 1) / w.Stride
	}
	if last := w.From.Width - 1 - shift; last >= 0 {
		to = min(n, last/w.Stride+1)
	}
	return min(from, to), to
}

// gatherRow sets dst[x] to row[x·Stride + shift], and to 0 outside the row.
func (w window) gatherRow(dst, row []float32, shift int) {
	from, to := w.inside(len(dst), shift)
	clear(dst[:from])
	clear(dst[to:])
	if w.Stride == 1 && from < to {
		copy(dst[from:to], row[from+shift:])
		return
	}
	for x := from; x < to; x++ {
		dst[x] = row[x*w.Stride+shift]
	}
}

// scatter sets image to the sums of what columns (t×positions) has of each of its values, by
// ascending t.
func (w window) scatter(image, columns []float32) {
	_, to := w.Shapes()
	clear(image)
	for t := range w.reads() {
		channel, row, column := w.place(t)
		plane := image[channel*w.From.Area():][:w.From.Area()]
		for y := range to.Height {
			if target := y*w.Stride + row - w.Padding; target >= 0 && target < w.From.Height {
				w.scatterRow(plane[target*w.From.Width:][:w.From.Width], columns[(t*to.Height+y)*to.Width:][:to.Width], column-w.Padding)
			}
		}
	}
}

// scatterRow adds v[x] to row[x·Stride + shift] where that is inside the row.
func (w window) scatterRow(row, v []float32, shift int) {
	from, to := w.inside(len(v), shift)
	if w.Stride == 1 && from < to {
		num.Add32(row[from+shift:to+shift], v[from:to])
		return
	}
	for x := from; x < to; x++ {
		row[x*w.Stride+shift] += v[x]
	}
}
