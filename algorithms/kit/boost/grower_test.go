package boost

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// squares is a criterion of one label.
type squares struct{ g *Gradients }

func (*squares) L2() float64                          { return 1 }
func (c *squares) Begin(g *Gradients, _ int)          { c.g = g }
func (*squares) Leaf(dst []float32, s Pair, _ Choice) { dst[0] = float32(s.G) }
func (c *squares) Node(rows []uint32, pairs []Pair) (sum Pair, _ Choice) {
	for _, row := range rows {
		pairs[row] = Pair{c.g.Fixed(int(row), c.g.P[2*row]-float64(c.g.D[2*row])), c.g.Fixed(int(row), 0.25)}
		sum = sum.add(pairs[row])
	}
	return sum, Choice{}
}

// problem is rows whose columns have a few values, and degrees.
func problem(rows int) (*dataset.Data, *Gradients) {
	r := &dataset.Rows{N: rows, Features: 6, Labels: 2}
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	for i := range rows {
		r.Row = append(r.Row, uint32(i))
		for range r.Features {
			r.X = append(r.X, float32(s.Uint64n(9))-4)
		}
		d := float32(s.Float64())
		r.D = append(r.D, d, 1-d)
	}
	m := &dataset.Manifest{Rows: rows, Features: r.Features, Labels: 2, Shards: make([]dataset.ShardRef, 1)}
	roles, err := dataset.Split{}.Assign(rows, nil)
	if err != nil {
		panic(err)
	}
	d := dataset.NewData(m, roles)
	d.SetShard(0, r)
	return d, GradientsAt(make([]float64, 2*rows), r.D, 2)
}

// TestBinMemory: where there is no memory for bins, they are added up again, and the tree is the
// same. A tree that was not finished leaves none behind.
func TestBinMemory(t *testing.T) {
	d, gradients := problem(400)
	training, err := newTraining(d, d.Select(0, 1, dataset.Train), 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(training.binned.columns) == 0 {
		t.Fatal("no column is binned")
	}
	var want []byte
	for _, memory := range []int{binMemory, 0, 3 * binBytes * len(training.binned.entry)} {
		g := &grower{cfg: &Config{Leaves: 30, LeafRows: 2}, width: 1, criterion: new(squares), memory: memory}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := g.grow(ended, training, gradients, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		tree, err := g.grow(t.Context(), training, gradients, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = tree.Encode()
		}
		if !bytes.Equal(tree.Encode(), want) || tree.Leaves() != 30 {
			t.Errorf("with %d bytes for bins there is another tree, of %d leaves", memory, tree.Leaves())
		}
		if g.kept != 0 {
			t.Errorf("%d nodes keep bins", g.kept)
		}
	}
}

// TestHistory: at any number of rounds there are at most seven variables of a size, their IDs differ and
// stay below the kit's, and the rounds that they say follow one another.
func TestHistory(t *testing.T) {
	var h History
	ids := make(map[uint16]bool)
	for n := 1; n <= maxRounds; n++ {
		h.Add([]byte{byte(n), byte(n >> 8)})
		if n > 1000 && n%97 != 0 && n != maxRounds {
			continue
		}
		next, at := 0, make(map[uint16]bool)
		for _, v := range h.AppendVars(nil, 0) {
			first, end, ok := groupOf(&v)
			if !ok || first != next || at[v.ID] || len(v.Data) != 2*(end-first) || int(v.Data[0])|int(v.Data[1])<<8 != first+1 {
				t.Fatalf("round %d: variable %d of %d bytes has rounds %d to %d, after %d", n, v.ID, len(v.Data), first, end, next)
			}
			next, at[v.ID], ids[v.ID] = end, true, true
		}
		if next != n || h.Bytes() != 2*n {
			t.Fatalf("round %d: the variables end at %d", n, next)
		}
	}
	if len(ids) > 36 {
		t.Errorf("there are %d variables", len(ids))
	}
}
