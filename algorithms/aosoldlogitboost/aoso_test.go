package aosoldlogitboost

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms/kit/boost"
)

// problem is some rows with F and degrees.
type problem struct {
	labels int
	f      []float64
	d      []float32
	rows   []uint32
}

func drawProblem(t *rapid.T) *problem {
	p := &problem{labels: rapid.IntRange(2, 6).Draw(t, "labels")}
	for i := range rapid.IntRange(1, 9).Draw(t, "rows") {
		p.rows = append(p.rows, uint32(i))
		sum := float32(1)
		row := make([]float32, p.labels)
		for c := range row {
			p.f = append(p.f, rapid.Float64Range(-4, 4).Draw(t, "f"))
			row[c] = rapid.SampledFrom([]float32{0, 0.25, 1, 3}).Draw(t, "d")
			sum += row[c]
		}
		row[0]++
		for _, x := range row {
			p.d = append(p.d, x/sum)
		}
	}
	return p
}

// loss is the cross-entropy of all rows after a step up r and down s.
func (p *problem) loss(r, s int, step float64) (cross float64) {
	for i := range p.rows {
		sum := 0.0
		f := append([]float64(nil), p.f[i*p.labels:(i+1)*p.labels]...)
		f[r] += step
		f[s] -= step
		for _, x := range f {
			sum += math.Exp(x)
		}
		for c, x := range f {
			cross -= float64(p.d[i*p.labels+c]) * (x - math.Log(sum))
		}
	}
	return cross
}

// TestDerivatives: -G and H/2 of a node are the differences of the cross-entropy along the chosen
// labels, which are those of the greatest score.
func TestDerivatives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		g := boost.GradientsAt(p.f, p.d, p.labels)
		c := new(oneOnOne)
		c.Begin(g, 0)
		pairs := make([]boost.Pair, len(p.rows))
		sum, chosen := c.Node(p.rows, pairs)
		r, s := int(chosen.Up), int(chosen.Down)
		const h = 1e-3
		differences := func(r, s int) (first, second float64) {
			return (p.loss(r, s, h) - p.loss(r, s, -h)) / (2 * h), (p.loss(r, s, h) - 2*p.loss(r, s, 0) + p.loss(r, s, -h)) /
				(h * h)
		}
		first, second := differences(r, s)
		if math.Abs(g.Number(sum.G)+first) > 1e-4 || math.Abs(g.Number(sum.H)/2-second) > 1e-4 {
			t.Fatalf("labels %d, %d: G %v, H %v, differences %v, %v", r, s, g.Number(sum.G), g.Number(sum.H), first, second)
		}
		for k := range p.labels {
			other, curve := differences(r, k)
			if k != r && other*other/curve > first*first/second*(1+1e-3)+1e-6 {
				t.Fatalf("label %d has the score %v, the chosen %d has %v", k, other*other/curve, s, first*first/second)
			}
		}
		total := boost.Pair{}
		for _, x := range pairs {
			total.G += x.G
			total.H += x.H
		}
		if total != sum {
			t.Fatalf("the pairs sum to %v, the node has %v", total, sum)
		}
	})
}

// TestLeaf: a leaf is a Newton step up r and down s, of at most 5.
func TestLeaf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawProblem(t)
		g := boost.GradientsAt(p.f, p.d, p.labels)
		c := new(oneOnOne)
		c.Begin(g, 0)
		sum, chosen := c.Node(p.rows, make([]boost.Pair, len(p.rows)))
		leaf := make([]float32, p.labels)
		c.Leaf(leaf, sum, chosen)
		want := max(-5, min(5, g.Number(sum.G)/(g.Number(sum.H)/2)))
		for k, x := range leaf {
			expected := 0.0
			switch k {
			case int(chosen.Up):
				expected = want
			case int(chosen.Down):
				expected = -want
			}
			if math.Abs(float64(x)-expected) > 1e-5 {
				t.Fatalf("the leaf has %v, want %v up %d, down %d", leaf, want, chosen.Up, chosen.Down)
			}
		}
	})
}
