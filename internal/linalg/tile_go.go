package linalg

import "math"

// addTileGo adds the product of packed a (depth×4) and b (depth×12) to the tile of 4×12 values
// whose rows begin stride values apart in c.
func addTileGo(c []float64, stride int, a, b []float64) {
	for i := range tileRows {
		row := c[i*stride:][:tileColumns]
		for k := 0; k*tileRows < len(a); k++ {
			x := a[k*tileRows+i]
			for j, y := range b[k*tileColumns:][:tileColumns] {
				row[j] = math.FMA(x, y, row[j])
			}
		}
	}
}
