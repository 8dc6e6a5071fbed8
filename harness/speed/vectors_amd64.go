//go:build !purego

package speed

import "golang.org/x/sys/cpu"

//go:noescape
func fma32AVX2(rounds int, out *float32)

//go:noescape
func fma64AVX2(rounds int, out *float64)

//go:noescape
func fma32AVX512(rounds int, out *float32)

//go:noescape
func fma64AVX512(rounds int, out *float64)

//go:noescape
func streamAVX2(y, x *float32, n int, a float32)

//go:noescape
func streamAVX512(y, x *float32, n int, a float32)

// vectorSets returns the vectors that this processor has, the portable Go first.
func vectorSets() []vectors {
	sets := []vectors{portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, vectors{
			name: "AVX2", lanes32: 8, lanes64: 4,
			fma32:  func(rounds int, out []float32) { fma32AVX2(rounds, &out[0]) },
			fma64:  func(rounds int, out []float64) { fma64AVX2(rounds, &out[0]) },
			stream: func(y, x []float32, a float32) { streamAVX2(&y[0], &x[0], len(y), a) },
		})
	}
	if cpu.X86.HasAVX512F {
		sets = append(sets, vectors{
			name: "AVX-512", lanes32: 16, lanes64: 8,
			fma32:  func(rounds int, out []float32) { fma32AVX512(rounds, &out[0]) },
			fma64:  func(rounds int, out []float64) { fma64AVX512(rounds, &out[0]) },
			stream: func(y, x []float32, a float32) { streamAVX512(&y[0], &x[0], len(y), a) },
		})
	}
	return sets
}

// features lists what of the processor matters here.
func features() (all []string) {
	for _, f := range []struct {
		name string
		has  bool
	}{{"AVX2", cpu.X86.HasAVX2}, {"FMA", cpu.X86.HasFMA}, {"AVX-512", cpu.X86.HasAVX512F}} {
		if f.has {
			all = append(all, f.name)
		}
	}
	return all
}
