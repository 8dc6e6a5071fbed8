package ldlf

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/internal/num"
)

// alone is what abreast computes, for one row after the other and without vectors:
// adds ∂R/∂f to df and returns the K-L over trees.
func (fc *forestCase) alone(df, f, d []float32) float64 {
	z := &fc.z
	s, u := make([]float32, z.outputs), make([]float32, z.outputs)
	num.SigmoidPairs(s, u, f)
	node, mass, g := make([]float32, z.nodes()), make([]float32, z.nodes()), make([]float32, z.labels)
	loss := 0.0
	for i := range z.trees {
		phi, q := z.treePhi(fc.phi, i), treeOf(fc.q, i, z.treeQ())
		reach(node, s, u, phi)
		predict(g, node[z.splits:], q)
		kl := 0.0
		for l := range z.leaves {
			m := float32(0)
			for c, y := range d {
				m = num.FMA32(y/max(g[c], gFloor), q[l*z.labels+c], m)
			}
			mass[z.splits+l] = m * node[z.splits+l]
		}
		for c, y := range d {
			if y > 0 {
				kl += float64(float64(y) * num.Log(float64(y)/float64(max(g[c], gFloor))))
			}
		}
		loss += kl
		for n := z.splits - 1; n >= 0; n-- {
			left, right := mass[2*n+1], mass[2*n+2]
			mass[n] = left + right
			df[phi[n]] += float32(s[phi[n]]*right) - float32(u[phi[n]]*left)
		}
	}
	return loss
}

// TestAbreast holds that a row has the bits that it has alone, whatever stands beside
// it: labels of 0, and predictions of 0 under a label, included.
func TestAbreast(t *testing.T) {
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
		a := newAbreast(&fc.z)
		a.width = min(a.width, 1<<rapid.IntRange(0, 6).Draw(t, "width"))
		qT := make([]float32, len(fc.q))
		for i := range fc.z.trees {
			transpose(treeOf(qT, i, fc.z.treeQ()), treeOf(fc.q, i, fc.z.treeQ()), fc.z.labels)
		}
		s := num.NewStream(num.NewKey(1, "outputs"), 0, 0)
		for from := 0; from < rows; from += a.width {
			n := min(a.width, rows-from)
			samples, f := make([]sample, n), make([]float32, n*fc.z.outputs)
			for i := range samples {
				samples[i].d = treeOf(fc.p.d, from+i, fc.z.labels)
			}
			for i := range f {
				f[i] = float32(8 * s.Normal())
			}
			a.begin(samples, f)
			for i := range fc.z.trees {
				a.tree(fc.z.treePhi(fc.phi, i), treeOf(fc.q, i, fc.z.treeQ()), treeOf(qT, i, fc.z.treeQ()))
			}
			df := make([]float32, n*fc.z.outputs)
			loss, want := a.end(df), 0.0
			for i := range samples {
				row := make([]float32, fc.z.outputs)
				want += fc.alone(row, treeOf(f, i, fc.z.outputs), samples[i].d)
				for j, y := range treeOf(df, i, fc.z.outputs) {
					if math.Float32bits(y) != math.Float32bits(row[j]) {
						t.Fatalf("row %d of %d abreast, unit %d: %v, alone %v", i, n, j, y, row[j])
					}
				}
			}
			if loss != want {
				t.Fatalf("%d rows abreast: K-L %v, alone %v", n, loss, want)
			}
		}
	})
}

// TestAbreastWidth holds that large trees take fewer rows at once.
func TestAbreastWidth(t *testing.T) {
	for _, test := range []struct{ depth, want int }{{7, 64}, {10, 16}, {11, 8}, {18, 8}} {
		z := sizes{depth: test.depth, splits: splitNodes(test.depth), leaves: splitNodes(test.depth) + 1, outputs: 64, labels: 5}
		if got := newAbreast(&z).width; got != test.want {
			t.Errorf("%d rows abreast in trees of depth %d, want %d", got, test.depth, test.want)
		}
	}
}
