package rf

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// sample has four rows of three labels; rows 0 and 2 have ties.
func sample() *forest.BootstrapSample {
	return &forest.BootstrapSample{
		Width: 3, Weight: []uint32{1, 2, 1, 4}, Class: make([]uint32, 4),
		Labels: []float32{
			0.4, 0.4, 0.2,
			0.1, 0.2, 0.7,
			0.2, 0.4, 0.4,
			0.2, 0.1, 0.7,
		},
	}
}

// TestClasses: the class is the label of the highest degree, the lowest among ties.
func TestClasses(t *testing.T) {
	s := sample()
	new(argmaxLabeller).Begin(s)
	for row, want := range []uint32{0, 2, 1, 2} {
		if s.Class[row] != want {
			t.Errorf("row %d has class %d, want %d", row, s.Class[row], want)
		}
	}
}

// TestClassify: only a node of several classes may be split.
func TestClassify(t *testing.T) {
	s, h := sample(), new(argmaxLabeller)
	h.Begin(s)
	if h.Classify(s, &forest.Node{Rows: []uint32{1, 3}, Copies: 6}) {
		t.Error("rows of one class may be split")
	}
	if !h.Classify(s, &forest.Node{Rows: []uint32{0, 1}, Copies: 3}) {
		t.Error("rows of two classes may not be split")
	}
}

// TestLeaf: a leaf predicts the classes' shares of its copies, with their entropy as
// the loss.
func TestLeaf(t *testing.T) {
	s, h := sample(), new(argmaxLabeller)
	h.Begin(s)
	dst := make([]float32, 3)
	loss := h.Leaf(dst, s, &forest.Node{Rows: []uint32{0, 1, 2, 3}, Copies: 8})
	if dst[0] != 0.125 || dst[1] != 0.125 || dst[2] != 0.75 {
		t.Errorf("shares %v", dst)
	}
	want := -8 * (0.25*math.Log(0.125) + 0.75*math.Log(0.75))
	if math.Abs(loss-want) > 1e-12 {
		t.Errorf("loss %v, want %v", loss, want)
	}
	if loss := h.Leaf(dst, s, &forest.Node{Rows: []uint32{1, 3}, Copies: 6}); loss != 0 || dst[2] != 1 {
		t.Errorf("a leaf of one class: shares %v, loss %v", dst, loss)
	}
}

// TestGoldenDigest pins the bits of a small forest on the artificial set of Geng
// 2016, grown on one lane and on three.
func TestGoldenDigest(t *testing.T) {
	const want = "05c8e420a4b613d5d148bed7b749bc41e3b6ef4242e61f31cde12583cfe2bfbd"
	m, shards := datatest.Artificial(t, 400)
	d := datatest.Data(t, m, shards, dataset.Split{}, nil)
	r, err := New().Resolve(param.Values{"preset": "paper", "trees": int64(4)}, m)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: r.Params}
	for _, lanes := range []int{1, 3} {
		if got := modelfile.Digest(Name, train(t, j, m, d, lanes).Tensors()); got != want {
			t.Errorf("%d lanes: digest %s, want %s", lanes, got, want)
		}
	}
}

// TestManyRows pins the bits of a tree of so many rows that inner growers grow its subtrees.
func TestManyRows(t *testing.T) {
	if testing.Short() {
		t.Skip("many rows: not with -short")
	}
	const want = "dea85c86040bd732ca0c38c451eb9da4e60cb0d92bac271366d520c398d62645"
	m, shards := datatest.Artificial(t, 150_000)
	r, err := New().Resolve(param.Values{"preset": "paper", "trees": int64(1)}, m)
	if err != nil {
		t.Fatal(err)
	}
	j := &round.Job{Algorithm: Name, Numerics: round.Numerics, Seed: 1, Params: r.Params}
	if got := modelfile.Digest(Name, train(t, j, m, datatest.Data(t, m, shards, dataset.Split{}, nil), 1).
		Tensors()); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func train(t *testing.T, j *round.Job, m *dataset.Manifest, d *dataset.Data, lanes int) algorithms.Model {
	t.Helper()
	tr, err := New().NewTrainer(j, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := New().NewKernel(j, m)
	if err != nil {
		t.Fatal(err)
	}
	none := func(uint64, round.Trainer) error { return nil }
	if err := engine.Drive(t.Context(), tr, 0, engine.NewLocal(k, d, lanes, nil), none); err != nil {
		t.Fatal(err)
	}
	model, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	return model
}
