package generate

import (
	"math"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// The digests are those of this program's first version. They change only with
// numerics, FORMAT.md or the rules of generate.go.
const (
	goldenArtificial = "4cc399f8404a20472023d1e1541a72e6c10431de7e1941d144823f1cbbfaf34e"
	goldenSparse     = "5ec5a19fafd5cbc2b5299c5c21d4fea369c4370cad45d74d76d22df046756c52"
)

func TestGoldenDigests(t *testing.T) {
	sparse, err := New(Options{Rows: 1000, Features: 5000, Labels: 7, Density: 0.01, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for want, src := range map[string]dataset.Source{goldenArtificial: Artificial(2500, 1), goldenSparse: sparse} {
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Digest(); got != want {
			t.Errorf("digest %s, want %s (%v)", got, want, m)
		}
	}
}

// TestArtificialFormula computes the labels from the features as the paper says.
func TestArtificialFormula(t *testing.T) {
	least, most := [3]float64{1, 1, 1}, [3]float64{-1, -1, -1}
	for _, r := range datasettest.Collect(t, Artificial(2000, 1)) {
		var ts [3]float64
		for i, x := range r.Values {
			least[i], most[i] = min(least[i], x), max(most[i], x)
			ts[i] = x + 0.5*x*x + 0.2*x*x*x + 1
		}
		p1 := math.Pow(4*ts[0]+2*ts[1]+1*ts[2], 2)
		p2 := math.Pow(1*ts[0]+2*ts[1]+4*ts[2]+0.01*p1, 2)
		p3 := math.Pow(1*ts[0]+4*ts[1]+2*ts[2]+0.01*p2, 2)
		for i, p := range []float64{p1, p2, p3} {
			if want := p / (p1 + p2 + p3); math.Abs(r.Labels[i]-want) > 1e-14 {
				t.Fatalf("row %d: labels %v, want %v at %d", r.Number, r.Labels, want, i)
			}
		}
	}
	for i := range least {
		if least[i] < -1 || least[i] > -0.99 || most[i] > 1 || most[i] < 0.99 {
			t.Errorf("feature %d lies in [%v, %v]", i, least[i], most[i])
		}
	}
}

// TestArtificialGrid: the points on which the paper shows models.
func TestArtificialGrid(t *testing.T) {
	rows := datasettest.Collect(t, ArtificialGrid(51))
	if len(rows) != 2601 || rows[0].Values[0] != -1 || rows[50].Values[0] != 1 || rows[51].Values[0] != -1 ||
		rows[2600].Values[1] != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		x := r.Values
		if step := float64(r.Number%51)*.04 - 1; math.Abs(x[0]-step) > 1e-7 ||
			math.Abs(x[2]-math.Sin(math.Pi*(x[0]+x[1]))) > 1e-7 {
			t.Fatalf("row %d: %v", r.Number, x)
		}
		var want [3]float64
		if artificialLabels(want[:], x); want != [3]float64(r.Labels) {
			t.Fatalf("row %d: labels %v, want %v", r.Number, r.Labels, want)
		}
	}
}

func TestSeeds(t *testing.T) {
	digest := func(src dataset.Source, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Digest()
	}
	if digest(Artificial(50, 1), nil) == digest(Artificial(50, 2), nil) {
		t.Error("two seeds give one artificial set")
	}
	o := Options{Rows: 50, Features: 9, Labels: 3, Density: 0.3, Seed: 1}
	first := digest(New(o))
	if o.Seed = 2; first == digest(New(o)) {
		t.Error("two seeds give one generated set")
	}
}

// A longer set begins with the shorter one.
func TestRowsDependOnTheirNumberOnly(t *testing.T) {
	long, short := datasettest.Collect(t, Artificial(20, 1)), datasettest.Collect(t, Artificial(10, 1))
	for i := range short {
		if !datasettest.SameFloat32(long[i].Values, short[i].Values) {
			t.Errorf("row %d differs", i)
		}
	}
}

func TestGenerateShapes(t *testing.T) {
	for _, c := range []struct {
		o      Options
		perRow int
		sparse bool
	}{
		{Options{Rows: 200, Features: 1000, Labels: 5, Density: 0.013, Seed: 1}, 13, true},
		{Options{Rows: 200, Features: 1000, Labels: 5, Density: 1e-9, Seed: 1}, 1, true},
		{Options{Rows: 200, Features: 100, Labels: 1, Density: 0.25, Seed: 1}, 25, false},
		{Options{Rows: 200, Features: 7, Labels: 2, Density: 1, Seed: 1}, 7, false},
	} {
		src, err := New(c.o)
		if err != nil {
			t.Fatal(err)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if m.NonZeros != int64(c.perRow*c.o.Rows) || m.Sparse != c.sparse || m.Rows != c.o.Rows ||
			m.Features != c.o.Features || m.Labels != c.o.Labels {
			t.Errorf("%+v: %v", c.o, m)
		}
	}
}

// TestGeneratedLabelsVary checks that there is something to learn: the labels lie
// far from their mean.
func TestGeneratedLabelsVary(t *testing.T) {
	src, err := New(Options{Rows: 1000, Features: 300, Labels: 4, Density: 0.05, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := importer.Build(src, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kl := 0.0
	for _, r := range datasettest.Collect(t, src) {
		for i, d := range r.Labels {
			kl += d * math.Log(d/m.MeanLabel[i]) / 1000
		}
	}
	if kl < 0.1 {
		t.Errorf("the mean label is only %v from the rows", kl)
	}
}

func TestGenerateErrors(t *testing.T) {
	for _, o := range []Options{
		{Rows: 0, Features: 1, Labels: 1, Density: 1}, {Rows: 1, Features: 0, Labels: 1, Density: 1},
		{Rows: 1, Features: 1, Labels: 0, Density: 1}, {Rows: 1, Features: 1, Labels: 1},
		{Rows: 1, Features: 1, Labels: 1, Density: 1.1}, {Rows: 1, Features: 1, Labels: 1, Density: math.NaN()},
		{Rows: 1, Features: dataset.MaxFeatures + 1, Labels: 1, Density: 1}, {Rows: -1, Features: 1, Labels: 1, Density: 1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
