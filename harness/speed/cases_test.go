package speed

import (
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
)

var tiny = Shape{Name: "tiny", Rows: 300, Features: 8, Labels: 4, Density: 1}

func open(t *testing.T, s Shape, folder string) *Set {
	t.Helper()
	set, err := s.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestTraining: a small training has as many steps and leaf updates as it says, and its step
// with leaf updates is the sum of both.
func TestTraining(t *testing.T) {
	linear := Training{Trees: 2, Depth: 3, Outputs: 8, Rate: 1, Momentum: 0.9, Interval: 5, Intervals: 3, Iterations: 4}
	deep := linear
	deep.Hidden, deep.Rate = 6, 0.1
	thin := Shape{Name: "thin", Rows: 300, Features: 100, Labels: 3, Density: 0.02}
	for _, x := range []struct {
		p Training
		s Shape
	}{{linear, tiny}, {linear, thin}, {deep, tiny}, {deep, thin}} {
		p, s := x.p, x.s
		set := open(t, s, "")
		c, err := p.Case(set, 64, "")
		if err != nil {
			t.Fatal(err)
		}
		f, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all, update, step := f.Seconds[0], f.Seconds[1], f.Seconds[2]
		if want := step + update/5; !(update > 0 && step > 0) || math.Abs(all-want) > 1e-12 {
			t.Errorf("%s: %v, want %v of a step and a fifth of an update", s.Name, f.Seconds, want)
		}
		if !(f.Loss > 0 && f.Loss < 1) {
			t.Errorf("%s: the loss is %v", s.Name, f.Loss)
		}
		if set.standardise() != (s.Density == 1) || set.Manifest.Sparse != (s.Density < 1) {
			t.Errorf("%s: standardise %v, sparse %v", s.Name, set.standardise(), set.Manifest.Sparse)
		}
	}
}

// TestGrowing: growing and predicting have figures, and a loss below the mean predictor's
// scale.
func TestGrowing(t *testing.T) {
	set := open(t, tiny, "")
	g := Growing{Trees: 3, Depth: 4, MinSamples: 5}
	grow, err := g.Grow(set, "")
	if err != nil {
		t.Fatal(err)
	}
	predict, err := g.Predict(set, "x.npz")
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for _, c := range []Case{grow, predict} {
		f, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Seconds) != len(c.Of) {
			t.Fatalf("%s: %v", c.Name, f)
		}
		for i, s := range f.Seconds {
			if !(s > 0) {
				t.Errorf("%s, %s: %v s", c.Name, c.Of[i], s)
			}
		}
		losses = append(losses, f.Loss)
	}
	if losses[0] != losses[1] || !(losses[0] > 0 && losses[0] < 1) {
		t.Errorf("losses %v of the same forest", losses)
	}
	if grow.Jobs != nil || predict.Jobs[PeerSklearn]["samples"] != 5 {
		t.Errorf("jobs %v and %v", grow.Jobs, predict.Jobs)
	}
}

// TestShape: without a file there are generated rows of the shape, and it is said.
func TestShape(t *testing.T) {
	folder := t.TempDir()
	for _, folder := range []string{"", folder} {
		s := open(t, tiny, folder)
		if !s.Source.Generated || s.Manifest.Rows != 300 || s.Manifest.Features != 8 || s.Manifest.Labels != 4 {
			t.Errorf("%+v, %+v", s.Source, s.Manifest)
		}
	}
	s := open(t, tiny, "")
	path, err := s.ForPeers(folder)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.ForPeers(folder); err != nil || again != path || !strings.HasSuffix(path, ".npz") {
		t.Errorf("%s, then %s, error %v", path, again, err)
	}
	src, err := read.Open(path, read.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil || m.Rows != 300 || m.Labels != 4 {
		t.Errorf("what peers read: %+v, error %v", m, err)
	}
}

// TestBoosting: a boosting has the seconds and the K-L divergence of each tree, and its parts are less than a tree.
func TestBoosting(t *testing.T) {
	b := Boosting{Trees: 4, Depth: 3, Bins: 16, Rate: 0.2, L2: 1}
	c, err := b.Case(open(t, tiny, ""), "x.npz")
	if err != nil {
		t.Fatal(err)
	}
	if c.Jobs[PeerXGBoost] == nil || c.Jobs[PeerLightGBM]["trees"] != 4 {
		t.Errorf("jobs of peers: %v", c.Jobs)
	}
	f, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Seconds) != len(c.Of) || len(f.Steps) != 4 || f.Seconds[0] != f.Steps[3].Seconds ||
		f.Loss != f.Steps[3].Loss {
		t.Fatalf("%+v", f)
	}
	before := Step{Loss: f.Start}
	for _, s := range f.Steps {
		if !(s.Loss > 0 && s.Loss < before.Loss) || s.Seconds < before.Seconds {
			t.Errorf("a tree with %+v after %+v", s, before)
		}
		before = s
	}
	if all := f.Seconds[1] + 4*(f.Seconds[3]+f.Seconds[4]+f.Seconds[5]); all > 1.01*f.Seconds[0]+1e-6 {
		t.Errorf("parts of %v s in %v s", all, f.Seconds[0])
	}
}

// TestCompare: a peer is compared at the greater one of the last losses, between trees in proportion.
func TestCompare(t *testing.T) {
	ours := []Step{{Seconds: 1, Loss: 0.8}, {Seconds: 2, Loss: 0.6}}
	for _, c := range []struct {
		theirs []Step
		want   Equal
	}{
		{[]Step{{Seconds: 3, Loss: 0.8}, {Seconds: 6, Loss: 0.6}}, Equal{Loss: 1, Ratio: 3}},
		{[]Step{{Seconds: 2, Loss: 0.7}, {Seconds: 4, Loss: 0.5}}, Equal{Loss: 0.7, Ratio: 3 / 2.0}},
		{[]Step{{Seconds: 1, Loss: 0.9}, {Seconds: 6, Loss: 0.8}}, Equal{Loss: 0.9, Ratio: 6}},
	} {
		got := compare(ours, c.theirs, 1)
		if math.Abs(got.Ratio-c.want.Ratio) > 1e-12 || got.Loss != c.want.Loss {
			t.Errorf("%v: %+v, want %+v", c.theirs, *got, c.want)
		}
	}
}
