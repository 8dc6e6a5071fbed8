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

// NewPermutation returns the permutation (key, epoch, unit) of [0, n).
func NewPermutation(key Key, epoch uint64, unit uint32, n uint64) Permutation {
	width := 2
	if n > 4 {
		width = bits.Len64(n - 1)
	}
	low := uint(width / 2)
	p := Permutation{n: n, low: low, mLow: 1<<low - 1, mHigh: 1<<(uint(width)-low) - 1, rounds: permRounds(width)}
	for i := 0; i < p.rounds; i += 2 {
		b := Philox(key, [4]uint32{uint32(epoch), uint32(epoch >> 32), unit, uint32(i / 2)})
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
