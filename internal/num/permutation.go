package num

import "math/bits"

// maxRounds is the greatest number of rounds of the Feistel network.
const maxRounds = 24

// permRounds returns how many rounds a domain of 2^width takes: a round stirs in
// few bits where the domain is small. Counts over 200,000 keys find no
// permutation too often or too rarely from 24, 10 and 6 rounds on.
func permRounds(width int) int {
	switch {
	case width <= 3:
		return maxRounds
	case width <= 8:
		return 12
	}
	return 8
}

// Permutation is a random permutation of [0, n) with random access: At costs the
// same for every position, and nothing is stored but round keys. It is an
// alternating Feistel network on the smallest power of two that is at least n,
// whose round keys come from Philox; numbers that fall outside walk on along
// their cycle until they are inside.
type Permutation struct {
	n      uint64
	low    uint   // bits of the low half
	mLow   uint64 // mask of the low half
	mHigh  uint64
	rounds int
	keys   [maxRounds]uint64
}

// NewPermutation returns the permutation (key, pass, unit) of [0, n).
func NewPermutation(key Key, pass uint64, unit uint32, n uint64) Permutation {
	width := 2
	if n > 4 {
		width = bits.Len64(n - 1)
	}
	low := uint(width / 2)
	p := Permutation{n: n, low: low, mLow: 1<<low - 1, mHigh: 1<<(uint(width)-low) - 1, rounds: permRounds(width)}
	for i := 0; i < p.rounds; i += 2 {
		b := Philox(key, [4]uint32{uint32(pass), uint32(pass >> 32), unit, uint32(i / 2)})
		p.keys[i] = uint64(b[0]) | uint64(b[1])<<32
		p.keys[i+1] = uint64(b[2]) | uint64(b[3])<<32
	}
	return p
}

// Len returns n.
func (p *Permutation) Len() uint64 { return p.n }

// At returns the number at position i. It panics when i is not below n.
func (p *Permutation) At(i uint64) uint64 {
	p.check(i)
	for i = p.forward(i); i >= p.n; {
		i = p.forward(i)
	}
	return i
}

// Append appends the numbers at k positions, from the given one on, to dst: At of one
// after the other. n is at most 2^32. It panics when there are not so many positions.
func (p *Permutation) Append(dst []uint32, from uint64, k int) []uint32 {
	if k <= 0 {
		return dst
	}
	p.check(from)
	p.check(from + uint64(k-1))
	for ; k > 0; k -= together {
		n := min(k, together)
		dst = p.appendFew(dst, from, n)
		from += uint64(n)
	}
	return dst
}

// together is how many numbers are sought beside each other.
const together = 32

// appendFew is Append of up to together numbers. All take one round of the network after
// the other, four at a time, for none waits for another; then those that are outside
// again.
func (p *Permutation) appendFew(dst []uint32, from uint64, k int) []uint32 {
	var x [together + 3]uint64
	var to [together + 3]int
	start := len(dst)
	for i := range k {
		x[i], to[i] = from+uint64(i), start+i
		dst = append(dst, 0)
	}
	for k > 0 {
		outside := 0
		for i := 0; i < k; i += 4 {
			y := [4]uint64{x[i], x[i+1], x[i+2], x[i+3]} // beyond k whatever there is
			p.forward4(&y)
			for j := range min(4, k-i) {
				dst[to[i+j]] = uint32(y[j])
				x[outside], to[outside] = y[j], to[i+j]
				if y[j] >= p.n {
					outside++
				}
			}
		}
		k = outside
	}
	return dst
}

// forward4 is forward of four numbers.
func (p *Permutation) forward4(x *[4]uint64) {
	low, mLow, mHigh := p.low&63, p.mLow, p.mHigh
	l0, l1, l2, l3 := x[0]&mLow, x[1]&mLow, x[2]&mLow, x[3]&mLow
	h0, h1, h2, h3 := x[0]>>low, x[1]>>low, x[2]>>low, x[3]>>low
	for i := 0; i < p.rounds; i += 2 {
		k := p.keys[i]
		l0 ^= stir(h0^k) & mLow
		l1 ^= stir(h1^k) & mLow
		l2 ^= stir(h2^k) & mLow
		l3 ^= stir(h3^k) & mLow
		k = p.keys[i+1]
		h0 ^= stir(l0^k) & mHigh
		h1 ^= stir(l1^k) & mHigh
		h2 ^= stir(l2^k) & mHigh
		h3 ^= stir(l3^k) & mHigh
	}
	x[0], x[1], x[2], x[3] = h0<<low|l0, h1<<low|l1, h2<<low|l2, h3<<low|l3
}

// Inverse returns the position of number j: At(Inverse(j)) = j. It panics when j
// is not below n.
func (p *Permutation) Inverse(j uint64) uint64 {
	p.check(j)
	for j = p.backward(j); j >= p.n; {
		j = p.backward(j)
	}
	return j
}

func (p *Permutation) check(i uint64) {
	if i >= p.n {
		panic("num: a position outside its permutation")
	}
}

func (p *Permutation) forward(x uint64) uint64 {
	l, h := x&p.mLow, x>>p.low
	for i := 0; i < p.rounds; i += 2 {
		l ^= stir(h^p.keys[i]) & p.mLow
		h ^= stir(l^p.keys[i+1]) & p.mHigh
	}
	return h<<p.low | l
}

func (p *Permutation) backward(x uint64) uint64 {
	l, h := x&p.mLow, x>>p.low
	for i := p.rounds - 2; i >= 0; i -= 2 {
		h ^= stir(l^p.keys[i+1]) & p.mHigh
		l ^= stir(h^p.keys[i]) & p.mLow
	}
	return h<<p.low | l
}

// stir mixes 64 bits (a bijection of its own): the Feistel round function.
func stir(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	return x ^ x>>32
}
