package read

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/harness/testkit"
)

// The sums weigh each value by (row mod 7 + 1)·(column mod 5 + 1), so that a
// value out of place shows. They were made with Python's zlib, struct and
// math.fsum from the float64 values of the files.
var realSets = []struct {
	name                   string
	rows, features, labels int
	sumFeatures, sumLabels float64
	needsNormalizing       bool
}{
	{"Yeast_alpha", 2465, 24, 18, 235528.11467960913, 27941.471749113553, false},
	{"Yeast_cdc", 2465, 24, 15, 235528.11467960913, 29371.59313909868, false},
	{"Yeast_heat", 2465, 24, 6, 235528.11467960913, 26514.460257349627, false},
	{"Yeast_spo5", 2465, 24, 3, 235528.11467960913, 19834.630276411855, false},
	{"SJAFFE", 213, 243, 6, 2407.4379562043796, 2284.5092769271755, false},
	{"Movie", 7755, 1869, 5, 1672193.7641302417, 98460.59564532444, false},
	{"Music", 360, 128, 9, 247278.39222565838, 4029.5732756040866, false},
	{"FG-Net", 1002, 251, 70, 110.60946406859297, 11336.176034293392, true},
}

func TestRealData(t *testing.T) {
	testkit.WithoutRace(t)
	dir := testkit.Shared(t, "data")
	for _, c := range realSets {
		src, err := Open(filepath.Join(dir, c.name+".mat"), OpenOptions{})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if i := src.Info(); i.Rows != c.rows || i.Features != c.features || i.Labels != c.labels {
			t.Errorf("%s: %+v", c.name, i)
		}
		features, labels := weightedSums(t, src)
		// Features pass through float32, labels do not.
		if !near(features, c.sumFeatures, 1e-5) || !near(labels, c.sumLabels, 1e-13) {
			t.Errorf("%s: sums %v and %v, want %v and %v", c.name, features, labels, c.sumFeatures, c.sumLabels)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if c.needsNormalizing {
			var row *dataset.RowError
			if !errors.As(err, &row) || row.Row != 0 {
				t.Errorf("%s: %v", c.name, err)
			}
			datasettest.MustContain(t, err, c.name+".mat", "sum to 0.967253", "--normalize")
			m, _, err = importer.Build(src, importer.Options{Checks: importer.Checks{Normalize: true}})
		}
		if err != nil || m.Sparse != (c.name == "Movie") || len(m.Shards) != 16 {
			t.Errorf("%s: %v, %v", c.name, m, err)
		}
	}
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Abs(b) }

func weightedSums(t *testing.T, src dataset.Source) (features, labels float64) {
	t.Helper()
	for _, r := range datasettest.Collect(t, src) {
		w := float64(r.Number%7 + 1)
		for i, v := range datasettest.Dense(r, src.Info().Features) {
			features += w * float64(i%5+1) * v
		}
		for i, v := range r.Labels {
			labels += w * float64(i%5+1) * v
		}
	}
	return features, labels
}

func TestRealAges(t *testing.T) {
	o := OpenOptions{Labels: LabelOptions{Kind: dataset.Age, Sigma: 2, Low: 0, High: 69}}
	src, err := Open(testkit.Shared(t, "data/FG-Net.mat"), o)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	err = importer.Blocks(src, 100, importer.Options{}, func(r *dataset.Rows, _ []string) error {
		for i := range r.N {
			best := 0
			for k, d := range r.Label(i) {
				if d > r.Label(i)[best] {
					best = k
				}
			}
			sum += best
		}
		return nil
	})
	if err != nil || sum != 15872 { // the sum of all ages
		t.Errorf("ages sum to %d, %v", sum, err)
	}
}

func TestRealDigits(t *testing.T) {
	src, err := Open(testkit.Shared(t, "data/digits.csv.gz"),
		OpenOptions{Labels: LabelOptions{Kind: dataset.Class, Columns: []string{"last"}}})
	if err != nil {
		t.Fatal(err)
	}
	features, classes := 0.0, 0.0
	rows := datasettest.Collect(t, src)
	for _, r := range rows {
		for i, v := range r.Values {
			features += float64((r.Number%7+1)*(i%5+1)) * v
		}
		for k, d := range r.Labels {
			classes += float64((r.Number%7+1)*(k%5+1)) * d
		}
	}
	if i := src.Info(); len(rows) != 1797 || i.Features != 64 || i.Labels != 10 || features != 6728713 ||
		classes != 21502 {
		t.Errorf("%d rows, %+v, sums %v and %v", len(rows), i, features, classes)
	}
}

func TestRealFolds(t *testing.T) {
	dir := testkit.Shared(t, "folds")
	for _, c := range realSets {
		folds, k, err := FoldsFile(filepath.Join(dir, c.name+".csv"), c.rows)
		if err != nil || k != 10 || len(folds) != c.rows {
			t.Errorf("%s: %d folds, %v", c.name, k, err)
		}
	}
}
