package images

import "image"

// resizer makes each pixel of dst the mean of the area of the source that it covers. Along a
// side of s source pixels and d pixels of dst, a source pixel is d units long and one of dst s
// units, so that overlaps are whole numbers; sums stay below 2^16 · MaxPixels.
type resizer struct {
	dst  *Image
	size image.Point // of the source
	row  []uint16    // levels of a row of the source
	line []uint64    // sums along that row, by pixel of dst and channel
	sums []uint64    // by pixel of dst and channel
}

func newResizer(dst *Image, size image.Point) *resizer {
	return &resizer{
		dst: dst, size: size, row: make([]uint16, dst.Channels*size.X), line: make([]uint64, dst.Channels*dst.Width),
		sums: make([]uint64, len(dst.Pixels)),
	}
}

// run sets the pixels of dst.
func (r *resizer) run(src image.RGBA64Image) {
	dst := r.dst
	for y := range r.size.Y {
		levels(r.row, src, y, dst.Channels)
		r.sumLine()
		overlaps(y, r.size.Y, dst.Height, func(i int, units uint64) {
			sums := r.sums[i*len(r.line) : (i+1)*len(r.line)]
			for k, v := range r.line {
				sums[k] += units * v
			}
		})
	}
	all, area := uint64(r.size.X)*uint64(r.size.Y), dst.Height*dst.Width
	for i, sum := range r.sums {
		dst.Pixels[i%dst.Channels*area+i/dst.Channels] = share(uint16((sum + all/2) / all))
	}
}

// sumLine sums the row along x.
func (r *resizer) sumLine() {
	clear(r.line)
	channels := r.dst.Channels
	for x := range r.size.X {
		overlaps(x, r.size.X, r.dst.Width, func(i int, units uint64) {
			for c := range channels {
				r.line[i*channels+c] += units * uint64(r.row[x*channels+c])
			}
		})
	}
}

// overlaps calls f with each of d pixels that pixel at of s overlaps, and with how many units.
func overlaps(at, s, d int, f func(i int, units uint64)) {
	from, to := at*d, (at+1)*d
	for i := from / s; i*s < to; i++ {
		f(i, uint64(min(to, (i+1)*s)-max(from, i*s)))
	}
}
