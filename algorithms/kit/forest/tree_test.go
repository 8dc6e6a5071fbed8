package forest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// stump is a tree of one split, of feature 2.
func stump() *Tree {
	t := &Tree{Evaluations: 7, Loss: 0.25}
	t.Reset(2)
	t.Evaluations, t.Loss = 7, 0.25
	t.Split(0, 2, 1.5, 0.5)
	copy(t.Leaf(1), []float32{0.25, 0.75})
	copy(t.Leaf(2), []float32{1, 0})
	copy(t.samples, []uint32{9, 4, 5})
	return t
}

// TestTreeBytes pins the encoded form; FORMAT.md draws it.
func TestTreeBytes(t *testing.T) {
	want := "01" + "02000000" + "03000000" + "02000000" + "0700000000000000" + "000000000000d03f" +
		"02000000ffffffffffffffff" + "010000000000000001000000" + "090000000400000005000000" +
		"000000000000f83f00000000000000000000000000000000" + "000000000000e03f00000000000000000000000000000000" +
		"0000803e0000403f0000803f00000000"
	got := stump().AppendBinary(nil)
	if hex.EncodeToString(got) != want {
		t.Errorf("a stump is\n%x, want\n%s", got, want)
	}
	if len(got) != stump().Size() {
		t.Errorf("Size is %d, want %d", stump().Size(), len(got))
	}
	back, err := DecodeTree(got, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stump(), back, cmp.AllowUnexported(Tree{})); diff != "" {
		t.Errorf("decoded tree (-want +got):\n%s", diff)
	}
}

// TestDecodeTreeRefuses changes a valid tree in one way each.
func TestDecodeTreeRefuses(t *testing.T) {
	set := func(at int, v uint32) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[at:], v)
			return b
		}
	}
	const feature, left = treeHead, treeHead + 12
	for name, change := range map[string]func([]byte) []byte{
		"nothing":           func([]byte) []byte { return nil },
		"cut":               func(b []byte) []byte { return b[:len(b)-1] },
		"longer":            func(b []byte) []byte { return append(b, 0) },
		"format":            func(b []byte) []byte { b[0] = 2; return b },
		"labels":            set(1, 3),
		"no nodes":          set(5, 0),
		"many nodes":        set(5, math.MaxUint32),
		"leaves":            set(9, 1),
		"feature":           set(feature, 3),
		"cycle":             set(left, 0),
		"child beyond":      set(left, 2),
		"leaf beyond":       set(left+4, 2),
		"leaf twice":        set(left+8, 0),
		"split without end": set(feature+4, 1),
		"root a leaf":       set(feature, leafMark),
		"threshold": func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[treeHead+36:], math.Float64bits(math.NaN()))
			return b
		},
		"degree": set(treeHead+36+48, math.Float32bits(-1)),
	} {
		if _, err := DecodeTree(change(stump().AppendBinary(nil)), 3, 2); !errors.Is(err, ErrTree) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestDeepTrees: a tree deeper than any that is grown is refused, so that walks and
// drawings stay bounded.
func TestDeepTrees(t *testing.T) {
	for _, depth := range []int{maxDepth, maxDepth + 1} {
		tree := new(Tree)
		tree.Reset(1)
		at := 0
		for range depth {
			tree.Split(at, 0, 0, 0)
			tree.Leaf(int(tree.left[at]))
			at = int(tree.left[at]) + 1
		}
		tree.Leaf(at)
		if err := tree.check(1, Degrees); (err == nil) != (depth <= maxDepth) {
			t.Errorf("depth %d: error %v", depth, err)
		}
	}
}

func testForest(t testing.TB, sparse bool) (*problem, *dataset.Data, *model) {
	p := makeProblem(5, 90, 6, 3, 0.5)
	d := p.data(4, sparse, dataset.Split{})
	return p, d, newModel(growTrees(t, families["two"], smallConfig(), 2, d, 1), p.features, p.labels)
}

// joined returns copies of a model's tensors, as a model file gives them back.
func joined(m *model) []algorithms.Tensor {
	list := m.Tensors()
	for i := range list {
		t := &list[i]
		for _, p := range t.Pieces {
			t.F32, t.F64, t.U32 = append(t.F32, p.F32...), append(t.F64, p.F64...), append(t.U32, p.U32...)
		}
		t.Pieces = nil
	}
	return list
}

// TestModelTensors: a model that went through its tensors is the same.
func TestModelTensors(t *testing.T) {
	_, _, m := testForest(t, false)
	back, err := decodeModel(joined(m))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(joined(m), joined(back)); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if !slices.Equal(m.walker().nodes.list, back.walker().nodes.list) {
		t.Error("the decoded model walks otherwise")
	}
}

// TestDecodeModelRefuses changes a valid model in one way each.
func TestDecodeModelRefuses(t *testing.T) {
	_, _, m := testForest(t, false)
	for name, change := range map[string]func([]algorithms.Tensor) []algorithms.Tensor{
		"no tensors":  func([]algorithms.Tensor) []algorithms.Tensor { return nil },
		"one less":    func(v []algorithms.Tensor) []algorithms.Tensor { return v[:9] },
		"format":      func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[0]++; return v },
		"trees":       func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[1]++; return v },
		"features":    func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[2] = 1; return v },
		"labels":      func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[3]++; return v },
		"no labels":   func(v []algorithms.Tensor) []algorithms.Tensor { v[0].U32[3] = 0; return v },
		"nodes":       func(v []algorithms.Tensor) []algorithms.Tensor { v[1].U32[0] += 2; return v },
		"leaves":      func(v []algorithms.Tensor) []algorithms.Tensor { v[2].U32[0]++; return v },
		"evaluations": func(v []algorithms.Tensor) []algorithms.Tensor { v[3].F64[0] = math.NaN(); return v },
		"child":       func(v []algorithms.Tensor) []algorithms.Tensor { v[5].U32[0] = 0; return v },
		"threshold":   func(v []algorithms.Tensor) []algorithms.Tensor { v[7].F64[0] = math.Inf(1); return v },
		"short":       func(v []algorithms.Tensor) []algorithms.Tensor { v[8].F64 = v[8].F64[1:]; return v },
		"name":        func(v []algorithms.Tensor) []algorithms.Tensor { v[6].Name = "sample"; return v },
		"dimensions":  func(v []algorithms.Tensor) []algorithms.Tensor { v[9].Dims = []int{len(v[9].F32)}; return v },
		"another type": func(v []algorithms.Tensor) []algorithms.Tensor {
			v[9].F32, v[9].U32 = nil, make([]uint32, len(v[9].F32))
			return v
		},
		"a degree of 2": func(v []algorithms.Tensor) []algorithms.Tensor { v[9].F32[0] = 2; return v },
	} {
		tensors := joined(m)
		if _, err := families["two"].New().DecodeModel(change(tensors)); !errors.Is(err, learner.ErrModel) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// FuzzDecodeTree: no bytes make DecodeTree panic, and what it takes is a tree whose
// bytes are those.
func FuzzDecodeTree(f *testing.F) {
	f.Add(stump().AppendBinary(nil))
	d := makeProblem(1, 40, 3, 2, 1).data(1, false, dataset.Split{})
	for _, tree := range growTrees(f, families["two"], smallConfig(), 1, d, 1) {
		f.Add(tree.AppendBinary(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := DecodeTree(b, 3, 2)
		samples, loss, bad := PeekTree(b)
		if err != nil {
			return
		}
		if bad != nil || samples != tree.samples[0] || math.Float64bits(loss) != math.Float64bits(tree.Loss) {
			t.Fatalf("a tree of %d draws and loss %v is peeked at as %d and %v, %v", tree.samples[0], tree.Loss,
				samples, loss, bad)
		}
		if !bytes.Equal(tree.AppendBinary(nil), b) {
			t.Fatal("a decoded tree has other bytes")
		}
		useModel(t, []*Tree{tree})
	})
}

// FuzzDecodeModel changes the numbers of a model's tensors: decodeModel never
// panics, and what it takes can be walked, drawn and described.
func FuzzDecodeModel(f *testing.F) {
	f.Add([]byte{0, 0, 1}, uint8(0))
	f.Add([]byte{5, 3, 200, 9, 1, 1}, uint8(3))
	d := makeProblem(1, 40, 3, 2, 1).data(1, false, dataset.Split{})
	trees := growTrees(f, families["two"], smallConfig(), 1, d, 1)
	f.Fuzz(func(t *testing.T, changes []byte, drop uint8) {
		m := newModel(trees, 3, 2)
		tensors := joined(m)
		for ; len(changes) >= 3; changes = changes[3:] {
			x := &tensors[int(changes[0])%len(tensors)]
			if len(x.U32) > 0 {
				x.U32[int(changes[1])%len(x.U32)] = uint32(int8(changes[2]))
			} else if len(x.F64) > 0 {
				x.F64[int(changes[1])%len(x.F64)] = math.Float64frombits(uint64(changes[2]) << 56)
			} else {
				x.F32[int(changes[1])%len(x.F32)] = math.Float32frombits(uint32(changes[2]) << 24)
			}
		}
		if drop > 0 {
			i := int(drop) % len(tensors)
			tensors[i].U32 = tensors[i].U32[:len(tensors[i].U32)/2]
		}
		back, err := decodeModel(tensors)
		if err != nil {
			return
		}
		use(t, back)
	})
}

func useModel(t *testing.T, trees []*Tree) {
	use(t, newModel(trees, 3, 2))
}

// use does with a model what programs do.
func use(t *testing.T, m *model) {
	r := &dataset.Rows{N: 1, Features: m.features, Labels: m.labels, X: make([]float32, m.features)}
	r.X[0] = math.MaxFloat32
	out := make([]float32, m.labels)
	m.Predict(out, []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
	m.Describe()
	for i := range m.trees {
		if _, err := m.TreeText(i, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDecodeTreeCopiesNothing: the numbers of a part as kernels make it are aligned,
// so its tree needs no memory of its own, whatever its size.
func TestDecodeTreeCopiesNothing(t *testing.T) {
	for leaves := 1; leaves <= 9; leaves++ {
		for labels := 1; labels <= 3; labels++ {
			tree := new(Tree)
			tree.Reset(labels)
			at := 0
			for range leaves - 1 {
				tree.Split(at, 0, 0.5, 0.1)
				tree.Leaf(at + 1)
				at += 2
			}
			tree.Leaf(at)
			part := tree.AppendBinary(alignedBuffer(tree.Nodes(), tree.Size()))
			back, err := DecodeTree(part, 1, labels)
			if err != nil {
				t.Fatal(err)
			}
			back.samples[0], back.threshold[0], back.leaves[0] = 77, 0.25, 0.125
			if again, _ := DecodeTree(part, 1, labels); again.samples[0] != 77 || again.threshold[0] != 0.25 ||
				again.leaves[0] != 0.125 {
				t.Errorf("%d leaves, %d labels: numbers were copied", leaves, labels)
			}
			if cap(part) != len(part) && cap(part)-len(part) >= 8 {
				t.Errorf("%d leaves, %d labels: %d bytes for %d", leaves, labels, cap(part), len(part))
			}
		}
	}
}
