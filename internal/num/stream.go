package num

import (
	"math"
	"math/bits"
)

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

// Shuffle permutes v by Fisher and Yates, from the stream (key, 0, unit).
func Shuffle(key Key, unit uint32, v []int32) {
	s := NewStream(key, 0, unit)
	for i := len(v) - 1; i > 0; i-- {
		j := s.Uint64n(uint64(i) + 1)
		v[i], v[j] = v[j], v[i]
	}
}
