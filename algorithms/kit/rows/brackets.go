package rows

import (
	"cmp"
	"math"
	"slices"
)

// brackets divides rows by their distances, for numbers of neighbours ks that ascend: bracket b has
// the rows that are among the ks[b] nearest, but not among the ks[b-1] nearest. Of rows at the same
// distance the first ones are nearer.
//
// Values stand for distances, up to a margin. Bins count them, and only rows with values near the end
// of a bracket are compared by their distances.
type brackets[F float32 | float64] struct {
	ks   []int
	rows []uint32 // bracket b is rows[ks[b-1]:ks[b]], ascending; the last place has no meaning

	bin   []uint16         // of each value
	count [mostBins]uint32 // of each bin: how many values
	class [mostBins]uint8  // of each bin: a bracket; len(ks): none; above: a zone
	code  []uint8          // of each value: its bracket; len(ks): none

	zones   []zone
	unclear []uint32    // the positions of the values in zones, zone after zone
	asked   []uint32    // their rows
	squares []float64   // their distances
	order   []candidate // of a zone
}

// zone is a range of bins, in which brackets end. There the distances decide.
type zone struct {
	from, to int // the first and the last bin
	below    int // how many values are in lower bins
	values   int
	k        int // the least k of the brackets that end here, by its place in ks
}

// candidate is a row of a zone.
type candidate struct {
	square float64
	at     uint32 // the position of its value
}

// mostBins bounds the number of bins. Their counters stay in the first cache.
const mostBins = 1 << 12

// newBrackets makes the working memory for at most n values.
func newBrackets[F float32 | float64](ks []int, n int) *brackets[F] {
	return &brackets[F]{
		ks: ks, rows: make([]uint32, ks[len(ks)-1]+1),
		bin: make([]uint16, n), code: make([]uint8, n), zones: make([]zone, 0, len(ks)),
		unclear: make([]uint32, n), asked: make([]uint32, n), squares: make([]float64, n), order: make([]candidate, n),
	}
}

// found returns the rows of all brackets.
func (b *brackets[F]) found() []uint32 { return b.rows[:len(b.rows)-1] }

// divide sets rows. The rows that are listed ascend, and v are their values, which are finite; the values of
// all other rows are above limit. A row that has a value below another's by more than twice the margin is
// nearer. exact sets dst to the distances of rows. It returns false if the nearest rows are perhaps not all listed.
func (b *brackets[F]) divide(v []F, listed []uint32, limit F, margin float64, exact func(dst []float64, rows []uint32)) bool {
	most := b.ks[len(b.ks)-1]
	if len(v) < most {
		return false
	}
	last := b.findZones(b.fill(v, margin))
	if unclear := b.collect(listed); len(unclear) > 0 {
		end := b.zones[len(b.zones)-1]
		for _, i := range unclear[len(unclear)-end.values:] {
			if int(b.bin[i]) == last && float64(v[i])+float64(2*margin) > float64(limit) {
				return false
			}
		}
		exact(b.squares[:len(unclear)], b.asked[:len(unclear)])
		b.decide()
	}
	// The rows that are in no bracket all go to the last place.
	var place, step [256]uint32
	for i := range b.ks {
		step[i] = 1
		place[i+1] = uint32(b.ks[i])
	}
	rows, code := b.rows, b.code[:len(listed)]
	for i, row := range listed {
		c := code[i]
		rows[place[c]] = row
		place[c] += step[c]
	}
	return true
}

// atRank returns a value of v, other than the values before it in order, that is at this rank or not far above. It may
// change the order of v.
func (b *brackets[F]) atRank(v []F, rank int) F {
	b.fill(v, 0)
	bin, total := 0, int(b.count[0])
	for total <= rank {
		bin++
		total += int(b.count[bin])
	}
	if b.count[bin] > few {
		selectSmallest(v, rank)
		return v[rank]
	}
	greatest := F(math.Inf(-1))
	for i, k := range b.bin[:len(v)] {
		if int(k) == bin {
			greatest = max(greatest, v[i])
		}
	}
	return greatest
}

// fill counts the values. It returns how many bins two values differ by at most if they differ by
// twice the margin or less.
func (b *brackets[F]) fill(v []F, margin float64) int {
	least, greatest := v[0], v[0]
	for _, x := range v {
		if x < least {
			least = x
		}
		if x > greatest {
			greatest = x
		}
	}
	bins := 16
	for bins < mostBins && bins < 2*len(v) {
		bins *= 2
	}
	factor := F(bins-1) / (greatest - least)
	if !(float64(factor) <= math.MaxFloat32) { // they are equal, or almost
		factor = 0
	}
	clear(b.count[:])
	bin := b.bin[:len(v)]
	for i, x := range v {
		k := uint32(int32((x-least)*factor)) % mostBins
		bin[i] = uint16(k)
		b.count[k]++
	}
	if margin == 0 {
		return 0
	}
	const rounding = 1. / 256 // more than two places among so many bins have
	return 1 + int(min(float64(2*margin*float64(factor))+rounding, mostBins))
}

// findZones sets zones and class: around the end of each bracket, so many bins below and above. It returns
// the bin in which the last bracket ends.
func (b *brackets[F]) findZones(width int) (last int) {
	b.zones = b.zones[:0]
	for k, bin, total := 0, 0, 0; k < len(b.ks); bin++ {
		if total += int(b.count[bin]); total < b.ks[k] {
			continue
		}
		last = bin
		z := zone{from: max(0, bin-width), to: min(mostBins-1, bin+width), k: k}
		if n := len(b.zones); n > 0 && z.from <= b.zones[n-1].to {
			b.zones[n-1].to = z.to
		} else {
			b.zones = append(b.zones, z)
		}
		for k < len(b.ks) && b.ks[k] <= total {
			k++
		}
	}
	bin, total := 0, 0
	for i := range b.zones {
		z := &b.zones[i]
		for ; bin < z.from; bin++ {
			b.class[bin] = uint8(z.k)
			total += int(b.count[bin])
		}
		z.below = total
		for ; bin <= z.to; bin++ {
			b.class[bin] = uint8(len(b.ks) + 1 + i)
			total += int(b.count[bin])
		}
		z.values = total - z.below
	}
	for ; bin < mostBins; bin++ {
		b.class[bin] = uint8(len(b.ks))
	}
	return last
}

// collect sets code, and returns the positions of the values in zones.
func (b *brackets[F]) collect(listed []uint32) []uint32 {
	var place [256]uint32 // of each zone: the place of its next value
	n := uint32(0)
	for i, z := range b.zones {
		place[i] = n
		n += uint32(z.values)
	}
	first := uint8(len(b.ks) + 1)
	bin, code := b.bin[:len(listed)], b.code[:len(listed)]
	for i, k := range bin {
		c := b.class[k%mostBins]
		code[i] = c
		if c < first {
			continue
		}
		at := place[c-first]
		b.unclear[at], b.asked[at] = uint32(i), listed[i]
		place[c-first]++
	}
	return b.unclear[:n]
}

// decide sets the code of the values in zones by their distances.
func (b *brackets[F]) decide() {
	at := 0
	for _, z := range b.zones {
		order := b.order[:z.values]
		for i := range order {
			order[i] = candidate{b.squares[at], b.unclear[at]}
			at++
		}
		slices.SortFunc(order, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.square, b.square), cmp.Compare(a.at, b.at))
		})
		k := z.k
		for i, c := range order {
			for k < len(b.ks) && b.ks[k] <= z.below+i {
				k++
			}
			b.code[c.at] = uint8(k)
		}
	}
}

// So few values, or what is left after so many partitions, selectSmallest sorts.
const (
	few       = 24
	mostTurns = 64
)

// selectSmallest orders v so that v[k] is in its place and no value before it is greater, none
// after it is less.
func selectSmallest[F float32 | float64](v []F, k int) {
	for turns := 0; len(v) > few && turns < mostTurns; turns++ {
		if i := partition(v); k < i {
			v = v[:i]
		} else {
			v, k = v[i:], k-i
		}
	}
	slices.Sort(v)
}

// partition divides v, of at least three values, in two parts that are not empty: no value of the
// first is greater than one of the second. It returns the beginning of the second.
func partition[F float32 | float64](v []F) int {
	n := len(v)
	pivot := median(v[0], v[n/2], v[n-1])
	i, j := -1, n
	for {
		for i++; v[i] < pivot; i++ {
		}
		for j--; v[j] > pivot; j-- {
		}
		if i >= j {
			break
		}
		v[i], v[j] = v[j], v[i]
	}
	return max(1, i)
}

// median returns the median of three values.
func median[F float32 | float64](a, b, c F) F { return max(min(a, b), min(max(a, b), c)) }
