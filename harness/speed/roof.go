package speed

import (
	"math"
	"time"
)

// Roof is what one core can do at the most, as measured: the greatest of all
// measurements, since whatever else the machine does only takes away.
type Roof struct {
	// Vectors is the kind of vectors that was fastest: "AVX-512".
	Vectors string `json:"vectors"`
	// F32 and F64 are operations a second; a fused multiply-add is two.
	F32 float64 `json:"float32_flops"`
	F64 float64 `json:"float64_flops"`
	// AVX2 are the same with vectors of 32 bytes, as the kernels of Coppice have them; 0:
	// the processor has none.
	AVX2F32 float64 `json:"avx2_float32_flops,omitempty"`
	AVX2F64 float64 `json:"avx2_float64_flops,omitempty"`
	// Streams are bandwidths by the size of what is gone through again and again.
	Streams []Stream `json:"bandwidth"`
}

// Stream is the bandwidth of y = y + a·x, where x and y together have Bytes: what is
// read and what is written, together.
type Stream struct {
	Bytes  int     `json:"bytes"`
	Second float64 `json:"bytes_per_second"`
}

// streamSizes go from a core's first cache to memory.
var streamSizes = []int{16 << 10, 256 << 10, 1 << 20, 4 << 20, 32 << 20, 256 << 20}

// Bandwidth returns the bytes a second for a working set of so many bytes: that of the
// greatest measured size that is not above it.
func (r *Roof) Bandwidth(set float64) float64 {
	for i := len(r.Streams) - 1; i > 0; i-- {
		if float64(r.Streams[i].Bytes) <= set {
			return r.Streams[i].Second
		}
	}
	if len(r.Streams) == 0 {
		return 0
	}
	return r.Streams[0].Second
}

// roofMeter measures a core's roof again and again and keeps the greatest figures.
type roofMeter struct {
	roof   Roof
	sets   []vectors
	buffer []float32
	// least is how long a loop runs for one figure.
	least time.Duration
}

// newRoofMeter measures bandwidths of sizes, the least first.
func newRoofMeter(least time.Duration, sizes []int) *roofMeter {
	m := &roofMeter{sets: vectorSets(), least: least, buffer: make([]float32, sizes[len(sizes)-1]/4)}
	for i := range m.buffer {
		m.buffer[i] = 1
	}
	for _, size := range sizes {
		m.roof.Streams = append(m.roof.Streams, Stream{Bytes: size})
	}
	return m
}

// measure takes all figures once.
func (m *roofMeter) measure() {
	for i := range m.sets {
		v := &m.sets[i]
		f32, f64 := m.peak32(v), m.peak64(v)
		if v.name == "AVX2" {
			m.roof.AVX2F32, m.roof.AVX2F64 = max(m.roof.AVX2F32, f32), max(m.roof.AVX2F64, f64)
		}
		if f32 > m.roof.F32 {
			m.roof.F32, m.roof.Vectors = f32, v.name
		}
		m.roof.F64 = max(m.roof.F64, f64)
		if v.name == portable.name && len(m.sets) > 1 {
			continue
		}
		for j := range m.roof.Streams {
			s := &m.roof.Streams[j]
			s.Second = max(s.Second, m.stream(v, s.Bytes))
		}
	}
}

func (m *roofMeter) peak32(v *vectors) float64 {
	out := make([]float32, v.lanes32)
	const rounds = 10_000
	return 2 * sums * rounds * float64(v.lanes32) * m.rate(func() { v.fma32(rounds, out) })
}

func (m *roofMeter) peak64(v *vectors) float64 {
	out := make([]float64, v.lanes64)
	const rounds = 10_000
	return 2 * sums * rounds * float64(v.lanes64) * m.rate(func() { v.fma64(rounds, out) })
}

// stream returns the bytes a second of a working set of a size: x and y are its halves.
func (m *roofMeter) stream(v *vectors, size int) float64 {
	n := size / 8
	y, x := m.buffer[:n:n], m.buffer[n:2*n]
	calls := max(1, 1<<20/size)
	perCall := 3 * 4 * float64(n) // y and x are read, y is written
	return perCall * float64(calls) * m.rate(func() {
		for range calls {
			v.stream(y, x, 0)
		}
	})
}

// rate returns how often f runs a second, where it is fastest: the best of short spans.
func (m *roofMeter) rate(f func()) float64 {
	f()
	best := 0.0
	for began := time.Now(); time.Since(began) < m.least; {
		one := time.Now()
		f()
		best = max(best, 1/math.Max(1e-9, time.Since(one).Seconds()))
	}
	return best
}
