package num

// AddOuterVia is AddOuterAt on the rows slot[index[k]] of m.
func AddOuterVia(m []float32, slot, index []uint32, a, x []float32) {
	checkIndex(len(a), len(index))
	if !addOuterVia(m, slot, index, a, x) {
		addOuterViaGo(m, slot, index, a, x)
	}
}

func addOuterViaGo(m []float32, slot, index []uint32, a, x []float32) {
	for k := range index {
		c := index[k]
		if int(c) >= len(slot) {
			panicIndex()
		}
		addOuterAt(m, slot[c:c+1], a[k:k+1], x)
	}
}
