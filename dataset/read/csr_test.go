package read

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
)

// int64s makes an array of int64.
func int64s(values ...int64) []byte {
	return NpyBytes("<i8", false, fmt.Sprintf("(%d,)", len(values)), values)
}

func float64s(values ...float64) []byte {
	return NpyBytes("<f8", false, fmt.Sprintf("(%d,)", len(values)), values)
}

// goodCSR has the arrays of a matrix of 3 rows and 4 columns, and its labels.
func goodCSR() map[string][]byte {
	return map[string][]byte{
		"features_data": float64s(1, -2, 3), "features_indices": int64s(0, 3, 2), "features_indptr": int64s(0, 2, 2, 3),
		"features_shape": int64s(3, 4), "labels": NpyBytes("<f4", false, "(3, 2)", []float32{1, 0, 0.5, 0.5, 0, 1}),
	}
}

// archiveOf makes an archive of arrays.
func archiveOf(arrays map[string][]byte) []byte {
	var entries []any
	for name, b := range arrays {
		if b != nil {
			entries = append(entries, name, b)
		}
	}
	return NpzBytes(entries...)
}

func TestCSR(t *testing.T) {
	src, err := OpenBytes(t, "a.npz", archiveOf(goodCSR()), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rows := datasettest.Collect(t, src)
		want := [][]float64{{1, 0, 0, -2}, {0, 0, 0, 0}, {0, 0, 3, 0}}
		for i, r := range rows {
			if !r.Sparse || !slices.Equal(datasettest.Dense(r, 4), want[i]) {
				t.Errorf("row %d: %+v, want %v", i, r, want[i])
			}
		}
		if len(rows) != 3 || src.Info().Features != 4 {
			t.Errorf("%d rows of %d features", len(rows), src.Info().Features)
		}
	}
}

// TestCSROfAnotherName: --features-variable names the matrix, and columns are chosen by number.
func TestCSROfAnotherName(t *testing.T) {
	arrays := goodCSR()
	for _, part := range csrParts {
		arrays["X"+part] = arrays["features"+part]
		delete(arrays, "features"+part)
	}
	src, err := OpenBytes(t, "a.npz", archiveOf(arrays), OpenOptions{Arrays: ArrayOptions{FeaturesVariable: "X"},
		Drop: []string{"0"}})
	if err != nil {
		t.Fatal(err)
	}
	if rows := datasettest.Collect(t, src); !slices.Equal(datasettest.Dense(rows[0], 3), []float64{0, 0, -2}) ||
		src.Info().Features != 3 {
		t.Errorf("%+v", rows)
	}
	_, err = OpenBytes(t, "a.npz", archiveOf(arrays), OpenOptions{})
	datasettest.MustContain(t, err, `no array "features"`, "X_data", "--features-variable")
}

// TestDamagedCSR: each damage is an error that names the array or the row.
func TestDamagedCSR(t *testing.T) {
	for name, c := range map[string]struct {
		array string
		b     []byte
		says  []string
	}{
		"no shape":         {"features_shape", nil, []string{`lacks "features_shape"`, "X.shape"}},
		"a long shape":     {"features_shape", int64s(3, 4, 1), []string{`"features_shape" has 3 values, want 2`}},
		"no rows":          {"features_shape", int64s(0, 4), []string{"features_shape is 0 x 4"}},
		"a negative shape": {"features_shape", int64s(-3, 4), []string{`"features_shape" is -3 x 4`}},
		"a huge shape":     {"features_shape", int64s(3, 1<<40), []string{`"features_shape" is 3 x`}},
		"a shape of floats": {"features_shape", float64s(3, 4),
			[]string{`"features_shape" has elements of type float64, want integers`}},
		"more rows": {"features_shape", int64s(4, 4), []string{`"features_indptr" has 4 values, want 5`}},
		"indices of floats": {"features_indices", float64s(0, 3, 2),
			[]string{`"features_indices" has elements of type float64`}},
		"fewer indices": {"features_indices", int64s(0, 3),
			[]string{`"features_data" has 3 values and "features_indices" has 2`}},
		"two dimensions": {"features_data", NpyBytes("<f8", false, "(3, 1)", []float64{1, 2, 3}),
			[]string{`"features_data" has 2 dimensions, want one`}},
		"data of texts": {"features_data", NpyBytes("|S1", false, "(3,)", []byte("abc")),
			[]string{`"features_data" holds texts`}},
		"truncated data": {"features_data", float64s(1, 2, 3)[:90], []string{`"features_data"`, "truncated"}},
		"a column too high": {"features_indices", int64s(0, 4, 2),
			[]string{"row 0", `"features_indices" has the column 4, want 0 to 3`}},
		"a negative column": {"features_indices", int64s(0, 3, -1),
			[]string{"row 2", `"features_indices" has the column -1`}},
		"descending columns": {"features_indices", int64s(3, 0, 2), []string{"row 0", "the column 0 after 3",
			"X.sort_indices()"}},
		"a column twice": {"features_indices", int64s(3, 3, 2), []string{"row 0", "the column 3 twice",
			"X.sum_duplicates()"}},
		"a late begin": {"features_indptr", int64s(1, 2, 2, 3), []string{`"features_indptr" begins with 1, want 0`}},
		"descending ends": {"features_indptr", int64s(0, 2, 1, 3),
			[]string{"row 1", `"features_indptr" descends from 2 to 1`}},
		"an early end": {"features_indptr", int64s(0, 2, 2, 2),
			[]string{`"features_indptr" ends at 2, but "features_data" has 3 values`, "X.prune()"}},
		"a late end": {"features_indptr", int64s(0, 2, 2, 4),
			[]string{"row 2", `"features_indptr" has 4, but "features_data" has only 3 values`}},
		"missing values": {"features_data", float64s(1, numbers.NaN, 3), []string{"row 0", "feature 3", "missing"}},
		"labels of 2 rows": {"labels", NpyBytes("<f4", false, "(2, 2)", []float32{1, 0, 0.5, 0.5}),
			[]string{"features", "labels"}},
		"dense features too": {"features", NpyBytes("<f4", false, "(3, 1)", []float32{1, 0, 1}),
			[]string{`"features" is both an array and a sparse matrix`}},
	} {
		arrays := goodCSR()
		arrays[c.array] = c.b
		src, err := OpenBytes(t, "a.npz", archiveOf(arrays), OpenOptions{})
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		t.Run(name, func(t *testing.T) { datasettest.MustContain(t, err, append(c.says, "a.npz")...) })
	}
}

// TestCSRRowOfManyValues: a row with more values than columns is refused before they are read.
func TestCSRRowOfManyValues(t *testing.T) {
	arrays := goodCSR()
	arrays["features_shape"], arrays["features_indptr"] = int64s(3, 1), int64s(0, 3, 3, 3)
	src, err := OpenBytes(t, "a.npz", archiveOf(arrays), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	datasettest.MustContain(t, src.Scan(func(*dataset.Row) error { return nil }), "row 0", "3 values for 1 columns")
}

// TestCSRLongRow: rows longer than a piece are read whole.
func TestCSRLongRow(t *testing.T) {
	const n = 2*tablePiece + 7
	var values []float64
	var indices []int64
	for i := range int64(n) {
		values, indices = append(values, float64(i+1)), append(indices, 2*i)
	}
	arrays := goodCSR()
	arrays["features_data"], arrays["features_indices"] = float64s(values...), int64s(indices...)
	arrays["features_indptr"], arrays["features_shape"] = int64s(0, 0, n, n), int64s(3, 2*n)
	src, err := OpenBytes(t, "a.npz", archiveOf(arrays), OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows := datasettest.Collect(t, src)
	if !slices.Equal(rows[1].Values, values) || int64(rows[1].Columns[n-1]) != indices[n-1] || len(rows[2].Values) != 0 {
		t.Errorf("%d values of %d", len(rows[1].Values), n)
	}
}
