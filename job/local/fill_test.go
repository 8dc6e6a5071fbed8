package local

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// holes is a Source of rows some features of which are missing.
type holes struct {
	x, labels [][]float64
	by        string
}

// newHoles draws rows: a feature far from 0, one that is mostly 0, one of few whole numbers, one with
// negative values. Every row has the label distribution that its first feature says.
func newHoles(rows int, zeros float64) *holes {
	h, r := &holes{}, rand.New(rand.NewPCG(5, 6))
	for range rows {
		x := []float64{1000 + r.NormFloat64(), 0, float64(r.IntN(4)), -5 + 3*r.NormFloat64(), r.NormFloat64(),
			r.NormFloat64()}
		for zeros > .5 && len(x) < 30 {
			x = append(x, r.NormFloat64())
		}
		if r.Float64() > zeros {
			x[1] = r.Float64()
		}
		for i := 3; i < len(x); i++ {
			if r.Float64() < zeros {
				x[i] = 0
			}
		}
		share := 1 / (1 + math.Exp(1000-x[0]))
		for i := range x {
			if x[i] = float64(float32(x[i])); r.IntN(9) == 0 {
				x[i] = math.NaN()
			}
		}
		h.x, h.labels = append(h.x, x), append(h.labels, []float64{share, 1 - share})
	}
	return h
}

func (h *holes) Info() dataset.Info {
	names := []string{"far", "zeros", "whole", "low"}
	for i := len(names); i < len(h.x[0]); i++ {
		names = append(names, fmt.Sprint(i))
	}
	return dataset.Info{Rows: len(h.x), Features: len(h.x[0]), Labels: 2, FeatureNames: names,
		Missing: dataset.Missing{By: h.by}}
}

func (h *holes) Scan(f func(*dataset.Row) error) error {
	for i := range h.x {
		if err := f(&dataset.Row{Number: i, Values: slices.Clone(h.x[i]), Labels: slices.Clone(h.labels[i])}); err != nil {
			return err
		}
	}
	return nil
}

// built is the dataset with its missing features.
func (h *holes) built(t *testing.T) *Data {
	t.Helper()
	m, shards, err := importer.Build(h, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return &Data{Manifest: m, Shards: shards}
}

// statistics computes the mean or the median of each feature in the training rows.
func (h *holes) statistics(roles []dataset.Roles) (values []float64) {
	for i := range h.x[0] {
		var column []float64
		for row, x := range h.x {
			if roles[row] == dataset.Train && x[i] == x[i] {
				column = append(column, x[i])
			}
		}
		slices.Sort(column)
		n, sum := len(column), 0.0
		for _, v := range column {
			sum += v
		}
		v := sum / float64(n)
		if h.by == dataset.FillMedian {
			v = (column[(n-1)/2] + column[n/2]) / 2
		}
		values = append(values, float64(float32(v)))
	}
	return values
}

// with has values in the place of missing features, and no way to fill them.
func (h *holes) with(values []float64) *holes {
	f := &holes{labels: h.labels}
	for _, x := range h.x {
		x = slices.Clone(x)
		for i, v := range x {
			if v != v {
				x[i] = values[i]
			}
		}
		f.x = append(f.x, x)
	}
	return f
}

// fillOf returns what a model keeps in the place of missing features.
func fillOf(t *testing.T, model []byte) []float64 {
	t.Helper()
	f, err := modelfile.Decode(model)
	if err != nil {
		t.Fatal(err)
	}
	var p pipeline.Provenance
	if err := json.Unmarshal(f.Provenance, &p); err != nil {
		t.Fatal(err)
	}
	return p.Fill
}

// close reports whether two lists differ by rounding only.
func close(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(b)) })
}

// TestFill: a job on rows with missing features has the model of the same job on rows that are filled by
// hand with the mean or the median of its training rows, and keeps these; each fold has its own.
func TestFill(t *testing.T) {
	settings := map[string]map[string]string{
		"ldlf": {"steps": "40", "trees": "2", "depth": "3", "leaf_batches": "10"}, "structrf": {"trees": "3"},
		"aa-knn": {"k": "3"}, "sa-bfgs": {}, "rf": {"trees": "3"}, "aa-bp": {"steps": "40"}, "ldsvr": {},
	}
	for _, zeros := range []float64{.1, .97} {
		for _, by := range []string{dataset.FillMean, dataset.FillMedian} {
			h := newHoles(160, zeros)
			h.by = by
			d := h.built(t)
			if d.Manifest.Sparse != (zeros > .5) {
				t.Fatalf("sparse storage: %v", d.Manifest.Sparse)
			}
			for algorithm, set := range settings {
				for _, s := range []protocol.Spec{{TestFraction: .25}, {Folds: 3}} {
					s.Algorithm, s.Set = algorithm, set
					name := fmt.Sprintf("%s, %s, %d folds, %.0f %% zeros", algorithm, by, s.Folds, 100*zeros)
					outcome := run(t, d, resolve(t, d, s), Options{Lanes: 2})
					list := outcome.Folds
					if s.Folds == 0 {
						list = append(list, outcome)
					}
					for fold, o := range list {
						j := resolve(t, d, s)
						if s.Folds > 0 {
							j = pipeline.SubJob(j, fold)
						}
						roles, err := j.Split.Assign(len(h.x), nil)
						if err != nil {
							t.Fatal(err)
						}
						fill := fillOf(t, o.Model)
						if want := h.statistics(roles); !close(fill, want) {
							t.Errorf("%s: fold %d is filled with %v, want %v", name, fold, fill, want)
						}
						filled := h.with(fill).built(t)
						want := *j // with the settings that were resolved for the dataset with missing values
						want.Fill, want.Dataset = "", filled.Manifest.Digest()
						if got := run(t, filled, &want, Options{}); got.ModelDigest != o.ModelDigest || got.Measures != o.Measures {
							t.Errorf("%s: fold %d has the digest %.12s, filled by hand %.12s", name, fold, o.ModelDigest, got.ModelDigest)
						}
					}
				}
			}
		}
	}
}

// TestFillSeesNoTestRow: with other values in test and validation rows the training rows are filled with
// the same.
func TestFillSeesNoTestRow(t *testing.T) {
	for _, by := range []string{dataset.FillMean, dataset.FillMedian} {
		h := newHoles(160, .1)
		h.by = by
		d := h.built(t)
		s := protocol.Spec{TestFraction: .25, Set: map[string]string{"steps": "40", "trees": "2", "depth": "3",
			"leaf_batches": "10"}}
		j := resolve(t, d, s)
		roles, err := j.Split.Assign(len(h.x), nil)
		if err != nil {
			t.Fatal(err)
		}
		planted := &holes{labels: h.labels, by: by}
		for row, x := range h.x {
			x = slices.Clone(x)
			for i := range x {
				if roles[row] != dataset.Train && x[i] == x[i] {
					x[i] = 1e6 * float64(i+1)
				}
			}
			planted.x = append(planted.x, x)
		}
		a, b := run(t, d, j, Options{}), run(t, planted.built(t), resolve(t, planted.built(t), s), Options{})
		if !slices.Equal(fillOf(t, a.Model), fillOf(t, b.Model)) {
			t.Errorf("%s: %v, with other test rows %v", by, fillOf(t, a.Model), fillOf(t, b.Model))
		}
		if a.Measures == b.Measures {
			t.Errorf("%s: the planted rows were not tested", by)
		}
	}
}

// TestFillEnsemble: members of an ensemble fill with their own training rows, the inner folds too, and
// lanes change nothing.
func TestFillEnsemble(t *testing.T) {
	h := newHoles(200, .1)
	h.by = dataset.FillMedian
	d := h.built(t)
	j := resolve(t, d, ensembleOf(protocol.Spec{TestFraction: .2}))
	want := run(t, d, j, Options{Lanes: 1})
	if got := run(t, d, j, Options{Lanes: 3}); got.ModelDigest != want.ModelDigest {
		t.Errorf("digest %.12s, on three lanes %.12s", want.ModelDigest, got.ModelDigest)
	}
	roles, err := j.Split.Assign(len(h.x), nil)
	if err != nil {
		t.Fatal(err)
	}
	if fill := fillOf(t, want.Model); !close(fill, h.statistics(roles)) {
		t.Errorf("filled with %v, want %v", fill, h.statistics(roles))
	}
}

// TestFillRefused: a feature without a value in the training rows is refused by name, and so is a job
// that fills otherwise than its dataset says.
func TestFillRefused(t *testing.T) {
	h := newHoles(40, .1)
	h.by = dataset.FillMean
	for i := range h.x {
		h.x[i][2] = math.NaN()
	}
	d := h.built(t)
	j := resolve(t, d, protocol.Spec{TestFraction: .25})
	if _, err := Run(t.Context(), j, d, Options{}); err == nil ||
		!strings.Contains(err.Error(), `feature 2 "whole" (counted from 0): the feature has no value in the`) {
		t.Errorf("error %v", err)
	}
	j.Fill = ""
	if _, err := Run(t.Context(), j, d, Options{}); err == nil || !strings.Contains(err.Error(), "missing values") {
		t.Errorf("error %v", err)
	}
}
