package num

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The known answers are those of Random123's kat_vectors.
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		ctr  [4]uint32
		key  Key
		want [4]uint32
	}{
		{[4]uint32{}, Key{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{
			[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, Key{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
		},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, Key{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		if got := Philox(c.key, c.ctr); got != c.want {
			t.Errorf("Philox(%x, %x) = %x, want %x", c.key, c.ctr, got, c.want)
		}
	}
}

func TestGoldenStream(t *testing.T) {
	key := NewKey(1, "golden")
	if want := (Key{0x550df32, 0xd4bcaf57}); key != want {
		t.Errorf("NewKey = %#x, want %#x", key, want)
	}
	s := NewStream(key, 1<<32|2, 3)
	got := fmt.Sprintf("%08x %016x %x %x", s.Uint32(), s.Uint64(), s.Uint64n(1000), s.Float64())
	if want := "ea758a45 c5f5f8ea067d0820 1c0 0x1.1045d11ec8b48p-02"; got != want {
		t.Errorf("stream %s, want %s", got, want)
	}
	got = fmt.Sprintf("%x %x %x", s.Normal(), s.Normal(), s.Normal())
	if want := "-0x1.2c56e94eee0eep-01 0x1.9a2168780051p+00 0x1.b237c14c5e23p-02"; got != want {
		t.Errorf("normals %s, want %s", got, want)
	}
	for _, c := range []struct {
		n    uint64
		want []uint64
	}{
		{1, []uint64{0}},
		{2, []uint64{0, 1}},
		{3, []uint64{0, 2, 1}},
		{10, []uint64{3, 7, 0, 8, 4, 6, 9, 2, 5, 1}},
		{1000, []uint64{805, 56, 883, 424, 865, 819, 285, 662, 442, 678}},
		{1 << 40, []uint64{422215304720, 1025380310424, 81758813362, 858907152826, 731791499535}},
		{math.MaxUint64, []uint64{2394541941831506961, 9854231090721989812, 8112913124639904215}},
	} {
		p := NewPermutation(key, 1<<32|5, 6, c.n)
		var at []uint64
		for i := range c.want {
			at = append(at, p.At(uint64(i)))
		}
		if !slices.Equal(at, c.want) {
			t.Errorf("permutation of %d: %v, want %v", c.n, at, c.want)
		}
	}
}

func TestStreamWords(t *testing.T) {
	key := NewKey(3, "words")
	s := NewStream(key, 7<<32|8, 9)
	for i := range uint32(5) {
		for j, want := range Philox(key, [4]uint32{8, 7, 9, i}) {
			if got := s.Uint32(); got != want {
				t.Fatalf("word %d of block %d is %x, want %x", j, i, got, want)
			}
		}
	}
}

func TestStreamEnd(t *testing.T) {
	s := NewStream(Key{}, 0, 0)
	s.ctr[3] = math.MaxUint32
	defer func() {
		if recover() == nil {
			t.Error("an exhausted stream begins again")
		}
	}()
	s.Uint32()
}

func TestUint64n(t *testing.T) {
	s := NewStream(NewKey(1, "test/uint64n"), 0, 0)
	var counts [7]int
	for range 70000 {
		counts[s.Uint64n(7)]++
	}
	if x := chiSquare(counts[:]); x > 22.5 { // 6 degrees of freedom, p = .001
		t.Errorf("%v: χ² %.1f", counts, x)
	}
	// With n = ¾·2^64 a quarter of the draws is rejected; without that the
	// multiples of 3 would come half of the time.
	const n = 3 << 62
	threes := 0
	for range 6000 {
		x := s.Uint64n(n)
		if x >= n {
			t.Fatalf("%d is out of range", x)
		}
		if x%3 == 0 {
			threes++
		}
	}
	if threes < 1850 || threes > 2150 {
		t.Errorf("%d of 6000 are multiples of 3", threes)
	}
}

func TestNormalMoments(t *testing.T) {
	s := NewStream(NewKey(1, "test/normal"), 0, 0)
	const n = 200000
	var m [5]float64
	for range n {
		x, y := s.Normal(), 1.0
		for k := range m {
			m[k] += y / n
			y *= x
		}
	}
	for k, want := range []float64{1, 0, 1, 0, 3} {
		if math.Abs(m[k]-want) > []float64{1e-9, .01, .015, .04, .1}[k] {
			t.Errorf("moment %d of normals is %.4f, want %v", k, m[k], want)
		}
	}
}

func TestPermutationIsBijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := NewKey(rapid.Uint64().Draw(t, "seed"), "p")
		n := rapid.OneOf(rapid.Uint64Range(0, 40), rapid.Uint64Range(0, 5000)).Draw(t, "n")
		p := NewPermutation(key, rapid.Uint64().Draw(t, "pass"), rapid.Uint32().Draw(t, "unit"), n)
		seen := make([]bool, n)
		for i := range n {
			x := p.At(i)
			if x >= n || seen[x] {
				t.Fatalf("At(%d) = %d is out of range or comes twice", i, x)
			}
			seen[x] = true
			if p.Inverse(x) != i {
				t.Fatalf("Inverse(%d) = %d, want %d", x, p.Inverse(x), i)
			}
		}
	})
}

func TestPermutationOfManyIsBijection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Min(1).Draw(t, "n")
		p := NewPermutation(NewKey(1, "p"), 0, rapid.Uint32().Draw(t, "unit"), n)
		i := rapid.Uint64Range(0, n-1).Draw(t, "i")
		if x := p.At(i); x >= n || p.Inverse(x) != i {
			t.Fatalf("At(%d) = %d, Inverse of it %d", i, x, p.Inverse(x))
		}
	})
}

// TestPermutationIsUniform counts whole permutations of few numbers, then where
// the first two of more numbers go.
func TestPermutationIsUniform(t *testing.T) {
	key := NewKey(1, "test/uniform")
	for n := uint64(2); n <= 6; n++ {
		index := map[string]int{}
		var counts []int
		cells := []int{0, 1, 2, 6, 24, 120, 720}[n]
		for pass := range uint64(cells * 40) {
			p := NewPermutation(key, pass, 0, n)
			word := make([]byte, n)
			for i := range n {
				word[i] = byte(p.At(i))
			}
			at, ok := index[string(word)]
			if !ok {
				at = len(counts)
				index[string(word)] = at
				counts = append(counts, 0)
			}
			counts[at]++
		}
		if len(counts) != cells {
			t.Errorf("%d of the %d permutations of %d occur", len(counts), cells, n)
		}
		free := float64(cells - 1)
		if x := chiSquare(counts); x > free+4*math.Sqrt(2*free)+4 {
			t.Errorf("permutations of %d: χ² %.1f at %.0f degrees of freedom", n, x, free)
		}
	}
	for _, n := range []uint64{7, 8, 13, 30, 33, 64} {
		first, pair := make([]int, n), make([]int, n*n)
		for unit := range uint32(n * n * 40) {
			p := NewPermutation(key, 1, unit, n)
			a, b := p.At(0), p.At(n-1)
			first[a]++
			pair[a*n+b]++
		}
		free := float64(n - 1)
		if x := chiSquare(first); x > free+4*math.Sqrt(2*free)+4 {
			t.Errorf("first of %d: χ² %.1f", n, x)
		}
		pair = slices.DeleteFunc(pair, func(c int) bool { return c == 0 })
		if free = float64(n*(n-1) - 1); len(pair) != int(n*(n-1)) {
			t.Errorf("%d pairs of %d occur", len(pair), n)
		} else if x := chiSquare(pair); x > free+4*math.Sqrt(2*free)+4 {
			t.Errorf("pairs of %d: χ² %.1f at %.0f", n, x, free)
		}
	}
}

// TestPermutationDiffers holds that passes, units and keys give unrelated orders.
func TestPermutationDiffers(t *testing.T) {
	const n = 2465
	base := NewPermutation(NewKey(1, "a"), 5, 6, n)
	for name, p := range map[string]Permutation{
		"key": NewPermutation(NewKey(2, "a"), 5, 6, n), "purpose": NewPermutation(NewKey(1, "b"), 5, 6, n),
		"pass": NewPermutation(NewKey(1, "a"), 6, 6, n), "high pass": NewPermutation(NewKey(1, "a"), 1<<32+5, 6, n),
		"unit": NewPermutation(NewKey(1, "a"), 5, 7, n),
	} {
		same := 0
		for i := range uint64(n) {
			if p.At(i) == base.At(i) {
				same++
			}
		}
		if same > 8 {
			t.Errorf("another %s leaves %d positions of %d alone", name, same, n)
		}
	}
}

func TestDrawsDoNotAllocate(t *testing.T) {
	key := NewKey(1, "allocs")
	var sink float64
	if n := testing.AllocsPerRun(100, func() {
		s := NewStream(key, 1, 2)
		p := NewPermutation(key, 1, 2, 100)
		sink += s.Normal() + float64(p.At(3))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// chiSquare returns Pearson's statistic of counts against equal frequencies.
func chiSquare(counts []int) float64 {
	total, x := 0, 0.0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	for _, c := range counts {
		x += (float64(c) - want) * (float64(c) - want) / want
	}
	return x
}

// TestPermutationAppend holds numbers that are sought together against one at a time.
func TestPermutationAppend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 3000).Draw(t, "n")
		p := NewPermutation(NewKey(rapid.Uint64().Draw(t, "seed"), "p"), 3, 1, n)
		from := rapid.Uint64Range(0, n-1).Draw(t, "from")
		k := rapid.IntRange(0, int(min(100, n-from))).Draw(t, "k")
		want := []uint32{7}
		for i := range uint64(k) {
			want = append(want, uint32(p.At(from+i)))
		}
		if got := p.Append([]uint32{7}, from, k); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
