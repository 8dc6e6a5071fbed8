//go:build linux || darwin

package num

import (
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"
)

// edge returns n float32 that end where readable memory ends.
func edge(t *testing.T, n int) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	size := (4*n + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, size+page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mprotect(mem[size:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(mem); err != nil {
			t.Error(err)
		}
	})
	return Float32s(mem[size-4*n : size])
}

// TestEveryWidth runs each kernel at each width, against the portable one, on
// operands that end at a page which nothing may touch.
func TestEveryWidth(t *testing.T) {
	const rows, most = 3, 140
	t.Logf("vector instructions: %v", Accelerated)
	m, x, a := edge(t, rows*most), edge(t, most), edge(t, rows)
	wide := Float64s(Bytes32(edge(t, 2*rows*most)))
	s := NewStream(NewKey(1, "test/edge"), 0, 0)
	fill := func(vs ...[]float32) {
		for _, v := range vs {
			for i := range v {
				v[i] = float32(s.Normal())
			}
		}
	}
	index := []uint32{2, 0, 2}
	for n := range most + 1 {
		m, x, wide := m[len(m)-rows*n:], x[len(x)-n:], wide[len(wide)-rows*n:]
		same := func(name string, got, start []float32, portable, run func(dst []float32)) {
			want := slices.Clone(start)
			portable(want)
			run(got)
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%s, n=%d: value %d is %x, want %x", name, n, i, got[i], want[i])
				}
			}
		}
		fill(m, x, a)
		same("MulAddRows", x, x, func(d []float32) { mulAddRowsGo(d, a, m) }, func(d []float32) { MulAddRows(d, a, m) })
		fill(m, x, a)
		same("MulAddRowsAt", x, x, func(d []float32) { mulAddRowsAtGo(d, a, index, m) },
			func(d []float32) { MulAddRowsAt(d, a, index, m) })
		fill(m, x, a)
		same("AddOuter", m, m, func(d []float32) { addOuterGo(d, a, x) }, func(d []float32) { AddOuter(d, a, x) })
		fill(m, x, a)
		same("AddOuterAt", m, m, func(d []float32) { addOuterAtGo(d, index, a, x) },
			func(d []float32) { AddOuterAt(d, index, a, x) })
		for i := range wide {
			wide[i] = s.Normal()
		}
		sums := slices.Clone(wide)
		addOuter64Go(sums, a, x)
		if AddOuter64(wide, a, x); !slices.Equal(wide, sums) {
			t.Fatalf("AddOuter64, n=%d: %v, want %v", n, wide, sums)
		}
		want, mirror := make([]float32, n), make([]float32, n)
		for i, f := range x {
			want[i], mirror[i] = SigmoidPair(f)
		}
		if SigmoidPairs(x, m[:n], x); !slices.Equal(x, want) || !slices.Equal(m[:n], mirror) {
			t.Fatal(fmt.Errorf("SigmoidPairs, n=%d: %v, %v, want %v, %v", n, x, m[:n], want, mirror))
		}
	}
}
