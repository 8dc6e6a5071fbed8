package forest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/dataset"
)

// slowPredict is the twin of Predict: it walks each tree's arrays.
func slowPredict(m *model, x []float32) []float32 {
	sums := make([]float64, m.labels)
	for _, tree := range m.trees {
		at := 0
		for tree.feature[at] != leafMark {
			next := int(tree.left[at])
			if !(float64(x[tree.feature[at]]) < tree.threshold[at]) {
				next++
			}
			at = next
		}
		for c := range sums {
			sums[c] += float64(tree.leaves[int(tree.left[at])*m.labels+c])
		}
	}
	out := make([]float32, m.labels)
	for c, sum := range sums {
		out[c] = float32(sum / float64(len(m.trees)))
	}
	return out
}

// TestPredict: dense and sparse rows, in batches of any size, are predicted as the
// twin does, to the bit.
func TestPredict(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		p, _, m := testForest(t, sparse)
		checkRows(t, m, makeProblem(77, 130, p.features, p.labels, 0.6), sparse, []int{1, 3, 4, 8, 12, 130})
	}
}

// TestPredictMixed: batches of dense rows, of sparse rows and of both are predicted with one scratch as the twin does.
func TestPredictMixed(t *testing.T) {
	p, _, m := testForest(t, false)
	q := makeProblem(78, 60, p.features, p.labels, 0.3)
	dense, sparse := q.data(1, false, dataset.Split{}), q.data(1, true, dataset.Split{})
	shard := func(i uint32) *dataset.Rows {
		if i == 0 {
			return dense.Shard(0)
		}
		return sparse.Shard(0)
	}
	scratch := m.NewScratch()
	for _, storages := range [][]uint32{{0}, {1}, {0}, {0, 1}, {1}, {1, 0}, {0, 1, 1}, {1}} {
		for _, batch := range []int{1, 9, 60} {
			refs := make([]dataset.RowRef, batch)
			for i := range refs {
				refs[i] = dataset.RowRef{Shard: storages[i%len(storages)], Pos: uint32(7 * i % 60)}
			}
			out := make([]float32, batch*m.labels)
			m.Predict(out, refs, shard, scratch)
			for i, ref := range refs {
				got, row := out[i*m.labels:(i+1)*m.labels], int(shard(ref.Shard).Row[ref.Pos])
				if want := slowPredict(m, q.row(row)); !slices.Equal(got, want) {
					t.Fatalf("storages %v, batch of %d: row %d is %v, want %v", storages, batch, row, got, want)
				}
			}
		}
	}
}

// checkPredictions holds what a model predicts for a problem's rows against the twin.
func checkPredictions(t fataler, m *model, p *problem) {
	for _, sparse := range []bool{false, true} {
		checkRows(t, m, p, sparse, []int{1, 9, p.n})
	}
}

// fataler is a test of either kind.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkRows predicts a problem's rows in batches of each size, with one scratch.
func checkRows(t fataler, m *model, p *problem, sparse bool, batches []int) {
	t.Helper()
	shards := min(3, p.n)
	d := p.data(shards, sparse, dataset.Split{})
	refs := d.Select(0, shards, dataset.AllRows)
	shard := func(i uint32) *dataset.Rows { return d.Shard(int(i)) }
	scratch := m.NewScratch()
	for _, batch := range batches {
		for from := 0; from < len(refs); from += batch {
			part := refs[from:min(from+batch, len(refs))]
			out := make([]float32, len(part)*m.labels)
			m.Predict(out, part, shard, scratch)
			for i, ref := range part {
				row := int(shard(ref.Shard).Row[ref.Pos])
				if want := slowPredict(m, p.row(row)); !slices.Equal(out[i*m.labels:(i+1)*m.labels], want) {
					t.Fatalf("sparse %v, batch of %d: row %d is %v, want %v", sparse, batch, row, out[i*m.labels:(i+1)*m.labels], want)
				}
			}
		}
	}
}

// TestWideBlocks: models that read more features than a block of rows holds.
func TestWideBlocks(t *testing.T) {
	tree := new(Tree)
	tree.Reset(1)
	tree.Split(0, 0, 0.5, 0.1)
	tree.Leaf(1)[0], tree.Leaf(2)[0] = 0.25, 1
	m := newModel([]*Tree{tree}, 1<<17, 1)
	m.walker().width = 1 << 17
	if p := m.NewScratch().(*predictor); p.rows != lanes {
		t.Errorf("blocks of %d rows, want %d", p.rows, lanes)
	}
}

// TestCeil32: comparing with the rounded threshold is comparing with the threshold.
func TestCeil32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold := rapid.Float64Range(-4e38, 4e38).Draw(t, "threshold")
		near := float32(threshold)
		for _, x := range []float32{near, math.Nextafter32(near, -math.MaxFloat32),
			math.Nextafter32(near, math.MaxFloat32), 0, 1} {
			if x-x != 0 {
				continue
			}
			if (float64(x) < threshold) != (x < ceil32(threshold)) ||
				(float64(x) < threshold) != (clamp(x) < orderedBits(ceil32(threshold))) {
				t.Fatalf("%v and %v compare otherwise after rounding to %v", x, threshold, ceil32(threshold))
			}
		}
	})
}

// TestThresholdBetweenNeighbours: where the midpoint of two values is neither, all
// rows go where training sent them.
func TestThresholdBetweenNeighbours(t *testing.T) {
	low, high := float32(1), math.Nextafter32(1, 2)
	p := &problem{n: 40, features: 1, labels: 2}
	for i := range p.n {
		x, d := low, []float32{1, 0}
		if i%2 == 1 {
			x, d = high, []float32{0, 1}
		}
		p.x, p.d = append(p.x, x), append(p.d, d...)
	}
	data := p.data(1, false, dataset.Split{})
	m := newModel(growTrees(t, families["two"], smallConfig(), 1, data, 1), 1, 2)
	for i := range p.n {
		if got := slowPredict(m, p.row(i)); got[0] != p.label(i)[0] {
			t.Errorf("row %d is predicted %v, want %v", i, got, p.label(i))
		}
	}
}

// TestDescribe: what `model show` prints agrees with the arrays.
func TestDescribe(t *testing.T) {
	_, _, m := testForest(t, false)
	text := ""
	for _, pair := range m.Describe() {
		text += pair[0] + ": " + pair[1] + "\n"
	}
	for _, want := range []string{"trees: 3\n", "depth: mean ", "leaves: mean ", "samples per leaf: mean ",
		"gain evaluations: ", "total gain "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	gains := m.Importance()
	splits, want := 0, 0
	for _, tree := range m.trees {
		want += tree.Nodes() - tree.Leaves()
	}
	for i, f := range gains {
		splits += f.Splits
		if i > 0 && gains[i-1].Gain < f.Gain {
			t.Error("features are not in the order of their gain")
		}
	}
	if splits != want {
		t.Errorf("%d splits by feature, %d in the trees", splits, want)
	}
}

// TestTreeText draws a small tree.
func TestTreeText(t *testing.T) {
	m := newModel([]*Tree{stump()}, 3, 2)
	got, err := m.TreeText(0, []string{"a", "b", "width"}, []string{"low", "high"})
	want := "width < 1.5  9 samples, gain 0.5000\n" +
		"├─ yes: leaf  4 samples  high 0.750, low 0.250\n" +
		"└─ no:  leaf  5 samples  low 1.000, high 0.000\n"
	if err != nil || got != want {
		t.Errorf("error %v, text\n%s, want\n%s", err, got, want)
	}
	if plain, _ := m.TreeText(0, nil, nil); !strings.HasPrefix(plain, "x[2] < 1.5") {
		t.Errorf("without names:\n%s", plain)
	}
	if _, err := m.TreeText(1, nil, nil); err == nil {
		t.Error("a tree that the forest does not have was drawn")
	}
}
