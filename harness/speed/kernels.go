package speed

import (
	"context"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/internal/num"
)

// kernel is a function of internal/num that is measured alone, on buffers of its own.
type kernel struct {
	name   string
	widths []int // that it is measured with
	// with returns a call on buffers for a width, and what the call needs at the least.
	with func(width int) (call func(), work Work)
}

// kernels are all that are measured: one more is one more entry. Shapes are those of a
// leaf update or step of LDLF: 64 leaves, 5 or 18 labels, 64 output tasks, 64 rows.
var kernels = []kernel{
	{"MulAddRows, 64 rows", []int{5, 18, 64}, func(n int) (func(), Work) {
		dst, a, m := make([]float32, n), filled(rowsOf), filled(rowsOf*n)
		return func() { num.MulAddRows(dst, a, m) }, inCache(2*rowsOf*n, 0, 4*(rowsOf*n+rowsOf+2*n))
	}},
	{"MulAddRowsAt, 21 rows of 1,869", []int{64}, func(n int) (func(), Work) {
		const rows, all = 21, 1869
		dst, a, m, index := make([]float32, n), filled(rows), filled(all*n), make([]uint32, rows)
		for i := range index {
			index[i] = uint32(i * all / rows)
		}
		return func() { num.MulAddRowsAt(dst, a, index, m) }, inCache(2*rows*n, 0, 4*(rows*n+2*rows+2*n))
	}},
	{"AddOuter, 64 rows", []int{5, 18, 64}, func(n int) (func(), Work) {
		m, a, x := make([]float32, rowsOf*n), filled(rowsOf), filled(n)
		return func() { num.AddOuter(m, a, x) }, inCache(2*rowsOf*n, 0, 4*(2*rowsOf*n+rowsOf+n))
	}},
	{"AddOuter64, 64 rows", []int{5, 18, 64}, func(n int) (func(), Work) {
		m, a, x := make([]float64, rowsOf*n), filled(rowsOf), filled(n)
		return func() { num.AddOuter64(m, a, x) }, inCache(0, 2*rowsOf*n, 8*2*rowsOf*n+4*(rowsOf+n))
	}},
	{"SigmoidPairs", []int{64, 4096}, func(n int) (func(), Work) {
		s, t, f := make([]float32, n), make([]float32, n), filled(n)
		return func() { num.SigmoidPairs(s, t, f) }, inCache(0, sigmoidOps*n, 4*3*n)
	}},
	{"Ratios, with K-L", []int{64, 18}, func(n int) (func(), Work) {
		r, sum, d, g := make([]float32, n), make([]float64, n), filled(n), filled(n)
		return func() { num.Ratios(r, sum, d, g, 1, 1e-20) }, inCache(2*n, (logOps+2)*n, (4*3+8*2)*n)
	}},
	{"Descend, 63 split nodes", []int{32, 64}, func(n int) (func(), Work) {
		node, s, t, phi := make([]float32, (2*rowsOf-1)*n), filled(rowsOf*n), filled(rowsOf*n), make([]uint32, rowsOf-1)
		for i := range phi {
			phi[i] = uint32(i)
		}
		return func() { num.Descend(node, s, t, phi, n) }, inCache(2*len(phi)*n, 0, 4*5*len(phi)*n)
	}},
	{"Ascend, 63 split nodes", []int{32, 64}, func(n int) (func(), Work) {
		df, mass, s, t, phi := make([]float32, rowsOf*n), filled((2*rowsOf-1)*n), filled(rowsOf*n), filled(rowsOf*n), make([]uint32, rowsOf-1)
		for i := range phi {
			phi[i] = uint32(i)
		}
		return func() { num.Ascend(df, mass, s, t, phi, n) }, inCache(5*len(phi)*n, 0, 4*7*len(phi)*n)
	}},
	{"RatioRows, 18 rows, with K-L", []int{32, 64}, func(n int) (func(), Work) {
		r, sum, d, g := make([]float32, 18*n), make([]float64, n), filled(18*n), filled(18*n)
		return func() { num.RatioRows(r, sum, d, g, 1e-20) }, inCache(18*n, 18*(logOps+1)*n, 18*4*3*n+8*2*n)
	}},
}

// rowsOf is how many rows the matrices of kernels have: the leaves of a tree of depth 7.
const rowsOf = 64

// Operations of a function of num, divisions counted as one: what its formula has.
const (
	sigmoidOps = 23 // expParts has 18; two divisions, a sum, a scaling, a comparison
	logOps     = 35
)

// filled returns n values between 0 and 1 that are neither 0 nor all the same.
func filled(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%37+1) / 64
	}
	return v
}

// inCache is the work of a call whose buffers stay in the first cache.
func inCache(f32, f64, bytes int) Work {
	return Work{F32: float64(f32), F64: float64(f64), Bytes: float64(bytes), Set: float64(bytes)}
}

// Kernels are the cases of the kernels: a figure is the mean of calls that take so long
// together.
func Kernels(each time.Duration) (cases []Case) {
	for _, k := range kernels {
		for _, width := range k.widths {
			call, work := k.with(width)
			name := fmt.Sprintf("%s, %d wide", k.name, width)
			cases = append(cases, Case{
				Name: name, Of: []string{"a call"}, Work: func() []Work { return []Work{work} },
				Run: func(context.Context) (Figures, error) { return Figures{Seconds: []float64{mean(call, each)}}, nil },
			})
		}
	}
	return cases
}

// mean returns the seconds of a call: the mean of as many as take so long.
func mean(call func(), each time.Duration) float64 {
	began, calls := time.Now(), 0
	for n := 1; ; n *= 2 { // the clock is read seldom
		for range n {
			call()
		}
		calls += n
		if spent := time.Since(began); spent >= each {
			return spent.Seconds() / float64(calls)
		}
	}
}
