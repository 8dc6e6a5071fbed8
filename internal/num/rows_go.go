package num

import "math"

// The portable kernels: what the assembly must equal bit for bit.

func mulAddRowsGo(dst, a, m []float32) {
	n := len(dst)
	for k, x := range a {
		mulAddRow(dst, x, m[k*n:k*n+n])
	}
}

func mulAddRowsAtGo(dst, a []float32, index []uint32, m []float32) {
	n := len(dst)
	for k, x := range a {
		at := int(index[k]) * n
		if at+n > len(m) {
			panicIndex()
		}
		mulAddRow(dst, x, m[at:at+n])
	}
}

func addOuterGo(m, a, x []float32) {
	n := len(x)
	for k, y := range a {
		mulAddRow(m[k*n:k*n+n], y, x)
	}
}

func addOuterAtGo(m []float32, index []uint32, a, x []float32) {
	n := len(x)
	for k, y := range a {
		at := int(index[k]) * n
		if at+n > len(m) {
			panicIndex()
		}
		mulAddRow(m[at:at+n], y, x)
	}
}

func addOuter64Go(m []float64, a, x []float32) {
	n := len(x)
	for k, y := range a {
		row, v := m[k*n:k*n+n], float64(y)
		for j, z := range x[:len(row)] {
			row[j] += float64(v * float64(z)) // exact
		}
	}
}

// mulAddRow sets dst[j] = fma(a, x[j], dst[j]), with FMA32 written out.
func mulAddRow(dst []float32, a float32, x []float32) {
	x = x[:len(dst)]
	y := float64(a)
	for j, c := range dst {
		p := float64(y * float64(x[j]))
		s := p + float64(c)
		if u := math.Float64bits(s); u&tieMask == tieBits || u<<1-1 < minNormal<<53-1 {
			dst[j] = fmaSlow(p, c, s)
			continue
		}
		dst[j] = float32(s)
	}
}
