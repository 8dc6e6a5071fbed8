package forest

import (
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/internal/num"
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

const (
	// minRadixKeys is the number of keys from which on a radix sort is faster than slices.Sort.
	minRadixKeys = 200
	// minSplitKeys is the number of keys from which on it is faster to split them by their highest digit first: the
	// parts fit the cache.
	minSplitKeys = 1 << 17
	// digits are how many digits a value has, of so many digitBits; the last has two bits less.
	digits, digitBits = 3, 11
	digitMask         = 1<<digitBits - 1
)

// sortKeys sorts keys by value and then by row. The keys must be given in ascending order of
// their rows, since the radix sort compares values only; it is stable. spare is working
// memory as long as keys. sorted is one of the two slices, other is the other one. If
// sorted is spare, keys has the same keys, in an order that sortKeys sorts as well.
func sortKeys(keys, spare []uint64) (sorted, other []uint64) {
	switch {
	case len(keys) < minRadixKeys:
		slices.Sort(keys)
		return keys, spare
	case len(keys) < minSplitKeys:
		return sortDigits(keys, spare)
	}
	var ends [1 << digitBits]uint32 // of parts; at first, their beginnings
	const shift = 32 + (digits-1)*digitBits
	for _, k := range keys {
		ends[k>>shift&digitMask]++
	}
	startPlaces(&ends)
	for _, k := range keys {
		at := &ends[k>>shift&digitMask]
		spare[*at] = k
		*at++
	}
	from := uint32(0)
	for _, to := range ends {
		part, sorted := keys[from:to], spare[from:to]
		if len(part) < minRadixKeys {
			slices.Sort(sorted)
		} else {
			sorted, _ = sortDigits(sorted, part)
		}
		copy(part, sorted) // may be the same memory
		from = to
	}
	return keys, spare
}

// sortDigits is sortKeys of keys, at least one, that fit the cache.
func sortDigits(keys, spare []uint64) (sorted, other []uint64) {
	var counts [digits][1 << digitBits]uint32
	for _, k := range keys {
		counts[0][k>>32&digitMask]++
		counts[1][k>>43&digitMask]++
		counts[2][k>>54]++
	}
	for digit := range counts {
		shift := 32 + digitBits*digit
		c := &counts[digit]
		if int(c[keys[0]>>shift&digitMask]) == len(keys) {
			continue // all keys have the same digit
		}
		startPlaces(c)
		for _, k := range keys {
			at := &c[k>>shift&digitMask]
			spare[*at] = k
			*at++
		}
		keys, spare = spare, keys
	}
	return keys, spare
}

// startPlaces turns the number of keys with each digit into the place of the first one.
func startPlaces(counts *[1 << digitBits]uint32) {
	sum := uint32(0)
	for i, n := range counts {
		counts[i] = sum
		sum += n
	}
}

// Resized makes *v a slice of n elements and returns it. The elements may have any values.
// The memory of *v is used again if it is large enough. If not, it is dropped before new memory is
// allocated, with room for 2 % more elements: the samples of other trees differ little in size.
func Resized[T any](v *[]T, n int) []T {
	if cap(*v) < n {
		*v = nil
		*v = make([]T, n+n/50+8)
	}
	*v = (*v)[:n]
	return *v
}

// maxDraws bounds the size of a sample: xlogx(maxDraws) stays below 2^62.
const maxDraws = 1 << 26

// nat is one nat in the fixed-point numbers of xlogx.
const nat = 1 << 31

// minGain is 2^-20 nats. A node is not split unless the gain times the node's copies is
// greater. It is above the rounding error of a sum of xlogx entries that is 0 without
// rounding (2^-32 nats for each of at most 2^10 entries).
const minGain = nat >> 20

// xlogx returns n ln n for n from 0 to most, 0 for 0, in units of 2^-31.
// Entropies of counts are sums and differences of these integers: they are exact in any
// order, so equal splits have equal gains on every machine.
// With c_k samples of class k among n, n times the entropy in nats is
// xlogx(n) - Σ xlogx(c_k).
func xlogx(most int) []int64 {
	table := make([]int64, most+1)
	for n := range table {
		table[n] = xlogxOf(uint32(n))
	}
	return table
}

// xlogxOf is an element of xlogx.
func xlogxOf(n uint32) int64 {
	if n < 2 {
		return 0
	}
	x := float64(n)
	return int64(math.Floor(float64(float64(x*num.Log(x))*nat) + 0.5))
}
