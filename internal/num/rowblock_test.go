package num

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// blockShapes calls do with the edge sizes of blocks: every number of columns up to 40, every number of features around
// the widths of vectors, and every number of rows, not all with all.
func blockShapes(do func(rows, k, n int)) {
	for n := 1; n <= 40; n++ {
		for _, k := range []int{1, 3, 8, 19} {
			do(1+(n*7+k)%BlockRows, k, n)
		}
	}
	for k := range 40 {
		do(9, k, 5)
		do(64, k, 3)
	}
	for _, k := range []int{63, 64, 65, 250, 1023, 2000} {
		do(13, k, 6)
	}
	for rows := range BlockRows + 1 {
		do(rows, 10, 4)
		do(rows, 17, 7)
	}
}

// block is a block of rows at random places, some of them twice, and weights.
type block struct {
	x                  []float32
	at                 []int
	m, offsets, packed []float64
}

func newBlock(s *Stream, rows, k, n int) *block {
	b := &block{x: make([]float32, 2*rows*k), m: make([]float64, k*n), offsets: make([]float64, n)}
	for i := range b.x {
		b.x[i] = float32(s.Normal())
	}
	for i := range b.m {
		b.m[i] = s.Normal()
	}
	for i := range b.offsets {
		b.offsets[i] = s.Normal()
	}
	for range rows {
		b.at = append(b.at, int(s.Uint64n(uint64(len(b.x)-k+1))))
	}
	b.packed = make([]float64, PackedLen(k, n))
	for i := range b.packed {
		b.packed[i] = math.NaN() // which packing overwrites
	}
	PackWeights(b.packed, b.m, b.offsets, k, n)
	return b
}

// sameColumns reports whether the first rows of n columns of two blocks of values have the same bits.
func sameColumns(a, b []float64, rows, n int) bool {
	for j := range n {
		for i := range rows {
			if math.Float64bits(a[j*BlockRows+i]) != math.Float64bits(b[j*BlockRows+i]) {
				return false
			}
		}
	}
	return true
}

// TestScoreRows: vectors of each width have the bits of the portable loop, which is near the sums as they are told.
func TestScoreRows(t *testing.T) {
	s := NewStream(NewKey(1, "test/score"), 0, 0)
	blockShapes(func(rows, k, n int) {
		b := newBlock(s, rows, k, n)
		want := make([]float64, ScoreValues(n))
		scoreRowsGo(want, b.x, b.at, k, b.packed, n)
		for i, a := range b.at {
			for j := range n {
				sum, size := b.offsets[j], math.Abs(b.offsets[j])
				for f := range k {
					term := float64(b.x[a+f]) * b.m[f*n+j]
					sum, size = sum+term, size+math.Abs(term)
				}
				if got := want[j*BlockRows+i]; math.Abs(got-sum) > 1e-14*size {
					t.Fatalf("%d features, %d columns: score %d of row %d is %v, want %v", k, n, j, i, got, sum)
				}
			}
		}
		vectors(func(name string) {
			got := make([]float64, ScoreValues(n))
			if ScoreRows(got, b.x, b.at, k, b.packed, n); !sameColumns(got, want, rows, n) {
				t.Fatalf("%s, %d rows, %d features, %d columns: other bits", name, rows, k, n)
			}
		})
	})
}

// TestAddRowOuters: the same of the sums of outer products, which begin at what is there.
func TestAddRowOuters(t *testing.T) {
	s := NewStream(NewKey(1, "test/outers"), 0, 0)
	blockShapes(func(rows, k, n int) {
		b := newBlock(s, rows, k, n)
		stride := (k + 15) / 8 * 8
		start, p := make([]float64, n*stride), make([]float64, n*BlockRows)
		for i := range start {
			start[i] = s.Normal()
		}
		for i := range p {
			p[i] = s.Normal()
		}
		want := slices.Clone(start)
		addRowOutersGo(want, stride, b.x, b.at, k, p, n)
		for j := range n {
			for f := range k {
				sum, size := start[j*stride+f], math.Abs(start[j*stride+f])
				for i, a := range b.at {
					term := float64(b.x[a+f]) * p[j*BlockRows+i]
					sum, size = sum+term, size+math.Abs(term)
				}
				if got := want[j*stride+f]; math.Abs(got-sum) > 1e-14*size {
					t.Fatalf("%d rows: sum %d, %d is %v, want %v", rows, j, f, got, sum)
				}
			}
		}
		vectors(func(name string) {
			got := slices.Clone(start)
			AddRowOuters(got, stride, b.x, b.at, k, p, n)
			for j := range n {
				if !slices.Equal(got[j*stride:][:k], want[j*stride:][:k]) {
					t.Fatalf("%s, %d rows, %d features, %d columns: other bits", name, rows, k, n)
				}
			}
		})
	})
}

// TestSoftmax compares the bits of the two softmax functions, also with scores that are far apart. The portable
// function is near a softmax by package math.
func TestSoftmax(t *testing.T) {
	s := NewStream(NewKey(1, "test/softmax"), 0, 0)
	blockShapes(func(rows, _, n int) {
		start, totals := make([]float64, ScoreValues(n)), make([]float64, n*TotalLanes)
		spread := []float64{1e-3, 1, 30, 900}[s.Uint64n(4)]
		for i := range start {
			start[i] = spread * s.Normal()
		}
		for i := range totals {
			totals[i] = s.Normal()
		}
		want, sums, of := slices.Clone(start), slices.Clone(totals), new(SoftmaxRows)
		softmaxGo(want, n, 0, rows, sums, of)
		checkSoftmax(t, start, want, totals, sums, rows, n, of)
		vectors(func(name string) {
			got, gotSums, gotOf := slices.Clone(start), slices.Clone(totals), new(SoftmaxRows)
			Softmax(got, n, rows, gotSums, gotOf)
			if !sameColumns(got, want, rows, n) || !slices.Equal(gotSums, sums) || *gotOf != *of {
				t.Fatalf("%s, %d rows, %d columns: other bits", name, rows, n)
			}
		})
	})
}

func checkSoftmax(t *testing.T, scores, got, before, totals []float64, rows, n int, of *SoftmaxRows) {
	t.Helper()
	logs, added := 0.0, slices.Clone(before)
	for i := range rows {
		most, sum := math.Inf(-1), 0.0
		for j := range n {
			most = max(most, scores[j*BlockRows+i])
		}
		for j := range n {
			sum += math.Exp(scores[j*BlockRows+i] - most)
		}
		logs += most + math.Log(sum)
		if of.Most[i] != most || math.Abs(of.Sum[i]-sum) > 1e-14*sum {
			t.Fatalf("row %d has sum %v of exponentials less %v, want %v less %v", i, of.Sum[i], of.Most[i], sum, most)
		}
		for j := range n {
			p := math.Exp(max(scores[j*BlockRows+i]-most, -700)) / sum
			added[j*TotalLanes+i%TotalLanes] += p
			if math.Abs(got[j*BlockRows+i]-p) > 1e-14*p {
				t.Fatalf("value %d of row %d is %v, want %v", j, i, got[j*BlockRows+i], p)
			}
		}
	}
	for i, want := range added {
		if math.Abs(totals[i]-want) > 1e-13*(1+math.Abs(want)) {
			t.Fatalf("total %d is %v, want %v", i, totals[i], want)
		}
	}
	if got := of.LogSum(rows); math.Abs(got-logs) > 1e-12*(1+math.Abs(logs)) {
		t.Fatalf("the logarithms add up to %v, want %v", got, logs)
	}
}

// TestSoftmaxNotFinite: a row with an infinity or no number has no number as its sum, and no other row has; the vectors
// agree.
func TestSoftmaxNotFinite(t *testing.T) {
	const rows, n = 19, 3
	for _, bad := range []float64{math.Inf(1), math.NaN()} {
		for at := range rows {
			vectors(func(name string) {
				v, of := make([]float64, ScoreValues(n)), new(SoftmaxRows)
				v[BlockRows+at] = bad
				Softmax(v, n, rows, make([]float64, n*TotalLanes), of)
				for i := range rows {
					if nan := of.Sum[i] != of.Sum[i]; nan != (i == at) {
						t.Fatalf("%s: with %v in row %d, the sum of row %d is %v", name, bad, at, i, of.Sum[i])
					}
				}
			})
		}
	}
}

// TestExpBelow: within a unit in the last place of the exponential in 200 bits.
func TestExpBelow(t *testing.T) {
	s := NewStream(NewKey(1, "test/below"), 0, 0)
	for i := range 2000 {
		x := -math.Exp(s.Normal()*3 - 1)
		if i < 1000 {
			x = -s.Float64() * []float64{1, 20, 699}[i%3]
		}
		x = max(x, belowLeast)
		want, got := exactExp(x), expBelow(x)
		near, _ := want.Float64()
		unit := math.Nextafter(near, 2*near) - near
		off, _ := new(big.Float).Sub(want, big.NewFloat(got)).Float64()
		if math.Abs(off) > unit {
			t.Fatalf("e^%v is %v, which is %v units off", x, got, off/unit)
		}
	}
	if expBelow(0) != 1 || expBelow(-1e9) != expBelow(belowLeast) || !math.IsNaN(expBelow(math.NaN())) {
		t.Error("0, very small numbers and no number")
	}
}

// exactExp returns e^x as (e^(x/2^12))^(2^12), the former by its series.
func exactExp(x float64) *big.Float {
	const bits, halvings = 200, 12
	y := new(big.Float).SetPrec(bits).SetFloat64(math.Ldexp(x, -halvings))
	sum, term := big.NewFloat(1).SetPrec(bits), big.NewFloat(1).SetPrec(bits)
	for k := 1; k < 40; k++ {
		term.Mul(term, y).Quo(term, big.NewFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// TestBlocksRefused: rows outside x, and shapes that differ.
func TestBlocksRefused(t *testing.T) {
	x, packed, dst := make([]float32, 10), make([]float64, PackedLen(4, 3)), make([]float64, ScoreValues(3))
	sums, p := make([]float64, 24), make([]float64, 3*BlockRows)
	for i, f := range []func(){
		func() { ScoreRows(dst, x, []int{7}, 4, packed, 3) },
		func() { ScoreRows(dst, x, []int{-1}, 4, packed, 3) },
		func() { ScoreRows(dst, x[:3], []int{0}, 4, packed, 3) },
		func() { ScoreRows(dst, x, make([]int, BlockRows+1), 4, packed, 3) },
		func() { ScoreRows(dst[1:], x, []int{0}, 4, packed, 3) },
		func() { ScoreRows(dst, x, []int{0}, 4, packed[1:], 3) },
		func() { AddRowOuters(sums, 8, x, []int{7}, 4, p, 3) },
		func() { AddRowOuters(sums, 8, x, []int{0}, 9, p, 3) },
		func() { AddRowOuters(sums[:12], 4, x, []int{0}, 4, p, 3) },
		func() { AddRowOuters(sums, 8, x, []int{0}, 4, p[1:], 3) },
		func() { AddRowOuters(sums, 8, x, []int{0}, 4, p, 2) },
		func() { ScoreEntries(dst, []Span{{0, 2}}, x[:2], []uint32{1, 4}, sums[:12], sums[:3], 3) },
		func() { ScoreEntries(dst, []Span{{0, 3}}, x[:2], []uint32{1, 2}, sums[:12], sums[:3], 3) },
		func() { ScoreEntries(dst, []Span{{1, 0}}, x[:2], []uint32{1, 2}, sums[:12], sums[:3], 3) },
		func() { ScoreEntries(dst, make([]Span, BlockRows+1), nil, nil, sums[:12], sums[:3], 3) },
		func() { ScoreEntries(dst, []Span{{0, 1}}, x[:1], nil, sums[:12], sums[:3], 3) },
		func() { ScoreEntries(dst, []Span{{0, 1}}, x[:1], []uint32{1}, sums[:12], sums[:2], 3) },
		func() { AddEntryOuters(sums[:12], []Span{{0, 2}}, x[:2], []uint32{1, 4}, p, 3) },
		func() { AddEntryOuters(sums[:11], []Span{{0, 2}}, x[:2], []uint32{1, 2}, p, 3) },
		func() { AddEntryOuters(sums[:12], []Span{{0, 2}}, x[:2], []uint32{1, 2}, p[1:], 3) },
		func() { Softmax(dst, 3, BlockRows+1, make([]float64, 24), new(SoftmaxRows)) },
		func() { Softmax(dst, 3, 1, make([]float64, 23), new(SoftmaxRows)) },
		func() { PackWeights(packed, make([]float64, 12), make([]float64, 2), 4, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("case %d is not refused", i)
				}
			}()
			f()
		}()
	}
}

// entriesOf draws sparse rows of k features, some of them empty, behind an entry that no row has.
func entriesOf(s *Stream, rows, k int) (spans []Span, a []float32, index []uint32) {
	a, index = []float32{float32(math.NaN())}, []uint32{1 << 31}
	for range rows {
		from := uint32(len(a))
		for range min(s.Uint64n(9), uint64(9*k)) { // none without features
			a, index = append(a, float32(s.Normal())), append(index, uint32(s.Uint64n(uint64(k))))
		}
		spans = append(spans, Span{from, uint32(len(a))})
	}
	return spans, a, index
}

// TestEntries: sparse rows have the scores and sums of the same rows in dense form, up to rounding. Vectors have the
// bits of the portable loops.
func TestEntries(t *testing.T) {
	s := NewStream(NewKey(1, "test/entries"), 0, 0)
	blockShapes(func(rows, k, n int) {
		b := newBlock(s, 0, k, n)
		spans, a, index := entriesOf(s, rows, k)
		dense := make([]float32, rows*k)
		at := make([]int, rows)
		for i, r := range spans {
			at[i] = i * k
			for e := r.From; e < r.To; e++ {
				dense[i*k+int(index[e])] += a[e]
			}
		}
		p, scores, product := make([]float64, n*BlockRows), make([]float64, n*BlockRows), make([]float64, ScoreValues(n))
		for i := range p {
			p[i] = s.Normal()
		}
		scoreEntriesGo(scores, spans, a, index, b.m, b.offsets, n)
		scoreRowsGo(product, dense, at, k, b.packed, n)
		sums, outers := slices.Clone(b.m), make([]float64, n*k)
		addEntryOutersGo(sums, spans, a, index, p, n)
		addRowOutersGo(outers, k, dense, at, k, p, n)
		for j := range n {
			for i := range rows {
				if x, y := scores[j*BlockRows+i], product[j*BlockRows+i]; math.Abs(x-y) > 1e-5 {
					t.Fatalf("score %d of row %d is %v, of dense rows %v", j, i, x, y)
				}
			}
			for f := range k {
				if x, y := sums[f*n+j]-b.m[f*n+j], outers[j*k+f]; math.Abs(x-y) > 1e-5 {
					t.Fatalf("sum %d, %d is %v, of dense rows %v", f, j, x, y)
				}
			}
		}
		vectors(func(name string) {
			got, added := make([]float64, n*BlockRows), slices.Clone(b.m)
			ScoreEntries(got, spans, a, index, b.m, b.offsets, n)
			AddEntryOuters(added, spans, a, index, p, n)
			if !sameColumns(got, scores, rows, n) || !slices.Equal(added, sums) {
				t.Fatalf("%s, %d rows, %d features, %d columns: other bits", name, rows, k, n)
			}
		})
	})
}
