package num

// MergeRows sets dst to the sum of two lists of rows of width values, each with ascending
// indices: a row that only one has is +0 in the other. dst and index have room for all rows
// of the sum, and share no memory with a and b. It returns the number of rows.
func MergeRows(dst []float32, index []uint32, a, b []float32, aIndex, bIndex []uint32, width int) int {
	if len(a) != len(aIndex)*width || len(b) != len(bIndex)*width || len(dst) != len(index)*width {
		panic("num: rows of another width")
	}
	i, j, n := mergeRows(dst, index, a, b, aIndex, bIndex, width)
	for i < len(aIndex) && j < len(bIndex) {
		row := dst[n*width : (n+1)*width]
		x, y := aIndex[i], bIndex[j]
		index[n] = min(x, y)
		switch {
		case x < y:
			copy(row, a[i*width:])
			Canonical32(row)
			i++
		case y < x:
			copy(row, b[j*width:])
			Canonical32(row)
			j++
		default:
			copy(row, a[i*width:])
			Add32(row, b[j*width:(j+1)*width])
			i, j = i+1, j+1
		}
		n++
	}
	if len(aIndex)-i+len(bIndex)-j > len(index)-n {
		panic("num: no room for a sum of rows")
	}
	copy(dst[n*width:], a[i*width:])
	n += copy(index[n:], aIndex[i:])
	copy(dst[n*width:], b[j*width:])
	n += copy(index[n:], bIndex[j:])
	return n
}
