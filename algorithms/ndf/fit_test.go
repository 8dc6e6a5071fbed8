package ndf

import (
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/internal/num"
	"pgregory.net/rapid"
)

// twin is the network of a node in float64, written from the equations.
type twin struct {
	inputs, hidden int
	w              []float64
}

// output is w₂·tanh(W₁ z + b₁) + b₂, or w·z + b.
func (n *twin) output(z []float64) float64 {
	at := 0
	linear := func(z []float64) float64 {
		sum := n.w[at+len(z)]
		for i, x := range z {
			sum += n.w[at+i] * x
		}
		at += len(z) + 1
		return sum
	}
	if n.hidden == 0 {
		return linear(z)
	}
	units := make([]float64, n.hidden)
	for h := range units {
		units[h] = math.Tanh(linear(z))
	}
	return linear(units)
}

// loss is -Σ_s Σ_c w_s·d_sc ln(π_c^L f_L + π_c^R f_R)/n + ℓ1·‖weights‖₁ under fixed π.
func (n *twin) loss(z [][]float64, d [][]float64, left, right []float64, l1 float64, bias func(int) bool) float64 {
	sum, total := 0.0, 0.0
	for s := range z {
		f := 1 / (1 + math.Exp(-n.output(z[s])))
		for c, mass := range d[s] {
			if mass > 0 {
				sum -= mass * math.Log(left[c]*f+right[c]*(1-f))
				total += mass
			}
		}
	}
	sum /= total
	for i, w := range n.w {
		if !bias(i) {
			sum += l1 * math.Abs(w)
		}
	}
	return sum
}

// TestGradient: the gradient of a step is within 1e-5 of finite differences of the twin, of
// networks of any size, on classes and distributions, in one block and in several.
func TestGradient(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		hidden := rapid.SampledFrom([]string{"0", "1", "3", "8", "17"}).Draw(r, "hidden")
		l1 := rapid.SampledFrom([]float64{0, 0.01}).Draw(r, "l1")
		rows := rapid.SampledFrom([]int{12, 100, 300, 513}).Draw(r, "rows")
		classes, sparse := rapid.Bool().Draw(r, "classes"), rapid.Bool().Draw(r, "sparse")
		d := rowsOf(rows, 7, 3, 2, sparse, someRows(rapid.Uint64().Draw(r, "seed"), 7, 3, classes))
		c := configOf(t, map[string]any{"hidden": hidden, "l1": l1, "share": 0.7}, d.Manifest)
		g := growerOf(t, c, d)
		f := &g.fitter
		n := &node{path: 1, rows: g.rows, copies: rows}
		f.topology(n)
		f.scale(n)
		f.reader.begin(&f.net, f.source.features, sparse)
		f.loadNode(n)
		f.start(n)
		forest.Resized(&f.grad, len(f.net.weights))
		f.gradient(&f.all)

		net, z, mass := twinOf(f, n)
		const h = 1e-5
		for i := range net.w {
			w := net.w[i]
			net.w[i] = w + h
			above := net.loss(z, mass, f.pi.left, f.pi.right, l1, f.net.isBias)
			net.w[i] = w - h
			below := net.loss(z, mass, f.pi.left, f.pi.right, l1, f.net.isBias)
			net.w[i] = w
			if want := (above - below) / (2 * h); math.Abs(want-float64(f.grad[i])) > 1e-5 {
				r.Fatalf("weight %d of %d: gradient %v, finite differences %v", i, len(net.w), f.grad[i], want)
			}
		}
	})
}

// twinOf returns the twin of a fitter's network, with the inputs and label masses of a node's rows.
func twinOf(f *fitter, n *node) (net *twin, z, mass [][]float64) {
	net = &twin{inputs: len(f.net.inputs), hidden: f.net.hidden}
	for _, w := range f.net.weights {
		net.w = append(net.w, float64(w))
	}
	for _, row := range n.rows {
		shard, pos := f.source.At(row)
		x := make([]float64, f.source.features)
		if shard.Sparse {
			columns, values := shard.NonZeros(pos)
			for j, c := range columns {
				x[c] = float64(values[j])
			}
		} else {
			for j, v := range shard.Dense(pos) {
				x[j] = float64(v)
			}
		}
		in, d := []float64(nil), []float64(nil)
		for i, feature := range f.net.inputs {
			in = append(in, (x[feature]-float64(f.net.shift[i]))*float64(f.net.scale[i]))
		}
		for _, v := range f.source.Label(row) {
			d = append(d, float64(v)*float64(f.source.counts[row]))
		}
		z, mass = append(z, in), append(mass, d)
	}
	return net, z, mass
}

// TestCorollary1: of random networks that send each row to one side, those with the highest log Q have the highest
// information gain, and the other way round (corollary 1 of the supplement). log Q is what start chooses networks by.
// The gain is computed from the labels by package math, as rf's is: H(π̂) less the mean entropy of both sides.
func TestCorollary1(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		classes, sparse := rapid.Bool().Draw(r, "classes"), rapid.Bool().Draw(r, "sparse")
		rows, labels := rapid.IntRange(12, 300).Draw(r, "rows"), rapid.IntRange(2, 5).Draw(r, "labels")
		d := rowsOf(rows, 7, labels, 2, sparse, someRows(rapid.Uint64().Draw(r, "seed"), 7, labels, classes))
		c := configOf(t, map[string]any{"hidden": rapid.SampledFrom([]string{"0", "3"}).Draw(r, "hidden"), "share": 0.7},
			d.Manifest)
		g := growerOf(t, c, d)
		f, n := &g.fitter, &node{path: 1, rows: g.rows}
		for row := range f.source.counts {
			f.source.counts[row] = uint32(1 + row%3)
			n.copies += 1 + row%3
		}
		f.topology(n)
		f.scale(n)
		f.reader.begin(&f.net, f.source.features, sparse)
		f.loadNode(n)

		const networks = 20
		resizeAll(&f.outs, networks, len(n.rows))
		resizeAll(&f.starts, networks, len(f.net.weights))
		for i, w := range f.starts {
			f.draw(w, num.NewStream(num.NewKey(1, "corollary"), uint64(i), 0))
		}
		f.evaluate(n, f.starts, f.outs)
		var logQ, gain []float64
		for _, out := range f.outs {
			middle := f.median(out, n.rows)
			for j, x := range out {
				if out[j] = float32(math.Inf(-1)); x > middle {
					out[j] = float32(math.Inf(1))
				}
			}
			logQ, gain = append(logQ, f.compare(out)/f.all.total), append(gain, informationGain(f.source, n.rows, out))
		}
		byQ, byGain := slices.Index(logQ, slices.Max(logQ)), slices.Index(gain, slices.Max(gain))
		if gain[byQ] < gain[byGain]-1e-9 || logQ[byGain] < logQ[byQ]-1e-9 {
			r.Fatalf("the highest log Q has network %d, with the gain %v; the highest gain has network %d, with the gain %v "+
				"and log Q/n %v, not %v",
				byQ, gain[byQ], byGain, gain[byGain], logQ[byGain], logQ[byQ])
		}
	})
}

// informationGain is the IG of section 2 of the supplement of rows with an output above 0 on the left.
func informationGain(s *source, rows []uint32, out []float32) float64 {
	var masses [3][]float64 // by label: on the left, on the right, on both sides
	for side := range masses {
		masses[side] = make([]float64, s.classes)
	}
	for i, row := range rows {
		side := 0
		if out[i] < 0 {
			side = 1
		}
		for label, d := range s.Label(row) {
			mass := float64(s.counts[row]) * float64(d)
			masses[side][label] += mass
			masses[2][label] += mass
		}
	}
	entropy := func(masses []float64) (total, h float64) { // total·H
		for _, mass := range masses {
			total += mass
		}
		for _, mass := range masses {
			if mass > 0 {
				h -= mass * math.Log(mass/total)
			}
		}
		return total, h
	}
	_, left := entropy(masses[0])
	_, right := entropy(masses[1])
	total, all := entropy(masses[2])
	return (all - left - right) / total
}

// TestScale: inputs have the mean 0 and the deviation 1 over the samples of a node, copies
// counted, in either storage; a constant one is 0.
func TestScale(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		rows := someRows(5, 6, 3, true)
		d := rowsOf(200, 6, 3, 3, sparse, func(i int) (x, d []float32) {
			x, d = rows(i)
			x[4], x[5] = 0.1, 0
			return x, d
		})
		c := configOf(t, map[string]any{"share": 1.0}, d.Manifest)
		g := growerOf(t, c, d)
		copies := 0
		for i := range g.source.counts {
			g.source.counts[i] = uint32(1 + i%3)
			copies += 1 + i%3
		}
		f, n := &g.fitter, &node{path: 1, rows: g.rows, copies: copies}
		f.topology(n)
		f.scale(n)
		_, z, _ := twinOf(f, n)
		for i := range f.net.inputs {
			sum, square := 0.0, 0.0
			for s, row := range n.rows {
				w := float64(g.source.counts[row])
				sum, square = sum+w*z[s][i], square+w*z[s][i]*z[s][i]
			}
			want := 1.0
			if i >= 4 {
				want = 0
			}
			if math.Abs(sum) > 1e-4*float64(copies) || math.Abs(square/float64(copies)-want) > 1e-5 {
				t.Errorf("sparse %v: input %d has mean %v and square %v", sparse, i, sum/float64(copies), square/float64(copies))
			}
		}
	}
}

// TestMedian: half of the copies are not above the median.
func TestMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "rows")
		s := num.NewStream(num.NewKey(rapid.Uint64().Draw(t, "seed"), "median"), 0, 0)
		f := &fitter{source: &source{}}
		out, rows, all := make([]float32, n), make([]uint32, n), 0
		for i := range out {
			out[i], rows[i] = float32(int(6*s.Normal())), uint32(i)
			draws := uint32(1 + s.Uint64n(4))
			f.source.counts = append(f.source.counts, draws)
			all += int(draws)
		}
		m := f.median(out, rows)
		below, upTo := 0, 0
		for i, x := range out {
			if x < m {
				below += int(f.source.counts[i])
			}
			if x <= m {
				upTo += int(f.source.counts[i])
			}
		}
		if 2*below >= all || 2*upTo < all {
			t.Fatalf("median %v of %v, draws %v", m, out, f.source.counts)
		}
	})
}

// TestHidden: what the setting hidden may be.
func TestHidden(t *testing.T) {
	for text, want := range map[string]topology{
		"0": {0, 0, false}, "8": {8, 8, false}, "4-16": {4, 16, false}, "0-3": {0, 3, false},
		"adaptive": {2, 32, true}, "adaptive-64": {2, 64, true}, "512": {512, 512, false},
	} {
		if got, err := parseHidden(text); err != nil || got != want {
			t.Errorf("%s: %+v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "08", "+8", "513", "9-4", "4-", "-4", "4-16-20", "adaptive-1", "adaptive-",
		"Adaptive", "8.0", "1e1"} {
		if got, err := parseHidden(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
