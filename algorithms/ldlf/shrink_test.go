package ldlf

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// noise returns a problem whose labels say nothing of the features.
func noise(n int) *problem {
	p := makeProblem(4, n, 7, 3, 0.5)
	s := num.NewStream(num.NewKey(5, "test"), 0, 0)
	for i := range n {
		d, sum := p.d[i*p.labels:][:p.labels], float32(0)
		for c := range d {
			x := s.Float64()
			d[c] = float32(0.01 + x*x*x*float64(1+c))
			sum += d[c]
		}
		for c := range d {
			d[c] /= sum
		}
	}
	return p
}

// shrinkConfig is a forest that validates, chooses a share of the mean and trains once more.
func shrinkConfig() *Config {
	c := smallConfig()
	c.ValidationFraction, c.Patience, c.LeafFirst, c.LeafBatches, c.Steps = 0.2, 2, true, 4, 60
	c.LearningRate, c.LeafIterations, c.Refit, c.Shrink = 20, 20, true, true
	return c
}

// TestTakeMean: a tree's q and its sums of Eq. 12 have the label distribution of the rows.
func TestTakeMean(t *testing.T) {
	const rows, leaves, labels = 9, 4, 3
	s := num.NewStream(num.NewKey(1, "test"), 0, 0)
	draw := func(n int) []float64 { // a distribution
		v, sum := make([]float64, n), 0.0
		for i := range v {
			v[i] = 0.05 + s.Float64()
			sum += v[i]
		}
		for i := range v {
			v[i] /= sum
		}
		return v
	}
	q, sums, want := make([]float32, leaves*labels), make([]float64, leaves*labels), make([]float64, labels)
	for l := range leaves {
		for c, x := range draw(labels) {
			q[l*labels+c] = float32(x)
		}
	}
	total := 0.0
	for i := range rows {
		weight, p, d := float64(1+i%3), draw(leaves), draw(labels)
		total += weight
		for c, degree := range d {
			g := 0.0
			for l := range leaves {
				g += p[l] * float64(q[l*labels+c])
			}
			for l := range leaves {
				sums[l*labels+c] += weight * p[l] * degree / g
			}
			want[c] += weight * degree
		}
	}
	mean := make([]float32, labels)
	takeMean(mean, q, sums)
	for c := range want {
		if math.Abs(float64(mean[c])-want[c]/total) > 1e-6 {
			t.Errorf("label %d: %v, want %v", c, mean[c], want[c]/total)
		}
	}
	before := slices.Clone(mean)
	if takeMean(mean, q, make([]float64, len(sums))); !slices.Equal(mean, before) {
		t.Errorf("sums of no rows gave %v", mean)
	}
}

// TestShrunkLeaves: leaves with a share of the mean predict that mixture; with none of it they keep their bits.
func TestShrunkLeaves(t *testing.T) {
	p := noise(60)
	c := smallConfig()
	m := train(t, c, p, 2, false, 1)
	_, d := p.data(2, false, dataset.Split{})
	mean := []float32{0.5, 0.3, 0.2}
	if !slices.Equal(shrunk(m.q, mean, 0), m.q) {
		t.Error("no part of the mean changes leaves")
	}
	plain := predictAll(m, d)
	for parts := 1; parts <= shrinkParts; parts++ {
		mixed := *m
		mixed.q = shrunk(m.q, mean, parts)
		w := float64(parts) / shrinkParts
		for i, got := range predictAll(&mixed, d) {
			if want := (1-w)*float64(plain[i]) + w*float64(mean[i%3]); math.Abs(float64(got)-want) > 1e-6 {
				t.Fatalf("%d parts: value %d is %v, want %v", parts, i, got, want)
			}
		}
	}
}

// TestShrink: the share is the one of the least loss on the validation rows, under the best vectors. Where labels
// are noise, much of the mean is taken, with a refit and without one; where they are not, none is, and the
// model is the one without the choice.
func TestShrink(t *testing.T) {
	for name, p := range map[string]*problem{"noise": noise(60), "noise of more rows": noise(200),
		"labels that follow": makeProblem(4, 200, 7, 3, 0.5)} {
		for _, refit := range []bool{true, false} {
			c := shrinkConfig()
			c.Refit = refit
			plain := *c
			plain.Shrink = false
			parts, mean := chosen(t, c, p)
			shrinks, not := train(t, c, p, 4, false, 2), train(t, &plain, p, 4, false, 1)
			switch {
			case (parts > 0) != (name != "labels that follow"):
				t.Errorf("%s, refit %v: %d parts of the mean", name, refit, parts)
			case !slices.Equal(shrinks.weights.Theta, not.weights.Theta):
				t.Errorf("%s, refit %v: the choice changes Θ", name, refit)
			case !slices.Equal(shrinks.q, shrunk(not.q, mean, parts)):
				t.Errorf("%s, refit %v: other leaves than those with %d parts of %v", name, refit, parts, mean)
			}
		}
	}
}

// chosen trains, holds the choice against losses that are computed here, and returns it with the last mean.
func chosen(t *testing.T, c *Config, p *problem) (parts int, mean []float32) {
	j := jobOf(c, 3)
	m, d := p.data(4, false, j.Split)
	tr, k := start(t, j, m)
	choices, want := 0, 0
	before := gradient.PhaseScaling
	drive(t, tr, k, d, 1, func(tr *trainer) {
		if before == gradient.PhaseChoice && int(tr.parts) != want {
			t.Errorf("%d parts are chosen, want %d", tr.parts, want)
		}
		if before = tr.Phase; before == gradient.PhaseChoice {
			choices++
			want = leastLoss(tr, d)
			closeToMean(t, tr.mean, p)
		}
	})
	if choices != 1 {
		t.Fatalf("%d choices, want 1", choices)
	}
	return int(tr.parts), tr.mean
}

// leastLoss returns the parts of the mean that have the least loss on the validation rows.
func leastLoss(tr *trainer, d *dataset.Data) int {
	best := tr.Stopping.Best.Vectors
	m := tr.model(best[0].Data, best[1].Data)
	predicted := predictAll(m, d)
	var losses []float64
	for parts := range shrinkParts + 1 {
		w, sum := float64(parts)/shrinkParts, 0.0
		for _, ref := range d.Select(0, len(d.Manifest.Shards), dataset.Validation) {
			rows := d.Shard(int(ref.Shard))
			row := int(rows.Row[ref.Pos])
			for c, degree := range rows.Label(int(ref.Pos)) {
				g := (1-w)*float64(predicted[row*m.labels+c]) + w*float64(tr.mean[c])
				sum += float64(degree) * math.Log(float64(degree)/g)
			}
		}
		losses = append(losses, sum)
	}
	return slices.Index(losses, slices.Min(losses))
}

// closeToMean reports a mean that is not nearly that of all rows: it is one of many of them.
func closeToMean(t *testing.T, mean []float32, p *problem) {
	if e := maxDifference(mean, p.mean()[:p.labels]); e > 0.05 {
		t.Errorf("the mean label distribution is %v, of all rows %v", mean, p.mean()[:p.labels])
	}
}

// TestShrinkStatesRefused: parts of the mean before they are chosen, or more than there are.
func TestShrinkStatesRefused(t *testing.T) {
	c := shrinkConfig()
	j := jobOf(c, 3)
	m, _ := noise(100).data(4, false, j.Split)
	tr, _ := start(t, j, m)
	state, err := tr.AppendState(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, parts := range []byte{1, shrinkParts + 1} {
		bad := bytes.Clone(state)
		bad[len(bad)-1] = parts
		if _, err := New().NewTrainer(j, m, bad); !errors.Is(err, fields.ErrState) {
			t.Errorf("%d parts at the start: error %v", parts, err)
		}
	}
}

// TestShrinkSettings: preset auto chooses a share where there are validation rows; preset paper has the JSON form that
// it had before there was the setting.
func TestShrinkSettings(t *testing.T) {
	for _, x := range []struct {
		given   param.Values
		shrinks bool
		written string // in the JSON form
	}{
		{nil, true, `"shrink":true`},
		{param.Values{"shrink": false}, false, `"shrink":false`},
		{param.Values{"validation_fraction": 0.0}, false, `"shrink":false`},
		{param.Values{"preset": "paper"}, false, ""},
		{param.Values{"preset": "paper", "validation_fraction": 0.1, "shrink": true}, true, `"shrink":true`},
	} {
		r, err := New().Resolve(x.given, yeast)
		if err != nil {
			t.Fatal(err)
		}
		c, err := settings.Parse(r.Params)
		if err != nil || c.Shrink != x.shrinks {
			t.Errorf("%v: %+v, error %v", x.given, c, err)
		}
		if x.written == "" && bytes.Contains(r.Params, []byte("shrink")) || !bytes.Contains(r.Params, []byte(x.written)) {
			t.Errorf("%v: %s", x.given, r.Params)
		}
	}
}
