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
	o := &drawnOuters{width: rapid.SampledFrom([]int{1, 8, 16, 17, 24, 32, 40, 63, 64, 65, 128}).Draw(t, "width")}
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
		from := rapid.IntRange(0, len(wantIndex)).Draw(t, "from")
		vectors(func(name string) {
			index, first := make([]uint32, len(wantIndex)), make([]uint32, len(wantIndex))
			touched, head := slices.Clone(o.touched), slices.Clone(o.head)
			if n := CountBits(touched); n != len(wantIndex) {
				t.Fatalf("%s: %d rows, want %d", name, n, len(wantIndex))
			}
			if n := ListRows(index, first, touched, head); n != len(wantIndex) || !slices.Equal(index, wantIndex) {
				t.Fatalf("%s: rows %v, want %v", name, index, wantIndex)
			}
			if slices.Max(touched) != 0 || slices.Max(head) != 0 {
				t.Fatalf("%s: touched or head is not cleared", name)
			}
			outers := Outers{First: first, Terms: o.terms, X: o.x.v, Width: o.width}
			dst := newGuarded((len(wantIndex) - from) * o.width)
			wanted := dst.clone()
			copy(wanted.v, want[from*o.width:])
			outers.Compute(dst.v, from)
			requireSame(t, name, dst, wanted)
		})
	})
}

// TestSumOutersOutside: there is no such term, or row of x, or row.
func TestSumOutersOutside(t *testing.T) {
	const width = 64
	x := make([]float32, width)
	for what, o := range map[string]Outers{
		"a term":      {First: []uint32{2}, Terms: []OuterTerm{{A: 1}}, X: x, Width: width},
		"no term":     {First: []uint32{0}, Terms: []OuterTerm{{A: 1}}, X: x, Width: width},
		"a next term": {First: []uint32{1}, Terms: []OuterTerm{{A: 1, Next: 2}}, X: x, Width: width},
		"a row of x":  {First: []uint32{1}, Terms: []OuterTerm{{A: 1, X: 1}}, X: x, Width: width},
		"a row":       {Terms: []OuterTerm{{A: 1}}, X: x, Width: width},
		"a width":     {First: []uint32{1}, Terms: []OuterTerm{{A: 1}}, X: x, Width: width - 1},
	} {
		vectors(func(name string) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s, %s: no panic", what, name)
				}
			}()
			o.Compute(make([]float32, width), 0)
		})
	}
}
