package num

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
)

// Key selects one of 2^64 independent random functions.
type Key [2]uint32

// NewKey derives the key of one purpose ("theta", "batch") under a seed: the
// first 8 bytes of SHA-256(seed as 8 little-endian bytes, then purpose).
func NewKey(seed uint64, purpose string) Key {
	h := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), purpose...))
	return Key{binary.LittleEndian.Uint32(h[:4]), binary.LittleEndian.Uint32(h[4:8])}
}

// Philox is Philox4x32-10 of Salmon et al. 2011: a bijection of the counters for
// each key, whose outputs pass as independent random numbers.
func Philox(key Key, ctr [4]uint32) [4]uint32 {
	k0, k1 := key[0], key[1]
	c0, c1, c2, c3 := ctr[0], ctr[1], ctr[2], ctr[3]
	for range 10 {
		p := uint64(c0) * 0xD2511F53
		q := uint64(c2) * 0xCD9E8D57
		c0, c1, c2, c3 = uint32(q>>32)^c1^k0, uint32(q), uint32(p>>32)^c3^k1, uint32(p)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Stream is the sequence of random numbers of one (key, step, unit): block i is
// Philox of the counter (step low, step high, unit, i). A Stream is a value that
// needs no heap; it is not safe for concurrent use.
type Stream struct {
	key    Key
	ctr    [4]uint32
	block  [4]uint32
	used   int // words of block already given
	spare  float64
	paired bool // spare holds the second normal of a pair
}

// NewStream starts the stream of (key, step, unit).
func NewStream(key Key, step uint64, unit uint32) *Stream {
	return &Stream{key: key, ctr: [4]uint32{uint32(step), uint32(step >> 32), unit, 0}, used: 4}
}

// Uint32 returns the next 32 random bits.
func (s *Stream) Uint32() uint32 {
	if s.used == 4 {
		s.refill()
	}
	x := s.block[s.used&3]
	s.used++
	return x
}

func (s *Stream) refill() {
	if s.ctr[3] == math.MaxUint32 {
		panic("num: a stream of random numbers is exhausted")
	}
	s.block = Philox(s.key, s.ctr)
	s.ctr[3]++
	s.used = 0
}

// Uint64 returns the next 64 random bits, the low half first.
func (s *Stream) Uint64() uint64 {
	low := uint64(s.Uint32())
	return low | uint64(s.Uint32())<<32
}

// Uint64n returns a uniform number in [0, n), by Lemire's multiplication with
// rejection. It panics when n is 0.
func (s *Stream) Uint64n(n uint64) uint64 {
	if n == 0 {
		panic("num: a random number below 0")
	}
	hi, lo := bits.Mul64(s.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(s.Uint64(), n)
		}
	}
	return hi
}

// Float64 returns a uniform number in [0, 1), a multiple of 2^-53.
func (s *Stream) Float64() float64 { return float64(float64(s.Uint64()>>11) * 0x1p-53) }

// Normal returns a standard normal number, by Box-Muller: pairs of numbers come
// from pairs of uniforms, the cosine first.
func (s *Stream) Normal() float64 {
	if s.paired {
		s.paired = false
		return s.spare
	}
	u, v := 1-s.Float64(), s.Float64() // u in (0, 1]
	r := math.Sqrt(float64(-2 * Log(u)))
	sin, cos := SinCos2Pi(v)
	s.spare, s.paired = r*sin, true
	return r * cos
}

// maxRounds is the greatest number of rounds of the Feistel network.
const maxRounds = 24

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
	// A round stirs in few bits where the domain is small. Counts over 200,000 keys find no permutation too
	// often or too rarely from 24, 10 and 6 rounds on.
	rounds := 8
	if width <= 3 {
		rounds = maxRounds
	} else if width <= 8 {
		rounds = 12
	}
	low := uint(width / 2)
	p := Permutation{n: n, low: low, mLow: 1<<low - 1, mHigh: 1<<(uint(width)-low) - 1, rounds: rounds}
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
	for {
		l, h := i&p.mLow, i>>p.low
		for r := 0; r < p.rounds; r += 2 {
			l ^= stir(h^p.keys[r]) & p.mLow
			h ^= stir(l^p.keys[r+1]) & p.mHigh
		}
		if i = h<<p.low | l; i < p.n {
			return i
		}
	}
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

// forward4 takes four numbers through the network once.
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
	for {
		l, h := j&p.mLow, j>>p.low
		for r := p.rounds - 2; r >= 0; r -= 2 {
			h ^= stir(l^p.keys[r+1]) & p.mHigh
			l ^= stir(h^p.keys[r]) & p.mLow
		}
		if j = h<<p.low | l; j < p.n {
			return j
		}
	}
}

func (p *Permutation) check(i uint64) {
	if i >= p.n {
		panic("num: a position outside its permutation")
	}
}

// stir mixes 64 bits (a bijection of its own): the Feistel round function.
func stir(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	x ^= x >> 32
	x *= 0xD6E8FEB86659FD93
	return x ^ x>>32
}
