package network

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
)

// TestCrop: in training each window comes about as often, of all channels the same one, and another
// one in another step; else it is the middle one.
func TestCrop(t *testing.T) {
	l := &Crop{Of: Shape{2, 5, 6}, Side: 3}
	v := &Values{X: make([]float32, l.Of.Size()), Y: make([]float32, 2*9)}
	for i := range v.X {
		v.X[i] = float32(i)
	}
	// window returns where the window in Y begins, after a look at each of its values.
	window := func() (place [2]int) {
		place = [2]int{int(v.Y[0]) / 6, int(v.Y[0]) % 6}
		for i, y := range v.Y {
			c, row, column := i/9, i/3%3, i%3
			if want := float32((c*5+place[0]+row)*6 + place[1] + column); y != want {
				t.Fatalf("value %d of the window at %v is %v, want %v", i, place, y, want)
			}
		}
		return place
	}
	s := l.NewSpace(1, 0)
	l.Forward(v, &Pass{}, s)
	if got := window(); got != [2]int{1, 1} {
		t.Errorf("outside training the window is at %v", got)
	}
	seen, moved := make(map[[2]int]int), 0
	for row := range uint32(3600) {
		p := &Pass{Training: true, Step: 9, Samples: []gradient.Sample{{Row: row}}}
		l.Forward(v, p, s)
		first := window()
		seen[first]++
		p.Step++
		l.Forward(v, p, s)
		if window() != first {
			moved++
		}
	}
	for place, n := range seen {
		if n < 200 || n > 400 {
			t.Errorf("the window is at %v %d times, want about 300", place, n)
		}
	}
	if len(seen) != 3*4 || moved < 3100 {
		t.Errorf("%d windows, another one in the next step %d times", len(seen), moved)
	}
}

// TestCropTable: the window is in a model's table, as the first layer alone, and within the image.
func TestCropTable(t *testing.T) {
	c := Config{Features: Conv, Shape: "1x6x8", Crop: 4, Flip: true, Channels: "2", Kernel: 3, Stride: 1, Padding: 1,
		Pool: 2, Pooling: max2d, Hidden: none}
	layers := c.Layers(48, true, Output{Units: 3, Start: He})
	codes := encode(layers)
	decoded, err := Decode(48, 3, []algorithms.Tensor{{Name: tableName, U32: codes}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Describe(decoded), "1x6x8, crop 4x4, convolution 3x3 of 2, ReLU, max of 2x2, dense 3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !slices.Equal(encode(decoded.Layers), codes) {
		t.Error("the table of what was read is another one")
	}
	for what, change := range map[string]func(codes []uint32){
		"no side":       func(codes []uint32) { codes[6] = 0 },
		"a larger side": func(codes []uint32) { codes[6] = 7 },
		"a second crop": func(codes []uint32) { copy(codes[10:15], codes[5:10]) },
	} {
		bad := slices.Clone(codes)
		change(bad)
		if _, err := Decode(48, 3, []algorithms.Tensor{{Name: tableName, U32: bad}}); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}
