package forest

import (
	"math"
	"slices"
)

// A key is a value and a row in one word: the value's bits, made to ascend with it,
// above the row's number.

// zeroBits are the ordered bits of 0: negative values lie below, positive above.
const zeroBits = 1 << 31

// orderedBits maps a finite value to bits that ascend with it; -0 counts as 0.
func orderedBits(x float32) uint32 {
	b := math.Float32bits(x)
	switch {
	case x == 0:
		return zeroBits
	case b>>31 == 1:
		return ^b
	}
	return b | zeroBits
}

func makeKey(x float32, row uint32) uint64 {
	return uint64(orderedBits(x))<<32 | uint64(row)
}

// radixLeast is the number of keys from which counting beats comparing.
const radixLeast = 200

// sortKeys sorts keys whose rows ascend already; it returns them in keys or spare,
// and the other slice. Both have the same length.
func sortKeys(keys, spare []uint64) (sorted, other []uint64) {
	if len(keys) < radixLeast {
		slices.Sort(keys)
		return keys, spare
	}
	var counts [3][1 << 11]uint32
	for _, k := range keys {
		counts[0][k>>32&0x7ff]++
		counts[1][k>>43&0x7ff]++
		counts[2][k>>54]++
	}
	for digit := range counts {
		shift := 32 + 11*digit
		c := &counts[digit]
		if int(c[keys[0]>>shift&0x7ff]) == len(keys) {
			continue // all alike
		}
		sum := uint32(0)
		for i, n := range c {
			c[i] = sum
			sum += n
		}
		for _, k := range keys {
			at := &c[k>>shift&0x7ff]
			spare[*at] = k
			*at++
		}
		keys, spare = spare, keys
	}
	return keys, spare
}
