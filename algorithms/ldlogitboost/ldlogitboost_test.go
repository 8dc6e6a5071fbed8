package ldlogitboost

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
)

// loss is the cross-entropy of one row.
func loss(f []float64, d []float32) float64 {
	sum, cross := 0.0, 0.0
	for _, x := range f {
		sum += math.Exp(x)
	}
	for c, x := range f {
		cross -= float64(d[c]) * (x - math.Log(sum))
	}
	return cross
}

// drawRow draws F and label degrees of a row, some of which are 0.
func drawRow(t *rapid.T, labels int) (f []float64, d []float32) {
	sum := float32(0)
	for range labels {
		f = append(f, rapid.Float64Range(-4, 4).Draw(t, "f"))
		d = append(d, rapid.SampledFrom([]float32{0, 0.25, 1, 3}).Draw(t, "d"))
		sum += d[len(d)-1]
	}
	d[0]++
	for c := range d {
		d[c] /= sum + 1
	}
	return f, d
}

// TestDerivatives: G and H are the differences of the cross-entropy.
func TestDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.IntRange(2, 6).Draw(t, "labels")
		f, d := drawRow(t, labels)
		g := boost.GradientsAt(f, d, labels)
		for label := range labels {
			c := &leastSquares{l2: 1}
			c.Begin(g, label)
			sum, _ := c.Node([]uint32{0}, make([]boost.Pair, 1))
			at := func(step float64) float64 {
				moved := append([]float64(nil), f...)
				moved[label] += step
				return loss(moved, d)
			}
			const h = 1e-3
			first, second := (at(h)-at(-h))/(2*h), (at(h)-2*at(0)+at(-h))/(h*h)
			if math.Abs(g.Number(sum.G)-first) > 1e-5 || math.Abs(g.Number(sum.H)-second) > 1e-5 {
				t.Fatalf("label %d: G %v, H %v, differences %v, %v", label, g.Number(sum.G), g.Number(sum.H), first, second)
			}
		}
	})
}

// TestLeaf: a leaf is the minimum of the weighted squared error, with λ added to the weights.
func TestLeaf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f []float64
		var d []float32
		var rows []uint32
		for i := range rapid.IntRange(1, 9).Draw(t, "rows") {
			x, y := drawRow(t, 3)
			f, d, rows = append(f, x...), append(d, y...), append(rows, uint32(i))
		}
		g := boost.GradientsAt(f, d, 3)
		c := &leastSquares{l2: rapid.SampledFrom([]float64{0, 0.5, 1, 100}).Draw(t, "l2")}
		c.Begin(g, 1)
		sum, choice := c.Node(rows, make([]boost.Pair, len(rows)))
		var leaf [1]float32
		c.Leaf(leaf[:], sum, choice)
		top, bottom := 0.0, c.l2
		for i := range rows {
			p := g.P[3*i+1]
			weight := p * (1 - p)
			top += weight * ((float64(d[3*i+1]) - p) / weight)
			bottom += weight
		}
		if want := top / bottom; math.Abs(float64(leaf[0])-want) > 1e-5*(1+math.Abs(want)) {
			t.Fatalf("the leaf has %v, want %v", leaf[0], want)
		}
	})
}
