package num

// MomentumRows is Momentum with a gradient of rows of width values of which only some are
// there: row index[k], ascending, is factor·values[k], and each other one is 0. factor is
// above 0.
func MomentumRows(x, v, values []float32, index []uint32, width int, factor, rate, momentum, decay float32) bool {
	checkSame(len(v), len(x))
	if width <= 0 || len(x)%width != 0 || len(values) != len(index)*width {
		panic("num: rows of another width")
	}
	if n := len(index); n > 0 && int(index[n-1]) >= len(x)/width {
		panicIndex()
	}
	if done, finite := momentumRows(x, v, values, index, width, factor, rate, momentum, decay); done {
		return finite
	}
	return momentumPieces(x, v, values, index, width, factor, rate, momentum, decay)
}

// momentumPieces is MomentumRows by calls of Momentum, for a piece of a row each.
func momentumPieces(x, v, values []float32, index []uint32, width int, factor, rate, momentum, decay float32) bool {
	var piece [64]float32
	finite, k := true, 0
	for first := 0; first < len(x); first += width {
		var given []float32
		if k < len(index) && int(index[k])*width == first {
			given = values[k*width : (k+1)*width]
			k++
		}
		for i := 0; i < width; i += len(piece) {
			g := piece[:min(len(piece), width-i)]
			clear(g)
			if given != nil {
				copy(g, given[i:])
				Scale32(g, factor)
			}
			from, to := first+i, first+i+len(g)
			finite = Momentum(x[from:to], v[from:to], g, rate, momentum, decay) && finite
		}
	}
	return finite
}
