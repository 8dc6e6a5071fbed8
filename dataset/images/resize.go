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
	dst, along := r.dst, overlaps(r.size.X, r.dst.Width)
	read := -1
	for _, o := range overlaps(r.size.Y, dst.Height) {
		if o.from != read {
			read = o.from
			levels(r.row, src, read, dst.Channels)
			clear(r.line)
			for _, a := range along {
				line, row := r.line[a.to*dst.Channels:(a.to+1)*dst.Channels], r.row[a.from*dst.Channels:(a.from+1)*dst.Channels]
				for c, v := range row {
					line[c] += a.units * uint64(v)
				}
			}
		}
		sums := r.sums[o.to*len(r.line) : (o.to+1)*len(r.line)]
		for k, v := range r.line {
			sums[k] += o.units * v
		}
	}
	all, area := uint64(r.size.X)*uint64(r.size.Y), dst.Height*dst.Width
	for i, sum := range r.sums {
		dst.Pixels[i%dst.Channels*area+i/dst.Channels] = share(uint16((sum + all/2) / all))
	}
}

// overlap says how many units pixel from of the source and pixel to of the result have together.
type overlap struct {
	from, to int
	units    uint64
}

// overlaps lists the overlaps along a side of s pixels that becomes one of d, in ascending order.
func overlaps(s, d int) []overlap {
	list := make([]overlap, 0, s+d)
	for from, to := 0, 0; from < s && to < d; {
		end := min((from+1)*d, (to+1)*s)
		list = append(list, overlap{from, to, uint64(end - max(from*d, to*s))})
		if end == (from+1)*d {
			from++
		}
		if end == (to+1)*s {
			to++
		}
	}
	return list
}
