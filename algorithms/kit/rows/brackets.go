package rows

import (
	"math"
	"slices"
)

// brackets divides rows by their distances, for numbers of neighbours ks that ascend, at most 100: bracket b has
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

	zones []zone   // by bins
	near  []uint32 // the positions of the values in zones, zone after zone
	parts []zone   // of zones: only values within the margin of the end of a bracket
	doubt []uint32 // the positions of the values in parts, part after part
	asked []uint32 // their rows

	squares []float64 // their distances
	values  []F       // of a zone
	ordered []float64 // of squares
	limit   []float64 // of each bracket: its greatest value or distance
	ties    []int     // of each bracket: how many rows at that distance are in it or in lower ones
}

// zone is some values among which brackets end: all that are neither below nor above all others.
type zone struct {
	from, to int // the first and the last bin
	below    int // how many values are lower
	values   int
	k, end   int // the brackets [k, end) end here
}

// mostBins bounds the number of bins. Their counters stay in the first cache.
const mostBins = 1 << 12

// newBrackets makes the working memory for at most n values.
func newBrackets[F float32 | float64](ks []int, n int) *brackets[F] {
	return &brackets[F]{
		ks: ks, rows: make([]uint32, ks[len(ks)-1]+1), bin: make([]uint16, n), code: make([]uint8, n),
		zones: make([]zone, 0, len(ks)), near: make([]uint32, n), parts: make([]zone, 0, len(ks)), doubt: make([]uint32, n),
		asked: make([]uint32, n), squares: make([]float64, n), values: make([]F, n), ordered: make([]float64, n),
		limit: make([]float64, len(ks)), ties: make([]int, len(ks)),
	}
}

// found returns the rows of all brackets.
func (b *brackets[F]) found() []uint32 { return b.rows[:len(b.rows)-1] }

// divide sets rows. The rows that are listed ascend, and v are their values, which are finite; the values of
// all other rows are above limit. A row that has a value below another's by more than twice the margin is
// nearer. exact sets dst to the distances of rows. It returns false if the nearest rows are perhaps not all listed.
func (b *brackets[F]) divide(v []F, listed []uint32, limit F, margin float64,
	exact func(dst []float64, rows []uint32)) bool {
	most := b.ks[len(b.ks)-1]
	if len(v) < most {
		return false
	}
	b.findZones(b.fill(v, margin))
	b.collect(v)
	doubt := b.narrow(v, 2*margin)
	if margin > 0 && b.limit[len(b.ks)-1]+float64(2*margin) > float64(limit) {
		return false
	}
	for j, i := range doubt {
		b.asked[j] = listed[i]
	}
	exact(b.squares[:len(doubt)], b.asked[:len(doubt)])
	b.decide()
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

// findZones sets zones and class: around the end of each bracket, so many bins below and above.
func (b *brackets[F]) findZones(width int) {
	b.zones = b.zones[:0]
	for k, bin, total := 0, 0, 0; k < len(b.ks); bin++ {
		if total += int(b.count[bin]); total < b.ks[k] {
			continue
		}
		z := zone{from: max(0, bin-width), to: min(mostBins-1, bin+width), k: k}
		for k < len(b.ks) && b.ks[k] <= total {
			k++
		}
		z.end = k
		if n := len(b.zones); n > 0 && z.from <= b.zones[n-1].to {
			b.zones[n-1].to, b.zones[n-1].end = z.to, k
		} else {
			b.zones = append(b.zones, z)
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
}

// collect sets code and near.
func (b *brackets[F]) collect(v []F) {
	var place [256]uint32 // of each zone: the place of its next value
	n := uint32(0)
	for i, z := range b.zones {
		place[i] = n
		n += uint32(z.values)
	}
	first := uint8(len(b.ks) + 1)
	bin, code := b.bin[:len(v)], b.code[:len(v)]
	for i, k := range bin {
		c := b.class[k%mostBins]
		code[i] = c
		if c >= first {
			b.near[place[c-first]] = uint32(i)
			place[c-first]++
		}
	}
}

// narrow sets parts, and doubt, which it returns: the values of zones up to a width from the end of a bracket. It
// sets the code of the others, and, if the width is not 0, the limit of the last bracket.
func (b *brackets[F]) narrow(v []F, width float64) []uint32 {
	b.parts = b.parts[:0]
	near, n := b.near, 0
	for _, z := range b.zones {
		all := near[:z.values]
		near = near[z.values:]
		if width == 0 || z.values <= few && z.end < len(b.ks) {
			b.parts = append(b.parts, z)
			n += copy(b.doubt[n:], all)
			continue
		}
		values := b.values[:z.values]
		for j, i := range all {
			values[j] = v[i]
		}
		for k := z.end - 1; k >= z.k; k-- {
			n := b.ks[k] - z.below
			selectSmallest(values, n-1)
			values = values[:n]
			b.limit[k] = float64(values[n-1])
		}
		undecided := uint8(len(b.ks)) // codes above
		for k := z.k; k < z.end; {
			p, low, high := zone{below: z.below, k: k}, b.limit[k]-width, b.limit[k]+width
			for k++; k < z.end && b.limit[k]-width <= high; k++ {
				high = b.limit[k] + width
			}
			first := n
			for _, i := range all {
				if x := float64(v[i]); x < low {
					p.below++
					if b.code[i] > undecided {
						b.code[i] = uint8(p.k)
					}
				} else if x <= high {
					b.doubt[n] = i
					n++
				}
			}
			p.end, p.values = k, n-first
			b.parts = append(b.parts, p)
		}
		for _, i := range all {
			if b.code[i] > undecided {
				b.code[i] = uint8(z.end)
			}
		}
	}
	return b.doubt[:n]
}

// decide sets the code of the values in parts by their distances.
func (b *brackets[F]) decide() {
	at := 0
	for _, p := range b.parts {
		squares, doubt := b.squares[at:at+p.values], b.doubt[at:at+p.values]
		at += p.values
		ordered := b.ordered[:copy(b.ordered, squares)]
		for k := p.end - 1; k >= p.k; k-- {
			n := b.ks[k] - p.below
			selectSmallest(ordered, n-1)
			ordered = ordered[:n]
			b.limit[k], b.ties[k] = ordered[n-1], 0
			for _, d := range ordered {
				if d == b.limit[k] {
					b.ties[k]++
				}
			}
		}
		for j, d := range squares {
			k := p.k
			for k < p.end && (d > b.limit[k] || d == b.limit[k] && b.ties[k] == 0) {
				k++
			}
			for i := k; i < p.end && b.limit[i] == d; i++ {
				b.ties[i]--
			}
			b.code[doubt[j]] = uint8(k)
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
