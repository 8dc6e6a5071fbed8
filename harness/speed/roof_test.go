package speed

import (
	"math"
	"testing"
	"time"
)

// TestVectors: every kind of vectors computes what the formula says, in every lane, and
// touches nothing else.
func TestVectors(t *testing.T) {
	for _, v := range vectorSets() {
		t.Run(v.name, func(t *testing.T) {
			for _, rounds := range []int{1, 2, 7} {
				x := 0.0
				for range rounds {
					x = x/2 + 1
				}
				f32, f64 := make([]float32, v.lanes32+1), make([]float64, v.lanes64+1)
				f32[v.lanes32], f64[v.lanes64] = 7, 7
				v.fma32(rounds, f32)
				v.fma64(rounds, f64)
				for i, got := range f32[:v.lanes32] {
					if float64(got) != sums*x {
						t.Errorf("float32, %d rounds, lane %d: %v, want %v", rounds, i, got, sums*x)
					}
				}
				for i, got := range f64[:v.lanes64] {
					if got != sums*x {
						t.Errorf("float64, %d rounds, lane %d: %v, want %v", rounds, i, got, sums*x)
					}
				}
				if f32[v.lanes32] != 7 || f64[v.lanes64] != 7 {
					t.Error("it wrote behind its sums")
				}
			}
			const n = 192
			y, x := make([]float32, n+1), make([]float32, n)
			for i := range x {
				y[i], x[i] = float32(i), float32(n-i)
			}
			y[n] = 7
			v.stream(y[:n], x, 3)
			for i := range x {
				if want := float32(i + 3*(n-i)); y[i] != want {
					t.Fatalf("element %d is %v, want %v", i, y[i], want)
				}
			}
			if y[n] != 7 {
				t.Error("it wrote behind its vector")
			}
		})
	}
}

// TestRoof: a roof has every figure, a second measurement only raises them, and no
// float64 peak is above float32's by more than measurements scatter.
func TestRoof(t *testing.T) {
	m := newRoofMeter(200*time.Microsecond, streamSizes[:3])
	m.measure()
	first := m.roof
	first.Streams = append([]Stream(nil), m.roof.Streams...)
	m.measure()
	r := m.roof
	if r.Vectors == "" || r.F32 < first.F32 || r.F64 < first.F64 || first.F32 <= 0 || first.F64 <= 0 {
		t.Errorf("first %+v, then %+v", first, r)
	}
	for i, s := range r.Streams {
		if s.Second < first.Streams[i].Second || first.Streams[i].Second <= 0 || s.Bytes != streamSizes[i] {
			t.Errorf("first %+v, then %+v", first.Streams[i], s)
		}
	}
	if r.AVX2F32 > r.F32 || r.AVX2F64 > r.F64 {
		t.Errorf("the peak of AVX2 is above the greatest: %+v", r)
	}
}

// TestBandwidth takes the bandwidth of the greatest size that is not above the working
// set, the first cache's for what is smaller.
func TestBandwidth(t *testing.T) {
	r := &Roof{Streams: []Stream{{16, 9}, {64, 5}, {256, 2}}}
	for set, want := range map[float64]float64{0: 9, 15: 9, 16: 9, 63: 9, 64: 5, 255: 5, 256: 2, 1e9: 2} {
		if got := r.Bandwidth(set); got != want {
			t.Errorf("%v bytes: %v, want %v", set, got, want)
		}
	}
	if (&Roof{}).Bandwidth(1) != 0 {
		t.Error("a roof that was not measured has a bandwidth")
	}
}

// TestFloor is the time of the operations or of the bytes, whichever is more.
func TestFloor(t *testing.T) {
	r := &Roof{F32: 100, F64: 50, Streams: []Stream{{16, 10}, {64, 5}}}
	for _, c := range []struct {
		work Work
		want float64
	}{
		{Work{F32: 200, F64: 50, Bytes: 10, Set: 16}, 3}, // computed 2 + 1, moved 1
		{Work{F32: 200, F64: 50, Bytes: 40, Set: 16}, 4},
		{Work{F32: 200, F64: 50, Bytes: 40, Set: 64}, 8},
		{Work{}, 0},
	} {
		if got := c.work.Floor(r); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v: %v, want %v", c.work, got, c.want)
		}
	}
	w := Work{F32: 1, F64: 2, Bytes: 3, Set: 4, Products: 5}
	if got, want := w.times(2).add(w), (Work{F32: 3, F64: 6, Bytes: 9, Set: 4, Products: 15}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if w.Rate(2) != 2.5 || (Work{F32: 1, F64: 3}).Rate(2) != 2 {
		t.Error("a rate is that of the products, where they are known, else of all operations")
	}
}
