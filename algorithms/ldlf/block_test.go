package ldlf

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/num"
)

// TestRowBlock holds that a row has the bits that it has alone, whatever stands beside
// it: labels of 0, and predictions of 0 under a label, included.
func TestRowBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fc := drawCase(t)
		rows := rapid.IntRange(1, 70).Draw(t, "rows")
		fc.p = makeProblem(rapid.Uint64().Draw(t, "problem"), rows, fc.p.features, fc.p.labels, 1)
		for i := range fc.p.d {
			if rapid.IntRange(0, 9).Draw(t, "absent") == 0 {
				fc.p.d[i] = 0
			}
		}
		if rapid.Bool().Draw(t, "dead class") {
			for i := 0; i < len(fc.q); i += fc.z.labels {
				fc.q[i] = 0
			}
		}
		a := newRowBlock(&fc.z)
		a.width = min(a.width, 1<<rapid.IntRange(0, 6).Draw(t, "width"))
		qT := make([]float32, len(fc.q))
		for i := range fc.z.trees {
			transpose(chunk(qT, i, fc.z.treeQ()), chunk(fc.q, i, fc.z.treeQ()), fc.z.labels)
		}
		alone := fc.k.NewScratch().(*scratch)
		alone.qT = qT
		s := num.NewStream(num.NewKey(1, "outputs"), 0, 0)
		for from := 0; from < rows; from += a.width {
			n := min(a.width, rows-from)
			samples, f := make([]gradient.Sample, n), make([]float32, n*fc.z.outputs)
			for i := range samples {
				samples[i].D = chunk(fc.p.d, from+i, fc.z.labels)
			}
			for i := range f {
				f[i] = float32(8 * s.Normal())
			}
			a.begin(samples, f)
			for i := range fc.z.trees {
				a.tree(fc.z.treePhi(fc.phi, i), chunk(fc.q, i, fc.z.treeQ()))
			}
			df := make([]float32, n*fc.z.outputs)
			losses := a.end(df, nil)
			for i := range samples {
				row := make([]float32, fc.z.outputs)
				num.SigmoidPairs(alone.s, alone.t, chunk(f, i, fc.z.outputs))
				if want := fc.k.rowGradient(row, samples[i].D, fc.q, alone); losses[i] != want {
					t.Fatalf("row %d of a block of %d: K-L %v, alone %v", i, n, losses[i], want)
				}
				for j, y := range chunk(df, i, fc.z.outputs) {
					if math.Float32bits(y) != math.Float32bits(row[j]) {
						t.Fatalf("row %d of a block of %d, unit %d: %v, alone %v", i, n, j, y, row[j])
					}
				}
			}
		}
	})
}

// TestStepWidth holds that a unit's partial is the same, the last bit of its K-L
// included, however many rows a block has.
func TestStepWidth(t *testing.T) {
	c := smallConfig()
	c.Trees, c.Depth, c.Outputs = 3, 4, 9
	fc := newCase(c, makeProblem(5, 150, 4, 5, 1), 5, 1)
	m, d := fc.p.data(1, false, jobOf(c, 1).Split)
	k := *fc.k
	k.descent.Draws = all{}
	shape := k.descent.Function.GradientShape()
	shape.F64 += gradient.GradientAt
	unit := round.Task{Of: 1, Op: gradient.OpStep, Roles: 1, Steps: [2]uint64{0, 1}}
	partial := func(width int) *round.Partial {
		dst := new(round.Partial)
		dst.Reset(shape)
		s := k.NewScratch().(*scratch)
		s.block.width, s.Block = width, width
		if err := k.Run(dst, unit, d, fc.vars(), nil, s); err != nil {
			t.Fatal(err)
		}
		return dst
	}
	want := partial(32) // what it was first
	if want.F64[0] != float64(m.Rows) {
		t.Fatalf("%v rows of %d", want.F64[0], m.Rows)
	}
	for _, width := range []int{1, 8, 16, 64} {
		got := partial(width)
		if !slices.Equal(got.F64, want.F64) || !slices.Equal(got.F32, want.F32) {
			t.Errorf("the partial of blocks of %d rows is another than that of 32", width)
		}
	}
}

// TestBlockWidth holds that large trees take fewer rows at once.
func TestBlockWidth(t *testing.T) {
	for _, test := range []struct{ depth, want int }{{7, 64}, {10, 16}, {11, 8}, {18, 8}} {
		z := sizes{depth: test.depth, splits: splitNodes(test.depth), leaves: splitNodes(test.depth) + 1,
			outputs: 64, labels: 5}
		if got := newRowBlock(&z).width; got != test.want {
			t.Errorf("blocks of %d rows in trees of depth %d, want %d", got, test.depth, test.want)
		}
	}
}
