package forest

import (
	"math"
	"slices"
)

// A key is a 64-bit number that stands for a value and a row. The upper 32 bits are the
// value's ordered bits, the lower 32 bits are the row's number.

// zeroBits are the ordered bits of 0. Those of a negative value are less, those of a
// positive value are greater.
const zeroBits = 1 << 31

// orderedBits returns the ordered bits of a finite value: of two values, the greater one has
// the greater bits. -0 has the bits of 0.
func orderedBits(x float32) uint32 {
	b := math.Float32bits(x + 0) // -0 + 0 is 0
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

func makeKey(x float32, row uint32) uint64 {
	return uint64(orderedBits(x))<<32 | uint64(row)
}

// minRadixKeys is the number of keys from which on a radix sort is faster than slices.Sort.
const minRadixKeys = 200

// sortKeys sorts keys by value and then by row. The keys must be given in ascending order of
// their rows, since the radix sort compares values only; it is stable. spare is working
// memory as long as keys. sorted is one of the two slices, other is the other one.
func sortKeys(keys, spare []uint64) (sorted, other []uint64) {
	if len(keys) < minRadixKeys {
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
			continue // all keys have the same digit
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
