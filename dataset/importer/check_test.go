package importer

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/internal/errtext"
)

func TestRowErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		spoil func(*dataset.Row)
		want  dataset.RowError
		says  string
	}{
		"NaN feature": {func(r *dataset.Row) {
			r.Values = []float64{0, nan}
		}, dataset.RowError{Column: 1, Kind: "feature", Name: "b"}, "NaN"},
		"infinite": {func(r *dataset.Row) {
			r.Values = []float64{-inf, 0}
		}, dataset.RowError{Column: 0, Kind: "feature", Name: "a"}, "-Inf"},
		"too large": {func(r *dataset.Row) {
			r.Values = []float64{1e39, 0}
		}, dataset.RowError{Column: 0, Kind: "feature", Name: "a"}, "1e+39 is too large for a float32"},
		"sparse NaN": {func(r *dataset.Row) {
			*r = dataset.Row{Sparse: true, Columns: []uint32{1}, Values: []float64{nan}, Labels: r.Labels}
		}, dataset.RowError{Column: 1, Kind: "feature", Name: "b"}, "NaN"},
		"far column": {func(r *dataset.Row) {
			*r = dataset.Row{Sparse: true, Columns: []uint32{2}, Values: []float64{1}, Labels: r.Labels}
		}, dataset.RowError{Column: -1}, "found 2"},
		"equal columns": {func(r *dataset.Row) {
			r.Sparse, r.Columns = true, []uint32{1, 1}
		}, dataset.RowError{Column: -1}, "ascend"},
		"few features": {func(r *dataset.Row) {
			r.Values = r.Values[:1]
		}, dataset.RowError{Column: -1}, "found 1 features, want 2"},
		"few labels": {func(r *dataset.Row) {
			r.Labels = r.Labels[:1]
		}, dataset.RowError{Column: -1}, "found 1 labels, want 2"},
		"NaN label": {func(r *dataset.Row) {
			r.Labels = []float64{nan, 1}
		}, dataset.RowError{Column: 0, Kind: "label", Name: "c"}, "NaN"},
		"negative label": {func(r *dataset.Row) {
			r.Labels = []float64{1.25, -0.25}
		}, dataset.RowError{Column: 1, Kind: "label", Name: "d"}, "-0.25 is negative"},
		"sum of 0.9": {func(r *dataset.Row) { r.Labels = []float64{0.4, 0.5} }, dataset.RowError{Column: -1}, "sum to 0.9"},
		"sum of 1.1": {func(r *dataset.Row) { r.Labels = []float64{0.6, 0.5} }, dataset.RowError{Column: -1}, "sum to 1.1"},
		"zeros": {func(r *dataset.Row) {
			r.Labels = []float64{0, 0}
		}, dataset.RowError{Column: -1}, "every label of this sample is 0"},
	} {
		src := datasettest.SomeRows(40)
		src.Described.FeatureNames, src.Described.LabelNames = []string{"a", "b"}, []string{"c", "d"}
		c.spoil(&src.Rows[17])
		_, err := Import(src, t.TempDir(), Options{})
		var got *dataset.RowError
		if !errors.As(err, &got) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.want.File, c.want.Row, c.want.Reason = "some.csv", 17, got.Reason
		if *got != c.want {
			t.Errorf("%s: %+v, want %+v", name, *got, c.want)
		}
		datasettest.MustContain(t, err, c.says, "some.csv", "row 17", "counted from 0")
	}
}

func TestNoRows(t *testing.T) {
	_, _, err := Build(datasettest.SomeRows(0), Options{})
	datasettest.MustContain(t, err, "some.csv", "no samples")
}

func TestTolerance(t *testing.T) {
	for _, c := range []struct {
		sum, tolerance float64
		normalize, ok  bool
	}{
		{1, 0, false, true},
		{1 + 0.9e-4, 0, false, true},
		{1 - 0.9e-4, 0, false, true},
		{1 + 1.1e-4, 0, false, false},
		{1 - 1.1e-4, 0, false, false},
		{0.9, 0.2, false, true},
		{0.9, 0, true, true},
		{7, 0, true, true},
		{0, 0, true, false},
	} {
		src := datasettest.SomeRows(10)
		src.Rows[3].Labels = []float64{c.sum, 0}
		_, shards, err := Build(src, Options{Checks: Checks{Normalize: c.normalize, Tolerance: c.tolerance}})
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
		if !c.normalize || err != nil {
			continue
		}
		for _, r := range shards {
			for i := range r.N {
				if d := r.Label(i); d[0]+d[1] != 1 {
					t.Errorf("%+v: labels %v", c, d)
				}
			}
		}
	}
}

// TestLabelsWithinTheTolerance: they are rescaled once, and degrees that are negative by rounding are 0; but what was
// only rounded to float32 stays as it is.
func TestLabelsWithinTheTolerance(t *testing.T) {
	third := float64(float32(1) / 3) // 3 of them sum to 1 + 3e-8
	for _, c := range []struct {
		labels, want []float64
		rescaled     bool
		normalize    bool
	}{
		{[]float64{0.3, 0.70001}, []float64{0.3 / 1.00001, 0.70001 / 1.00001}, true, false},
		{[]float64{0.3333, 0.3333, 0.3333}, []float64{1. / 3, 1. / 3, 1. / 3}, true, false},
		{[]float64{third, third, third}, []float64{third, third, third}, false, false},
		{[]float64{-1e-17, 1}, []float64{0, 1}, false, false},
		{[]float64{-2e-5, 0.5, 0.50002}, []float64{0, 0.5 / 1.00002, 0.50002 / 1.00002}, true, false},
		{[]float64{-1e-17, 3, 1}, []float64{0, 0.75, 0.25}, false, true},
	} {
		src := datasettest.SomeRows(1)
		src.Rows[0].Labels, src.Described.Labels = c.labels, len(c.labels)
		var warned []string
		_, shards, err := Build(src, Options{Checks: Checks{Normalize: c.normalize}, Warn: func(s errtext.Text) {
			warned = append(warned, s.String())
		}})
		if err != nil {
			t.Errorf("%v: %v", c.labels, err)
			continue
		}
		for i, d := range shards[0].Label(0) {
			if d != float32(c.want[i]) {
				t.Errorf("%v: %v, want %v", c.labels, shards[0].Label(0), c.want)
				break
			}
		}
		if said := strings.Contains(strings.Join(warned, "\n"), "divided by their sum"); said != c.rescaled {
			t.Errorf("%v: said %q", c.labels, warned)
		}
	}
	for _, labels := range [][]float64{{-2e-4, 0.5, 0.5002}, {0.5, 0.4998}, {-1e-17, 0}, {-1, 2}} {
		src := datasettest.SomeRows(1)
		src.Rows[0].Labels, src.Described.Labels = labels, len(labels)
		if _, _, err := Build(src, Options{}); err == nil {
			t.Errorf("%v: no error", labels)
		}
	}
}

func TestNegativeZeroIsStoredAsZero(t *testing.T) {
	src := datasettest.SomeRows(1)
	src.Rows[0].Values = []float64{math.Copysign(0, -1), -1e-60}
	src.Rows[0].Labels = []float64{1, math.Copysign(0, -1)}
	src.Described.Features = 2
	m, shards, err := Build(src, Options{})
	if err != nil || m.NonZeros != 0 || !m.Sparse || len(shards[0].X) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	if bits := math.Float32bits(shards[0].D[1]); bits != 0 {
		t.Errorf("label bits %#x", bits)
	}
	src.Rows[0].Values[1] = 1
	if _, shards, _ = Build(src, Options{}); math.Float32bits(shards[0].X[0]) != 0 {
		t.Error("-0 was stored")
	}
}
