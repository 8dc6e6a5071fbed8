package speed

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/harness/bench/peers"
)

var (
	smallLayers = Layers{Sides: []int{5, 4, 3}, Batch: 6, Repeats: 2}
	smallFirst  = Convolved{Channels: 1, Side: 5, Outputs: 3, Kernel: 3, Batch: 4, Block: 2, Repeats: 2}
	smallLater  = Convolved{Channels: 2, Side: 5, Outputs: 3, Kernel: 3, Inputs: true, Batch: 4, Block: 2, Repeats: 2}
)

func run(t *testing.T, c Case) float64 {
	t.Helper()
	f, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Seconds) != 1 || !(f.Seconds[0] > 0) || len(c.Of) != 1 {
		t.Errorf("%v of %v", f.Seconds, c.Of)
	}
	return f.Loss
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-5*want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestLayers: the gradient that a run finds is that of the network, by loops in float64 over weights that go
// from inputs to outputs.
func TestLayers(t *testing.T) {
	const rows, n, h, m = 6, 5, 4, 3
	x, dy, w1, w2 := numbers(10, rows*n), numbers(20, rows*m), weights(0, n*h, n), weights(1, h*m, h)
	var g1 [n * h]float64
	var b1 [h]float64
	var g2 [h * m]float64
	var b2 [m]float64
	for i := range rows {
		for j := range h {
			a, da := 0.0, 0.0
			for k := range n {
				a += float64(x[i*n+k]) * float64(w1[k*h+j])
			}
			for o := range m {
				d := float64(dy[i*m+o])
				g2[j*m+o] += max(0, a) * d
				da += d * float64(w2[j*m+o])
				if j == 0 {
					b2[o] += d
				}
			}
			if a <= 0 {
				continue
			}
			b1[j] += da
			for k := range n {
				g1[k*h+j] += float64(x[i*n+k]) * da
			}
		}
	}
	sum := 0.0
	for _, part := range [][]float64{g1[:], b1[:], g2[:], b2[:]} {
		for _, v := range part {
			sum += math.Abs(v)
		}
	}
	near(t, "layers", run(t, smallLayers.Case()), sum/(n*h+h+h*m+m))
}

// TestConvolved: the gradient is that of the convolution, by loops in float64.
func TestConvolved(t *testing.T) {
	for _, c := range []Convolved{smallFirst, smallLater} {
		reads, area := c.Channels*9, c.Side*c.Side
		x, dy := numbers(10, c.Batch*c.Channels*area), numbers(20, c.Batch*c.Outputs*area)
		g := make([]float64, (reads+1)*c.Outputs) // the biases' at the end
		for i := range dy {
			row, o, y, z := i/(c.Outputs*area), i/area%c.Outputs, i/c.Side%c.Side, i%c.Side
			g[reads*c.Outputs+o] += float64(dy[i])
			for k := range reads {
				u, v := y+k/3%3-1, z+k%3-1
				if u >= 0 && u < c.Side && v >= 0 && v < c.Side {
					g[k*c.Outputs+o] += float64(dy[i]) * float64(x[(row*c.Channels+k/9)*area+u*c.Side+v])
				}
			}
		}
		sum := 0.0
		for _, v := range g {
			sum += math.Abs(v)
		}
		near(t, "convolution", run(t, c.Case()), sum/float64(len(g)))
	}
}

// TestPeerOfLayers: PyTorch finds the same gradients, and a forest on a network that fits as well.
func TestPeerOfLayers(t *testing.T) {
	dir := t.TempDir()
	if err := peers.Write(dir); err != nil {
		t.Fatal(err)
	}
	p, err := StartPeer(t.Context(), "python3", filepath.Join(dir, "torch_network.py"))
	var absent *Absent
	if errors.As(err, &absent) {
		t.Skip(absent.Reason)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	set := open(t, Shape{Name: "small", Rows: 400, Features: 8, Labels: 4, Density: 1}, "")
	file, err := set.ForPeers(dir)
	if err != nil {
		t.Fatal(err)
	}
	training := Training{Trees: 2, Depth: 4, Outputs: 8, Rate: 0.1, Momentum: 0.9, Interval: 40, Intervals: 2,
		Iterations: 10, Hidden: 16}
	forest, err := training.Case(set, 64, file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Case{smallLayers.Case(), smallFirst.Case(), smallLater.Case(), forest} {
		ours, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := p.Do(t.Context(), c.Jobs[p.Name], len(c.Of))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.agrees(p.Name, ours.Loss, theirs.Loss); err != nil {
			t.Error(err)
		}
	}
}
