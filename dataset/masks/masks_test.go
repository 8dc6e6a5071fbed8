package masks

import (
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

// build imports a generated dataset with a mask.
func build(t *testing.T, o Options) (*dataset.Manifest, []*dataset.Rows, *Stats) {
	t.Helper()
	src, err := generate.New(generate.Options{Rows: 600, Features: 3, Labels: 5, Density: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	hidden, stats, err := New(src, importer.Options{}, o)
	if err != nil {
		t.Fatal(err)
	}
	m, shards, err := importer.Build(hidden, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m, shards, stats
}

// TestMasks: as many degrees are hidden as asked for, and the dataset has as many missing as the statistics say.
func TestMasks(t *testing.T) {
	for name, c := range map[string]struct {
		o           Options
		hidden, tol float64 // expected fraction before the repair
	}{
		"uniform":    {Options{Mask: dataset.Mask{Rate: 0.4}, Seed: 1}, 0.4, 0.03},
		"golden":     {Options{Mask: dataset.Mask{Rate: 0.4, Golden: true}, Seed: 1}, 0.4, 0.03},
		"unlabelled": {Options{Mask: dataset.Mask{Rate: 0.4, Unlabelled: 0.25}, Seed: 1}, 0.55, 0.04},
		"weighted":   {Options{Mask: dataset.Mask{Rate: 0.4}, Weighted: true, Seed: 1}, 0.4, 1e-9},
	} {
		m, shards, stats := build(t, c.o)
		missing := 0
		for _, r := range shards {
			missing += dataset.CountMissing(r.D)
		}
		if int64(missing) != stats.Missing || !m.LabelType.Incomplete || stats.Degrees != 3000 {
			t.Errorf("%s: %d are missing, %+v", name, missing, stats)
		}
		if share := float64(stats.Missing+int64(stats.Repaired)) / 3000; math.Abs(share-c.hidden) > c.tol {
			t.Errorf("%s: %v of the degrees are hidden", name, share)
		}
		if again, _, _ := build(t, c.o); again.Digest() != m.Digest() {
			t.Errorf("%s: another mask the second time", name)
		}
		c.o.Seed = 2
		if other, _, _ := build(t, c.o); (other.Digest() == m.Digest()) != c.o.Golden {
			t.Errorf("%s: the seed does not do what it says", name)
		}
	}
}

// TestWeighted: small degrees are hidden rather than great ones.
func TestWeighted(t *testing.T) {
	whole, rows := map[uint32][]float32{}, 0
	src, err := generate.New(generate.Options{Rows: 600, Features: 3, Labels: 5, Density: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, complete, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range complete {
		for i, row := range r.Row {
			whole[row] = r.Label(i)
		}
	}
	_, shards, _ := build(t, Options{Mask: dataset.Mask{Rate: 0.4}, Weighted: true})
	hidden, kept, n := 0.0, 0.0, 0
	for _, r := range shards {
		for i, row := range r.Row {
			rows++
			for c, d := range r.Label(i) {
				if d != d {
					hidden += float64(whole[row][c])
					n++
				} else {
					kept += float64(d)
				}
			}
		}
	}
	if a, b := hidden/float64(n), kept/float64(5*rows-n); a >= b {
		t.Errorf("hidden degrees are %v on average, the others %v", a, b)
	}
}

// TestRefused: what a mask is not for.
func TestRefused(t *testing.T) {
	src, err := generate.New(generate.Options{Rows: 20, Features: 3, Labels: 5, Density: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		src dataset.Source
		o   Options
	}{
		"cannot hide the fraction":  {src, Options{Mask: dataset.Mask{Rate: 1}}},
		"cannot be combined":        {src, Options{Mask: dataset.Mask{Rate: 0.5, Unlabelled: 0.1}, Weighted: true}},
		"hide the label":            {src, Options{Mask: dataset.Mask{Rate: 0.99}}},
		"numeric labels":            {generate.Ages(20, 1), Options{Mask: dataset.Mask{Rate: 0.5}}},
		"degrees cannot be hidden:": {ones{}, Options{Mask: dataset.Mask{Rate: 0.9}, Weighted: true}},
	} {
		if _, _, err := New(c.src, importer.Options{}, c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, want)
		}
	}
}

// TestLeftOut: samples that are left out are told, and the others are numbered anew.
func TestLeftOut(t *testing.T) {
	said := ""
	tell := func(text errtext.Text) { said += text.String() }
	hidden, stats, err := New(gap{}, importer.Options{Warn: tell}, Options{Mask: dataset.Mask{Rate: 0.1}})
	if err != nil || hidden.Info().Rows != 7 || stats.Degrees != 14 {
		t.Fatalf("%+v, %v", stats, err)
	}
	if !strings.Contains(said, "1 of 8 samples have missing values and are left out") {
		t.Errorf("warnings: %q", said)
	}
	if err := hidden.Scan(func(*dataset.Row) error { return nil }); err != nil {
		t.Error(err)
	}
}

// gap is ones without sample 3.
type gap struct{ ones }

func (g gap) Scan(f func(*dataset.Row) error) error {
	return g.ones.Scan(func(r *dataset.Row) error {
		r.LeftOut = r.Number == 3
		return f(r)
	})
}

// ones are samples with one label whose degree is 1.
type ones struct{}

func (ones) Info() dataset.Info { return dataset.Info{Rows: 8, Features: 1, Labels: 2} }

func (ones) Scan(f func(*dataset.Row) error) error {
	for i := range 8 {
		r := &dataset.Row{Number: i, Values: []float64{1}, Labels: []float64{float64(i % 2), float64(1 - i%2)}}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}
