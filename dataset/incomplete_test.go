package dataset

import (
	"errors"
	"math"
	"slices"
	"testing"
)

var gap = MissingDegree

// incompleteRows are three samples with three labels. Some degrees are missing.
func incompleteRows() *Rows {
	return &Rows{N: 3, Features: 1, Labels: 3, X: []float32{1, 2, 3}, Row: []uint32{2, 0, 1}, Incomplete: true,
		D: []float32{0.25, gap, gap, gap, gap, gap, 0.5, 0.25, 0.25}}
}

// TestIncompleteShard: missing degrees survive a shard to the bit, and only a shard of incomplete labels has them.
func TestIncompleteShard(t *testing.T) {
	r := incompleteRows()
	b := EncodeShard(r, nil)
	back, err := DecodeShard(b)
	if err != nil || !back.Incomplete || !slices.Equal(NativeBytes(back.D), NativeBytes(r.D)) {
		t.Fatalf("%+v, error %v", back, err)
	}
	complete := slices.Clone(b)
	complete[12] &^= flagIncomplete
	if _, err := DecodeShard(complete); !errors.Is(err, ErrFormat) {
		t.Errorf("a complete shard with a missing degree: error %v", err)
	}
	for name, change := range map[string]func(d []float32){
		"another NaN":        func(d []float32) { d[1] = math.Float32frombits(0x7fc00001) },
		"one missing":        func(d []float32) { d[1] = 0.5 },
		"a sum above 1":      func(d []float32) { d[0] = 1.01 },
		"a negative degree":  func(d []float32) { d[0] = -0.1 },
		"a negative 0":       func(d []float32) { d[0] = float32(math.Copysign(0, -1)) },
		"an infinite degree": func(d []float32) { d[0] = float32(math.Inf(1)) },
		"a sum below 1":      func(d []float32) { d[6] = 0.25 },
	} {
		wrong := incompleteRows()
		change(wrong.D)
		if err := wrong.Check(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestRepair: the only missing degree follows from the others.
func TestRepair(t *testing.T) {
	for _, c := range []struct {
		label, want []float32
		missing     int
	}{
		{[]float32{0.25, gap, 0.5}, []float32{0.25, 0.25, 0.5}, 0},
		{[]float32{0.5, 0.50001, gap}, []float32{0.5, 0.50001, 0}, 0},
		{[]float32{0.25, gap, gap}, []float32{0.25, gap, gap}, 2},
		{[]float32{0.5, 0.5}, []float32{0.5, 0.5}, 0},
	} {
		got := slices.Clone(c.label)
		if n := Repair(got); n != c.missing || !slices.Equal(NativeBytes(got), NativeBytes(c.want)) {
			t.Errorf("%v: %v, %d missing", c.label, got, n)
		}
	}
}

// TestGoldenUniform: the first numbers equal the numbers of an independent program.
func TestGoldenUniform(t *testing.T) {
	for n, want := range []float64{.883311, .431528, .026434} {
		if got := GoldenUniform(uint64(n)); math.Abs(got-want) > 1e-6 {
			t.Errorf("number %d: %v, want %v", n, got, want)
		}
	}
}

// TestMasked: a training sees a part of the degrees, and the test samples keep theirs. The mask depends on the seed and
// not on the shard.
func TestMasked(t *testing.T) {
	const n, labels = 400, 5
	r := &Rows{N: n, Features: 1, Labels: labels, X: make([]float32, n)}
	roles := make([]Roles, n)
	for i := range n {
		r.Row = append(r.Row, uint32(i))
		r.D = append(r.D, 0.5, 0.125, 0.125, 0.125, 0.125)
		roles[i] = []Roles{Train, Validation, Test}[i%3]
	}
	m := &Manifest{Rows: n, Features: 1, Labels: labels, Shards: make([]ShardRef, 1)}
	d := NewData(m, roles)
	d.SetShard(0, r)
	mask := Mask{Rate: 0.6, Unlabelled: 0.1}
	masked := d.Masked(mask, 3).Shard(0)
	missing, empty, seen := 0, 0, 0
	for i := range n {
		k := CountMissing(masked.Label(i))
		if roles[i] == Test {
			if k > 0 {
				t.Fatalf("test sample %d has %d missing degrees", i, k)
			}
			continue
		}
		seen++
		if missing += k; k == labels {
			empty++
		}
		own := slices.Clone(r.Label(i))
		mask.Hide(own, 3, i)
		if Repair(own); !slices.Equal(NativeBytes(own), NativeBytes(masked.Label(i))) {
			t.Fatalf("sample %d: %v, want %v", i, masked.Label(i), own)
		}
	}
	if share := float64(missing) / float64(seen*labels); math.Abs(share-0.64) > 0.05 {
		t.Errorf("%v of the degrees are missing", share)
	}
	if share := float64(empty) / float64(seen); math.Abs(share-0.17) > 0.05 {
		t.Errorf("%v of the samples have no label", share)
	}
	if err := masked.Check(); err != nil {
		t.Error(err)
	}
	if CountMissing(r.D) > 0 {
		t.Error("the complete labels changed")
	}
	if other := d.Masked(mask, 4).Shard(0); slices.Equal(NativeBytes(other.D), NativeBytes(masked.D)) {
		t.Error("another seed has the same mask")
	}
	for _, wrong := range []Mask{{Rate: -0.1}, {Rate: 1}, {Rate: math.NaN()}, {Unlabelled: 1}, {Golden: true}} {
		if wrong.Check() == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
}
