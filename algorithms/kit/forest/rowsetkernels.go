package forest

import "math"

// noteRowGo notes the values of a row: of each feature, on the value's side of 0, the last
// question whose limit the value has passed. bit of word stands for the row, in the answers from
// the row's half on.
func (f *setForest) noteRowGo(answers [][blockHalves]rowSet, row int, columns []uint32, values []float32) {
	half, word, bit := row/setRows, row%setRows/64, uint64(1)<<(row%64)
	for i, c := range columns {
		b := math.Float32bits(values[i])
		at := 2*uint64(c) + uint64(b>>31)
		from, to := f.first[at], f.first[at+1]
		if from == to {
			continue
		}
		if last := lastUpTo(f.limits[from:to], b&^(1<<31)); f.limits[from+last] <= b&^(1<<31) {
			answers[from+last][half][word] |= bit
		}
	}
}

// lastUpTo returns the place of the last number of an ascending list that is at most x, or 0.
func lastUpTo(list []uint32, x uint32) (at uint32) {
	for n := uint32(len(list)); n > 1; {
		half := n / 2
		if list[at+half] <= x {
			at += half
		}
		n -= half
	}
	return at
}

// setSpace is the working memory of divideSets.
type setSpace struct {
	planes [blockHalves][maxPlanes]rowSet
	slot   [blockHalves][slots]rowSet
}

// divideSetsGo takes the rows of a block, with so many blockHalves in use, down a tree. answers has, for each
// question, the rows whose value is far. Planes become the bits of the codes of the rows' leaves:
// each border is added to its plane (exclusive or).
func divideSetsGo(s *setSpace, used int, answers [][blockHalves]rowSet, borders []border) {
	for h := range used {
		slot, planes := &s.slot[h], &s.planes[h]
		clear(planes[:])
		for i := range borders {
			b := &borders[i]
			far, since, after := &answers[b.question][h], &slot[b.since/placeScale], &slot[b.after/placeScale]
			own, plane := &slot[b.own/placeScale], &planes[b.plane/placeScale]
			for w := range far {
				rows := after[w] | since[w]&far[w]
				own[w] = rows
				plane[w] ^= rows
			}
		}
	}
}

// spread has a byte for each bit of its index, the lowest bit first.
var spread = spreadBits()

func spreadBits() (table [256]uint64) {
	for set := range table {
		for bit := range 8 {
			table[set] |= uint64(set>>bit&1) << (8 * bit)
		}
	}
	return table
}

// numberLeavesGo writes the number of the leaf of each row of half a block, whose code is in planes.
func numberLeavesGo(leaves *[setRows]uint32, planes []rowSet, numbers []uint16) {
	low, high := planes[:min(8, len(planes))], planes[min(8, len(planes)):]
	for i := 0; i < setRows; i += 8 {
		lows, highs := eightCodes(low, i), eightCodes(high, i)
		for j := range 8 {
			leaves[i+j] = uint32(numbers[lows&0xff|highs&0xff<<8])
			lows, highs = lows>>8, highs>>8
		}
	}
}

// eightCodes returns the codes of eight rows from row i on, of at most eight bits each.
func eightCodes(planes []rowSet, i int) (codes uint64) {
	for bit := range planes {
		codes |= spread[uint8(planes[bit][i/64]>>(i%64))] << bit
	}
	return codes
}
