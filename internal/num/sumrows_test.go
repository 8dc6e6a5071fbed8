package num

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawRows draws a list of rows below 200, with values far apart, none -0.
func drawRows(t *rapid.T, width int) (r Rows) {
	s, share := NewStream(NewKey(rapid.Uint64().Draw(t, "seed"), "test/rows"), 0, 0), rapid.IntRange(0, 10).
		Draw(t, "share")
	for row := range uint32(200) {
		if int(s.Uint32()%10) >= share {
			continue
		}
		r.Index = append(r.Index, row)
		for range width {
			r.Values = append(r.Values, float32(s.Normal()*math.Ldexp(1, int(s.Uint32()%60)-30)))
		}
	}
	Canonical32(r.Values)
	return r
}

// sumOfRows is the slow twin: it recurses over the pinned tree, a value at a time.
func sumOfRows(lists []Rows, row uint32, j, width int) (sum float32, there bool) {
	if len(lists) == 1 {
		if at, ok := slices.BinarySearch(lists[0].Index, row); ok {
			return lists[0].Values[at*width+j], true
		}
		return 0, false
	}
	half := 1
	for 2*half < len(lists) {
		half *= 2
	}
	left, l := sumOfRows(lists[:half], row, j, width)
	right, r := sumOfRows(lists[half:], row, j, width)
	return left + right, l || r
}

// rowsLater are rows that are copied when they are needed.
type rowsLater struct {
	values []float32
	width  int
}

func (r rowsLater) Compute(dst []float32, from int) { copy(dst, r.values[from*r.width:][:len(dst)]) }

func TestSumRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 31, 32, 33, 64, 65, 96, 1024, 1056}).Draw(t, "width")
		lists := make([]Rows, rapid.IntRange(1, MostRows).Draw(t, "lists"))
		for i := range lists {
			lists[i] = drawRows(t, width)
		}
		var want []float32
		var wantIndex []uint32
		for row := range uint32(200) {
			if _, there := sumOfRows(lists, row, 0, width); !there {
				continue
			}
			wantIndex = append(wantIndex, row)
			for j := range width {
				sum, _ := sumOfRows(lists, row, j, width)
				want = append(want, sum)
			}
		}
		room := len(wantIndex) + rapid.IntRange(0, 2).Draw(t, "room")
		for i := range lists {
			if rapid.Bool().Draw(t, "later") {
				lists[i] = Rows{Index: lists[i].Index, Later: rowsLater{lists[i].Values, width}}
			}
		}
		vectors(func(name string) {
			dst, index := newGuarded(room*width), make([]uint32, room)
			wanted := dst.clone()
			copy(wanted.v, want)
			n, _ := SumRows(dst.v, index, lists, width, nil)
			if !slices.Equal(index[:n], wantIndex) {
				t.Fatalf("%s: rows %v, want %v", name, index[:n], wantIndex)
			}
			requireSame(t, name, dst, wanted)
		})
	})
}

// TestSumRowsRefuses: lists of another shape, too many lists, and a sum without room.
func TestSumRowsRefuses(t *testing.T) {
	row := Rows{Values: make([]float32, 64), Index: []uint32{70}}
	other := Rows{Values: make([]float32, 64), Index: []uint32{3}}
	for what, lists := range map[string][]Rows{
		"no room":        {row, other},
		"no row's width": {{Values: make([]float32, 63), Index: []uint32{1}}},
		"too many":       make([]Rows, MostRows+1),
	} {
		vectors(func(name string) {
			dst, index := newGuarded(64), make([]uint32, 1, 2)
			want := dst.clone()
			defer func() {
				clear(dst.v)
				clear(want.v)
				if recover() == nil || !slices.Equal(dst.all, want.all) || index[:2][1] != 0 {
					t.Errorf("%s, %s: no panic, or memory behind the sum is written", what, name)
				}
			}()
			SumRows(dst.v, index, lists, 64, nil)
		})
	}
}
