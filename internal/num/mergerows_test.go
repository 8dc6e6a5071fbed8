package num

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMergeRows holds a merge against a map of rows: lists that are empty, apart, alike
// and in turns, of widths with and without whole vectors.
func TestMergeRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 128}).Draw(t, "width")
		list := func(name string) (values []float32, index []uint32) {
			share := rapid.IntRange(0, 10).Draw(t, name+"'s share")
			s := NewStream(NewKey(rapid.Uint64().Draw(t, name), "test/merge"), 0, 0)
			for row := range uint32(40) {
				if int(s.Uint32()%10) >= share {
					continue
				}
				index = append(index, row)
				for range width {
					values = append(values, float32(s.Normal()*math.Ldexp(1, int(s.Uint32()%200)-140))) // some subnormal, none -0
				}
			}
			Canonical32(values)
			return values, index
		}
		a, aIndex := list("a")
		b, bIndex := list("b")
		want := map[uint32][]float32{}
		for i, row := range aIndex {
			want[row] = append([]float32{}, a[i*width:(i+1)*width]...)
		}
		for i, row := range bIndex {
			if want[row] == nil {
				want[row] = make([]float32, width)
			}
			for j, x := range b[i*width : (i+1)*width] {
				want[row][j] += x
			}
		}
		most := rapid.IntRange(len(want), len(aIndex)+len(bIndex)).Draw(t, "room")
		vectors(func(name string) {
			dst, index := make([]float32, most*width), make([]uint32, most)
			n := MergeRows(dst, index, a, b, aIndex, bIndex, width)
			if n != len(want) {
				t.Fatalf("%s: %d rows of %v and %v, want %d", name, n, aIndex, bIndex, len(want))
			}
			for i, row := range index[:n] {
				if i > 0 && index[i-1] >= row {
					t.Fatalf("%s: rows %v are not ascending", name, index[:n])
				}
				for j, x := range dst[i*width : (i+1)*width] {
					if math.Float32bits(x) != math.Float32bits(want[row][j]) {
						t.Fatalf("%s: row %d, value %d is %v, want %v", name, row, j, x, want[row][j])
					}
				}
			}
		})
	})
}

// TestMergeRowsRoom: where there is no room for all rows, nothing is written behind it.
func TestMergeRowsRoom(t *testing.T) {
	for _, width := range []int{8, 64} {
		mergeWithoutRoom(t, width)
	}
}

func mergeWithoutRoom(t *testing.T, width int) {
	a, aIndex, bIndex := make([]float32, 3*width), []uint32{0, 2, 5}, []uint32{1, 2, 4}
	vectors(func(name string) {
		for room := range 5 {
			dst, index := newGuarded(room*width), make([]uint32, room, 9)
			want := dst.clone()
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic with room for %d of 5 rows", name, room)
					}
				}()
				MergeRows(dst.v, index, a, a, aIndex, bIndex, width)
			}()
			clear(dst.v)
			clear(want.v)
			if !slices.Equal(dst.all, want.all) || index[:9][room] != 0 {
				t.Errorf("%s: with room for %d rows, memory behind it is written", name, room)
			}
		}
	})
}

// TestAddOuterVia holds it against AddOuterAt of the slots, looked up.
func TestAddOuterVia(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, slots := rapid.IntRange(1, 9).Draw(t, "rows"), rapid.IntRange(1, 20).Draw(t, "slots")
		n, k := rapid.SampledFrom([]int{1, 8, 17, 63, 64, 65, 128}).Draw(t, "n"), rapid.IntRange(0, 12).Draw(t, "k")
		m, a, x := values(t, rows*n, "m"), values(t, k, "a"), values(t, n, "x")
		slot, index, at := make([]uint32, slots), make([]uint32, k), make([]uint32, k)
		for i := range slot {
			slot[i] = uint32(rapid.IntRange(0, rows-1).Draw(t, "slot"))
		}
		for i := range index {
			index[i] = uint32(rapid.IntRange(0, slots-1).Draw(t, "index"))
			at[i] = slot[index[i]]
		}
		want := m.clone()
		addOuterAtGo(want.v, at, a.v, x.v)
		vectors(func(name string) {
			got := m.clone()
			AddOuterVia(got.v, slot, index, a.v, x.v)
			requireSame(t, name, got, want)
		})
		if k == 0 {
			return
		}
		slot = append(slot, uint32(rows)) // a slot of no row; behind it there is no slot
		index[k-1] = uint32(slots + rapid.IntRange(0, 1).Draw(t, "beyond"))
		vectors(func(name string) {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic of a row outside", name)
				}
			}()
			AddOuterVia(m.v, slot, index, a.v, x.v)
		})
	})
}
