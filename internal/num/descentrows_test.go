package num

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestMomentumRows holds it against Momentum with the whole gradient, written out.
func TestMomentumRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{1, 7, 8, 9, 15, 16, 17, 63, 64, 65}).Draw(t, "width")
		rows := rapid.IntRange(0, 20).Draw(t, "rows")
		x, v := values(t, rows*width, "x"), values(t, rows*width, "v")
		var index []uint32
		for row := range uint32(rows) {
			if rapid.Bool().Draw(t, "there") {
				index = append(index, row)
			}
		}
		g, whole := values(t, len(index)*width, "g"), make([]float32, rows*width)
		for i, row := range index {
			copy(whole[int(row)*width:], g.v[i*width:(i+1)*width])
		}
		const factor, rate, momentum, decay = 0.01, 0.3, 0.9, 1e-5
		for i := range whole {
			whole[i] *= factor
		}
		wantX, wantV := x.clone(), v.clone()
		want := momentumGo(wantX.v, wantV.v, whole, rate, momentum, decay)
		vectors(func(name string) {
			gotX, gotV := x.clone(), v.clone()
			got := MomentumRows(gotX.v, gotV.v, slices.Clone(g.v), index, width, factor, rate, momentum, decay)
			requireSame(t, name+", x", gotX, wantX)
			requireSame(t, name+", v", gotV, wantV)
			if got != want {
				t.Fatalf("%s: finite is %v, want %v", name, got, want)
			}
		})
	})
}
