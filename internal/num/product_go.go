package num

// The portable products: what the assembly must equal bit for bit.

// addProductGo finds a[i,t] at a[i·ai + t·at].
func addProductGo(dst, a, b []float32, m, k, n, ai, at int) {
	for i := range m {
		row := dst[i*n : i*n+n]
		for t := range k {
			mulAddRow(row, a[i*ai+t*at], b[t*n:t*n+n])
		}
	}
}

func addProduct64TGo(dst, a []float64, b []float32, k, stride int) {
	n := len(b) / stride
	for i := range len(a) / stride {
		x, row := a[i*stride:i*stride+k], dst[i*n:i*n+n]
		j := 0
		for ; j+4 <= n; j += 4 {
			addDots64(row[j:j+4], x, b[j*stride:], stride)
		}
		for ; j < n; j++ {
			y, sum := b[j*stride:j*stride+k], row[j]
			for t, v := range x {
				sum += float64(v * float64(y[t])) // exact
			}
			row[j] = sum
		}
	}
}

// addDots64 adds the products of x with four rows of b to sums.
func addDots64(sums, x []float64, b []float32, stride int) {
	n := len(x)
	b0, b1, b2, b3 := b[:n], b[stride:stride+n], b[2*stride:2*stride+n], b[3*stride:3*stride+n]
	s0, s1, s2, s3 := sums[0], sums[1], sums[2], sums[3]
	for t, v := range x {
		s0 += float64(v * float64(b0[t])) // exact
		s1 += float64(v * float64(b1[t]))
		s2 += float64(v * float64(b2[t]))
		s3 += float64(v * float64(b3[t]))
	}
	sums[0], sums[1], sums[2], sums[3] = s0, s1, s2, s3
}

func quotientsGo(r []float64, w, d, g []float32, floor float32) {
	w, d, g = w[:len(r)], d[:len(r)], g[:len(r)]
	for i := range r {
		r[i] = float64(w[i] * d[i] / max(g[i], floor))
	}
}
