package num

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawnOuters are sums of outer products as lists of terms, and the same as rows to add.
type drawnOuters struct {
	width   int
	x       guarded
	touched []uint64
	head    []uint32
	terms   []OuterTerm
	rows    [][]OuterTerm // of each number, in order
}

func drawOuters(t *rapid.T) *drawnOuters {
	o := &drawnOuters{width: rapid.SampledFrom([]int{1, 8, 17, 63, 64, 65, 128}).Draw(t, "width")}
	numbers, of := rapid.IntRange(1, 200).Draw(t, "numbers"), rapid.IntRange(1, 5).Draw(t, "rows of x")
	o.x = values(t, of*o.width, "x")
	a := values(t, rapid.IntRange(0, 20).Draw(t, "terms"), "a").v
	o.touched, o.head, o.rows = make([]uint64, (numbers+63)/64), make([]uint32, numbers), make([][]OuterTerm, numbers)
	for i, v := range a { // the last term of a row first
		row, x := rapid.IntRange(0, numbers-1).Draw(t, "row"), uint32(rapid.IntRange(0, of-1).Draw(t, "x"))
		o.touched[row/64] |= 1 << (row % 64)
		o.terms = append(o.terms, OuterTerm{A: v, X: x, Next: o.head[row]})
		o.head[row] = uint32(i + 1)
		o.rows[row] = slices.Insert(o.rows[row], 0, o.terms[i])
	}
	return o
}

// sum is the slow twin: one row and one term after the other.
func (o *drawnOuters) sum() (dst []float32, index []uint32) {
	for row, terms := range o.rows {
		if len(terms) == 0 {
			continue
		}
		sum := make([]float32, o.width)
		for _, term := range terms {
			for j := range sum {
				sum[j] = FMA32(term.A, o.x.v[int(term.X)*o.width+j], sum[j])
			}
		}
		for j, v := range sum {
			if v == 0 {
				sum[j] = 0
			}
		}
		dst, index = append(dst, sum...), append(index, uint32(row))
	}
	return dst, index
}

func TestSumOuters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOuters(t)
		want, wantIndex := o.sum()
		room := rapid.IntRange(0, 2).Draw(t, "room")
		vectors(func(name string) {
			dst, index := newGuarded((len(wantIndex)+room)*o.width), make([]uint32, len(wantIndex)+room)
			wanted := dst.clone()
			copy(wanted.v, want)
			touched, head := slices.Clone(o.touched), slices.Clone(o.head)
			n := SumOuters(dst.v, index, touched, head, o.terms, o.x.v, o.width)
			if n != len(wantIndex) || !slices.Equal(index[:n], wantIndex) {
				t.Fatalf("%s: rows %v, want %v", name, index[:n], wantIndex)
			}
			requireSame(t, name, dst, wanted)
			if slices.Max(touched) != 0 || slices.Max(head) != 0 {
				t.Fatalf("%s: touched or head is not cleared", name)
			}
		})
	})
}

// TestSumOutersOutside: where there is no such row, term or room, nothing else is read or
// written.
func TestSumOutersOutside(t *testing.T) {
	const width = 64
	for what, o := range map[string]drawnOuters{
		"a term":        {touched: []uint64{1}, head: []uint32{2}, terms: []OuterTerm{{A: 1}}},
		"no term":       {touched: []uint64{1}, head: []uint32{0}, terms: []OuterTerm{{A: 1}}},
		"a next term":   {touched: []uint64{1}, head: []uint32{1}, terms: []OuterTerm{{A: 1, Next: 2}}},
		"a row of x":    {touched: []uint64{1}, head: []uint32{1}, terms: []OuterTerm{{A: 1, X: 1}}},
		"a number":      {touched: []uint64{2}, head: []uint32{1}, terms: []OuterTerm{{A: 1}}},
		"no more room":  {touched: []uint64{3}, head: []uint32{1, 1}, terms: []OuterTerm{{A: 1}}},
		"other numbers": {touched: []uint64{1, 0}, head: []uint32{1}, terms: []OuterTerm{{A: 1}}},
	} {
		vectors(func(name string) {
			dst, index := newGuarded(width), make([]uint32, 1, 2)
			defer func() {
				if recover() == nil {
					t.Errorf("%s, %s: no panic", what, name)
				}
				if index[:2][1] != 0 {
					t.Errorf("%s, %s: memory behind index is written", what, name)
				}
			}()
			SumOuters(dst.v, index, slices.Clone(o.touched), slices.Clone(o.head), o.terms, make([]float32, width), width)
		})
	}
}
