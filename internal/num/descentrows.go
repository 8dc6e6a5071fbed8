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
	return momentumRowsGo(x, v, values, index, width, factor, rate, momentum, decay)
}

func momentumRowsGo(x, v, values []float32, index []uint32, width int, factor, rate, momentum, decay float32) bool {
	finite, k := true, 0
	for row := range len(x) / width {
		here := k < len(index) && int(index[k]) == row
		for i := row * width; i < (row+1)*width; i++ {
			g := [1]float32{}
			if here {
				g[0] = values[k*width+i-row*width] * factor
			}
			finite = momentumGo(x[i:i+1], v[i:i+1], g[:], rate, momentum, decay) && finite
		}
		if here {
			k++
		}
	}
	return finite
}
